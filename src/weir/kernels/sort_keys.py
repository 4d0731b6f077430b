"""Values as sort keys that outlive their batch, and back.

A number (integers, times, booleans, doubles, decimals up to 18 digits) is one int64 that
compares as the value does, NaN last and −0 as 0. A string, binary or wide decimal is bytes
that compare as the value does, with their first seven bytes as the int64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.hashing import binary_buffers, canonical_words, decimal_words
from weir.kernels.rows import valid_mask

Mask = npt.NDArray[np.bool_]

_SIGN = np.int64(-(2**63))
_DOWN = np.int64(2**63 - 1)


def is_plain(dtype: pa.DataType) -> bool:
    """Whether a value's key is the int64 alone."""
    if pa.types.is_decimal(dtype):
        return bool(dtype.precision <= 18)
    return not (pa.types.is_string(dtype) or pa.types.is_binary(dtype))


def plain_keys(column: pa.Array) -> Int64s:
    if pa.types.is_decimal(column.type):
        return np.ascontiguousarray(decimal_words(column)[:, 0])
    words = canonical_words(column)
    if column.type == pa.float64():
        return np.where(words < 0, words ^ _DOWN, words)
    return words


def from_plain(keys: Int64s, missing: Mask, dtype: pa.DataType) -> pa.Array:
    """The values of plain keys; NULL where missing."""
    if pa.types.is_null(dtype):
        return pa.nulls(len(keys))
    if dtype == pa.float64():
        bits = np.where(keys < 0, keys ^ _DOWN, keys)
        return pa.array(bits.view(np.float64), mask=missing, from_pandas=False)
    if pa.types.is_decimal(dtype):
        words = np.stack([keys, keys >> 63], axis=1)
        whole = pa.Array.from_buffers(dtype, len(keys), [None, pa.py_buffer(words.copy())])
        return _with_nulls(whole, missing)
    if pa.types.is_boolean(dtype):
        return pa.array(keys != 0, mask=missing)
    width = np.int32 if dtype.bit_width == 32 else np.int64
    whole = pa.Array.from_buffers(dtype, len(keys), [None, pa.py_buffer(keys.astype(width))])
    return _with_nulls(whole, missing)


def _with_nulls(column: pa.Array, missing: Mask) -> pa.Array:
    if not missing.any():
        return column
    index = pa.array(np.arange(len(column)), mask=missing)
    return column.take(index)


def byte_keys(column: pa.Array) -> tuple[Int64s, pa.Array]:
    """Prefix numbers and the whole keys as BINARY."""
    if pa.types.is_decimal(column.type):
        words = decimal_words(column)
        high = (words[:, 1] ^ _SIGN).view(np.uint64).astype(">u8").view(np.uint8).reshape(-1, 8)
        low = words[:, 0].view(np.uint64).astype(">u8").view(np.uint8).reshape(-1, 8)
        data = np.ascontiguousarray(np.concatenate([high, low], axis=1))
        offsets = np.arange(len(column) + 1, dtype=np.int32) * 16
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        keys = pa.Array.from_buffers(pa.binary(), len(column), buffers)
    else:
        keys = column.cast(pa.binary())
    offsets, data = binary_buffers(keys)
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets)
    prefix = np.zeros(len(keys), dtype=np.int64)
    padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)]) if len(keys) else data
    for i in range(7):  # seven: the sign bit stays clear
        byte = np.where(lengths > i, padded[starts + i], 0) if len(keys) else prefix
        prefix = (prefix << 8) | byte
    return prefix, keys


def from_bytes(keys: pa.Array, dtype: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(dtype):
        return keys.cast(dtype)
    missing = ~valid_mask(keys)
    offsets, data = binary_buffers(keys)
    raw = np.zeros((len(keys), 16), dtype=np.uint8)
    held = np.flatnonzero(~missing)
    if len(held):
        raw[held] = data[offsets[held][:, None] + np.arange(16)]
    pairs = raw.reshape(-1, 2, 8).copy().view(">u8").reshape(-1, 2).astype(np.uint64)
    words = np.stack([pairs[:, 1].view(np.int64), pairs[:, 0].view(np.int64) ^ _SIGN], axis=1)
    whole = pa.Array.from_buffers(dtype, len(keys), [None, pa.py_buffer(words.copy())])
    return _with_nulls(whole, missing)
