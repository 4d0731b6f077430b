"""What a program says and probably does not mean: a warning says so once, with what to write."""

from __future__ import annotations

import warnings

import pytest

from weir import PlanWarning, col, stream, tumbling
from weir.script import parse_program

HEAD = """STREAM A (vs BIGINT, k STRING) FROM 'a.jsonl';
STREAM T (At TIMESTAMP, k STRING) FROM 't.jsonl' WITH (vs = At);
"""
DOUBTS = [
    ("Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(^10);", "TUMBLING: 10 is 10 micro", "10s"),
    ("Out = SELECT COUNT(*) AS n FROM T WITH HOPPING(1h, ^300000);", "300,000 micro", "300ms"),
    ("Out = SELECT k FROM (SELECT k FROM T WITH SHIFT(^-5)) AS x;", "SHIFT: 5 is", "5us"),
    (
        "DECLARE @w BIGINT = 60; Out = SELECT COUNT(*) AS n FROM T WITH SESSION(^@w);",
        "60 is",
        "60s",
    ),
    ("STREAM B (At TIMESTAMP) FROM 'b' WITH (vs = At, delay = ^30);", "delay: 30 is", "30s"),
    ("Out = SELECT k FROM A LIMIT ^2;", "keeps 2 rows of each instant", "--limit 2"),
    ("Out = SELECT k FROM A GROUP BY k WITH TUMBLING(5) LIMIT ^2;", "of each window", "ORDER BY x"),
    ("Out = SELECT k FROM A WHERE k ^= NULL;", "`= NULL` is never true", "IS NULL"),
    ("Out = SELECT k FROM A WHERE NULL ^<> k;", "`<> NULL` is never true", "IS NOT NULL"),
]
FINE = [
    "Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(10us);",
    "Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(60000000);",
    "Out = SELECT COUNT(*) AS n FROM T WITH HOPPING(5s, 1s, 0);",
    "Out = SELECT COUNT(*) AS n FROM T WITH COUNT(10);",
    "Out = SELECT COUNT(*) AS n FROM A WITH TUMBLING(10);",
    "DECLARE @w BIGINT = 5s; Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(@w);",
    "Out = SELECT k FROM A ORDER BY k LIMIT 2;",
    "Out = SELECT k FROM A WHERE k IS NULL OR k = 'x';",
]


@pytest.mark.parametrize(("marked", "message", "hint"), DOUBTS)
def test_doubts(marked: str, message: str, hint: str) -> None:
    with pytest.warns(PlanWarning) as told:
        parse_program(HEAD + marked.replace("^", ""), name="p.weir")
    [warning] = told
    first, _, _, last = str(warning.message).split("\n")
    assert first.startswith(f"p.weir, line 3, column {marked.index('^') + 1}: ")
    assert message in first
    assert last.startswith("  hint: ") and hint in last


@pytest.mark.parametrize("text", FINE)
def test_what_is_fine_is_silent(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_program(HEAD + text)


def test_a_filter_makes_errors_of_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlanWarning)
        with pytest.raises(PlanWarning, match="each instant"):
            parse_program(f"{HEAD}Out = SELECT k FROM A LIMIT 2;")


def test_python_is_warned_too() -> None:
    t = stream("T", {"At": "TIMESTAMP", "k": "STRING"}, "t.jsonl", vs="At")
    with pytest.warns(PlanWarning, match=r"TUMBLING\(10us\) over TIMESTAMPs: .* write '10s'"):
        t.window(tumbling(10))
    with pytest.warns(PlanWarning, match=r"top\(2\) without `by` keeps 2 rows of each instant"):
        t.top(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t.window(tumbling("10s"))
        t.top(2, by=col("k"))
