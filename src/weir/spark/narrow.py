"""Narrows columns of integers for the shuffle.

Each number is replaced by its distance from the smallest one of its column or, if the numbers only
grow (starts mostly do), from the one before it.

Spark copies a block about ten times between two tasks, and compresses it, so bytes are most
expensive there. Keys, counts and times have eight bytes each, but within a block they are mostly
close together.

Contract
1. `narrowed` returns the narrowed column and a field with its base; `widened` restores exactly the
   original column.
2. A column of numbers or times without NULL is stored as unsigned integers of few bytes, or as no
   bytes if all values are equal. Any other column stays unchanged.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.types import BIGINT, DATE, INT, TIMESTAMP

_WIDTHS: dict[int, type[np.unsignedinteger]] = {8: np.uint8, 16: np.uint16, 32: np.uint32}
_STORAGE = {BIGINT: pa.int64(), TIMESTAMP: pa.int64(), INT: pa.int32(), DATE: pa.int32()}
_NAMES = {str(dtype): dtype for dtype in _STORAGE}
_BASE, _TYPE, _STEPS = b"base", b"type", b"steps"


def narrowed(column: pa.Array, name: str) -> tuple[pa.Array, pa.Field]:
    """Return the column for the shuffle, and its field, which says how to restore it."""
    storage = _STORAGE.get(column.type)
    if storage is None or column.null_count or not len(column):
        return column, pa.field(name, column.type)
    numbers = column.view(storage).to_numpy()
    base = int(numbers.min())
    span = int(numbers.max()) - base
    if span.bit_length() > storage.bit_width // 2:
        return column, pa.field(name, column.type)
    metadata = {_BASE: str(base), _TYPE: str(column.type)}
    steps = _steps(numbers, span) if span >> 8 else None
    if steps is not None:
        stored, metadata[_STEPS] = pa.array(steps), ""
    elif span == 0:
        stored = pa.nulls(len(column))
    else:
        stored = pa.array(_distances(numbers, base, span))
    return stored, pa.field(name, stored.type, metadata=metadata)


def widened(stored: pa.Array, field: pa.Field) -> pa.Array:
    """Restore a column from its narrowed form."""
    metadata = field.metadata
    if metadata is None:
        return stored
    dtype = _NAMES[metadata[_TYPE].decode()]
    storage = _STORAGE[dtype].to_pandas_dtype()
    base = storage(int(metadata[_BASE]))
    if pa.types.is_null(stored.type):
        numbers = np.full(len(stored), base)
    elif _STEPS in metadata:
        numbers = np.cumsum(stored.to_numpy(), dtype=storage)
        numbers += base
    else:
        numbers = np.add(stored.to_numpy(), base, dtype=storage, casting="unsafe")
    return pa.array(numbers).view(dtype)


_LOOK = 64


def _steps(
    numbers: npt.NDArray[np.signedinteger], span: int
) -> npt.NDArray[np.unsignedinteger] | None:
    """Return the differences of consecutive numbers, if the numbers only grow and the differences
    take fewer bytes."""
    if (np.diff(numbers[:_LOOK]) < 0).any():  # most columns that do not grow are detected here
        return None
    steps = np.diff(numbers, prepend=numbers[:1])
    smallest, largest = int(steps.min()), int(steps.max())
    width = _width(largest)
    return steps.astype(width) if smallest >= 0 and width != _width(span) else None


def _width(span: int) -> type[np.unsignedinteger]:
    return next(w for bits, w in _WIDTHS.items() if span.bit_length() <= bits)


def _distances(
    numbers: npt.NDArray[np.signedinteger], base: int, span: int
) -> npt.NDArray[np.unsignedinteger]:
    distances = np.empty(len(numbers), dtype=_width(span))
    # In blocks that stay in the cache; the low bits of a difference are enough.
    np.subtract(numbers, numbers.dtype.type(base), out=distances, casting="unsafe")
    return distances
