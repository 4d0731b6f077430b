"""The keyed hash: SipHash-1-3-128 of the messages that `key_hashes.py` lists, by value, under any
secret."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from weir.kernels.structures.key_hashes import first_state, hash_keys, hash_numbers_of

NOON = datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.UTC)
WIDE = pa.decimal128(38, 4)
NUMBERS, TEXTS = pa.list_(BIGINT), pa.list_(STRING)
POINT = pa.struct([("x", BIGINT), ("name", STRING)])
NESTED = pa.list_(pa.struct([("a", NUMBERS), ("b", DOUBLE)]))

VALUES: list[tuple[pa.DataType, list[object]]] = [
    (BIGINT, [0, 1, -1, 2**63 - 1, -(2**63), None]),
    (INT, [0, 7, -(2**31), None]),
    (DOUBLE, [0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324, None]),
    (BOOLEAN, [False, True, None]),
    (STRING, ["", "a", "1234567", "12345678", "123456789", "\0" * 7, "\0" * 8, "a\0", None]),
    (BINARY, [b"", b"\x00", b"\xff" * 16, b"\xff" * 300, None]),
    (TIMESTAMP, [NOON, None]),
    (DATE, [datetime.date(2020, 2, 29), datetime.date(1970, 1, 1), None]),
    (WIDE, [Decimal(0), Decimal(10) ** 33, -(Decimal(10) ** 33), Decimal("0.0001"), None]),
    (NUMBERS, [[], [0], [0, 0], [1, 2], [2, 1], [None], [None, None], None]),
    (TEXTS, [["ab", "c"], ["a", "bc"], [""], ["", ""], [None], None]),
    (POINT, [{"x": 0, "name": ""}, {"x": None, "name": None}, {"x": 0, "name": None}, None]),
    (NESTED, [[{"a": [1], "b": 0.0}, {"a": None, "b": math.nan}], [None], [], None]),
    (NULL, [None]),
]

# --- the function --------------------------------------------------------------------------


def siphash(message: bytes, key: bytes, rounds: int, end: int) -> bytes:
    """SipHash-c-d with 128 bits, word by word as its paper has it."""
    mask = 2**64 - 1
    k = [int.from_bytes(key[i : i + 8], "little") for i in (0, 8)]
    v = [
        k[0] ^ 0x736F6D6570736575,
        k[1] ^ 0x646F72616E646F6D ^ 0xEE,
        k[0] ^ 0x6C7967656E657261,
        k[1] ^ 0x7465646279746573,
    ]

    def rotated(i: int, bits: int) -> None:
        v[i] = (v[i] << bits | v[i] >> (64 - bits)) & mask

    def half(i: int, j: int, bits: int) -> None:
        v[i] = (v[i] + v[j]) & mask
        rotated(j, bits)
        v[j] ^= v[i]

    def mix(count: int) -> None:
        for _ in range(count):
            half(0, 1, 13), rotated(0, 32), half(2, 3, 16)
            half(0, 3, 21), half(2, 1, 17), rotated(2, 32)

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        mix(rounds)
        v[0] ^= word
    result = b""
    for place, mark in ((2, 0xEE), (1, 0xDD)):
        v[place] ^= mark
        mix(end)
        result += (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    return result


def test_the_reference_is_siphash() -> None:
    """Its authors' vectors of SipHash-2-4-128, and the one of 1-3 that others publish."""
    key = bytes(range(16))
    known = {
        0: "a3817f04ba25a8e66df67214c7550293",
        1: "da87c1d86b99af44347659119b22fc45",
        2: "8177228da4a45dc7fca38bdef60affe4",
    }
    for length, digest in known.items():
        assert siphash(bytes(range(length)), key, 2, 4).hex() == digest
    assert siphash(b"", key, 1, 3).hex() == "e77ebcb22788a5befd62db6add303001"


def _pairs(columns: Sequence[pa.Array], secret: bytes) -> list[bytes]:
    first, second = hash_keys(columns, len(columns[0]), first_state(secret))
    words = zip(first.tolist(), second.tolist(), strict=True)
    return [a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in words]


def _words(*numbers: int) -> bytes:
    return b"".join((n % 2**64).to_bytes(8, "little") for n in numbers)


@pytest.mark.parametrize("count", [1, 127, 128, 129, 5_000])
def test_texts_are_messages(count: int) -> None:
    secret = os.urandom(16)
    texts = [bytes([65 + i % 26]) * (i % 37) for i in range(count)]
    wanted = [siphash(text, secret, 1, 3) for text in texts]
    assert _pairs([pa.array(texts, BINARY)], secret) == wanted


def test_long_texts_are_messages() -> None:
    secret = os.urandom(16)
    texts = [os.urandom(length) for length in (255, 256, 257, 1000, 4096)]
    assert _pairs([pa.array(texts, BINARY)], secret) == [siphash(t, secret, 1, 3) for t in texts]


@pytest.mark.parametrize("count", [1, 128, 5_000])
def test_a_number_is_a_message_and_its_own_second_word(count: int) -> None:
    secret = os.urandom(16)
    numbers = [(-1) ** i * i * 12345678901234567 % 2**63 for i in range(count)]
    wanted = [siphash(_words(n), secret, 1, 3)[:8] + _words(n) for n in numbers]
    assert _pairs([pa.array(numbers, BIGINT)], secret) == wanted


@pytest.mark.parametrize("count", [1, 2, 129, 4_097])
def test_rows_are_words_and_bits_for_nulls(count: int) -> None:
    secret = os.urandom(16)
    numbers = [None if i % 3 == 0 else i for i in range(count)]
    texts = [None if i % 5 == 0 else f"t{i}" for i in range(count)]
    doubles = [None if i % 7 == 0 else i / 2 for i in range(count)]
    wanted = []
    for number, text, double in zip(numbers, texts, doubles, strict=True):
        hashed = bytes(16) if text is None else siphash(text.encode(), secret, 1, 3)
        bits = np.array([double or 0.0]).tobytes()
        nulls = bytes([(number is None) | (double is None) << 1, *[0] * 6])
        wanted.append(siphash(_words(number or 0) + hashed + bits + nulls, secret, 1, 3))
    columns = [pa.array(numbers, BIGINT), pa.array(texts, STRING), pa.array(doubles, DOUBLE)]
    assert _pairs(columns, secret) == wanted


def test_lists_are_the_hashes_of_their_elements() -> None:
    secret = os.urandom(16)
    lists = [[], ["a"], ["a", "bc"], ["x"] * 40]
    wanted = [
        siphash(b"".join(siphash(t.encode(), secret, 1, 3) for t in texts), secret, 1, 3)
        for texts in lists
    ]
    assert _pairs([pa.array(lists, TEXTS)], secret) == wanted


def test_numbers_beside_each_other_are_rows_of_them() -> None:
    secret = os.urandom(16)
    columns = [np.arange(300) * k for k in (1, -7, 3)]
    plain = hash_numbers_of(columns, first_state(secret))
    rows = hash_keys([pa.array(c) for c in columns], 300, first_state(secret))
    for mine, theirs in zip(plain, rows, strict=True):
        assert mine.tolist() == theirs.tolist()


# --- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_different_values_differ_alone_and_in_a_row(
    dtype: pa.DataType, values: list[object]
) -> None:
    secret = os.urandom(16)
    column = pa.array(values, dtype)
    other = pa.array([1] * len(values), BIGINT)
    assert len(set(_pairs([column], secret))) == len(values)
    assert len(set(_pairs([column, other], secret))) == len(values)
    assert len(set(_pairs([other, column], secret))) == len(values)


def test_equal_numbers_hash_alike() -> None:
    secret = os.urandom(16)
    nans = np.array([0x7FF8_0000_0000_0001, -1], dtype=np.int64).view(np.float64)
    doubles = pa.array([0.0, -0.0, math.nan, *nans])
    for columns in ([doubles], [doubles, doubles]):
        zero, minus_zero, nan, *others = _pairs(columns, secret)
        assert zero == minus_zero != nan
        assert others == [nan, nan]


def test_widened_integers_hash_alike() -> None:
    """The keys of a join's sides may differ in width."""
    secret = os.urandom(16)
    values = [0, 5, -5, 2**31 - 1, None]
    assert _pairs([pa.array(values, INT)], secret) == _pairs([pa.array(values, BIGINT)], secret)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("ab", "c"), ("a", "bc")),
        (("", "\0" * 8), ("\0" * 8, "")),  # one row to the stable hash
        (("abc", ""), ("abc\0\0\0\0\3", "")),
        ((1, 2), (2, 1)),
        ((None, 0), (0, None)),
        ((None, ""), ("", None)),
    ],
)
def test_the_border_between_columns_counts(left: tuple, right: tuple) -> None:  # type: ignore[type-arg]
    secret = os.urandom(16)
    columns = [pa.array([left[0], right[0]]), pa.array([left[1], right[1]])]
    one, other = _pairs(columns, secret)
    assert one != other


@pytest.mark.parametrize("count", [56, 57, 113])
def test_every_null_counts_however_many_columns_there_are(count: int) -> None:
    secret = os.urandom(16)
    columns = [
        pa.array([0, *(None if row == i else 0 for row in range(count))], INT) for i in range(count)
    ]
    assert len(set(_pairs(columns, secret))) == count + 1
    plain = [pa.array([0], INT)] * count
    assert _pairs(plain, secret) == _pairs(columns, secret)[:1]


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_a_value_is_hashed_the_same_whatever_is_beside_it(
    dtype: pa.DataType, values: list[object]
) -> None:
    """NULLs elsewhere, slices, what lies behind a text: a key must be found in every batch."""
    secret = os.urandom(16)
    together = pa.array([values[0], *values, *values], dtype)
    one = pa.array([7] * len(together), BIGINT)
    alone = [_pairs([pa.array([v], dtype)], secret)[0] for v in values]
    beside = [_pairs([pa.array([v], dtype), one[:1]], secret)[0] for v in values]
    for start in (1, len(values) + 1):
        part, ones = together.slice(start, len(values)), one.slice(start, len(values))
        assert _pairs([part], secret) == alone
        assert _pairs([part, ones], secret) == beside


def test_what_lies_under_a_null_does_not_count() -> None:
    secret = os.urandom(16)
    valid = pa.array([True, False, True]).buffers()[1]
    texts = pa.array(["a", "hidden", "b"])
    hidden = pa.StringArray.from_buffers(3, texts.buffers()[1], texts.buffers()[2], valid, 1, 0)
    numbers = pa.Array.from_buffers(BIGINT, 3, [valid, pa.array([1, 99, 3]).buffers()[1]], 1)
    whole = pa.array([[1], [7, 8], [2]], NUMBERS)
    lists = pa.Array.from_buffers(NUMBERS, 3, [valid, whole.buffers()[1]], 1, 0, [whole.values])
    for column, plain in (
        (hidden, pa.array(["a", None, "b"])),
        (numbers, pa.array([1, None, 3])),
        (lists, pa.array([[1], None, [2]], NUMBERS)),
    ):
        assert _pairs([column], secret) == _pairs([plain], secret)
        assert _pairs([column, column], secret) == _pairs([plain, plain], secret)


@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_no_rows(dtype: pa.DataType, values: list[object]) -> None:
    for column in (pa.array([], dtype), pa.array(values, dtype).slice(1, 0)):
        assert _pairs([column], bytes(16)) == []
        assert _pairs([column, column], bytes(16)) == []


def test_rows_without_columns_are_all_the_same() -> None:
    first, second = hash_keys([], 3, first_state(os.urandom(16)))
    assert first.tolist() == second.tolist() == [0, 0, 0]


def test_another_secret_gives_other_hashes() -> None:
    columns = [pa.array(list(range(100)), BIGINT), pa.array([str(i) for i in range(100)])]
    for chosen in ([columns[0]], [columns[1]], columns):
        one, other = (set(_pairs(chosen, os.urandom(16))) for _ in range(2))
        assert len(one) == len(other) == 100
        assert not one & other


def test_first_words_spread_evenly() -> None:
    """The lowest bits say where a table is searched."""
    first, _ = hash_keys([pa.array(np.arange(100_000))], 100_000, first_state(bytes(16)))
    counts = np.bincount((first & np.uint64(255)).astype(np.int64), minlength=256)
    assert abs(counts - 100_000 / 256).max() < 6 * math.sqrt(100_000 / 256)
