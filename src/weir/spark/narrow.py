"""Narrows columns of whole numbers for the wire.

Each number becomes its distance from the smallest of its column or, where they only grow (starts
mostly do), from the one before it.

Spark copies a block some ten times between two tasks, and compresses it, so bytes cost more
there than anywhere. Keys, counts and times have eight bytes, but those of one block mostly lie
close together.

Contract
1. `narrowed` gives a column and its base; `widened` gives back exactly that column.
2. A column of numbers or times that has no NULL is stored as unsigned numbers of few bytes; one in
   which all values are equal as no bytes at all. Any other stays as it is.
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
    """Return the column as it goes on the wire, and its field, which says how to get it back."""
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
    """Return the column that was narrowed to this one."""
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
    """Return the step from each number to the next, if they only grow and that takes fewer
    bytes."""
    if (np.diff(numbers[:_LOOK]) < 0).any():  # most columns that do not grow tell at once
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
    # By blocks that stay in the cache; a difference that is cut to its low bits is still right.
    np.subtract(numbers, numbers.dtype.type(base), out=distances, casting="unsafe")
    return distances
