"""Sort keys order as the values do and give the values back."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.events.order_bytes import is_plain, plain_codes
from weir.kernels.structures.sort_keys import byte_keys, canonical, from_bytes, from_plain

NARROW, WIDE = pa.decimal128(18, 4), pa.decimal128(38, 4)

IN_ORDER: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    (pa.int32(), [-(2**31), -1, 0, 7]),
    (pa.bool_(), [False, True]),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(2020, 1, 1)]),
    (
        pa.timestamp("us", tz="UTC"),
        [datetime.datetime(y, 1, 1, tzinfo=datetime.UTC) for y in (1900, 1970, 2020)],
    ),
    (pa.float64(), [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.5, math.inf, math.nan]),
    (NARROW, [Decimal("-99999999999999.9999"), Decimal("-0.0001"), Decimal(0), Decimal("1.5")]),
]


@pytest.mark.parametrize(("dtype", "values"), IN_ORDER, ids=[str(t) for t, _ in IN_ORDER])
def test_plain_keys_rise_with_the_values_and_give_them_back(
    dtype: pa.DataType, values: list[object]
) -> None:
    assert is_plain(dtype)
    padded = pa.array([values[0], *values], dtype).slice(1)
    keys = plain_codes(padded)
    assert (keys[1:] > keys[:-1]).all()
    back = from_plain(keys, np.zeros(len(keys), dtype=np.bool_), dtype)
    assert back.type == dtype
    assert repr(back.to_pylist()) == repr(padded.to_pylist())
    missing = np.arange(len(keys)) == 0
    assert from_plain(keys, missing, dtype).to_pylist()[0] is None
    assert from_plain(keys, missing, dtype).null_count == 1


def test_plain_keys_know_equality() -> None:
    minus_zero, zero, nan, other = plain_codes(
        pa.array([-0.0, 0.0, math.nan, np.array([-1]).view(np.float64)[0]])
    )
    assert minus_zero == zero and nan == other


def test_the_type_of_nothing() -> None:
    keys = plain_codes(pa.nulls(2))
    assert from_plain(keys, np.ones(2, dtype=np.bool_), pa.null()).to_pylist() == [None, None]


def _order(column: pa.Array) -> list[int]:
    prefix, keys = byte_keys(column)
    whole = list(zip(prefix.tolist(), keys.to_pylist(), strict=True))
    assert (prefix >= 0).all()
    return sorted(range(len(whole)), key=lambda i: whole[i])


texts = st.text(alphabet="a\0bä\U0001f40d", max_size=10)
decimals = st.integers(-(10**38) + 1, 10**38 - 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=12))
def test_strings_order_by_their_bytes(values: list[str]) -> None:
    column = pa.array(["x", *values]).slice(1)
    assert not is_plain(column.type)
    order = _order(column)
    ordered = [values[i].encode() for i in order]
    assert ordered == sorted(ordered)
    assert from_bytes(byte_keys(column)[1], pa.string()).to_pylist() == values


@settings(max_examples=60, deadline=None)
@given(st.lists(decimals, min_size=1, max_size=12))
def test_wide_decimals_order_by_value(numbers: list[int]) -> None:
    values = [Decimal(f"{n}E-4") for n in numbers]
    column = pa.array([Decimal(0), *values], WIDE).slice(1)
    assert not is_plain(WIDE)
    assert [numbers[i] for i in _order(column)] == sorted(numbers)
    assert from_bytes(byte_keys(column)[1], WIDE).to_pylist() == values


def test_missing_bytes_become_null() -> None:
    _, keys = byte_keys(pa.array([Decimal(1), Decimal(2)], WIDE))
    index = pa.array([0, None, 1])
    assert from_bytes(keys.take(index), WIDE).to_pylist() == [Decimal(1), None, Decimal(2)]
    assert from_bytes(pa.array([b"a", None]), pa.string()).to_pylist() == ["a", None]


def test_nested_values_order_by_their_elements() -> None:
    values = [None, [], [None], [None, 1.0], [-1.0], [0.0], [0.0, None], [math.nan]]
    column = pa.array([[7.0], *values], pa.list_(pa.float64())).slice(1)
    assert _order(column) == list(range(len(values)))
    structs = [None, {"a": None, "b": "z"}, {"a": [], "b": None}, {"a": [1], "b": "a"}]
    dtype = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string())])
    assert _order(pa.array(structs, dtype)) == list(range(len(structs)))


def test_canonical_values() -> None:
    """Equal values become one: MIN must not depend on which of them was there first."""
    dtype = pa.struct([("x", pa.list_(pa.float64())), ("y", pa.int64())])
    odd = {"x": [-0.0, np.array([-1]).view(np.float64)[0], None, 1.5], "y": None}
    column = pa.array([odd, odd, None, {"x": None, "y": 3}], dtype).slice(1)
    made = canonical(dtype)(column)
    assert made.type == dtype and made.null_count == 1
    assert repr(made.to_pylist()) == repr(
        [{"x": [0.0, math.nan, None, 1.5], "y": None}, None, {"x": None, "y": 3}]
    )
    bits = np.asarray(made.field("x").flatten())[1:2].view(np.int64)
    assert bits[0] == 0x7FF8000000000000


def test_empty_columns() -> None:
    for dtype in (pa.string(), pa.binary(), WIDE):
        prefix, keys = byte_keys(pa.array([], dtype))
        assert len(prefix) == len(keys) == 0
        assert from_bytes(keys, dtype).to_pylist() == []
