"""Converts values to sort keys that outlive their batch, and back.

A number (an integer, time, boolean, double, or decimal of up to 18 digits) becomes one int64 that
compares as the value does, NaN last and −0 as 0. Any other value becomes bytes that compare as the
value does, with their first seven bytes as the int64. The bytes of strings, binaries and wide
decimals can be converted back, while lists and structs are kept beside them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.hashing import binary_buffers
from weir.events.order_bytes import (
    as_binary,
    equally_long,
    order_bytes,
    plain_codes,
    wide_decimal_bytes,
)
from weir.kernels.expressions.casts import Convert, list_converter, struct_converter
from weir.kernels.expressions.evaluation import Mask
from weir.kernels.structures.rows import valid_mask

_SIGN = np.int64(-(2**63))
_DOWN = np.int64(2**63 - 1)


def from_plain(keys: Int64s, missing: Mask, dtype: pa.DataType) -> pa.Array:
    """Return the values of plain keys; NULL where missing."""
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
    """Return the first bytes of the keys as numbers, and the whole keys as BINARY."""
    if pa.types.is_nested(column.type):
        keys = as_binary(order_bytes(column)).cast(pa.binary())
    elif pa.types.is_decimal(column.type):
        keys = as_binary(equally_long(wide_decimal_bytes(column))).cast(pa.binary())
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


def canonical(dtype: pa.DataType) -> Convert:
    """Return a conversion that makes equal values identical: −0 becomes 0, and there is one NaN."""
    if pa.types.is_list(dtype):
        return list_converter(canonical(dtype.value_type), dtype)
    if pa.types.is_struct(dtype):
        return struct_converter([canonical(f.type) for f in dtype], dtype)
    if dtype == pa.float64():
        return lambda column: from_plain(plain_codes(column), ~valid_mask(column), dtype)
    return lambda column: column
