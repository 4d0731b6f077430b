"""Converts columns to Python lists and back, a few thousand values at a time.

Arrow converts an array in one call, during which no other thread of the process can run. For a
window of millions of rows, the host would not respond for seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from weir.events.types import DATE
from weir.events.value_text import format_dates, format_timestamps

SLICE = 4096
"""How many values are converted in one call."""


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


def readable_list(column: pa.Array) -> list[Any]:
    """Return the values of a column, with a text for each time that Python cannot represent.

    Those are the times before the year 1 and after 9999; their texts are as in files.

    >>> readable_list(pa.array([0, 1 << 58], pa.timestamp("us", "UTC")))[1]
    '+11103-08-29T17:22:31.711744Z'
    """
    try:
        return python_list(column)
    except (ValueError, OverflowError):
        return [_readable(value) for value in column]


def _readable(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    if pa.types.is_list(value.type):
        return [_readable(element) for element in value]
    if pa.types.is_struct(value.type):
        return {name: _readable(field) for name, field in value.items()}
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        write = format_dates if value.type == DATE else format_timestamps
        return write(pa.repeat(value, 1))[0].as_py()


def python_column(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """Return a column of values that Arrow can convert directly.

    >>> python_column([1, None], pa.int64()).null_count
    1
    """
    parts = [pa.array(values[start:end], dtype) for start, end in slices(len(values))]
    return pa.concat_arrays(parts) if parts else pa.array([], dtype)
