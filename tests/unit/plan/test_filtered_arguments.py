"""An aggregate's argument is computed only for the rows that its FILTER takes."""

from __future__ import annotations

from decimal import localcontext

import pytest

from weir.errors import RunError
from weir.testing import run

SCRIPT = """
STREAM A (vs BIGINT, ve BIGINT, v BIGINT) FROM 'a.jsonl';
Out = SELECT {} FROM A;
"""


def answer(aggregate: str, values: list[int | None]) -> object:
    rows = [{"vs": 1, "ve": 9, "v": v} for v in values]
    (row,) = run(SCRIPT.format(f"{aggregate} AS n"), {"A": rows}).rows
    return row["n"]


@pytest.mark.parametrize(
    ("aggregate", "wanted"),
    [
        ("SUM(10 // v) FILTER (WHERE v <> 0)", 7),
        ("COUNT(10 // v) FILTER (WHERE v <> 0)", 2),
        ("MAX(10 // v) FILTER (WHERE v <> 0)", 5),
        ("COLLECT(10 // v) FILTER (WHERE v <> 0)", [5, 2]),
        ("COUNT(DISTINCT 10 // v) FILTER (WHERE v > 9)", 0),
    ],
)
def test_rows_that_a_filter_leaves_out_do_not_fail(aggregate: str, wanted: object) -> None:
    assert answer(aggregate, [2, 0, 5, None]) == wanted


def test_a_quantile_is_bound_whatever_the_precision_of_decimals() -> None:
    with localcontext(prec=3):
        assert answer("QUANTILE_DISC(v, 0.3333333333333333)", [1, 2, 3]) == 1


def test_rows_that_a_filter_takes_still_fail() -> None:
    with pytest.raises(RunError, match="division by zero"):
        answer("SUM(10 // v) FILTER (WHERE v <> 1)", [2, 0])
