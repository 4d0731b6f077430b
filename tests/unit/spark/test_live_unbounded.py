"""A live run looks at its sources before it lets an operator hold rows without a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import PlanError
from weir.script import parse_program
from weir.spark.live.prepare import prepare_live


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
