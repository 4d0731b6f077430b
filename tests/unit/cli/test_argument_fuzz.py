"""Command lines at random: each ends with an exit code and a clean message.

`WEIR_ARGUMENTS` says how many; each follows from its number alone. Spark is not started: where a
command line would start it, that fails.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from hostile import EVIL, EVIL_FILE, harm_in, hostile_folder, invoke
from weir.errors import RunError
from weir.spark import session

COUNT = int(os.environ.get("WEIR_ARGUMENTS", "500"))

PROGRAMS = [
    "p.weir",
    f"p {EVIL_FILE}.weir",
    "plain.weir",
    "wrong.weir",
    "binary.weir",
    "empty.weir",
    os.fsdecode(b"\xff\xfe.weir"),
    "cases.jsonl",
    "deep.jsonl",
]
OUTPUTS = [
    "x.csv",
    "y.csv",
    "torn.parquet",
    "torn.arrow",
    "run.json",
    "deep.json",
    "a.jsonl",
    "folder/",
    "x.csv.digest",
    "deep.jsonl",
    "out/",
]
STORES = [
    "store",
    "store",
    "store",
    "no store",
    "file://store",
    "FILE:///nowhere",
    "memory://",
    "s3://",
    "nonsense://x",
    "store/job",
    "store/",
    "./store",
]
PLACES = [
    "",
    ".",
    "/",
    "/dev/null",
    "..",
    "-",
    "--",
    "~",
    "x" * 300,
    "x/" * 3000,
    "file/x",
    "file",
    "nowhere",
    "folder",
    EVIL,
    EVIL_FILE,
    "\ud800",
    "é",
    "[/x]",
    "*",
    "%00",
    "new.csv",
    "new/",
    f"{EVIL_FILE}.csv",
    "new.txt",
    "store/x.csv",
    "sub/new.jsonl",
    "x.csv",
]
NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "007",
    "1e9",
    "nan",
    "inf",
    "-inf",
    "1.5",
    "9" * 30,
    "9" * 5000,
    "10000",
    "10001",
    str(2**62),
    str(2**63),
    "x",
    "",
    " 1 ",
    "1,2",
    "1,none",
    "none",
    "٣",
    "²",
    "0x10",
    "1_000",
    "1,,2",
    "5",
]
WORDS = ["A", f"B {EVIL}", "0.0", EVIL, "k=v", "=", "size=3", "a=b=c", f"{EVIL}={EVIL}", "", "é"]
RUNNERS = ["local", "local", "live", "offline", "", EVIL]
OPTIONS = {
    "--runner": RUNNERS,
    "--master": ["local[2]", "yarn", "", EVIL, "sc://x"],
    "--conf": WORDS,
    "--parallelism": NUMBERS,
    "--cut": NUMBERS,
    "--param": WORDS,
    "--store": STORES + PLACES,
    "--hosts": NUMBERS,
    "--tls-cert": PLACES,
    "--tls-key": PLACES,
    "--tls-ca": PLACES,
    "--directory": PLACES,
    "--grace": ["5s", "1d", "2d", "-5s", "10y", "", "9" * 5000 + "s", "5"],
    "--format": ["text", "dot", "json", "", EVIL],
    "--kind": ["rows", "late", "bad", "", EVIL],
    "--since": NUMBERS,
    "--to": PLACES,
    "--seeds": NUMBERS,
    "--first": NUMBERS,
    "--seed": ["x", "-1"],
    "--faults": ["none", "lose,crash", "x", "", EVIL],
    "--until": NUMBERS,
    "--nonsense": WORDS,
    "--workloads": ["followed_*", "top,select", "x", "", EVIL],
    f"--{EVIL}": WORDS,
}
FLAGS = ["--json", "--json", "--debug", "--resume", "--check", "--full", "--help", "--version"]
ON_PROGRAMS = ["--parallelism", "--param"]
ON_RUNS = ["--runner", "--master", "--conf", "--cut"]
ON_LIVE = ["--store", "--hosts", "--tls-cert", "--tls-key", "--tls-ca", "--grace"]
COMMANDS: dict[str, tuple[list[list[str]], list[str]]] = {
    "run": ([PROGRAMS], [*ON_PROGRAMS, *ON_RUNS, *ON_LIVE, "--directory"]),
    "explain": ([PROGRAMS], [*ON_PROGRAMS, "--format"]),
    "conform": ([["cases.jsonl", "deep.jsonl", "a.jsonl"]], [*ON_RUNS, "--parallelism"]),
    "verify": ([OUTPUTS, OUTPUTS], []),
    "diff": ([OUTPUTS, OUTPUTS], []),
    "status": ([STORES], []),
    "story": ([STORES, WORDS], []),
    "store": ([STORES], []),
    "read": ([STORES, WORDS], ["--kind", "--since", "--to"]),
    "report": ([STORES], ["--to"]),
    "simulate": ([], ["--seeds", "--first", "--seed", "--faults", "--until", "--workloads"]),
}
WRITING = {"run", "read", "report"}


def command_line(number: int) -> list[str]:
    """The words of a command line: mostly such as somebody could mean, with slips."""
    rng = random.Random(number)
    command = rng.choice(list(COMMANDS)) if rng.random() < 0.97 else rng.choice(PLACES)
    places, options = COMMANDS.get(command, ([PLACES], list(OPTIONS)))
    words = [rng.choice(PLACES if rng.random() < 0.15 else kind) for kind in places]
    if rng.random() < 0.1:
        words = rng.choice([words[:-1], [*words, rng.choice(PLACES)]])
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        option = rng.choice(options if options and rng.random() < 0.97 else list(OPTIONS))
        values = OPTIONS[option] if rng.random() < 0.9 else PLACES + NUMBERS
        at = rng.randint(0, len(words))
        pair = [option, rng.choice(values)]
        words[at:at] = rng.choice([pair, pair, ["=".join(pair)]])
    words += rng.sample(FLAGS, rng.choice([0, 0, 0, 0, 1, 2]))
    if command == "simulate":
        words += ["--seeds", "0"]  # the last one counts: to run one takes long
    return [command, *words]


def wrong_with(words: list[str], ended: object, out: str, err: str) -> str:
    """What must not be; empty if all is well."""
    if ended not in (0, 1, 2):
        return f"ended with {ended!r}"
    for sign in ("bug in Weir", "Traceback"):
        if sign in err and "--debug" not in words:
            return f"{sign}: {err[err.index(sign) :][:200]}"
    if ended and "--debug" not in words and err.count("\n") > 10:
        return "it goes on and on"
    return harm_in(err) or ("" if "--help" in words else harm_in(out))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def no_spark(*_: object) -> None:
        raise RunError("Spark did not start")

    monkeypatch.setattr(session, "make_session", no_spark)
    monkeypatch.chdir(tmp_path)
    hostile_folder(tmp_path)
    return tmp_path


def test_any_command_line_ends_well(folder: Path) -> None:
    for number in range(COUNT):
        words = command_line(number)
        before = set(os.listdir())
        ended, out, err = invoke(words)
        wrong = wrong_with(words, ended, out, err)
        if words[0] not in WRITING and set(os.listdir()) != before:
            wrong = "it left something behind"
        assert not wrong, f"{number}: {words!r}: {wrong}: {err[-1000:]!r}"
