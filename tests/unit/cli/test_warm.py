"""`weir warm`: what it compiles, where, and that it does so once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weir.cli.warm import warmed_programs
from weir.loops.code_cache import PACKAGE
from weir.runtime.loop_needs import needed_loops
from weir.script.program import parse_program

PROGRAM = """
STREAM A (vs BIGINT, v BIGINT) FROM 'not there.jsonl';
Out = SELECT v FROM A WHERE v > 3;
OUTPUT Out TO 'out.jsonl';
"""


def weir(folder: Path, *arguments: str) -> str:
    environment = os.environ | {
        "PYTHONPATH": str(PACKAGE.parent),
        "WEIR_CACHE": str(folder / "c"),
        "TMPDIR": str(folder),
    }
    done = subprocess.run(
        [sys.executable, "-m", "weir.cli", *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_doubtful_program_is_warned_of_as_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.weir"
    path.write_text(PROGRAM.replace("WHERE v > 3", "LIMIT 2"), encoding="utf-8")
    warmed_programs(path, None, None)
    assert capsys.readouterr().err.startswith(f"weir: warning: {path}, line 3")


def test_what_a_program_needs_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.weir").write_text(PROGRAM, encoding="utf-8")
    first = json.loads(weir(tmp_path, "warm", "p.weir", "--json"))
    assert first["compiled"] > 5
    (kind,) = (tmp_path / "c").iterdir()
    assert first["folder"] == str(kind)
    assert weir(tmp_path, "warm", "p.weir") == (
        f"nothing to do: all loops are compiled, in {kind}\n"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "p.weir"]
    kept = {p.name for p in kind.iterdir()}
    (tmp_path / "not there.jsonl").write_text('{"vs": 1, "v": 5}\n' * 9, encoding="utf-8")
    weir(tmp_path, "run", "p.weir")
    assert {p.name for p in kind.iterdir()} == kept
    monkeypatch.setenv("WEIR_CACHE", str(kind.parent))
    needs = {loop.name for loop in needed_loops(parse_program(PROGRAM), complete=True)}
    called = "hashing_loops._mix"  # its code is contained in that of loops that call it
    assert {name.split("-")[0] for name in kept} == needs
    assert not any(called in name for name in kept)


APP = """
import weir

app = weir.App("a")
sale = app.events("sale", "ts BIGINT, shop STRING, amount BIGINT", vs="ts")
total = app.state("total", default=0)

@weir.udf
def never(n: int) -> int:
    raise AssertionError("nothing here calls it")

@app.on(sale)
def count(e):
    total.add(e.shop, e.amount)
    app.emit("o", shop=e.shop, total=total.get(e.shop), n=never(e.amount) if e.amount < 0 else 0)
"""


def test_what_an_app_needs_is_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(APP, encoding="utf-8")
    assert json.loads(weir(tmp_path, "warm", "a.py", "--json"))["compiled"] > 5
    (kind,) = (tmp_path / "c").iterdir()
    assert weir(tmp_path, "warm", "a.py", "--app", "a").startswith("nothing to do: all loops are")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.py", "c"]
    kept = {p.name for p in kind.iterdir()}
    rows = [{"ts": i, "shop": f"{i % 3}", "amount": 2} for i in range(30)]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    weir(tmp_path, "replay", "a.py", "--log", "sale=s.jsonl", "--out", "o", "--batch", "9")
    weir(tmp_path, "run", "a.py", "--log", "sale=s.jsonl", "--out", "p")
    assert {p.name for p in kind.iterdir()} == kept
