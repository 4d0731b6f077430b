"""User code that gives what it should not, changes under a job, or depends on its process."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from attack.attacks import attack
from commands import END_LIMIT, finished, wait_for, weir_run

HEAD = "import hashlib, weir\n"
PROGRAM = """IMPORT 'rules.py';
STREAM A (vs BIGINT, v BIGINT, k STRING) FROM '{path}';
B = {query};
OUTPUT B TO 'b.csv';
"""


def written(folder: Path, rules: str, query: str, rows: int = 100, path: str = "a.jsonl") -> None:
    (folder / "rules.py").write_text(HEAD + rules, encoding="utf-8")
    (folder / "p.weir").write_text(PROGRAM.format(path=path, query=query), encoding="utf-8")
    lines = (json.dumps({"vs": i, "v": i, "k": f"k{i % 7}"}) for i in range(rows))
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def refused(folder: Path, code: int, *wanted: str, options: tuple[str, ...] = ()) -> str:
    """The message of a run that must fail so, in a line or two, and write nothing."""
    process = weir_run(folder, "p.weir", *options)
    out, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == code, (process.returncode, out, err)
    assert "Traceback" not in err and not out, (out, err)
    assert not (folder / "b.csv").exists()
    for text in wanted:
        assert text in err, (text, err)
    return err.strip().splitlines()[-1]


FLOAT_FOR_INT = """
@weir.udf
def half(v: int) -> int:
    return v / 2 if v == 51 else v // 2

@weir.aggregate
class Mean:
    def zero(self) -> int: return 0
    def add(self, state: int, v: int) -> int: return state + v
    def result(self, state: int) -> int: return state / 10

@weir.operator(columns={"v": "BIGINT"})
class Emits:
    def on_event(self, event, ctx): ctx.emit(v=event.v / 2)

@weir.operator(columns={"v": "BIGINT"})
class Keeps:
    total: int = 0
    def on_event(self, event, ctx): self.total += 0.5
"""


@attack("12.5")
def float_for_bigint(folder: Path) -> str:
    """Functions, aggregates and operators typed BIGINT give floats."""
    written(folder, FLOAT_FOR_INT, "SELECT half(v) AS v FROM A")
    told = refused(folder, 1, "half (", "rules.py:3)", "'v': 51", "BIGINT, not 25.5 (float)")
    for query, shown in (
        ("SELECT Mean(v) AS v FROM A WITH TUMBLING(10)", "BIGINT, not 4.5 (float)"),
        ("PROCESS A USING Emits()", "column v must be BIGINT, not 0.0 (float)"),
        ("PROCESS A USING Keeps()", "its state `total` must be BIGINT, not 0.5 (float)"),
    ):
        written(folder, FLOAT_FOR_INT, query)
        refused(folder, 1, shown)
    return told


SLOW = """
import time

@weir.udf
def mark(v: int) -> int:
    time.sleep(0.0005)
    return v + {}
"""


@attack("12.6")
def changed_between_stop_and_resume(folder: Path) -> str:
    """User code is changed between stop and --resume."""
    live = ("--runner", "live", "--store", "store", "--cut", "200")
    written(folder, SLOW.format(1), "SELECT mark(v) AS v FROM A", rows=30_000)
    job = weir_run(folder, "p.weir", *live)
    wait_for(folder, lambda status: status.events > 2000)
    job.send_signal(signal.SIGINT)
    assert job.wait(END_LIMIT) == 130, job.communicate()
    job.communicate()
    (folder / "rules.py").write_text(HEAD + SLOW.format(1000), encoding="utf-8")
    told = refused(
        folder, 2, "rules.py changed", "--accept-code-changes", options=(*live, "--resume")
    )
    finished(weir_run(folder, "p.weir", *live, "--resume", "--accept-code-changes"))
    story = subprocess.run(
        [sys.executable, "-m", "weir.cli", "story", "store"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "goes on with other code: rules.py changed" in story, story
    rows = (folder / "b.csv").read_text(encoding="utf-8").splitlines()[1:]
    new = [int(row.split(",")[2]) - int(row.split(",")[0]) == 1000 for row in rows]
    # New rows follow old ones; how many of each is the moment's business.
    assert len(rows) == 30_000 and new == sorted(new), (len(rows), sum(new))
    return f"{told} ({len(rows) - sum(new)} old rows, {sum(new)} new)"


DEPENDS = """
import os, time
calls = []

@weir.udf
def hashed(k: str) -> int: return hash(k) % 1000

@weir.udf
def ordered(k: str) -> str: return ",".join({k, k + "1", k + "2", k + "3"})

@weir.udf
def zone(k: str) -> str: return time.strftime("%H:%M", time.localtime(0))

@weir.udf
def process(k: str) -> int: return os.getpid()

@weir.udf
def counted(k: str) -> int:
    calls.append(k)
    return len(calls)

@weir.udf
def steady(k: str) -> str: return hashlib.sha256(k.encode()).hexdigest()

@weir.operator(columns={"n": "BIGINT"})
class Hidden:
    def __init__(self): self.n = 0
    def on_event(self, event, ctx):
        self.n += 1
        ctx.emit(n=self.n)
"""


def found_by_check(folder: Path, queries: tuple[str, ...], *options: str) -> str:
    for query in queries:
        written(folder, DEPENDS, query)
        told = refused(folder, 1, "in a second run it is", options=("--check", *options))
    written(folder, DEPENDS, "SELECT steady(k) AS v FROM A")
    finished(weir_run(folder, "p.weir", "--check", *options))
    return told


@attack("12.7")
def hidden_dependence(folder: Path) -> str:
    """Functions depend on the hash seed, sets, time zone, process, calls before, hidden state."""
    functions = ("hashed", "ordered", "zone", "process", "counted")
    queries = tuple(f"SELECT {name}(k) AS v FROM A" for name in functions)
    return found_by_check(folder, (*queries, "REDUCE A ON k USING Hidden()"))


@attack("12.7")
def hidden_dependence_on_spark(folder: Path) -> str:
    """The same on Spark, for the hash seed and calls before."""
    queries = tuple(f"SELECT {name}(k) AS v FROM A" for name in ("hashed", "counted"))
    return found_by_check(folder, queries, "--runner", "offline", "--master", "local[2,4]")
