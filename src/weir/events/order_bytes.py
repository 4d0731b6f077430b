"""Encodes values as bytes that compare as the values do, also across arrays.

    NULL            0; in a column of numbers, also the bytes of the number 0
    numbers         1, then 8 bytes (DECIMALs of more than 18 digits: 16), the highest first and
                    the sign bit flipped
    texts, bytes    1, then their bytes, with each 0 written as 0, 255; then 0, 0
    lists           1, then each element after a 1; then 0
    structs         1, then the fields; in a NULL struct all fields are NULL

No value's bytes are a prefix of another's. So the bytes of several columns, side by side, compare
as rows do. Equal values have equal bytes: −0 = 0, NaN last and equal to itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import Int64s
from weir.events.hashing import binary_buffers, canonical_words, decimal_words
from weir.events.order_bytes_loops import escaped_texts, listed_elements, side_by_side
from weir.loops.arrow_memory import numbers_of

UInt8s = npt.NDArray[np.uint8]
Encoded = tuple[Int64s, UInt8s]
"""The offsets of the rows' bytes, with the end of the last, and all bytes."""

_SIGN = np.int64(-(2**63))
_DOWN = np.int64(2**63 - 1)


def order_bytes(column: pa.Array, *, exact: bool = False) -> Encoded:
    """Return the bytes of each value.

    With `exact`, −0 differs from 0, and NaNs differ by their bits.

    >>> offsets, data = order_bytes(pa.array([["a"], [], None]))
    >>> [data[i:j].tolist() for i, j in zip(offsets, offsets[1:])]
    [[1, 1, 1, 97, 0, 0, 0], [1, 0], [0]]
    """
    dtype = column.type
    valid = np.asarray(column.is_valid())
    if pa.types.is_struct(dtype):
        encoded = equally_long(valid.astype(np.uint8)[:, None])
        for field in column.flatten():
            encoded = side_by_side(*encoded, *order_bytes(field, exact=exact))
        return encoded
    if pa.types.is_list(dtype):
        lengths = pc.fill_null(pc.list_value_length(column), -1)
        elements = order_bytes(column.flatten(), exact=exact)
        listed: Encoded = listed_elements(numbers_of(lengths), *elements)
        return listed
    if is_plain(dtype):
        return _flagged(valid, number_bytes(plain_codes(column, exact=exact)))
    if pa.types.is_decimal(dtype):
        return _flagged(valid, wide_decimal_bytes(column))
    escaped: Encoded = escaped_texts(*binary_buffers(column), valid)
    return escaped


def is_plain(dtype: pa.DataType) -> bool:
    """Tell whether values of this type can be compared by one int64 each."""
    if pa.types.is_decimal(dtype):
        return bool(dtype.precision <= 18)
    return not (pa.types.is_string(dtype) or pa.types.is_binary(dtype) or pa.types.is_nested(dtype))


def plain_codes(column: pa.Array, *, exact: bool = False) -> Int64s:
    """Return one int64 for each value of a plain type; 0 for NULL."""
    if pa.types.is_decimal(column.type):
        return np.ascontiguousarray(decimal_words(column)[:, 0])
    if column.type != pa.float64():
        return canonical_words(column)
    if exact:
        bits = np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False)).view(np.int64)
    else:
        bits = canonical_words(column)
    return np.where(bits < 0, bits ^ _DOWN, bits)


def number_bytes(codes: Int64s) -> UInt8s:
    """Return the eight bytes of each number, as one matrix row per number."""
    return (codes ^ _SIGN).astype(">i8").view(np.uint8).reshape(-1, 8)


def wide_decimal_bytes(column: pa.Array) -> UInt8s:
    """Return the sixteen bytes of each DECIMAL, as one matrix row per value."""
    words = decimal_words(column)
    low = words[:, 0].astype(">i8").view(np.uint8).reshape(-1, 8)
    return np.concatenate([number_bytes(words[:, 1]), low], axis=1)


def equally_long(rows: UInt8s) -> Encoded:
    """Encode the rows of a matrix of bytes: end to end, with their offsets."""
    count, width = rows.shape
    return np.arange(count + 1) * width, np.ascontiguousarray(rows).reshape(-1)


def as_binary(encoded: Encoded) -> pa.Array:
    """Return the bytes as an Arrow column of large binaries, since its rows may be whole lists."""
    offsets, data = encoded
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _flagged(valid: npt.NDArray[np.bool_], rows: UInt8s) -> Encoded:
    return equally_long(np.concatenate([valid.astype(np.uint8)[:, None], rows], axis=1))
