"""Identifies keys by a hash under a secret: SipHash-1-3 with 128 bits.

The stable hash (`events/hashing.py`) is unsuitable: it has no secret, so whoever chooses the keys
can make two of them equal, or make many begin their search at the same slot of a table.

Contract
1. Under one secret, equal keys have equal hashes: −0 = 0, NaN equals itself, NULL is a value of its
   own. A key is hashed the same way in every batch, whatever other rows are in it.
2. Different keys have different hashes. If the key is one column of numbers, this is certain: the
   second word is the number itself. For other keys, SipHash is a pseudorandom function: without the
   secret, each pair of keys collides with a chance of 2⁻¹²⁸, however the keys were chosen.
3. The first word, which decides the place in a table, is pseudorandom for every key. Timing
   look-ups does not help an attacker: outputs of such a function reveal nothing about others.
4. Hashes mean nothing to an index with another secret. They are never stored, sent or shown.

SipHash's message for a key

    one column of numbers     the number as a word of eight bytes
    one text                  its bytes
    one list                  the hashes of its elements, two words each
    anything else             the words of all columns, and for structs those of their fields: one
                              word for a number, two for a DECIMAL, the hash for a text or list;
                              then bits for NULLs, 56 to a word, the last word without its highest
                              byte

NULL as the whole key or as an element is hashed specially: for a number, its first word is that of
0, inverted; otherwise both words are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.hashing import (
    UInt64s,
    binary_buffers,
    canonical_words,
    decimal_words,
    null_mask,
)
from weir.kernels.structures.key_hashes_loops import (
    BLOCK,
    hash_lists,
    hash_numbers,
    hash_pairs,
    hash_texts,
    hash_words,
)

Hashes = tuple[UInt64s, UInt64s]
"""The two words of each row's hash."""
_Mask = npt.NDArray[np.bool_]

# "somepseudorandomlygeneratedbytes"; the second word also has the mark for 128 bits.
_START = np.array(
    [0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573],
    dtype=np.uint64,
)
_FLAGS = 56
"""How many NULL bits a word has."""
_AT_A_TIME = 4_096
"""How many rows have their words in one matrix, so that it stays in a near cache."""


def first_state(secret: bytes) -> UInt64s:
    """Return the initial state of the hash under this secret, which has 16 bytes."""
    return np.tile(np.frombuffer(secret, dtype="<u8"), 2) ^ _START


def hash_keys(columns: Sequence[pa.Array], length: int, state: UInt64s) -> Hashes:
    """Hash the keys of rows; all columns have this length."""
    if len(columns) == 1:
        return _of_column(columns[0], state)
    if not columns:  # all keys are the same
        return np.zeros(length, dtype=np.uint64), np.zeros(length, dtype=np.uint64)
    return _of_columns(columns, length, state)


def hash_numbers_of(columns: Sequence[Int64s], state: UInt64s) -> Hashes:
    """Hash rows of two or more numbers."""
    return _of_words(columns, _lasts(len(columns), None), len(columns[0]), state)


def _of_column(column: pa.Array, state: UInt64s) -> Hashes:
    dtype = column.type
    if pa.types.is_struct(dtype) or pa.types.is_decimal(dtype):
        return _of_columns([column], len(column), state)
    if _has_length(dtype):
        first, second = (_of_lists if pa.types.is_list(dtype) else _of_texts)(column, state)
        if column.null_count:
            nulls = null_mask(column)
            first[nulls] = second[nulls] = 0
        return first, second
    words = canonical_words(column)
    first = np.empty(len(words), dtype=np.uint64)
    hash_numbers(words, state, first)
    if column.null_count:
        np.invert(first, out=first, where=null_mask(column))
    return first, words.view(np.uint64)


def _has_length(dtype: pa.DataType) -> bool:
    """Tell whether values of this type vary in length, and so are hashed by themselves."""
    return bool(pa.types.is_string(dtype) or pa.types.is_binary(dtype) or pa.types.is_list(dtype))


def _of_texts(column: pa.Array, state: UInt64s) -> Hashes:
    first, second, block = _space(len(column))
    hash_texts(*binary_buffers(column), state, block, first, second)
    return first, second


def _of_lists(column: pa.Array, state: UInt64s) -> Hashes:
    offsets = np.asarray(column.offsets.to_numpy(zero_copy_only=False), dtype=np.int64)
    start, stop = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    elements = _of_column(column.values.slice(start, stop - start), state)
    first, second, block = _space(len(column))
    hash_lists(offsets - start, *elements, state, block, first, second)
    return first, second


def _of_columns(columns: Sequence[pa.Array], length: int, state: UInt64s) -> Hashes:
    words: list[npt.NDArray[Any]] = []
    nulls: list[_Mask | None] = []
    for column in columns:
        _append(column, state, words, nulls)
    while len(nulls) > _FLAGS:
        words.append(_flags(nulls[:_FLAGS], length))
        del nulls[:_FLAGS]
    some = any(mask is not None for mask in nulls)
    lasts = _lasts(len(words), _flags(nulls, length) if some else None)
    return _of_words(words, lasts, length, state)


def _append(
    column: pa.Array,
    state: UInt64s,
    words: list[npt.NDArray[Any]],
    nulls: list[_Mask | None],
) -> None:
    """Append the words of a column's values to `words`, and where they are NULL to `nulls`.

    In `nulls`, None means that there are no NULLs."""
    dtype = column.type
    if _has_length(dtype):
        words += _of_column(column, state)  # NULL has another hash
        return
    nulls.append(null_mask(column) if column.null_count else None)
    if pa.types.is_struct(dtype):
        for field in column.flatten():
            _append(field, state, words, nulls)
    elif pa.types.is_decimal(dtype):
        words.extend(decimal_words(column).T)
    else:
        words.append(canonical_words(column))


def _flags(nulls: Sequence[_Mask | None], length: int) -> UInt64s:
    flags = np.zeros(length, dtype=np.uint64)
    for bit, mask in enumerate(nulls):
        if mask is not None:
            flags |= mask.astype(np.uint64) << np.uint64(bit)
    return flags


def _lasts(words: int, flags: UInt64s | None) -> UInt64s:
    """Return the last words of messages after this many words: one for each row, or one for all."""
    length = np.uint64((8 * words + 7) % 256 << 56)
    return np.array([length]) if flags is None else flags | length


def _of_words(
    words: Sequence[npt.NDArray[Any]], lasts: UInt64s, length: int, state: UInt64s
) -> Hashes:
    first, second, block = _space(length)
    if len(words) == 2 and len(lasts) == 1:
        one, other = (np.ascontiguousarray(values).view(np.uint64) for values in words)
        hash_pairs(one, other, lasts[0], state, first, second)
        return first, second
    matrix = np.empty((len(words), min(length, _AT_A_TIME)), dtype=np.uint64)
    for start in range(0, length, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, length)
        for number, values in enumerate(words):
            matrix[number, : stop - start] = values[start:stop].view(np.uint64)
        some = lasts if len(lasts) == 1 else lasts[start:stop]
        hash_words(matrix, some, state, block, first[start:stop], second[start:stop])
    return first, second


def _space(length: int) -> tuple[UInt64s, UInt64s, UInt64s]:
    first, second = np.empty(length, dtype=np.uint64), np.empty(length, dtype=np.uint64)
    return first, second, np.empty(4 * BLOCK, dtype=np.uint64)
