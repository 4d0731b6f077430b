"""Arrow's memory as NumPy arrays that look as if they could be written to. Nobody does: batches are
immutable.

A compiled loop takes arrays that can be written and those that cannot as two types, and Arrow's
cannot. Each mixture of both that comes by would be compiled anew, in the middle of a stream, for
seconds (`tests/conformance` sees to it that none is).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def array_of(buffer: pa.Buffer | None, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A buffer's memory, not copied; empty for none."""
    item = np.dtype(dtype)
    if buffer is None or not buffer.size:
        return np.empty(0, item)
    return np.asarray(_Memory(buffer, item))


def numbers_of(column: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a column without NULLs, not copied.

    >>> numbers_of(pa.array([1, 2, 3]).slice(1)).tolist()
    [2, 3]
    """
    whole = array_of(column.buffers()[1], column.type.to_pandas_dtype())
    return whole[column.offset : column.offset + len(column)]


class _Memory:
    """What NumPy asks for the address, and keeps as long as its array lives."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, buffer: pa.Buffer, item: np.dtype[np.generic]) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "typestr": item.str,
            "shape": (buffer.size // item.itemsize,),
            "data": (buffer.address, False),
        }
