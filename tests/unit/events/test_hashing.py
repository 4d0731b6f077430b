"""The hash of rows: pinned values, equality, and that it sees values, not buffers."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from weir.events.hashing import BUCKETS, bucket_range, buckets_of, hash_rows
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from weir.plan.limits import MOST_VERTICES

DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.UTC)
NARROW, WIDE = pa.decimal128(10, 2), pa.decimal128(38, 4)
NUMBERS, TEXTS = pa.list_(BIGINT), pa.list_(STRING)
POINT = pa.struct([("x", BIGINT), ("name", STRING)])
NESTED = pa.list_(pa.struct([("a", NUMBERS), ("b", DOUBLE)]))

VALUES: list[tuple[pa.DataType, list[object]]] = [
    (BIGINT, [0, 1, -1, 2**63 - 1, -(2**63), None]),
    (INT, [0, 7, -(2**31), None]),
    (DOUBLE, [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324, None]),
    (BOOLEAN, [False, True, None]),
    (STRING, ["", "a", "1234567", "12345678", "123456789", "žluťoučký kůň", "a\0", None]),
    (BINARY, [b"", b"\x00", b"\xff" * 16, None]),
    (TIMESTAMP, [NOON, None]),
    (DATE, [DAY, datetime.date(1969, 12, 31), None]),
    (NARROW, [Decimal("0"), Decimal("1.50"), Decimal("-1.50"), None]),
    (WIDE, [Decimal(10) ** 33, -(Decimal(10) ** 33), None]),
    (NUMBERS, [[], [0], [1, 2], [2, 1], [None], None]),
    (TEXTS, [["ab", "c"], ["a", "bc"], [""], None]),
    (POINT, [{"x": 1, "name": "p"}, {"x": None, "name": None}, None]),
    (NESTED, [[{"a": [1], "b": -0.0}, {"a": None, "b": math.nan}], [], None]),
    (NULL, [None]),
]

GOLDEN = {
    "int64": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "1a8774a5b803cfea73dc77eb98a8e35f",
        "a4cd8d94a7d41d16c7a25162af2ffaca",
        "55aea106b5899b71c2156d97b1c7d21f",
        "481ec0a212a9f3dbfb63d1c51f4271cc",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "int32": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "a201afea1b4f71dc2d1463892247d2be",
        "d3e819c97f385639e29edf30f8d86ec6",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "double": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "e220a8397b1dcdaf865d7857836ec13f",
        "0092d122728c0af3f0bec7223c9ba137",
        "1beb06909c40ea0968bc46d8aed60ade",
        "635f360304e7be6f3edb499a2a131a6f",
        "f22db541ccef9497d3fe950e4bcd3835",
        "1a8774a5b803cfea73dc77eb98a8e35f",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "bool": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "1a8774a5b803cfea73dc77eb98a8e35f",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "string": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "4ce9ff059c71f51c3a829babe8e7ffb7",
        "7123be53049560a8ce0f95ea005b1807",
        "b46d7bc23187a529d70ee84d8e7bb3ca",
        "988454fe3822115505c3516dd412e68e",
        "f946c93f9c293214a826ecd16a0f85cb",
        "84d4255e4b74b592410db6dc8d95b4bd",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "binary": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "5d4744c49ea31428000c6fe611fd24e8",
        "a5d002854b5e3f2725c97d4bfd4e3c5f",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "timestamp[us, tz=UTC]": [
        "9284ad8838de2d450fa221bd6117492b",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "date32[day]": [
        "c7d7ec5ae9a7be1f4430da86a21d0887",
        "a4cd8d94a7d41d16c7a25162af2ffaca",
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "decimal128(10, 2)": [
        "48218226ff3cd4bff7a53765b63d1e98",
        "baf712c879dbf98980f9544d9ef33a87",
        "fd2504a510e559b27139a2c9e978ea0f",
        "d0aa080a2659d384624ba37806d661e8",
    ],
    "decimal128(38, 4)": [
        "27975a72949e021f283f09ac0af19499",
        "ed6e883015488e30e52b5bf6500babe4",
        "d0aa080a2659d384624ba37806d661e8",
    ],
    "list<item: int64>": [
        "e220a8397b1dcdaf865d7857836ec13f",
        "28fc197cde83114cb222f04584f70698",
        "71f9f292bfa97a40fd6446c4396714e8",
        "f59d5b362c06c1a81355eac4df6d7043",
        "7d70eb530c2ab9ad561721a883a7be82",
        "a4cd8d94a7d41d16c7a25162af2ffaca",
    ],
    "list<item: string>": [
        "bf14c9eb3a0c7408ae0e64dbf1361b22",
        "ced439aa4073adbae57ef13a9013e3b6",
        "28fc197cde83114cb222f04584f70698",
        "a4cd8d94a7d41d16c7a25162af2ffaca",
    ],
    "struct<x: int64, name: string>": [
        "cb28cdc54cb4b748c3ba2d3c27a08bb8",
        "c458ff9aebd728a2de47f66818b44d9a",
        "919fd99710fbcd10376a5776ab2ae960",
    ],
    "list<item: struct<a: list<item: int64>, b: double>>": [
        "ac3781c26d9204c3f09bd5caa1c28d1b",
        "e220a8397b1dcdaf865d7857836ec13f",
        "a4cd8d94a7d41d16c7a25162af2ffaca",
    ],
    "null": [
        "1bbf9316fac9b73fcfd8d07759dde08b",
    ],
    "row": [
        "0x36739802ecc69acd",
        "0x5a12883a4e247c7f",
        "0x43c68284ff80b96a",
        "0x1cf524a51a1fc3c3",
    ],
}


def _hex(column: pa.Array) -> list[str]:
    first, second = hash_rows([column], len(column))
    return [f"{a:016x}{b:016x}" for a, b in zip(first.tolist(), second.tolist(), strict=True)]


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_golden_values(dtype: pa.DataType, values: list[object]) -> None:
    """Part of the on-disk format: partitions and digests stand on them. A change here breaks every
    stored stream, so it needs a new format, not new numbers."""
    assert _hex(pa.array(values, dtype)) == GOLDEN[str(dtype)]


def test_golden_row_of_several_columns() -> None:
    columns = [pa.array([1, 2]), pa.array(["x", None]), pa.array([0.5, math.nan])]
    first, second = hash_rows(columns, 2)
    assert [hex(v) for v in [*first.tolist(), *second.tolist()]] == GOLDEN["row"]
    assert hash_rows([], 1)[0].tolist() == [0x9E3779B97F4A7C15]


# --- equality ------------------------------------------------------------------------------


def test_equal_numbers_hash_alike() -> None:
    other_nan = np.array([0x7FF8_0000_0000_0001, -1], dtype=np.int64).view(np.float64)
    zero, minus_zero, nan, odd_nan, minus_nan = _hex(pa.array([0.0, -0.0, math.nan, *other_nan]))
    assert zero == minus_zero
    assert nan == odd_nan == minus_nan != zero


def test_widened_integers_hash_alike() -> None:
    values = [0, 5, -5, 2**31 - 1, None]
    assert _hex(pa.array(values, INT)) == _hex(pa.array(values, BIGINT))


def test_null_is_one_value_of_every_plain_type_and_no_other() -> None:
    nulls = {_hex(pa.array([None], t))[0] for t in (BIGINT, DOUBLE, STRING, BOOLEAN, DATE, NULL)}
    assert len(nulls) == 1
    for dtype, values in VALUES:
        hashes = _hex(pa.array(values, dtype))
        assert hashes.count(hashes[-1]) == 1, dtype  # the last value of each list is NULL


def test_all_values_of_a_type_differ() -> None:
    for dtype, values in VALUES:
        different = len(values) - (dtype == DOUBLE)  # 0 and −0 are one
        assert len(set(_hex(pa.array(values, dtype)))) == different, dtype


def test_the_number_that_stands_for_null_is_not_null() -> None:
    mark = 0x6E756C6C
    value, null = _hex(pa.array([mark, None], BIGINT))
    assert value != null
    assert value != _hex(pa.array([None], BIGINT))[0]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((["ab"], ["c"]), (["a"], ["bc"])),
        (([1], [2]), ([2], [1])),
        (([None], [1]), ([1], [None])),
        ((["a", ""][:1], [""]), ([""], ["a"])),
    ],
)
def test_the_border_between_columns_counts(left: tuple, right: tuple) -> None:  # type: ignore[type-arg]
    def row(columns: tuple) -> tuple[int, int]:  # type: ignore[type-arg]
        a, b = hash_rows([pa.array(c) for c in columns], 1)
        return int(a[0]), int(b[0])

    assert row(left) != row(right)


def test_lists_differ_by_length_order_and_nesting() -> None:
    lists = [[], [0], [0, 0], [0, 1], [1, 0], [None], [None, 0]]
    assert len(set(_hex(pa.array(lists, NUMBERS)))) == len(lists)
    deep = [[[1], [2]], [[1, 2]], [[1, 2], []], [[], [1, 2]], [None, [1, 2]], [[None], [1, 2]]]
    assert len(set(_hex(pa.array(deep, pa.list_(NUMBERS))))) == len(deep)


def test_a_null_struct_is_not_a_struct_of_nulls() -> None:
    values = [None, {"x": None, "name": None}, {"x": 0, "name": None}, {"x": None, "name": ""}]
    assert len(set(_hex(pa.array(values, POINT)))) == 4


# --- no collisions -------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "step"), [(0, 1), (-500_000, 1), (2**62, 2**20)])
def test_a_million_integers_do_not_collide(start: int, step: int) -> None:
    values = start + np.arange(1_000_000, dtype=np.int64) * step
    first, second = hash_rows([pa.array(values)], len(values))
    # Each word by itself: a single integer is folded bijectively.
    for word in (first, second):
        ordered = np.sort(word)
        assert (ordered[1:] != ordered[:-1]).all()


@pytest.mark.parametrize("bits", [2, 8])
def test_neighbours_spread_evenly(bits: int) -> None:
    """The upper half of the second word splits."""
    first, second = hash_rows([pa.array(np.arange(100_000))], 100_000)
    for word in (first & np.uint64(2**bits - 1), (second >> np.uint64(32)) % np.uint64(2**bits)):
        counts = np.bincount(word.astype(np.int64), minlength=2**bits)
        expected = 100_000 / 2**bits
        assert abs(counts - expected).max() < 6 * math.sqrt(expected)


# --- arrays are read by value --------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_slices_hash_as_their_copies(dtype: pa.DataType, values: list[object]) -> None:
    padded = pa.array([values[0], *values, *values], dtype)
    for start, length in ((1, len(values)), (2, len(values)), (len(padded) - 1, 1), (1, 0)):
        part = padded.slice(start, length)
        copy = pa.array(part.to_pylist(), dtype)
        assert _hex(part) == _hex(copy)


def test_bytes_under_a_null_do_not_count() -> None:
    valid = pa.array([True, False, True])
    texts = pa.array(["a", "hidden", "b"])
    masked = pa.StringArray.from_buffers(
        3, texts.buffers()[1], texts.buffers()[2], valid.buffers()[1], 1, 0
    )
    assert masked.to_pylist() == ["a", None, "b"]
    assert _hex(masked) == _hex(pa.array(["a", None, "b"]))
    numbers = pa.array([1, 99, 3])
    hidden = pa.Array.from_buffers(BIGINT, 3, [valid.buffers()[1], numbers.buffers()[1]], 1)
    assert _hex(hidden) == _hex(pa.array([1, None, 3]))


def test_elements_under_a_null_list_do_not_count() -> None:
    whole = pa.array([[1], [7, 8], [2]], NUMBERS)
    valid = pa.array([True, False, True]).buffers()[1]
    hidden = pa.Array.from_buffers(NUMBERS, 3, [valid, whole.buffers()[1]], 1, 0, [whole.values])
    assert hidden.to_pylist() == [[1], None, [2]]
    assert _hex(hidden) == _hex(pa.array([[1], None, [2]], NUMBERS))


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_empty_columns(dtype: pa.DataType, values: list[object]) -> None:
    assert _hex(pa.array([], dtype)) == []
    assert _hex(pa.array(values, dtype).slice(0, 0)) == []


@pytest.mark.parametrize("dtype", [NARROW, WIDE], ids=str)
def test_elements_of_empty_lists_have_a_buffer_of_any_size(dtype: pa.DataType) -> None:
    elements = pa.Array.from_buffers(dtype, 0, [None, pa.py_buffer(bytes(8))])
    lists = pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), elements)
    assert _hex(lists) == _hex(pa.array([[]], pa.list_(dtype)))


@pytest.mark.parametrize("length", range(20))
def test_what_lies_behind_a_text_does_not_count(length: int) -> None:
    text = "a1é2b3c4d5e6f7g8h9i0j"[:length]
    alone = hash_rows([pa.array([text])], 1)
    followed = hash_rows([pa.array([text, "zzzzzzzzz"])], 2)
    assert [words[0] for words in alone] == [words[0] for words in followed]


# --- buckets -------------------------------------------------------------------------------


def test_buckets_are_pinned() -> None:
    """Other numbers would send a key's rows elsewhere than the state that waits for them."""
    numbers = pa.array([*range(10), None])
    texts = pa.array(["", "a", "b", "user-1", "user-2", "żółw", None])
    assert buckets_of([numbers], 11).tolist() == [
        *(2149, 1853, 3805, 2908, 909, 1523, 3890, 721, 1387, 868, 3325)
    ]
    assert buckets_of([texts], 7).tolist() == [2149, 936, 3622, 3625, 1490, 872, 3325]
    both = [pa.array([1, 1, 2]), pa.array(["x", "y", "x"])]
    assert buckets_of(both, 3).tolist() == [3633, 4028, 2455]


def test_every_bucket_is_in_one_part_and_no_part_is_empty() -> None:
    for parts in range(1, MOST_VERTICES + 1):
        ranges = [bucket_range(part, parts) for part in range(parts)]
        assert [r[0] for r in ranges] == [0, *(r[1] for r in ranges[:-1])]
        assert ranges[-1][1] == BUCKETS and all(first < end for first, end in ranges)


@pytest.mark.parametrize(("parts", "most"), [(64, 1), (67, 1.015), (819, 1.2), (1000, 1.23)])
def test_how_uneven_parts_are(parts: int, most: float) -> None:
    """What docs/design/0020 says of the largest part, in parts of the mean."""
    sizes = [end - first for first, end in (bucket_range(p, parts) for p in range(parts))]
    assert max(sizes) / (BUCKETS / parts) <= most
