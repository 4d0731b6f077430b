"""Hands Arrow's memory to compiled loops, as NumPy arrays that are marked as writable.

Nobody writes to them: batches are immutable. But Numba has separate types for writable and
read-only arrays, and Arrow's are read-only, while loops take writable ones (`argument_types.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def array_of(buffer: pa.Buffer | None, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a buffer's memory as an array, without copying; None gives an empty one."""
    item = np.dtype(dtype)
    if buffer is None or not buffer.size:
        return np.empty(0, item)
    return np.asarray(_Memory(buffer, item))


def numbers_of(column: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers of a column without NULLs as an array, without copying.

    >>> numbers_of(pa.array([1, 2, 3]).slice(1)).tolist()
    [2, 3]
    """
    whole = array_of(column.buffers()[1], column.type.to_pandas_dtype())
    return whole[column.offset : column.offset + len(column)]


class _Memory:
    """Tells NumPy the address of a buffer; keeps the buffer alive as long as the array."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, buffer: pa.Buffer, item: np.dtype[np.generic]) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "typestr": item.str,
            "shape": (buffer.size // item.itemsize,),
            "data": (buffer.address, False),
        }
