"""Rows of order columns as bytes: they compare as the rows do."""

from __future__ import annotations

import functools
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.kernels.operators.top import row_keys

WIDE = pa.decimal128(38, 2)
STRATEGIES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    pa.string(): st.text(alphabet="a\0\x01b\xff", max_size=4),
    pa.bool_(): st.booleans(),
    WIDE: st.integers(-(10**37), 10**37).map(lambda n: Decimal(f"{n}E-2")),
    pa.list_(pa.int64()): st.lists(st.none() | st.integers(-2, 2), max_size=3),
    pa.struct([("a", pa.float64())]): st.fixed_dictionaries({"a": st.none() | st.floats()}),
}


def _rank(value: object) -> tuple[object, ...]:
    """The order of values, said plainly: NULL first, NaN last, strings by bytes, and what is
    nested from left to right."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, list | dict):
        return (1, [_rank(v) for v in (value if isinstance(value, list) else value.values())])
    return (1, value.encode() if isinstance(value, str) else value)


def _compare(a: tuple, b: tuple, descending: list[bool]) -> int:  # type: ignore[type-arg]
    for x, y, down in zip(a, b, descending, strict=True):
        left, right = _rank(x), _rank(y)
        if left != right:
            return (-1 if left < right else 1) * (-1 if down else 1)
    return 0


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_keys_compare_as_rows_do(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(STRATEGIES)), min_size=1, max_size=3))
    descending = data.draw(st.lists(st.booleans(), min_size=len(types), max_size=len(types)))
    row = st.tuples(*(st.none() | STRATEGIES[t] for t in types))
    rows = data.draw(st.lists(row, min_size=1, max_size=10))
    columns = [pa.array([r[i] for r in rows], t) for i, t in enumerate(types)]
    arrivals = np.arange(len(rows), dtype=np.int64) - 2
    keys = row_keys(list(zip(columns, descending, strict=True)), arrivals).to_pylist()
    by_key = sorted(range(len(rows)), key=lambda i: keys[i])
    compare = functools.cmp_to_key(lambda i, j: _compare(rows[i], rows[j], descending) or i - j)
    assert by_key == sorted(range(len(rows)), key=compare)


def test_equal_rows_differ_by_their_arrival_only() -> None:
    """The last eight bytes are the arrival: WITH TIES compares what is before them."""
    one, two = row_keys([(pa.array(["x", "x"]), True)], np.array([5, -5])).to_pylist()
    assert one[:-8] == two[:-8] and one > two


def test_without_columns_the_arrival_is_all() -> None:
    keys = row_keys([], np.array([3, -1, 2])).to_pylist()
    assert sorted(range(3), key=lambda i: keys[i]) == [1, 2, 0]
    assert {len(k) for k in keys} == {8}


@pytest.mark.parametrize("dtype", [pa.string(), pa.int64(), WIDE])
def test_no_rows(dtype: pa.DataType) -> None:
    assert row_keys([(pa.array([], dtype), False)], np.zeros(0, np.int64)).to_pylist() == []
