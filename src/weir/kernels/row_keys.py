"""Rows of several order columns as bytes that compare as the rows do.

Each column gives a byte that is 0 for NULL and 1 for a value, then the value: 8 bytes,
big-endian with the sign flipped, for numbers; for strings their bytes with 0 written as 0, 255
and 0, 0 at the end. Columns in descending order are inverted. The row's place in the order of
arrival ends the key, so no two are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.compiled import compiled
from weir.events.hashing import binary_buffers
from weir.kernels.rows import valid_mask
from weir.kernels.sort_keys import byte_keys, is_plain, plain_keys

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]


def row_keys(columns: Sequence[tuple[pa.Array, bool]], arrivals: Int64s) -> pa.Array:
    """One BINARY key for each row of (column, descending) pairs."""
    parts = [_column_part(column, descending) for column, descending in columns]
    parts.append(_numbers(arrivals, np.ones(len(arrivals), dtype=np.bool_), flag=False))
    offsets, data = parts[0]
    for other_offsets, other in parts[1:]:
        offsets, data = _side_by_side(offsets, data, other_offsets, other)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(arrivals), buffers)


def _column_part(column: pa.Array, descending: bool) -> tuple[Offsets, Bytes]:
    valid = valid_mask(column)
    if is_plain(column.type):
        offsets, data = _numbers(plain_keys(column), valid, flag=True)
    else:
        raw_offsets, raw = binary_buffers(byte_keys(column)[1])
        offsets, data = _escaped(raw_offsets, raw, valid)
    return offsets, ~data if descending else data


def _numbers(values: Int64s, valid: npt.NDArray[np.bool_], flag: bool) -> tuple[Offsets, Bytes]:
    flipped = (np.where(valid, values, 0) ^ np.int64(-(2**63))).view(np.uint64).astype(">u8")
    data = flipped.view(np.uint8).reshape(-1, 8)
    if flag:
        data = np.concatenate([valid.astype(np.uint8)[:, None], data], axis=1)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * np.int32(data.shape[1])
    return offsets, np.ascontiguousarray(data).reshape(-1)


@compiled
def _escaped(offsets, data, valid):  # type: ignore[no-untyped-def]
    size = 0
    for row in range(len(valid)):
        size += 1
        if valid[row]:
            size += 2 + offsets[row + 1] - offsets[row]
            for at in range(offsets[row], offsets[row + 1]):
                size += data[at] == 0
    out = np.empty(size, dtype=np.uint8)
    ends = np.zeros(len(valid) + 1, dtype=np.int32)
    size = 0
    for row in range(len(valid)):
        out[size] = 1 if valid[row] else 0
        size += 1
        if valid[row]:
            for at in range(offsets[row], offsets[row + 1]):
                out[size] = data[at]
                size += 1
                if data[at] == 0:
                    out[size] = 255
                    size += 1
            out[size] = 0
            out[size + 1] = 0
            size += 2
        ends[row + 1] = size
    return ends, out


@compiled
def _side_by_side(left_offsets, left, right_offsets, right):  # type: ignore[no-untyped-def]
    out = np.empty(len(left) + len(right), dtype=np.uint8)
    offsets = np.zeros(len(left_offsets), dtype=np.int32)
    size = 0
    for row in range(len(offsets) - 1):
        for at in range(left_offsets[row], left_offsets[row + 1]):
            out[size] = left[at]
            size += 1
        for at in range(right_offsets[row], right_offsets[row + 1]):
            out[size] = right[at]
            size += 1
        offsets[row + 1] = size
    return offsets, out
