"""A live run looks at its sources before it lets an operator hold rows without a bound, and at what
checkpoints must keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.script import parse_program
from weir.spark.live.job_setup import prepare_live


def prepare(folder: Path, path: str, settings: str = "") -> None:
    text = f"""STREAM A (vs BIGINT, k STRING) FROM '{path}' WITH (vs = vs); {settings}
        Out = SELECT DISTINCT k FROM A; OUTPUT Out TO 'out.csv';"""
    prepare_live(parse_program(text), str(folder / "store"), directory=folder)


@pytest.mark.parametrize("path", ["tail://a.jsonl", "in/", "tcp://127.0.0.1:1", "rate://5"])
def test_sources_without_an_end(tmp_path: Path, path: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(PlanError, match="since A has no end"):
        prepare(tmp_path, path)
    prepare(tmp_path, path, "SET allow_unbounded = TRUE;")


@pytest.mark.parametrize("path", ["a.jsonl", "rate://5?rows=10"])
def test_finite_sources(tmp_path: Path, path: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": "x"}\n', encoding="utf-8")
    prepare(tmp_path, path)


def test_windows_that_no_checkpoint_keeps(tmp_path: Path) -> None:
    app = App("s")
    ev = app.events("ev", "k BIGINT, ts BIGINT", vs="ts")
    s = app.state("s", default=0, last=100, key="BIGINT")

    @app.serial
    @app.on(ev)
    def count(e: Any) -> None:
        s.merge(e.k, lambda n: n * 2 + 1)
        app.emit("out", n=s.get(e.k))

    program = app.program(logs={"ev": "tail://a.jsonl"}, out="out")
    what = r"`count` \(line \d+\), .* merges a function into the window of `s`: no checkpoint of a "
    with pytest.raises(PlanError, match=what + "live run can keep that; use add, set, max"):
        prepare_live(program, str(tmp_path / "store"), directory=tmp_path)
