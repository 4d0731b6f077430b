"""Variants beside each other: what a parameter turns off, and values that read alike."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from weir.cli import app as command
from weir.cli import tables
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.replay.app_replay import replay_app

LOGS = {"ev": "ev.jsonl"}
TURNED_OFF = """
import weir

app = weir.App("v")
ev = app.events("ev", "k BIGINT, ts BIGINT", vs="ts")
s = app.state("s", default=0)
t = app.state("t", default=0)
flag = app.param("flag", True)


@app.on(ev)
def count(e):
    t.add(e.k, 1)
    if flag:
        s.add(e.k, 2)
        app.emit("twice", k=e.k, n=s.get(e.k))
    app.emit("once", k=e.k, n=t.get(e.k))
"""
ALIKE = """
import weir

app = weir.App("l")
ev = app.events("ev", "k BIGINT, ts BIGINT", vs="ts")
a = app.param("a", "q")
b = app.param("b", "q")


@app.on(ev)
def tell(e):
    app.emit("out", k=e.k, a=len(a), b=len(b))
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f'{{"k": {k}, "ts": {ts}}}\n' for ts, k in enumerate((1, 2, 1, 1, 2))]
    Path("ev.jsonl").write_text("".join(lines), "utf-8")
    return tmp_path


def loaded(text: str) -> App:
    Path("app.py").write_text(text, "utf-8")
    return load_app("app.py")


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("flags", [[True, False], [False, True]])
def test_a_parameter_may_turn_an_emit_and_a_state_off(
    made: Path, batch: int | None, flags: list[bool]
) -> None:
    app = loaded(TURNED_OFF)
    report = replay_app(
        app, logs=LOGS, out="out", params={"flag": flags}, batch=batch, state_out="state"
    )
    for flag, variant in zip(flags, report.variants, strict=True):
        alone = replay_app(
            app, logs=LOGS, out=f"alone{flag}", params={"flag": flag}, state_out=f"state{flag}"
        )
        told = {output.name: output.digest for output in variant.outputs}
        assert told == {output.name: output.digest for output in alone.outputs}
        assert sorted(told) == (["once", "twice"] if flag else ["once"])
        folder = Path("state", f"flag={str(flag).lower()}")
        files = sorted(p.name for p in folder.iterdir())
        assert files == sorted(p.name for p in Path(f"state{flag}").iterdir())
        assert (folder / "manifest.json").read_bytes() == Path(
            f"state{flag}/manifest.json"
        ).read_bytes()
    beside = [report.beside_first(variant, "twice") for variant in report.variants]
    changes = [(output.rows, output.only_here, output.only_first) for output in beside]
    assert changes == ([(5, 0, 0), (0, 0, 5)] if flags[0] else [(0, 0, 0), (5, 5, 0)])
    page = Path("out/what-if.html").read_text("utf-8")
    assert "not emitted" in page


def test_the_table_has_each_number_under_its_name(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_width", lambda: 40)  # a narrow terminal breaks no digest
    loaded(TURNED_OFF)
    line = "replay app.py --log ev=ev.jsonl --out out --param flag=false,true"
    done = CliRunner().invoke(command, line.split())
    assert done.exit_code == 0, done.output
    head, off, on = (text.split() for text in done.output.splitlines()[:3])
    assert head[:2] == ["variant", "once"] and head[5] == "twice"
    assert off[1:4] == ["5", "+0", "-0"] and off[5:] == ["0", "+0", "-0", "not", "emitted"]
    assert on[5:8] == ["5", "+5", "-0"]


def test_brackets_in_a_value_are_no_markup(made: Path) -> None:
    loaded(ALIKE)
    line = "replay app.py --log ev=ev.jsonl --out out --param a=[red]y,[/b]"
    done = CliRunner().invoke(command, line.split())
    assert done.exit_code == 0, done.output
    assert [text.split()[0] for text in done.output.splitlines()[1:3]] == ["a=[red]y", "a=[/b]"]


def test_variants_whose_values_read_alike_are_told_apart(made: Path) -> None:
    params = {"a": ["1, b=2", "1"], "b": ["3", "2, b=3"]}
    report = replay_app(loaded(ALIKE), logs=LOGS, out="out", params=params)
    assert len({variant.label for variant in report.variants}) == 3
    for variant in report.variants:
        (output,) = variant.outputs
        found = pq.read_table(output.path, columns=["a", "b"]).to_pylist()
        assert found == [{name: len(str(v)) for name, v in variant.params.items()}] * 5


def test_a_page_that_is_gone_is_made_again(made: Path) -> None:
    app = loaded(TURNED_OFF)
    run = {"logs": LOGS, "out": "out", "params": {"flag": [True, False]}}
    replay_app(app, **run)
    assert replay_app(app, **run).again
    Path("out/what-if.html").unlink()
    report = replay_app(app, **run)
    assert report.redone == "out/what-if.html: is gone"
    assert Path("out/what-if.html").exists()
