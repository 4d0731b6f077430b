"""The declared types of loop arguments: arrays without gaps, and plain numbers.

Each is a type for mypy, annotated with the Numba type that the loop is compiled for.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types

I64: TypeAlias = Annotated[int | np.int64, types.int64]
U64: TypeAlias = Annotated[int | np.uint64, types.uint64]
U8: TypeAlias = Annotated[int | np.uint8, types.uint8]
Bool: TypeAlias = Annotated[bool | np.bool_, types.boolean]

I64s: TypeAlias = Annotated[npt.NDArray[np.int64], types.int64[::1]]
U64s: TypeAlias = Annotated[npt.NDArray[np.uint64], types.uint64[::1]]
I32s: TypeAlias = Annotated[npt.NDArray[np.int32], types.int32[::1]]
U32s: TypeAlias = Annotated[npt.NDArray[np.uint32], types.uint32[::1]]
F64s: TypeAlias = Annotated[npt.NDArray[np.float64], types.float64[::1]]
Booleans: TypeAlias = Annotated[npt.NDArray[np.bool_], types.boolean[::1]]
U8s: TypeAlias = Annotated[npt.NDArray[np.uint8], types.uint8[::1]]
ReadBytes: TypeAlias = Annotated[
    npt.NDArray[np.uint8], types.Array(types.uint8, 1, "C", readonly=True)
]
"""Bytes that the loop only reads; they may be Python's own memory."""

ReadI64s: TypeAlias = Annotated[
    npt.NDArray[np.int64], types.Array(types.int64, 1, "C", readonly=True)
]
"""Numbers that the loop only reads; they may be Arrow's own memory."""

I64Table: TypeAlias = Annotated[npt.NDArray[np.int64], types.int64[:, ::1]]
U64Table: TypeAlias = Annotated[npt.NDArray[np.uint64], types.uint64[:, ::1]]
F64Table: TypeAlias = Annotated[npt.NDArray[np.float64], types.float64[:, ::1]]
U8Table: TypeAlias = Annotated[npt.NDArray[np.uint8], types.uint8[:, ::1]]
I64Cube: TypeAlias = Annotated[npt.NDArray[np.int64], types.int64[:, :, ::1]]
