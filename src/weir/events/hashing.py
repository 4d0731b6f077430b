"""A 128-bit hash of rows, stable across processes, machines and releases.

It splits streams into partitions, and makes digests and traces. It must not tell keys apart: it has
no secret and each of its steps can be inverted, so rows can be chosen that have the same hash
(`tests/attack/key_collisions.py` does). For keys there is `kernels/structures/key_hashes.py`.

Rules
1. Equal values have equal hashes: −0 = 0, NaN equals itself, NULL is a value of its own. Different
   ones have different hashes, but for chance (2⁻¹²⁸ for each pair), intent, and texts with NULs:
   the words do not tell where a text ends, so ("", 8 NULs) has the hash of (8 NULs, "").
2. The hash of a row folds its columns left to right into two 64-bit words; each fold is
   bijective in the word it folds in, so rows of one integer column never collide.
3. The numbers below are part of the on-disk format: changing one is a breaking change, and
   a golden test pins them.
4. A row's *bucket* is the upper 12 bits of the second word of the hash of its key columns. Part p
   of P has the buckets b with b·P // 4096 = p, which is a range: so the parts of any two counts of
   parts are ranges of the same buckets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.hashing_loops import fold_bytes, fold_elements, fold_words, fold_words_or_null
from weir.loops.arrow_memory import array_of, numbers_of

UInt64s = npt.NDArray[np.uint64]

BUCKETS = 4096
"""How many buckets there are; see rule 4. There are never more parts (`plan/limits.py`)."""

_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_CANONICAL_NAN = np.int64(0x7FF8000000000000)


def hash_rows(columns: Sequence[pa.Array], length: int) -> tuple[UInt64s, UInt64s]:
    """Return the two words of each row's hash; all columns have this length."""
    first = np.full(length, _SEEDS[0], dtype=np.uint64)
    second = np.full(length, _SEEDS[1], dtype=np.uint64)
    for column in columns:
        fold_column(column, first, second)
    return first, second


def buckets_of(columns: Sequence[pa.Array], length: int) -> npt.NDArray[np.int64]:
    """Compute the bucket of each row by these key columns; see rule 4."""
    _, second = hash_rows(columns, length)
    return (second >> np.uint64(52)).view(np.int64)


def bucket_range(part: int, parts: int) -> tuple[int, int]:
    """Return the buckets of a part, as the first and the one after the last.

    >>> [bucket_range(part, 3) for part in range(3)]
    [(0, 1366), (1366, 2731), (2731, 4096)]
    """
    return -(-BUCKETS * part // parts), -(-BUCKETS * (part + 1) // parts)


def fold_column(column: pa.Array, first: UInt64s, second: UInt64s) -> None:
    """Fold one column into the rows' running hashes, in place."""
    dtype = column.type
    if pa.types.is_struct(dtype):
        fold_words(null_mask(column).astype(np.int64), first, second)
        for child in column.flatten():
            fold_column(child, first, second)
    elif pa.types.is_list(dtype):
        _fold_list(column, first, second)
    elif pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        offsets, data = binary_buffers(column)
        fold_bytes(offsets, data, null_mask(column), first, second)
    elif pa.types.is_decimal(dtype):
        words = decimal_words(column)
        fold_words_or_null(words[:, 0].copy(), null_mask(column), first, second)
        fold_words_or_null(words[:, 1].copy(), null_mask(column), first, second)
    else:
        words = canonical_words(column)
        if column.null_count:
            fold_words_or_null(words, null_mask(column), first, second)
        else:
            fold_words(words, first, second)


def canonical_words(column: pa.Array) -> npt.NDArray[np.int64]:
    """Convert a fixed-width column to int64 words that are equal exactly where the values are
    (NULL: 0)."""
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
    """Return the unscaled values of a DECIMAL column as (low, high) words; NULL is (0, 0)."""
    start, stop = column.offset, column.offset + len(column)
    # An empty column may have a buffer that is too small for any value.
    words = array_of(column.buffers()[1], np.int64)[2 * start : 2 * stop].reshape(-1, 2)
    if column.null_count:
        words = np.where(null_mask(column)[:, None], np.int64(0), words)
    return words


def binary_buffers(column: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return the offsets (one more than there are rows) and the bytes of a STRING or BINARY
    column."""
    _, offsets, data = column.buffers()
    numbers = array_of(offsets, np.int32) if offsets else np.zeros(1, np.int32)
    return numbers[column.offset : column.offset + len(column) + 1], array_of(data, np.uint8)


def null_mask(column: pa.Array) -> npt.NDArray[np.bool_]:
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
    lengths = np.where(null_mask(column), -1, np.diff(offsets))
    fold_words(lengths, first, second)
    fold_elements(offsets - start, lengths, words[0], words[1], first, second)
