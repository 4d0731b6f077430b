"""Processes killed in the middle of a job: the same digest."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weir.local.file_run import run_files
from weir.plan.program import Program
from weir.script.program import parse_program
from weir.spark.offline.run_offline import run_offline
from weir.spark.session import make_session

pytestmark = pytest.mark.xdist_group("spark")

# Once in a process the function tells who runs it and waits to be killed.
CODE = """
import os, time
from pathlib import Path
import weir

@weir.udf(args=["BIGINT"], result="BIGINT")
def told(v):
    mine = Path({folder!r}, str(os.getpid()))
    if v > 5000 and not mine.exists():
        mine.touch()
        time.sleep(1.5)
    return v
"""
PROGRAM = """
IMPORT 'told.py';
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a-*.csv';
Sums = SELECT k, SUM({early}) AS s FROM A GROUP BY k WITH TUMBLING(100);
Told = SELECT {late} AS s FROM Sums;
Out = SELECT s, COUNT(*) AS n FROM Told GROUP BY s WITH TUMBLING(1000);
OUTPUT Out TO '{folder}/out.parquet';
OUTPUT Sums TO '{folder}/sums/';
"""


def prepared(folder: Path, name: str, early: str, late: str) -> Program:
    (folder / "pids").mkdir(exist_ok=True)
    (folder / "told.py").write_text(CODE.format(folder=str(folder / "pids")), "utf-8")
    for part in range(4):
        rows = "".join(f"{t},{t % 7},{t}\n" for t in range(part, 20_000, 4))
        (folder / f"a-{part}.csv").write_text(f"vs,k,v\n{rows}", "utf-8")
    text = PROGRAM.format(early=early, late=late, folder=folder / name)
    return parse_program(text, directory=folder)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


def kill_first(folder: Path, whom: Callable[[int], int], killed: list[int]) -> threading.Thread:
    """Kill what the first process that tells its number belongs to."""

    def wait() -> None:
        deadline = time.monotonic() + 120
        while not (pids := list(folder.iterdir())):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        victim = whom(int(pids[0].name))
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def check_killed(
    spark: SparkSession, folder: Path, whom: Callable[[int], int], *, early: str, late: str
) -> None:
    calm = run_files(prepared(folder, "calm", "v", "s"), directory=folder, parallelism=2)
    killed: list[int] = []
    program = prepared(folder, "killed", early, late)
    thread = kill_first(folder / "pids", whom, killed)
    came = run_offline(program, spark, directory=folder, parallelism=2)
    thread.join()
    assert killed, "nothing was killed"
    assert [o.digest for o in came.outputs] == [o.digest for o in calm.outputs]
    for file in ("out.parquet", "sums/part-00000.parquet", "sums/part-00001.parquet"):
        assert (folder / "killed" / file).read_bytes() == (folder / "calm" / file).read_bytes()
    left = sorted(p.name for p in (folder / "killed").iterdir())
    assert left == ["out.parquet", "out.parquet.digest", "sums"]


def test_a_python_worker_is_killed_at_a_source(spark: SparkSession, tmp_path: Path) -> None:
    check_killed(spark, tmp_path, lambda pid: pid, early="told(v)", late="s")


def test_an_executor_is_killed_behind_an_exchange(tmp_path: Path) -> None:
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    cluster = make_session("local-cluster[2,1,1024]")
    try:
        # The worker's daemon belongs to the executor.
        check_killed(cluster, tmp_path, lambda pid: parent(parent(pid)), early="v", late="told(s)")
    finally:
        cluster.stop()
