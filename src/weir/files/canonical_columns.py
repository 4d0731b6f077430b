"""Makes equal columns the same bytes, for files that hold what is in memory.

Arrow leaves anything under a NULL, and a NaN has whatever sign the processor gave it; both depend
on which rows were computed together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.hashing import null_mask
from weir.events.types import BINARY, BOOLEAN, DOUBLE, NULL, STRING
from weir.kernels.expressions.casts import list_converter, struct_converter
from weir.loops.arrow_memory import array_of, numbers_of

_NOTHING = {STRING: "", BINARY: b"", BOOLEAN: False}


def canonical_column(column: pa.Array) -> pa.Array:
    """Return the column with one NaN, and with zeros or nothing under its NULLs.

    >>> column = canonical_column(pa.array([None, -float("nan")]))
    >>> np.frombuffer(column.buffers()[1], np.uint64).tolist() == [0, 0x7FF8000000000000]
    True
    """
    dtype = column.type
    if pa.types.is_list(dtype):
        return list_converter(canonical_column, dtype)(column)
    if pa.types.is_struct(dtype):
        return struct_converter([canonical_column] * dtype.num_fields, dtype)(column)
    if dtype == DOUBLE and np.isnan(numbers_of(column)).any():
        values = _values(column).view(np.float64)
        values[np.isnan(values)] = np.nan
        return _stored(column, values)
    if not column.null_count or dtype == NULL:
        return column
    if dtype in _NOTHING:
        return _masked(column, pc.fill_null(column, _NOTHING[dtype]).buffers()[1:])
    return _stored(column, _values(column))


def _values(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return a copy of the values' bytes, a row each, which are zero where the value is NULL."""
    width = column.type.bit_width // 8
    start, stop = column.offset * width, (column.offset + len(column)) * width
    values = array_of(column.buffers()[1], np.uint8)[start:stop].copy().reshape(-1, width)
    values[null_mask(column)] = 0
    return values


def _stored(column: pa.Array, values: npt.NDArray[np.generic]) -> pa.Array:
    return _masked(column, [pa.py_buffer(values)])


def _masked(column: pa.Array, buffers: list[pa.Buffer]) -> pa.Array:
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(column.type, len(column), [valid, *buffers])
