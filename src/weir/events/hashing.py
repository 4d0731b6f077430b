"""A 128-bit hash of rows, stable across processes, machines and releases.

One hash serves three ends: it splits streams into partitions, finds keys, and makes digests.
Rules
1. Equal values hash alike and only they: −0 = 0, NaN equals itself, NULL is a value of its own.
2. The hash of a row folds its columns left to right into two 64-bit words; each fold is
   bijective in the word it folds in, so rows of one integer column never collide.
3. The numbers below are part of the on-disk format: changing one is a breaking change, and
   a golden test pins them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.compiled import compiled, in_place
from weir.events.memory import array_of, numbers_of

UInt64s = npt.NDArray[np.uint64]

_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_NULL = np.uint64(0x6E756C6C)  # folded in instead of a value
_CANONICAL_NAN = np.int64(0x7FF8000000000000)


def hash_rows(columns: Sequence[pa.Array], length: int) -> tuple[UInt64s, UInt64s]:
    """Two words for each row of these columns (all of this length)."""
    first = np.full(length, _SEEDS[0], dtype=np.uint64)
    second = np.full(length, _SEEDS[1], dtype=np.uint64)
    for column in columns:
        fold_column(column, first, second)
    return first, second


@compiled
def by_part(parts, count):  # type: ignore[no-untyped-def]
    """Positions that put rows of each part together, in order within it, and where each ends."""
    ends = np.zeros(count, dtype=np.int64)
    for part in parts:
        ends[part] += 1
    places = np.empty(count, dtype=np.int64)
    before = 0
    for part in range(count):
        places[part] = before
        before += ends[part]
        ends[part] = before
    order = np.empty(len(parts), dtype=np.int64)
    for row in range(len(parts)):
        part = parts[row]
        order[places[part]] = row
        places[part] += 1
    return order, ends


def fold_column(column: pa.Array, first: UInt64s, second: UInt64s) -> None:
    """Fold one column into the rows' running hashes, in place."""
    dtype = column.type
    if pa.types.is_struct(dtype):
        _fold_words(_nulls(column).astype(np.int64), first, second)
        for child in column.flatten():
            fold_column(child, first, second)
    elif pa.types.is_list(dtype):
        _fold_list(column, first, second)
    elif pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        offsets, data = binary_buffers(column)
        _fold_bytes(offsets, data, _nulls(column), first, second)
    elif pa.types.is_decimal(dtype):
        words = decimal_words(column)
        _fold_words_or_null(words[:, 0].copy(), _nulls(column), first, second)
        _fold_words_or_null(words[:, 1].copy(), _nulls(column), first, second)
    else:
        words = canonical_words(column)
        if column.null_count:
            _fold_words_or_null(words, _nulls(column), first, second)
        else:
            _fold_words(words, first, second)


def canonical_words(column: pa.Array) -> npt.NDArray[np.int64]:
    """A fixed-width column as int64, equal exactly where the values are equal (NULL: 0)."""
    dtype = column.type
    if pa.types.is_null(dtype):
        return np.zeros(len(column), dtype=np.int64)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0, pa.int64()).cast(_storage(dtype)).cast(dtype))
    if pa.types.is_floating(dtype):
        values = column.to_numpy(zero_copy_only=False)
        with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN
            words: npt.NDArray[np.int64] = (values + 0.0).view(np.int64)  # −0.0 + 0.0 is 0.0
        nan = np.isnan(values)
        if nan.any():
            words = np.where(nan, _CANONICAL_NAN, words)
        return words
    if pa.types.is_boolean(dtype):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.ascontiguousarray(numbers_of(column.view(_storage(dtype))), dtype=np.int64)


def decimal_words(column: pa.Array) -> npt.NDArray[np.int64]:
    """A DECIMAL column's unscaled values as (low, high) words; NULL is (0, 0)."""
    raw = array_of(column.buffers()[1], np.int64).reshape(-1, 2)
    words = raw[column.offset : column.offset + len(column)]
    if column.null_count:
        words = np.where(_nulls(column)[:, None], np.int64(0), words)
    return words


def binary_buffers(column: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Offsets (one more than rows) and bytes of a STRING or BINARY column."""
    _, offsets, data = column.buffers()
    numbers = array_of(offsets, np.int32) if offsets else np.zeros(1, np.int32)
    return numbers[column.offset : column.offset + len(column) + 1], array_of(data, np.uint8)


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    if not column.null_count:
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _storage(dtype: pa.DataType) -> pa.DataType:
    return pa.int32() if dtype in (pa.int32(), pa.date32()) else pa.int64()


def _fold_list(column: pa.Array, first: UInt64s, second: UInt64s) -> None:
    offsets = np.asarray(column.offsets.to_numpy(zero_copy_only=False), dtype=np.int64)
    start, stop = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    elements = column.values.slice(start, stop - start)
    words = hash_rows([elements], len(elements))
    lengths = np.where(_nulls(column), -1, np.diff(offsets))
    _fold_words(lengths, first, second)
    _fold_elements(offsets - start, lengths, words[0], words[1], first, second)


@in_place
def _mix(word):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64: a bijection of 64 bits in which every bit matters."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return word


@in_place
def _fold(word, first, second):  # type: ignore[no-untyped-def]
    mixed_first = _mix(first ^ (word * np.uint64(0x9FB21C651E98DF25)))
    mixed_second = _mix(second + np.uint64(0x632BE59BD9B4E019) + (word ^ (word >> np.uint64(32))))
    return mixed_first, mixed_second


@in_place
def _fold_words(words, first, second):  # type: ignore[no-untyped-def]
    for row in range(len(words)):
        first[row], second[row] = _fold(np.uint64(words[row]), first[row], second[row])


@in_place
def _fold_words_or_null(words, nulls, first, second):  # type: ignore[no-untyped-def]
    for row in range(len(words)):
        if nulls[row]:
            # Swapped lanes keep NULL apart from every value, its own number included.
            second[row], first[row] = _fold(_NULL, second[row], first[row])
        else:
            first[row], second[row] = _fold(np.uint64(words[row]), first[row], second[row])


@in_place
def _eight_bytes(data, at):  # type: ignore[no-untyped-def]
    """The little-endian word at a place. Written out, and with unsigned places (which need no
    check for negative ones), it compiles to one load."""
    word = np.uint64(data[at])
    word |= np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
    word |= np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    return word


@in_place
def _fold_bytes(offsets, data, nulls, first, second):  # type: ignore[no-untyped-def]
    eight, size = np.uint64(8), np.uint64(len(data))
    for row in range(len(offsets) - 1):
        a, b = first[row], second[row]
        if nulls[row]:
            b, a = _fold(_NULL, b, a)
        else:
            start, stop = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
            while stop - start >= eight:
                a, b = _fold(_eight_bytes(data, start), a, b)
                start += eight
            rest = stop - start
            word = np.uint64(0)
            if start + eight <= size:
                word = _eight_bytes(data, start) & ((np.uint64(1) << (eight * rest)) - np.uint64(1))
            else:  # at the very end there are no eight bytes to look at
                for i in range(rest):
                    word |= np.uint64(data[start + i]) << (eight * i)
            a, b = _fold(word | rest << np.uint64(56), a, b)
        first[row], second[row] = a, b


@in_place
def _fold_elements(offsets, lengths, e1, e2, first, second):  # type: ignore[no-untyped-def]
    for row in range(len(lengths)):
        for i in range(lengths[row]):
            at = offsets[row] + i
            first[row], second[row] = _fold(e1[at], first[row], second[row])
            first[row], second[row] = _fold(e2[at], first[row], second[row])


@in_place
def sum_halves(words):  # type: ignore[no-untyped-def]
    """The sums of the words' upper and lower halves, which do not overflow."""
    upper, lower = np.uint64(0), np.uint64(0)
    for word in words:
        upper += word >> np.uint64(32)
        lower += word & np.uint64(0xFFFFFFFF)
    return upper, lower


@in_place
def fold_rows(first, second, a, b):  # type: ignore[no-untyped-def]
    """The running checksum (a, b) behind rows of these hashes."""
    for row in range(len(first)):
        a = (a ^ first[row]) * np.uint64(0x9E3779B97F4A7C15)
        a ^= a >> np.uint64(32)
        b = (b + second[row]) * np.uint64(0xC2B2AE3D27D4EB4F)
        b ^= b >> np.uint64(29)
    return a, b
