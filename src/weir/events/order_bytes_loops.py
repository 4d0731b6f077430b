"""Compiled loops that write values as bytes which compare as the values do."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import Booleans, I32s, I64s, U8s
from weir.loops.compiled import compiled


@compiled
def escaped_texts(offsets: I32s, data: U8s, valid: Booleans):
    """Write each text with its 0 bytes escaped, then an end mark; or write NULL."""
    size = 0
    for row in range(len(valid)):
        size += 1
        if valid[row]:
            size += 2 + offsets[row + 1] - offsets[row]
            for at in range(offsets[row], offsets[row + 1]):
                size += data[at] == 0
    out = np.empty(size, dtype=np.uint8)
    ends = np.zeros(len(valid) + 1, dtype=np.int64)
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
def listed_elements(lengths: I32s, offsets: I64s, data: U8s):
    """Write lists of these lengths (−1 for NULL); `data` has the elements' bytes."""
    size = len(data) + len(offsets) - 1
    for length in lengths:
        size += 1 if length < 0 else 2
    out = np.empty(size, dtype=np.uint8)
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    size = element = 0
    for row in range(len(lengths)):
        out[size] = 0 if lengths[row] < 0 else 1
        size += 1
        for _ in range(lengths[row]):
            out[size] = 1
            size += 1
            for at in range(offsets[element], offsets[element + 1]):
                out[size] = data[at]
                size += 1
            element += 1
        if lengths[row] >= 0:
            out[size] = 0
            size += 1
        ends[row + 1] = size
    return ends, out


@compiled
def side_by_side(left_offsets: I64s, left: U8s, right_offsets: I64s, right: U8s):
    """Return each row's bytes of the first column, followed by those of the second."""
    out = np.empty(len(left) + len(right), dtype=np.uint8)
    offsets = np.zeros(len(left_offsets), dtype=np.int64)
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
