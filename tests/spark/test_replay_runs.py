"""Apps on real Spark: workers killed in mid-replay, a live run killed and resumed: one answer."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir
from small_app import APP, rows, spam, write
from weir.handlers.api.app_file import load_app
from weir.kernels.expressions.evaluator import PYTHON_BUILDERS

pytestmark = pytest.mark.xdist_group("spark")


def workers() -> list[int]:
    """The Python workers of this process's Spark, and of no other: children of its daemons."""
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = parent
        if b"daemon\0pyspark.worker" in words:
            daemons.add(int(folder.name))

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid in daemons if parents[pid] in daemons and is_ours(pid)]


def test_a_worker_is_killed_in_mid_replay(spark: SparkSession, tmp_path: Path) -> None:
    messages = rows(20_000)
    (tmp_path / "app.py").write_text(APP, "utf-8")
    app = load_app(tmp_path / "app.py")
    logs = {"message": str(write(tmp_path / "m.jsonl", messages))}
    calm = app.replay(logs=logs, out=tmp_path / "calm")
    assert calm.outputs[0].rows == len(spam(messages))
    killed: list[str] = []

    def kill(progress: weir.Progress) -> None:
        """Kill a worker, once, when it has begun with the second batch."""
        if progress.stage.startswith("batch 2 of 2") and not killed:
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
                killed.append(progress.stage)

    came = app.replay(
        logs=logs,
        out=tmp_path / "out",
        runner="offline",
        spark=spark,
        batch=10_000,
        parallelism=2,
        progress=kill,
    )
    assert killed
    assert came.batches == 2
    assert [o.digest for o in came.outputs] == [o.digest for o in calm.outputs]
    wanted = (tmp_path / "calm/spam.parquet").read_bytes()
    assert (tmp_path / "out/spam.parquet").read_bytes() == wanted


def test_a_live_run_that_is_killed_and_resumed(spark: SparkSession, tmp_path: Path) -> None:
    messages = rows(6000)
    (tmp_path / "app.py").write_text(APP, "utf-8")
    app = load_app(tmp_path / "app.py")
    log = write(tmp_path / "m.jsonl", messages)
    replayed = app.replay(logs={"message": str(log)}, out=tmp_path / "replayed", batch=2500)
    write(log, messages[:4000])
    program = app.program(logs={"message": f"tail://{log}"}, out=str(tmp_path / "live"))
    killed: list[int] = []
    again: list[int] = []

    def watch(progress: weir.Progress) -> None:
        """Kill the host when it has read, and note what is read when another one has begun."""
        assert isinstance(progress, weir.LiveProgress)
        busy = [host.pid for host in progress.status.hosts if host.vertices]
        if progress.events >= 4000 and busy and not killed:
            killed.append(busy[0])
            os.kill(busy[0], signal.SIGKILL)
        elif killed and busy and busy[0] not in killed:
            again.append(progress.events)

    def run(*, resume: bool) -> weir.RunReport | None:
        return weir.run_live(
            program,
            tmp_path / "store",
            spark,
            hosts=1,
            resume=resume,
            progress=watch,
            stop=None if resume else lambda: 4000 in again,
        )

    assert run(resume=False) is None
    assert killed
    with log.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(m) + "\n" for m in messages[4000:]))
    Path(f"{log}.end").touch()
    done = run(resume=True)
    assert done is not None
    assert done.outputs[0].rows == len(spam(messages))
    assert [o.digest for o in done.outputs] == [o.digest for o in replayed.outputs]
    wanted = (tmp_path / "replayed/spam.parquet").read_bytes()
    assert (tmp_path / "live/spam.parquet").read_bytes() == wanted


def test_a_wrong_answer_is_found_before_anything_is_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine in the driver is wrong, so both runners end before their workers have done a
    thing that counts."""
    builders: Any = PYTHON_BUILDERS
    monkeypatch.setitem(builders, "py_gt", builders["py_lt"])
    (tmp_path / "app.py").write_text(APP, "utf-8")
    app = load_app(tmp_path / "app.py")
    log = write(tmp_path / "m.jsonl", rows(50))
    with pytest.raises(weir.ReplayDiffers, match="judge"):
        app.replay(logs={"message": str(log)}, out=tmp_path / "out", runner="offline", spark=spark)
    assert not (tmp_path / "out" / "spam.parquet").exists()
    grows = tmp_path / "grows.jsonl"
    program = app.program(logs={"message": f"tail://{grows}"}, out=str(tmp_path / "live"))

    def watch(progress: weir.Progress) -> None:
        """Let the first events come when the job is there."""
        if progress.stage == "running" and not grows.exists():
            write(grows, rows(50))
            Path(f"{grows}.end").touch()

    store = tmp_path / "store"
    with pytest.raises(weir.ReplayDiffers):
        weir.run_live(program, store, spark, hosts=1, progress=watch)
    assert weir.read_committed(str(store), "spam").table.num_rows == 0
    assert not list(store.glob("**/commits/**/0*"))
    monkeypatch.undo()
    done = weir.run_live(program, store, spark, hosts=1, resume=True)
    assert done is not None and done.outputs[0].rows == len(spam(rows(50)))


def test_a_check_offline_runs_the_serial_loop(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP, "utf-8")
    app = load_app(tmp_path / "app.py")
    log = write(tmp_path / "m.jsonl", rows(3000))
    report = app.replay(
        logs={"message": str(log)}, out=tmp_path / "out", runner="offline", spark=spark, check=True
    )
    assert (report.events, report.shadow) == (3000, 3000)
