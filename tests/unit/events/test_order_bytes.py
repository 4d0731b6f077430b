"""Bytes of values: those of different arrays compare as the values do."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.rows import value_key
from weir.events.hashing import hash_rows
from weir.events.order import order_codes
from weir.events.order_bytes import as_binary, order_bytes

NAN = struct.unpack("<d", b"\1" + b"\xff" * 7)[0]  # another NaN: of these bits, and negative
INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, math.nan, NAN, math.inf])
TEXTS = st.text(alphabet="a\0\x01b\xff", max_size=3)
WIDE = pa.decimal128(38, 2)
RECORD = pa.struct([("a", pa.float64()), ("b", pa.string())])

Case = tuple[pa.DataType, st.SearchStrategy[object]]


def _records(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    # Not `fixed_dictionaries`, which shuffles: the oracle takes fields in the order they come.
    rows = st.tuples(*(st.none() | values for values in fields.values()))
    return rows.map(lambda row: dict(zip(fields, row, strict=True)))


def _lists(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(st.none() | values, max_size=3)


CASES: list[Case] = [
    (pa.int64(), INTS),
    (pa.float64(), FLOATS),
    (pa.string(), TEXTS),
    (pa.bool_(), st.booleans()),
    (WIDE, st.integers(-(10**37), 10**37).map(lambda n: Decimal(f"{n}E-2"))),
    (RECORD, _records(a=FLOATS, b=TEXTS)),
    (pa.list_(pa.float64()), _lists(FLOATS)),
    (pa.list_(pa.list_(pa.string())), _lists(_lists(TEXTS))),
    (pa.list_(RECORD), _lists(_records(a=FLOATS, b=TEXTS))),
    (
        pa.struct([("x", pa.list_(pa.bool_())), ("y", RECORD), ("z", pa.int32())]),
        _records(
            x=_lists(st.booleans()), y=_records(a=FLOATS, b=TEXTS), z=st.sampled_from([-1, 0, 7])
        ),
    ),
]


def _bytes(values: list[object], dtype: pa.DataType) -> list[bytes]:
    # A slice: offsets into buffers are where such code goes wrong.
    column = pa.array([*values[:1], *values, None], dtype).slice(min(len(values), 1), len(values))
    keys: list[bytes] = as_binary(order_bytes(column)).to_pylist()
    return keys


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(CASES).flatmap(lambda c: st.tuples(st.just(c[0]), *[st.none() | c[1]] * 2)))
def test_bytes_of_two_arrays_compare_as_the_values(
    case: tuple[pa.DataType, object, object],
) -> None:
    dtype, one, other = case
    (a,), (b,) = _bytes([one], dtype), _bytes([other], dtype)
    assert (a < b) == (value_key(one) < value_key(other))
    assert (a == b) == (value_key(one) == value_key(other))
    assert a == b or not (a.startswith(b) or b.startswith(a))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CASES).flatmap(lambda c: st.tuples(st.just(c[0]), st.lists(c[1]))))
def test_bytes_codes_and_hashes_know_one_equality(
    case: tuple[pa.DataType, list[object]],
) -> None:
    dtype, values = case
    column = pa.array([*values, None], dtype)
    keys = as_binary(order_bytes(column)).to_pylist()
    codes = order_codes(column).tolist()
    words = list(zip(*(w.tolist() for w in hash_rows([column], len(column))), strict=True))
    assert len(set(keys)) == len(set(codes)) == len(set(words))
    for found in (codes, words):
        assert len(set(zip(keys, found, strict=True))) == len(set(keys))
    assert [keys[i] for i in sorted(range(len(keys)), key=codes.__getitem__)] == sorted(keys)


def test_exact_bytes_tell_what_is_equal_but_not_identical() -> None:
    column = pa.array([[-0.0], [0.0], [math.nan], [NAN], [0.0]])
    assert len(set(as_binary(order_bytes(column)).to_pylist())) == 2
    minus, zero, nan, other, again = order_codes(column, exact=True).tolist()
    assert other < minus < zero == again < nan


@pytest.mark.parametrize("dtype", [dtype for dtype, _ in CASES])
def test_no_rows_and_only_nulls(dtype: pa.DataType) -> None:
    assert _bytes([], dtype) == []
    assert len(set(_bytes([None, None], dtype))) == 1
