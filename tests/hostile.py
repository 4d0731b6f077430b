"""Names, values and files made to do harm, and what may be seen of them."""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import typer.main

from weir import cli
from weir.events.batch import Batch
from weir.events.types import STRING
from weir.files.object_store import ObjectStore
from weir.job.commit_log import Commit, encode_part
from weir.job.history import History, Sample
from weir.job.job_identity import Decisions, JobRecord, encode_job, output_record
from weir.job.ledger import Ledger
from weir.job.plan_drawing import DrawnOperator, DrawnOutput, DrawnPlan, DrawnStage, DrawnVertex
from weir.job.status import (
    STATUS,
    HostStatus,
    JobStatus,
    VertexStatus,
)
from weir.job.story import StoryLine, story_key
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.reliable.codec import encode_record
from weir.reliable.digest import digest
from weir.reliable.object_names import HISTORY, JOB, PLAN, commit_key, part_key, record_key
from weir.reliable.objects import ObjectRef
from weir.runtime.outputs import output_schema
from weir.script.program import parse_program

EVIL = "e\x1b[31m[/x]\x1b]0;title\x07\x9b2J\x7f\x08\r\u202e\u2066[bold]é日"
"""Colours, a window's title, C1, DEL, a step back, other directions; and what is harmless."""

EVIL_FILE = EVIL.replace("/", "").replace("[", "")
"""Such a name for a file, which is no pattern."""

# Written apart from `wording.py`: what no terminal may be sent.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harm_in(text: str) -> str:
    """What a terminal would obey; empty if nothing."""
    found = RAW.search(text)
    return f"{found[0]!r} in {text[max(0, found.start() - 60) :][:120]!r}" if found else ""


PROGRAM = f"""
STREAM A (vs BIGINT, v STRING) FROM 'in {EVIL_FILE}.jsonl' WITH (late = 'drop', bad = 'skip');
"B {EVIL}" = SELECT v AS "v {EVIL}" FROM A;
OUTPUT "B {EVIL}" TO 'out {EVIL_FILE}.jsonl';
OUTPUT LATE OF A TO 'late {EVIL_FILE}.csv';
"""


def hostile_folder(folder: Path) -> None:
    """Programs, inputs, outputs, cases, a store and other things, in an empty folder."""
    rows = [{"vs": 3, "v": EVIL}, {"vs": 1, "v": "late"}, {"vs": 5, "v": None}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"in {EVIL_FILE}.jsonl").write_text(lines, encoding="utf-8")
    (folder / f"p {EVIL_FILE}.weir").write_text(PROGRAM, encoding="utf-8")
    (folder / "p.weir").write_text(PROGRAM, encoding="utf-8")
    (folder / "a.jsonl").write_text(lines, encoding="utf-8")
    program = "STREAM A (vs BIGINT, v STRING) FROM 'a.jsonl' WITH (late = 'drop');\n"
    (folder / "plain.weir").write_text(program + "OUTPUT A TO 'a.csv';", encoding="utf-8")
    (folder / "code.py").write_text("X = 1\n", encoding="utf-8")
    (folder / "code.weir").write_text(f"IMPORT 'code.py';\n{program}", encoding="utf-8")
    (folder / "wrong.weir").write_text(f"X = SELECT '{EVIL}' {EVIL};", encoding="utf-8")
    (folder / "binary.weir").write_bytes(os.urandom(4096))
    (folder / "empty.weir").touch()
    for name, value in (("x.csv", EVIL), ("y.csv", "other")):
        (folder / name).write_text(f'vs,ve,v\n1,2,"{value}"\n', encoding="utf-8", newline="")
        carried = {"digest": "0-1", "rows": 1, "time": "BIGINT", "lifetime": True}
        sidecar = json.dumps({**carried, "columns": [["v", "STRING"]]})
        (folder / f"{name}.digest").write_text(sidecar, encoding="utf-8")
    (folder / "torn.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    (folder / "torn.arrow").write_bytes(b"ARROW1\0\0" + bytes(100))
    (folder / "run.json").write_text(json.dumps({"outputs": [_output(EVIL)]}), encoding="utf-8")
    (folder / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    case = {"id": EVIL, "program": "Out = SELECT v FROM A;", "inputs": {"A": rows}, "expected": []}
    (folder / "cases.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    (folder / "deep.jsonl").write_text("[" * 100_000 + "\n", encoding="utf-8")
    (folder / "folder").mkdir()
    (folder / "folder" / "part-00000.parquet").write_bytes(b"nothing")
    (folder / "file").write_text("nothing", encoding="utf-8")
    _hostile_store(folder / "store")
    (folder / "no store").mkdir()
    with open(os.fsencode(folder) + b"/\xff\xfe.weir", "wb") as file:
        file.write(program.encode() + b"OUTPUT A TO 'b.csv';")


def _output(name: str) -> dict[str, object]:
    return {"name": name, "kind": "rows", "path": name, "rows": 1, "digest": name}


def _hostile_store(folder: Path) -> None:
    """What a live job would leave, if everything about it were meant to do harm."""
    store = ObjectStore(str(folder))
    program = parse_program(PROGRAM)
    outputs = tuple(output_record(o, output_schema(o), kept=True) for o in program.outputs)
    store.put(JOB, encode_job(JobRecord(PlanFingerprint(), Decisions(), outputs)), new=True)
    batch = Batch(np.array([3]), np.array([4]), (pa.array([EVIL], STRING),))
    part, total = part_key("sink.0", 1, 0), digest(batch)
    body = encode_part(part, [(0, batch)])
    store.put(part, body)
    ref, key = ObjectRef.of(part, body), commit_key("sink.0", 0)
    commit = Commit(0, 1, ref, 1, (1,), f"{total.total:032x}", total.count)
    store.put(key, encode_record(key, commit), new=True)
    store.put(record_key(0), Ledger(number=0).encode(), new=True)
    vertex = VertexStatus(
        EVIL, EVIL, EVIL, EVIL, 1, 2, 1e300, None, None, (1,), (2,), 2**62, 2**62, None
    )
    host = HostStatus(EVIL, 1, EVIL, EVIL, (EVIL, "0.0"))
    status = JobStatus(EVIL, 1e300, 1, 0, 2, None, (vertex,), (host,), trouble=EVIL, error=EVIL)
    store.put(STATUS, encode_record(STATUS, status))
    stage = DrawnStage(0, EVIL, EVIL, 1, (DrawnOperator(EVIL, EVIL, EVIL),), (), EVIL, EVIL, EVIL)
    writes = DrawnVertex(EVIL, EVIL, 0, (), (EVIL,), EVIL)
    reads = DrawnVertex("sink.0", "sink", 0, (EVIL,), (), EVIL)
    plan = DrawnPlan((stage,), (DrawnOutput(EVIL, "rows", EVIL, (0,)),), (writes, reads))
    store.put(PLAN, encode_record(PLAN, contradictory_plan(plan)))
    sample = Sample(1e300, 1.0, 1e300, 1, (1e300,), (2**62,), (2**62,), (1e300,), ({0: 1},))
    history = contradictory_history(History(samples=(sample, sample)))
    store.put(HISTORY, encode_record(HISTORY, history))
    told = [StoryLine(1e300, EVIL, EVIL), StoryLine(1.0, "0.0", f"{EVIL}\nweir: error: forged")]
    store.put(story_key(1, 0), encode_record(story_key(1, 0), told))
    store.close()


def contradictory_plan(plan: DrawnPlan) -> DrawnPlan:
    """Take the writers of a plan away; their readers stay."""
    mute = [msgspec.structs.replace(v, outputs=()) for v in plan.vertices]
    return msgspec.structs.replace(plan, vertices=tuple(mute))


def contradictory_history(history: History) -> History:
    """Take the delays out of every other sample."""
    torn = [
        msgspec.structs.replace(s, delays=()) if n % 2 else s for n, s in enumerate(history.samples)
    ]
    return msgspec.structs.replace(history, samples=tuple(torn))


# --- commands in this process --------------------------------------------------------------------

_COMMAND = typer.main.get_command(cli.app)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def invoke(words: list[str], *, terminal: bool = True) -> tuple[object, str, str]:
    """How a command ends, and what it says; the exit code, or what it raised instead. Its stdout
    is a `terminal`, where what is for programs must do no harm either."""
    out = (Terminal if terminal else io.TextIOWrapper)(io.BytesIO(), "utf-8", "surrogatepass")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogatepass")
    ended: object = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            _COMMAND.main(words, "weir")
        except SystemExit as exit_:
            ended = exit_.code
        except BaseException as error:
            ended = error
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "surrogatepass"))  # type: ignore[attr-defined]
    return ended, texts[0], texts[1]
