"""Decides which states are fast, and what their merges and reads are in the compiled loop.

A state is fast if `fast_kind` has a kind for it:

    number   a value of fixed width; add (integers), set, max, min, IEEE addition
    sum      a DOUBLE with `add`: an exact sum in limbs (`exact_loops.py`), rounded at each read
    window   an integer or DOUBLE with `last` and only `add`: its merges in a list, and their
             exact sum
    handle   any other type with only `set`: the cell is the number of a stored value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, type_name
from weir.events.user_copies import default_value
from weir.kernels.structures.fast_cells_loops import (
    ADD,
    ADD_FLOAT,
    ADD_SUM,
    MAX,
    MAX_FLOAT,
    MIN,
    MIN_FLOAT,
    PUSH,
    READ,
    READ_SUM,
    READ_WINDOW,
    SET,
)
from weir.kernels.structures.rows import raw_values
from weir.plan.states import Cell, StateMerge

FastKind: TypeAlias = Literal["number", "sum", "window", "handle"]

_INTEGERS = (INT, BIGINT)
_FIXED = (BOOLEAN, DOUBLE, TIMESTAMP, DATE, *_INTEGERS)
_OPS = {"set": SET, "add": ADD, "max": MAX, "min": MIN}
_OPS_OF_DOUBLES = {"set": SET, "max": MAX_FLOAT, "min": MIN_FLOAT, "add_float": ADD_FLOAT}
_READS: dict[FastKind, int] = {
    "number": READ,
    "handle": READ,
    "sum": READ_SUM,
    "window": READ_WINDOW,
}


@dataclass(frozen=True, slots=True)
class FastMerge:
    """A merge into a fast state.

    `state` is the number of the state among the fast ones; `argument` (unless it is a `constant`)
    and `condition` are columns of the port.
    """

    state: int
    step: str
    port: int
    argument: int | None
    condition: int | None
    constant: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class FastRead:
    """A read of a fast state by the rows of port 0 (see `StateRead`)."""

    state: int
    defers: bool = False


def fast_kind(
    cell: Cell, merges: Sequence[tuple[StateMerge, Sequence[pa.DataType]]]
) -> FastKind | None:
    """Return the kind of a state, or None if it is not fast.

    It depends on all merges of the state and the types of their arguments."""
    steps = {merge_step(merge) for merge, _ in merges}
    types = {dtype for _, of_merge in merges for dtype in of_merge}
    integer = cell.type in _INTEGERS
    if not types <= ({*_INTEGERS} if integer else {cell.type}):
        return None
    if cell.last is not None:
        summed = (integer or cell.type == DOUBLE) and steps <= {"add"}
        return "window" if summed and cell.default is not None else None
    if cell.type not in _FIXED:
        return "handle" if steps <= {"set"} else None
    if cell.type == DOUBLE and "add" in steps:
        return "sum" if steps <= {"add", "set", "max", "min"} else None
    fast_steps = _OPS_OF_DOUBLES if cell.type == DOUBLE else _OPS
    if not integer and cell.type != DOUBLE:
        fast_steps = {"set": SET} if cell.type == BOOLEAN else {"set": SET, "max": MAX, "min": MIN}
    return "number" if steps <= fast_steps.keys() else None


def why_slow(cell: Cell, merges: Sequence[tuple[StateMerge, Sequence[pa.DataType]]]) -> str | None:
    """Return the reason why a state is not fast, for people; None if it is."""
    if fast_kind(cell, merges) is not None:
        return None
    called = any(merge_step(merge) == "call" for merge, _ in merges)
    ways = dict.fromkeys((merge_step(merge), merge.k) for merge, _ in merges)
    named = ", ".join(dict.fromkeys(name for name, _ in ways))
    if cell.last is None:
        reason = "a merge calls a function" if called else f"{named} of {type_name(cell.type)}"
    elif called:
        reason = "with `last`, a read calls the functions of all merges in the window"
    elif len(ways) > 1:
        reason = f"with `last`, a read goes through all merges in the window: {named}"
    else:
        reason = f"with `last`, {named} of {type_name(cell.type)}"
    return f"{reason}, one by one in Python"


def merge_step(merge: StateMerge) -> str:
    """Return a merge's operation for the compiled loop, which a function may have too."""
    return merge.kind if merge.function is None else merge.function.step or merge.kind


def merge_op(step: str, cell: Cell, kind: FastKind) -> int:
    """Return the operation of a merge in the compiled loop."""
    if kind == "window":
        return PUSH
    if kind == "sum" and step == "add":
        return ADD_SUM
    return (_OPS_OF_DOUBLES if cell.type == DOUBLE else _OPS)[step]


def read_op(kind: FastKind) -> int:
    """Return the operation of a read in the compiled loop."""
    return _READS[kind]


# --- values as bits --------------------------------------------------------------------------


def to_bits(column: pa.Array) -> Int64s:
    """Return the values of a column of fixed width as int64; for NULL, the number is arbitrary."""
    bits: Int64s = raw_values(column).astype(np.int64, copy=False)
    return bits


def from_bits(bits: Int64s, null: npt.NDArray[np.bool_], dtype: pa.DataType) -> pa.Array:
    """Return a column of fixed width, NULL where the mask is true."""
    if dtype == BOOLEAN:
        return pa.array(bits != 0, mask=null if null.any() else None)
    raw = bits.astype(np.int32) if dtype.bit_width == 32 else np.ascontiguousarray(bits)
    valid = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(dtype, len(bits), [valid, pa.py_buffer(raw)])


def default_column(cell: Cell) -> pa.Array:
    """Return a column with the state's default as its only value."""
    default = default_value(cell.default, cell.type)
    return pa.array([default], cell.type)
