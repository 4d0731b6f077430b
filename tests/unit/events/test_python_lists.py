"""Conversions between Arrow and Python are made of short calls, and change nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weir import testing
from weir.events.python_lists import SLICE, python_column, python_list
from weir.kernels.expressions import user_calls
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import python_rows
from weir.kernels.expressions.user_values import typed_array

LENGTHS = (0, 1, SLICE, SLICE + 1, 3 * SLICE - 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_lists_and_columns_are_those_of_arrow(length: int) -> None:
    values = [None if i % 7 == 0 else [str(i)] for i in range(length)]
    whole = pa.array(values, pa.list_(pa.string()))
    assert python_list(whole.slice(length // 3)) == values[length // 3 :]
    assert python_column(values, whole.type).equals(whole)
    assert typed_array(values, whole.type).equals(whole)


@pytest.mark.parametrize("row", [0, SLICE - 1, SLICE, 2 * SLICE + 5])
def test_a_value_that_does_not_fit_is_found_in_any_slice(row: int) -> None:
    values: list[object] = [1] * (3 * SLICE)
    values[row] = 1.5
    with pytest.raises(RowFailure, match=r"BIGINT, not 1\.5") as failed:
        typed_array(values, pa.int64())
    assert failed.value.row == row


def test_a_row_that_python_cannot_have_is_found_in_any_slice() -> None:
    numbers = pa.array([0] * SLICE + [1 << 60], pa.int64())
    rows = python_rows([numbers, numbers.cast(pa.timestamp("us", "UTC"))])
    assert next(rows)[0] == 0
    with pytest.raises(RowFailure, match="Python has no value") as failed:
        list(rows)
    assert failed.value.row == SLICE


AGGREGATE = """
import weir

class Total:
    def zero(self) -> int:
        return 0
    def add(self, state: int, v: int) -> int:
        return state + v
    def remove(self, state: int, v: int) -> int:
        return state - v
    def merge(self, state: int, other: int) -> int:
        return state + other
    def result(self, state: int) -> int:
        return state

Folded = weir.aggregate(type("Folded", (Total,), {}))
Exact = weir.aggregate(exact=True)(type("Exact", (Total,), {}))
"""


@pytest.mark.parametrize("name", ["Folded", "Exact"])
def test_the_rows_of_a_large_window_are_converted_in_slices(
    name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []
    convert = user_calls.python_values

    def watched(column: pa.Array) -> list[object]:
        lengths.append(len(column))
        return convert(column)

    monkeypatch.setattr(user_calls, "python_values", watched)
    monkeypatch.chdir(str(tmp_path))
    with open("totals.py", "w", encoding="utf-8") as file:
        file.write(AGGREGATE)
    count = 2 * SLICE + 10
    text = f"""IMPORT 'totals.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
        Out = SELECT {name}(v) AS n FROM A WITH TUMBLING(1000000);"""
    rows = testing.run(text, {"A": [[{"vs": i, "v": i} for i in range(count)]]}).rows
    assert [r["n"] for r in rows] == [count * (count - 1) // 2]
    assert max(lengths) == SLICE and sum(lengths) >= 3 * count
