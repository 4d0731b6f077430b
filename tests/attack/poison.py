"""Functions that kill or stop their host on one row, and kills of a healthy job."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from attack.attacks import attack
from commands import END_LIMIT, finished, wait_for, weir_run
from weir.files.object_store import ObjectStore
from weir.job.status import JobStatus, read_status
from weir.job.story import read_story

RULES = """
import ctypes, os, time
import weir

@weir.udf
def f(v: int) -> int:
    if v == 12395 and not os.path.exists({mended!r}):
        {harm}
    return v
"""
PROGRAM = """
IMPORT 'rules.py';
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.csv';
Sums = SELECT k, SUM(v) AS v, MAX(v) AS last FROM A GROUP BY k WITH TUMBLING(100);
Out = SELECT k, f(last) AS last, v FROM Sums;
OUTPUT Out TO 'out.csv';
"""
LIVE = ("--runner", "live", "--store", "store")
EVERYTHING_KEPT = "everything is kept"


def prepared(folder: Path, harm: str, program: str = PROGRAM) -> Path:
    """A program whose function does harm at one row of 20 000, until it is mended."""
    mended = folder / "mended"
    (folder / "rules.py").write_text(RULES.format(mended=str(mended), harm=harm), "utf-8")
    rows = "".join(f"{t},{t % 7},{t}\n" for t in range(20_000))
    (folder / "a.csv").write_text(f"vs,k,v\n{rows}", "utf-8")
    (folder / "p.weir").write_text(program, "utf-8")
    return mended


def local_answer(folder: Path) -> bytes:
    """What the run without harm writes."""
    (folder / "mended").touch()
    finished(weir_run(folder, "p.weir"))
    wanted = (folder / "out.csv").read_bytes()
    (folder / "out.csv").unlink()
    (folder / "mended").unlink()
    return wanted


def failing(process: subprocess.Popen[str]) -> str:
    """The one message of a run that must end with an error."""
    _, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == 1, (process.returncode, err)
    assert "Traceback" not in err, err
    (line,) = (line for line in err.splitlines() if line.startswith("weir: error: "))
    return line


def check_poison(folder: Path, harm: str, *causes: str) -> str:
    """The job ends and names the row; mended and resumed, it has the right answer."""
    mended = prepared(folder, harm)
    wanted = local_answer(folder)
    error = failing(weir_run(folder, "p.weir", *LIVE))
    place = "killed its host 3 times with the rows that waited for event time 12400"
    for part in (place, "f(last) AS last", *causes, EVERYTHING_KEPT, "--resume"):
        assert part in error, error
    deaths = [
        s for s in read_story(ObjectStore(str(folder / "store"))) if "its host died" in s.what
    ]
    assert len(deaths) <= 6, deaths
    mended.touch()
    finished(weir_run(folder, "p.weir", *LIVE, "--resume"))
    assert (folder / "out.csv").read_bytes() == wanted
    return f"{len(deaths)} deaths, then: {error.removeprefix('weir: error: ')[:160]}…"


@attack("12.8")
def a_function_that_exits(folder: Path) -> str:
    """A function that leaves the process on one row."""
    return check_poison(folder, "os._exit(3)", "exit code 3")


@attack("12.8")
def a_function_that_exits_with_0(folder: Path) -> str:
    """A function that leaves the process on one row as if all were well."""
    return check_poison(folder, "os._exit(0)", "exit code 0")


@attack("12.8")
def a_function_that_crashes(folder: Path) -> str:
    """A function that crashes the process on one row."""
    return check_poison(folder, "ctypes.string_at(0)", "killed by signal 11")


@attack("12.8")
def a_function_that_takes_all_memory(folder: Path) -> str:
    """A function that is killed for its memory on one row."""
    return check_poison(folder, "os.kill(os.getpid(), 9)", "killed by signal 9")


@attack("12.8")
def a_function_that_sleeps(folder: Path) -> str:
    """A function that sleeps for 70 s on one row."""
    return check_slow(folder, "time.sleep(70)", 70)


@attack("12.8")
def a_function_that_holds_the_lock(folder: Path) -> str:
    """A function that holds Python's lock for 20 s on one row."""
    return check_slow(folder, "ctypes.PyDLL(None).sleep(20)", 20)


def check_slow(folder: Path, harm: str, seconds: int) -> str:
    prepared(folder, harm)
    wanted = local_answer(folder)
    process = weir_run(folder, "p.weir", *LIVE)
    seen = wait_for(folder, lambda s: longest(s) > seconds / 2)
    shown = subprocess.run(
        [sys.executable, "-m", "weir.cli", "status", "store"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "has been at one step for" in " ".join(shown.split()), shown
    finished(process)
    assert (folder / "out.csv").read_bytes() == wanted
    status = read_status(ObjectStore(str(folder / "store")))
    assert status is not None and status.recoveries == 0, status
    return f"no recovery; status had shown a step of {longest(seen):.0f} s"


def longest(status: JobStatus) -> float:
    return max((v.step_seconds or 0.0 for v in status.vertices), default=0.0)


@attack("12.8")
def a_step_beyond_its_limit(folder: Path) -> str:
    """A function that sleeps for longer than step_limit allows."""
    program = "SET step_limit = '3s';" + PROGRAM
    prepared(folder, "time.sleep(600)", program)
    began = time.monotonic()
    error = failing(weir_run(folder, "p.weir", *LIVE))
    assert "has been at one step for" in error and "step_limit is 3 s" in error, error
    assert EVERYTHING_KEPT in error
    return f"ended after {time.monotonic() - began:.0f} s: {error.removeprefix('weir: error: ')}"


HEALTHY = """
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://20000?rows=300000&keys=5' WITH (vs = t);
SET strategy = 'checkpoint(60s)';
Sums = SELECT k, SUM(value) AS s FROM R GROUP BY k WITH TUMBLING(1s);
OUTPUT Sums TO 'out.csv';
"""


@attack("12.8")
def three_kills_of_a_healthy_job(folder: Path) -> str:
    """Five kills of the same host between two checkpoints of a healthy job."""
    (folder / "p.weir").write_text(HEALTHY, "utf-8")
    wanted = local_answer(folder)
    process = weir_run(folder, "p.weir", *LIVE, "--hosts", "1")
    killed: set[int] = set()
    for _ in range(5):
        status = wait_for(folder, lambda s: bool({h.pid for h in s.hosts if h.vertices} - killed))
        pid = next(h.pid for h in status.hosts if h.pid not in killed)
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
    finished(process)
    assert (folder / "out.csv").read_bytes() == wanted
    story = read_story(ObjectStore(str(folder / "store")))
    blamed = sum("its host died" in line.what for line in story)
    lost = sum("lost: killed by signal 9" in line.what for line in story)
    assert lost == 5, [line.what for line in story]
    return f"5 kills, {blamed} of them in a step; same bytes"


@attack("12.8")
def a_callback_that_exits(folder: Path) -> str:
    """A callback that leaves the process on one row."""
    (folder / "run.py").write_text(CALLBACK, "utf-8")
    prepared(folder, "pass", PROGRAM.replace("'out.csv'", "'callback:'"))
    run = subprocess.run(
        [sys.executable, "run.py"], cwd=folder, capture_output=True, text=True, timeout=END_LIMIT
    )
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout.splitlines()[-1])
    assert "OUTPUT Out TO 'callback:'" in said["error"], said
    assert "killed its host 3 times" in said["error"] and "exit code 9" in said["error"], said
    return str(said["error"])[:160] + "…"


CALLBACK = """
import json, os
from pathlib import Path
import weir

def told(partition, seq, rows):
    if 12395 in rows.column("last").to_pylist():
        os._exit(9)

try:
    weir.run_live(Path("p.weir"), "store", hosts=1, callbacks={"Out": told})
    print(json.dumps({"error": ""}))
except weir.RunError as error:
    print(json.dumps({"error": str(error)}))
"""
