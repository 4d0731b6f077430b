"""Attacks on the command line: what it shows, what it leaves behind, and how it is ended."""

from __future__ import annotations

import os
import pty
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from attack.attacks import attack
from commands import END_LIMIT, finished, wait_for, weir_run
from hostile import EVIL, EVIL_FILE, harm_in, hostile_folder
from weir.files.object_store import ObjectStore
from weir.job.commit_log import decode_commit
from weir.job.status import JobStatus
from weir.job.story import read_story
from weir.reliable.codec import encode_record
from weir.reliable.object_names import commit_key, part_key
from weir.reliable.objects import ObjectRef

ROWS = 60_000
PROGRAM = f"""
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://3000?rows={ROWS}&keys=5' WITH (vs = t);
Sums = SELECT k, SUM(value) AS s FROM R GROUP BY k WITH TUMBLING(1s);
OUTPUT Sums TO 'sums.csv';
SET strategy = 'checkpoint(1s)';
"""
KINDS = ("parts", "checkpoints", "records")
LIVE = ("p.weir", "--runner", "live", "--store", "store")
LONG = """
STREAM R (t BIGINT, value BIGINT) FROM 'rate://1000000?rows=2000000000' WITH (vs = t);
S = SELECT COUNT(*) AS n FROM R WITH TUMBLING(1h);
OUTPUT S TO 'a.csv';
"""


@contextmanager
def live_job(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A live job that has read some rows, in a group of its own among the system's processes."""
    (folder / "p.weir").write_text(PROGRAM, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "weir.cli", "run", *LIVE, "--json"],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for(folder, _reads)
        yield process
    finally:
        process.kill()
        process.communicate()


def _reads(status: JobStatus) -> bool:
    return status.state == "running" and status.events > ROWS // 10


def resumed(folder: Path) -> str:
    """Go on with the job; its file must be that of the local runner."""
    assert finished(weir_run(folder, *LIVE, "--resume")) == finished(
        weir_run(folder, "p.weir", "--directory", "local")
    )
    assert (folder / "sums.csv").read_bytes() == (folder / "local" / "sums.csv").read_bytes()
    assert not list((folder / "store" / ".writing").iterdir()), "something is left in .writing"
    return "--resume gives the right answer"


def weir(folder: Path, *words: str, **given: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weir.cli", *words]
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command, cwd=folder, capture_output=True, text=True, timeout=END_LIMIT, check=False, **given
    )


def assert_clean(done: subprocess.CompletedProcess[str], code: int, told: str) -> None:
    assert done.returncode == code, (done.returncode, done.stderr)
    assert told in done.stderr, done.stderr
    assert "bug in Weir" not in done.stderr and "Traceback" not in done.stderr
    assert "\tat " not in done.stderr and done.stderr.count("\n") <= 3, done.stderr
    assert not harm_in(done.stdout) and not harm_in(done.stderr)


@attack("12.11")
def writes_that_fail(folder: Path) -> str:
    """A store takes no objects for half a minute: nothing piles up, the job ends with a word."""
    with live_job(folder) as process:
        while not (folder / "store" / "parts").exists():
            time.sleep(0.05)
        for name in KINDS:
            (folder / "store" / name).rename(folder / name)
            (folder / "store" / name).touch()
        began = time.monotonic()
        _, err = process.communicate(timeout=END_LIMIT)
        took = time.monotonic() - began
    assert process.returncode == 1 and "--resume" in err and "Traceback" not in err, err
    assert took < 55, f"half a minute took {took:.0f} s"
    left = [p for p in (folder / "store" / ".writing").rglob("*") if p.is_file()]
    assert len(left) <= 3 and all(p.name == "owner" for p in left), left
    for name in KINDS:
        (folder / "store" / name).unlink()
        (folder / name).rename(folder / "store" / name)
    return f"ended after {took:.0f} s, nothing left; {resumed(folder)}"


@attack("12.11")
def a_run_that_is_killed(folder: Path) -> str:
    """kill -9 of a local run: the next one removes its staging folder, but none in use."""
    (folder / "long.weir").write_text(LONG, encoding="utf-8")
    (folder / "p.weir").write_text(PROGRAM, encoding="utf-8")
    runs = [weir_run(folder, "long.weir") for _ in range(2)]
    while len(list(folder.glob(".a.csv.*.weir/owner"))) < 2:
        time.sleep(0.05)
    runs[0].kill()
    runs[0].communicate()
    assert len(list(folder.glob(".a.csv.*.weir"))) == 2
    finished(weir_run(folder, "p.weir"))
    kept = len(list(folder.glob(".a.csv.*.weir")))
    runs[1].terminate()
    runs[1].communicate(timeout=END_LIMIT)
    assert kept == 1 and runs[1].returncode == 143
    assert not list(folder.glob(".*")), "something is left behind"
    return "one went, the one in use stayed"


@attack("12.13")
def the_jvm_is_killed(folder: Path) -> str:
    """kill -9 of the JVM under a live job."""
    with live_job(folder) as process:
        jvm = subprocess.run(
            ["pgrep", "-P", str(process.pid), "java"], capture_output=True, text=True, check=True
        )
        os.kill(int(jvm.stdout.split()[0]), signal.SIGKILL)
        _, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == 1, err
    assert "Spark's JVM is gone" in err and "--resume" in err and "Errno" not in err, err
    return f"told; {resumed(folder)}"


@attack("12.13")
def too_few_file_handles(folder: Path) -> str:
    """ulimit -n 64, 128 and 256, with Spark; 16, with three hundred files."""
    (folder / "p.weir").write_text(PROGRAM, encoding="utf-8")
    for most in (64, 128, 256):
        for words in (("p.weir", "--runner", "offline"), LIVE):
            assert_clean(weir(folder, "run", *words, preexec_fn=_open_files(most)), 1, "ulimit -n")
    assert not (folder / "store").exists()
    for number in range(300):
        (folder / f"{number}.jsonl").write_text('{"vs": 1}\n', encoding="utf-8")
    text = "STREAM A (vs BIGINT) FROM '*.jsonl';\nOUTPUT A TO 'a.csv';"
    (folder / "many.weir").write_text(text, encoding="utf-8")
    assert_clean(weir(folder, "run", "many.weir", preexec_fn=_open_files(16)), 1, "ulimit -n")
    return "one line each"


def _open_files(most: int) -> object:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@attack("12.13")
def names_that_are_none(folder: Path) -> str:
    """NUL in paths, a `..` in a name that the store holds, a time beyond all calendars, markup."""
    hostile_folder(folder)
    for path, told in (("'a\0b.csv'", "NUL"), ("'\0'", "NUL"), ("''", "invalid path")):
        text = f"STREAM A (vs BIGINT) FROM 'a.jsonl';\nOUTPUT A TO {path};"
        (folder / "nul.weir").write_text(text, encoding="utf-8")
        assert_clean(weir(folder, "run", "nul.weir"), 2, told)
    done = weir(folder, "status", "store")
    assert_clean(done, 0, "")
    assert "[/x]" in done.stdout and "s since 1970" in done.stdout
    store = ObjectStore(str(folder / "store"))
    (folder / "store" / part_key("sink.0", 1, 0)).unlink()
    key = commit_key("sink.0", 0)
    commit = decode_commit(key, store.get(key) or b"")
    elsewhere = msgspec.structs.replace(commit, part=ObjectRef("../a.jsonl", 0, 1, 1, "00"))
    store.put(key, encode_record(key, elsewhere))
    assert_clean(weir(folder, "read", "store", f"B {EVIL}"), 1, "'../a.jsonl'")
    return "one line each"


@attack("12.14")
def a_terminal_is_sent_nothing_raw(folder: Path) -> str:
    """Names, rows, paths and errors full of escapes, shown on a terminal."""
    hostile_folder(folder)
    commands: list[Sequence[str]] = [
        ["run", f"p {EVIL_FILE}.weir"],
        ["run", "p.weir", "--json"],
        ["explain", "p.weir"],
        ["explain", "p.weir", "--format", "dot"],
        ["conform", "cases.jsonl"],
        ["verify", "run.json", "run.json"],
        ["diff", "x.csv", "y.csv"],
        ["status", "store"],
        ["status", "store", "--json"],
        ["story", "store"],
        ["story", "store", "--json"],
        ["store", "store"],
        ["read", "store"],
        ["read", "store", f"B {EVIL}"],
        [EVIL],
        ["run", "wrong.weir"],
        ["status", EVIL],
    ]
    for words in commands:
        shown = _on_terminal(folder, words)
        # Rich's own, of a line that changes: colours, the cursor, and lines that are erased.
        ours = re.sub(r"\x1b\[(\?25[lh]|\d*[AK]|[\d;]*m)|\r", "", shown)
        assert not harm_in(ours), (words, harm_in(ours))
        assert "\x1b[31m[/x]" not in shown, words
    return f"{len(commands)} commands"


def _on_terminal(folder: Path, words: Sequence[str]) -> str:
    """What a command sends to a terminal that is its stdout and stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "weir.cli", *words]
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        told = b""
        try:
            while data := os.read(ours, 65536):
                told += data
        except OSError:
            pass  # that is how a terminal ends
    os.close(ours)
    return told.decode()


@attack("12.15")
def sigterm(folder: Path) -> str:
    """SIGTERM to the whole group of a live job: a last checkpoint, and nothing is lost."""
    with live_job(folder) as process:
        os.killpg(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == 143 and "continue with --resume" in err, err
    story = [line.what for line in read_story(ObjectStore(str(folder / "store")))]
    behind = story[story.index("asked to stop") :]
    taken = sum(what.startswith("checkpoint ") for what in behind)
    assert taken >= 2 and not any("lost" in what for what in behind), behind
    return f"{taken} checkpoints after it was asked; {resumed(folder)}"


@attack("12.15")
def who_looks_makes_nothing(folder: Path) -> str:
    """Commands that only read, on a store that is not there; and who may read one that is."""
    for place in ("new", f"file://{folder}/new", f"FILE://{folder}/new"):
        for command in ("status", "story", "store", "read"):
            assert_clean(weir(folder, command, place), 2, "there is no store")
    assert not os.listdir(folder)
    hostile_folder(folder)
    made = [folder / "store", *(folder / "store").rglob("*")]
    modes = {stat.S_IMODE(p.stat().st_mode) for p in made}
    assert modes == {0o700, 0o600}, modes
    return "nothing is made; what a store holds is its owner's"
