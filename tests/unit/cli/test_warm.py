"""`weir warm`: what it compiles, where, and that it does so once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weir.events.loop_cache import PACKAGE
from weir.local.rehearsal import rehearsed
from weir.script.program import parse_program

PROGRAM = """
STREAM A (vs BIGINT, v BIGINT) FROM 'not there.jsonl';
Out = SELECT v FROM A WHERE v > 3;
OUTPUT Out TO 'out.jsonl';
"""


def weir(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "WEIR_CACHE": str(folder / "c")}
    done = subprocess.run(
        [sys.executable, "-m", "weir.cli", *arguments], env=environment, cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_a_program_needs_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.weir").write_text(PROGRAM, encoding="utf-8")
    first = json.loads(weir(tmp_path, "warm", "p.weir", "--json"))
    assert first["compiled"] > 5
    (kind,) = (tmp_path / "c").iterdir()
    assert first["folder"] == str(kind)
    assert weir(tmp_path, "warm", "p.weir") == (f"nothing to do: all loops are there, in {kind}\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "p.weir"]
    kept = {p.name for p in kind.iterdir()}
    (tmp_path / "not there.jsonl").write_text('{"vs": 1, "v": 5}\n' * 9, encoding="utf-8")
    weir(tmp_path, "run", "p.weir")
    assert {p.name for p in kind.iterdir()} == kept
    monkeypatch.setenv("WEIR_CACHE", str(kind.parent))
    needs = {need.name for need in rehearsed(parse_program(PROGRAM)).needs}
    called = "_mix"  # its code is contained in that of loops that call it
    assert needs and called not in needs and not any(f".{called}-" in name for name in kept)
