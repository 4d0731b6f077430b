"""Columns become Python lists, and lists columns, some thousand values at a time.

Arrow converts an array in one call, during which no other thread of the process can run: for a
window of millions of rows that is seconds in which a host answers nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

SLICE = 4096
"""Values that are converted in one call."""


def slices(length: int) -> Iterator[tuple[int, int]]:
    """Cut a length into slices: where each begins and ends.

    >>> list(slices(5000))
    [(0, 4096), (4096, 5000)]
    """
    return ((start, min(start + SLICE, length)) for start in range(0, length, SLICE))


def python_list(column: pa.Array) -> list[Any]:
    """Return the values of a column, as `to_pylist` does.

    >>> python_list(pa.array(["a", None]))
    ['a', None]
    """
    values: list[Any] = []
    for start, end in slices(len(column)):
        values += column.slice(start, end - start).to_pylist()
    return values


def python_column(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """Return a column of values that Arrow takes as they are.

    >>> python_column([1, None], pa.int64()).null_count
    1
    """
    parts = [pa.array(values[start:end], dtype) for start, end in slices(len(values))]
    return pa.concat_arrays(parts) if parts else pa.array([], dtype)
