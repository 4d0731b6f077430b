"""What a live run refuses leaves no store behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import WeirError
from weir.script import parse_program
from weir.spark.live.job_setup import prepare_live
from weir.spark.live.live_settings import LiveSettings

SESSIONS = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH SESSION(5)"


@pytest.mark.parametrize(
    ("path", "query", "output", "why"),
    [
        ("b.jsonl", "A", "out.csv", "no file matches"),
        ("tcp://h:99999", "A", "out.csv", "invalid address of a socket"),
        ("tcp://h:1?ack=yes", "A", "out.csv", "invalid option ack=yes"),
        ("rate://inf", "A", "out.csv", "invalid rate"),
        ("rate://5?row=1", "A", "out.csv", "invalid option row=1"),
        ("tail://a.jsonl", "A", "a.jsonl", "OUTPUT Out would write over 'a.jsonl'"),
        ("in/", "A", "in/out.jsonl", "OUTPUT Out would write over 'in/out.jsonl'"),
        ("tail://a.jsonl", "A", "out.txt", "unknown output format"),
        ("rate://5", SESSIONS, "out.csv", "since A has no end"),
        ("rate://5", "A", "out.csv", "--check runs everything again"),
        ("a.jsonl", SESSIONS, "out.csv", "cannot be recovered by replay"),
    ],
)
def test_a_refused_job_leaves_no_store(
    tmp_path: Path, path: str, query: str, output: str, why: str
) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": "x"}\n', encoding="utf-8")
    (tmp_path / "in").mkdir()
    query = "SELECT k FROM A" if query == "A" else query
    text = f"""STREAM A (vs BIGINT, k STRING) FROM '{path}';
        SET strategy = 'replay'; Out = {query}; OUTPUT Out TO '{output}';"""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(WeirError, match=why):
        prepare_live(
            parse_program(text),
            str(tmp_path / "stores" / "store"),
            directory=tmp_path,
            how=LiveSettings(check=True),
        )
    assert sorted(tmp_path.iterdir()) == before
