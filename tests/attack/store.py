"""Attacks on a live job's store: objects lost, changed, swapped and added, in real runs."""

import atexit
import functools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from attack.attacks import attack
from commands import END_LIMIT, wait_for, weir_run

ROWS = 900
PROGRAM = f"""
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://100?rows={ROWS}&keys=3' WITH (vs = t);
Sums = SELECT k, SUM(value) AS s, COUNT(*) AS n FROM R GROUP BY k WITH TUMBLING(100ms);
OUTPUT Sums TO 'sums.csv';
"""
LIVE = ("--runner", "live", "--store", "store", "--hosts", "2", "--parallelism", "2")


def weir(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weir.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=END_LIMIT,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str], *names: str) -> str:
    """The one line of an error that names what is wrong, without a traceback."""
    said = done.stdout + done.stderr
    assert done.returncode in (1, 2), f"exit code {done.returncode}: {said}"
    assert "Traceback" not in said, said
    for name in names:
        assert name in said, f"'{name}' is not named: {said}"
    return next(line for line in said.splitlines() if any(n in line for n in names))[:160]


@functools.cache
def truth() -> bytes:
    """What the local runner writes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.weir").write_text(PROGRAM)
        done = weir(folder, "run", "job.weir")
        assert done.returncode == 0, done.stderr
        return (folder / "sums.csv").read_bytes()


@functools.cache
def _kept(stopped: bool) -> Path:
    """A job that has run to its end, or was stopped in its middle; made once."""
    folder = Path(tempfile.mkdtemp(prefix="weir-attacked-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "job.weir").write_text(PROGRAM)
    process = weir_run(folder, "job.weir", *LIVE)
    if stopped:
        wait_for(folder, lambda status: status.events > ROWS // 3)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == (130 if stopped else 0), err
    return folder


def copy_of(folder: Path, *, stopped: bool = False) -> Path:
    """A copy of such a job, to be harmed; its store."""
    shutil.copytree(_kept(stopped), folder, dirs_exist_ok=True)
    return folder / "store"


def objects(store: Path, kind: str) -> list[Path]:
    return sorted(p for p in (store / kind).rglob("*") if p.is_file())


def resumed(folder: Path) -> subprocess.CompletedProcess[str]:
    return weir(folder, "run", "job.weir", *LIVE, "--resume", "--json")


def same_or_clear(folder: Path, *names: str) -> str:
    """A resumed job gives the same bytes, or ends with an error that names one of the objects
    which are lost or changed."""
    done = resumed(folder)
    if done.returncode == 0:
        assert (folder / "sums.csv").read_bytes() == truth(), "other rows"
        return "same bytes"
    named = [name for name in names if name in done.stdout + done.stderr]
    return refused(done, *(named[:1] or names))


# --- 1: missing commits ---------------------------------------------------------------------------


@attack("12.1")
def a_commit_is_lost_while_the_job_runs(folder: Path) -> str:
    """A commit is lost while the job runs."""
    (folder / "job.weir").write_text(PROGRAM)
    process = weir_run(folder, "job.weir", *LIVE)
    wait_for(folder, lambda status: len(objects(folder / "store", "commits")) > 4)
    lost = objects(folder / "store", "commits")[1]
    lost.unlink()
    out, err = process.communicate(timeout=END_LIMIT)
    assert not (folder / "sums.csv").exists()
    return refused(subprocess.CompletedProcess([], process.returncode, out, err), lost.name)


@attack("12.1")
def a_commit_is_lost_between_stop_and_resume(folder: Path) -> str:
    """A commit is lost between stop and --resume."""
    lost = objects(copy_of(folder, stopped=True), "commits")[1]
    lost.unlink()
    return refused(resumed(folder), lost.name)


@attack("12.1")
def a_commit_of_a_finished_job_is_lost(folder: Path) -> str:
    """A commit of a finished job is lost: its good file stays, readers say so."""
    lost = objects(copy_of(folder), "commits")[2]
    lost.unlink()
    said = refused(resumed(folder), lost.name)
    assert (folder / "sums.csv").read_bytes() == truth()
    refused(weir(folder, "read", "store", "Sums", "--to", "so-far.csv"), lost.name)
    assert not (folder / "so-far.csv").exists()
    refused(weir(folder, "read", "store", "Sums"), lost.name)
    refused(weir(folder, "store", "store", "--verify"), lost.name)
    return said


# --- 2: objects under other names -----------------------------------------------------------------


def _replaced(folder: Path, kind: str) -> str:
    store = copy_of(folder)
    one, other = objects(store, kind)[1:3]
    shutil.copy(one, other)
    said = refused(resumed(folder), other.name)
    assert (folder / "sums.csv").read_bytes() == truth()
    refused(weir(folder, "read", "store", "Sums", "--to", "so-far.csv"), other.name)
    refused(weir(folder, "store", "store", "--verify", "--json"), other.name)
    return said


@attack("12.2")
def a_part_is_copied_over_another(folder: Path) -> str:
    """A part is copied over another."""
    return _replaced(folder, "parts")


@attack("12.2")
def a_commit_is_copied_over_another(folder: Path) -> str:
    """A commit is copied over another."""
    return _replaced(folder, "commits")


def _harm_all(folder: Path, kind: str, harm: Callable[[Path, Path], None]) -> str:
    """Harm to all objects of a kind of a job that was stopped, pair by pair."""
    store = copy_of(folder, stopped=True)
    found = objects(store, kind)
    for one, other in zip(found[::2], found[1::2], strict=False):
        harm(one, other)
    return same_or_clear(folder, "no checkpoint that can be read", *(p.name for p in found))


def _swap(one: Path, other: Path) -> None:
    body = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(body)


@attack("12.2")
def checkpoints_are_swapped(folder: Path) -> str:
    """Checkpoints are swapped."""
    return _harm_all(folder, "checkpoints", _swap)


@attack("12.2")
def segments_are_copied_over_others(folder: Path) -> str:
    """Segments are copied over others."""
    return _harm_all(folder, "streams", lambda one, other: shutil.copy(one, other))


@attack("12.2")
def segments_and_checkpoints_are_truncated(folder: Path) -> str:
    """Segments are cut in half, checkpoints are lost."""
    store = copy_of(folder, stopped=True)
    names = [p.name for kind in ("checkpoints", "streams") for p in objects(store, kind)]
    for path in objects(store, "streams"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for path in objects(store, "checkpoints")[::2]:
        path.unlink()
    return same_or_clear(folder, *names)


@attack("12.2")
def the_last_records_are_lost(folder: Path) -> str:
    """The manager's last records are lost."""
    store = copy_of(folder, stopped=True)
    lost = [p for p in objects(store, "records") if p.name != "latest"][-3:]
    for path in lost:
        path.unlink()
    return refused(resumed(folder), lost[-1].name)


@attack("12.2")
def a_store_of_another_format(folder: Path) -> str:
    """The store is of another format."""
    store = copy_of(folder)
    body = (store / "job").read_bytes()
    (store / "job").write_bytes(body.replace(b"format 6", b"format 99", 1))
    for command in (("status",), ("read",), ("store", "--verify"), ("story",)):
        done = weir(folder, command[0], "store", *command[1:])
        if command[0] in ("read", "store"):
            refused(done, "format 7")
        assert "Traceback" not in done.stderr
    return refused(resumed(folder), "format 7")


# --- 13: what somebody left in the store ----------------------------------------------------------


@attack("12.13")
def somebody_left_files_in_the_store(folder: Path) -> str:
    """Garbage in records/latest, stray files in every folder of the store."""
    store = copy_of(folder, stopped=True)
    (store / "records" / "latest").write_bytes(b"\xff\xfe not a record")
    for name in (
        "records/README",
        "records/.DS_Store",
        "checkpoints/x",
        "checkpoints/1.0/x-y",
        "streams/0.0/notes",
        "parts/sink.0/a-b-c",
        "commits/sink.0/last",
        "junk",
        "records/999999999999",
        "commits/sink.0/99999999",
        "story/x",
    ):
        path = store / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"\x00\xff somebody's")
    for command in (("status",), ("read",), ("store",), ("store", "--verify"), ("story",)):
        done = weir(folder, command[0], "store", *command[1:])
        assert done.returncode == 0, (command, done.stderr)
    done = resumed(folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "sums.csv").read_bytes() == truth()
    assert (store / "commits/sink.0/last").exists(), "it is not ours to delete"
    return f"same bytes, {json.loads(done.stdout)['outputs'][0]['rows']} rows"
