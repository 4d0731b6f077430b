"""What is foreign does no harm: names, rows and paths to a terminal, a world that fails to the
command, and the command to the world."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hostile import EVIL, EVIL_FILE, harm_in, hostile_folder, invoke

SHOWN = "\\u001b[31m[/x]\\u001b]0;title\\u0007\\u009b2J\\u007f"
"""How the beginning of `EVIL` is shown; JSON's own escapes of C0 look the same."""
STREAM = f"B {EVIL}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    hostile_folder(tmp_path)
    return tmp_path


def looks(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything in a folder, with sizes and times."""
    stats = {str(p): p.lstat() for p in sorted(folder.rglob("*"))}
    return {name: (s.st_size, s.st_mtime_ns) for name, s in stats.items()}


HUMAN = [
    ["explain", "p.weir"],
    ["status", "store"],
    ["story", "store"],
    ["read", "store"],
    ["read", "store", EVIL],
    ["diff", "x.csv", "y.csv"],
    ["conform", "cases.jsonl"],
    ["verify", "run.json", "run.json"],
    ["run", f"{EVIL_FILE}.weir"],
    ["run", "wrong.weir"],
    ["verify", f"{EVIL_FILE}.csv"],
    ["status", EVIL],
    ["run", f"p {EVIL_FILE}.weir"],
    ["read", "store", STREAM, "--to", f"to {EVIL_FILE}.csv"],
    [EVIL],
    ["run", f"--{EVIL}"],
    ["run", "p.weir", EVIL],
    ["run", "p.weir", "--param", EVIL],
    ["simulate", "--faults", EVIL],
    ["simulate", "--workloads", EVIL],
    ["warm", "wrong.weir"],
    ["warm", EVIL],
]
MACHINE = [
    ["explain", "p.weir", "--format", "dot"],
    ["explain", "p.weir", "--json"],
    ["status", "store", "--json"],
    ["story", "store", "--json"],
    ["read", "store", "--json"],
    ["read", "store", STREAM],
    ["diff", "x.csv", "y.csv", "--json"],
    ["conform", "cases.jsonl", "--json"],
]


@pytest.mark.parametrize("words", HUMAN + MACHINE, ids=lambda w: f"{w[0][:8]}-{len(w)}")
def test_what_terminals_obey_is_shown_and_not_done(folder: Path, words: list[str]) -> None:
    ended, out, err = invoke(words)
    assert ended in (0, 1, 2) and not harm_in(out) and not harm_in(err)
    assert "bug in Weir" not in err
    assert "31m" in out + err, "it was shown at all"


def test_lines_cannot_be_forged(folder: Path) -> None:
    _, out, _ = invoke(["story", "store"])
    assert len(out.splitlines()) == 2 and "\\u000aweir: error: forged" in out


def test_a_status_shows_markup_and_any_time_as_they_are(folder: Path) -> None:
    ended, out, err = invoke(["status", "store"])
    shown = "weir: warning: plan does not hold what it should: there is no writer of e\\u001b[31m"
    assert ended == 0 and err.startswith(shown) and err.count("\n") == 1
    assert f"e{SHOWN}" in out and "1e+300 s since 1970" in out and "[bold]é日" in out


@pytest.mark.parametrize("words", MACHINE, ids=lambda w: f"{w[0][:8]}-{len(w)}")
def test_what_is_for_programs_stays_exact(folder: Path, words: list[str]) -> None:
    _, out, _ = invoke(words, terminal=False)
    _, safe, _ = invoke(words, terminal=True)
    if "dot" in words:
        assert "\x1b31mx]\x1b]0;title\x07\x9b2J" in out
        return
    assert json.loads(out) == json.loads(safe), "on a terminal JSON stays JSON"
    texts = _texts(json.loads(out))
    assert any("title\x07\x9b2J\x7f" in text for text in texts)


def _texts(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [t for pair in value.items() for part in pair for t in _texts(part)]
        case list():
            return [t for part in value for t in _texts(part)]
    return []


READING = [
    ["status", "store"],
    ["status", "new"],
    ["status", "file:///{folder}/new"],
    ["story", "store"],
    ["story", "FILE:///{folder}/new"],
    ["store", "store"],
    ["store", "file:///{folder}/new"],
    ["read", "store"],
    ["read", "store", STREAM],
    ["read", "new"],
    ["explain", "p.weir"],
    ["explain", "code.weir"],
    ["verify", "x.csv"],
    ["diff", "x.csv", "y.csv"],
    ["run", "p.weir", "--runner", "live", "--resume", "--store", "new"],
]


@pytest.mark.parametrize("words", READING, ids=lambda w: f"{w[0][:8]}-{len(w)}")
def test_who_reads_makes_nothing(folder: Path, words: list[str]) -> None:
    before = looks(folder)
    invoke([word.format(folder=folder) if word != STREAM else word for word in words])
    assert looks(folder) == before


# --- the command in a process of its own ---------------------------------------------------------


def weir(
    words: Sequence[str], stdout: int | None = subprocess.PIPE, **env: str
) -> subprocess.CompletedProcess[bytes]:
    path = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "weir.cli", *words]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, env=path | env, timeout=100, check=False
    )


def test_a_program_on_a_closed_stdin() -> None:
    code = f"exec {sys.executable} -m weir.cli run - <&-"
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stderr.splitlines()[0] == (
        "weir: error: cannot read the program -: stdin is closed"
    )
    assert done.returncode == 2


def test_nobody_reads_stdout(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = weir(["explain", "plain.weir"], stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_stdout_is_full(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = weir(["explain", "plain.weir"], stdout=full.fileno())
    told = b"weir: error: cannot write to stdout: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_bare_world(folder: Path) -> None:
    """No HOME, no UTF-8, a terminal that can nothing and is narrow."""
    words = ["status", os.fsdecode(b"\xff\xfe"), "--json"]
    bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "TERM": "dumb"}
    done = weir(words, COLUMNS="3", **bare)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"weir: error: there is no store '\\udcff\\udcfe'\n"
    done = weir(["explain", "p.weir"], COLUMNS="3", **bare)
    assert done.returncode == 0 and "é日".encode() in done.stdout


def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    """Its input is long; nothing is left behind."""
    rate = "rate://1000000?rows=2000000000"
    text = f"STREAM R (t BIGINT, value BIGINT) FROM '{rate}' WITH (vs = t);\n"
    text += "S = SELECT COUNT(*) AS n FROM R WITH TUMBLING(1h);\nOUTPUT S TO 'a.csv';"
    (tmp_path / "p.weir").write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "weir.cli", "run", "p.weir"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob(".a.csv.*.weir/owner")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert err.splitlines()[-1] == "weir: terminated; no output was written"
    assert os.listdir(tmp_path) == ["p.weir"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_process_leaves_is_no_traceback(number: signal.Signals) -> None:
    code = """if True:
        import atexit, sys, time
        from weir.cli import main
        atexit.register(lambda: (print("leaving", flush=True), time.sleep(20)))
        sys.argv = ["weir", "--version"]
        main()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline().startswith("weir ")
    assert process.stdout.readline() == "leaving\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
