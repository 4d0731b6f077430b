"""Restores the loop's cells from saved states (`plan/saved_states.py`), and compares them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, takewhile
from typing import Any, TypeAlias

from weir.handlers.api.declarations import State
from weir.plan.operators import FinalState
from weir.plan.saved_states import saved_name
from weir.plan.states import MergeKind
from weir.plan.usercode.made_functions import plain_function
from weir.shadow.serial_cells import (
    OF_ELEMENTS,
    CellKey,
    FractionSum,
    HeldMerge,
    HeldValue,
    OldToNew,
    SerialCells,
    same_as_key,
    seen,
)

SavedRow: TypeAlias = tuple[int, Mapping[str, Any]]
"""A row of a saved state: its time, and its columns."""
SavedCells: TypeAlias = tuple[Sequence[SavedRow], Mapping[str, OldToNew]]
"""The rows of a saved state, and the functions that they name."""
_BEFORE = -1
"""The version of merges that were saved."""
_UNIT = Fraction(1, 1 << 1074)
_SPECIAL = {1: math.nan, 2: math.inf, 4: -math.inf}


@dataclass(frozen=True, slots=True)
class CellContent:
    """A `CellContent` is what a cell is read as, and what it goes on from: the time, the kind and
    the arguments of each merge that counts. Of a cell without a window that is its value."""

    value: object
    steps: tuple[tuple[int, MergeKind, Hashable], ...]


def restore(
    cells: SerialCells, name: str, rows: Sequence[SavedRow], functions: Mapping[str, OldToNew]
) -> None:
    """Let cells begin with these of a saved state, before all merges. `functions` are those that
    the merges of a window call, by the names under which they were saved."""
    state = cells.states[name]
    if state.last is not None:
        rows = sorted(rows, key=lambda row: (row[0], row[1]["number"]))
    for time, row in rows:
        names = takewhile(row.__contains__, (f"key{i}" for i in count()))
        key = tuple(same_as_key(row[name]) for name in names)
        if state.last is None:
            cells.values[name][key] = HeldValue(time, _value(row))
        else:
            window = cells.windows[name].setdefault(key, deque())
            window.append(_merge(time, row, functions))


def saved_functions(saved: FinalState) -> dict[str, OldToNew]:
    """Return the functions that merges into a state call, by the names under which they are
    saved."""
    functions = (merge.function for of_port in saved.merges for merge in of_port)
    return {saved_name(f): plain_function(f.function) for f in functions if f is not None}


def contents(cells: SerialCells, name: str, time: int) -> dict[CellKey, CellContent]:
    """Return the cells of a state in which a merge is in force at a time."""
    state, cell_contents = cells.states[name], {}
    for key in cells.windows[name]:
        if merges := cells.in_force(state, key, cells.version, time):
            steps = tuple((m.time, m.kind, same_as_key(m.args)) for m in merges)
            cell_contents[key] = CellContent(_folded(cells, state, merges), steps)
    for key, held in cells.values[name].items():
        if state.expires is None or time < held.time + state.expires:
            value, exact = seen(held.value), _exact(held.value)
            args = same_as_key(value), exact
            cell_contents[key] = CellContent(value, ((held.time, "set", args),))
    return cell_contents


def _folded(cells: SerialCells, state: State, merges: Sequence[HeldMerge]) -> object:
    """Return what a window is read as; it was not read before, so this may fail."""
    try:
        return cells.folded(state, merges)
    except Exception as error:  # of the user's function, too
        return f"it cannot be read: {type(error).__name__}"


def _exact(value: object) -> Hashable:
    """Return the exact sum that a cell's value stands for, if it is a finite one."""
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(value)
    return value.finite if isinstance(value, FractionSum) and value.special == 0.0 else None


def _value(row: Mapping[str, Any]) -> object:
    exact = row.get("exact")
    if exact is None:
        return row["value"]
    special = sum(x for flag, x in _SPECIAL.items() if exact[0] & flag)
    return FractionSum(int.from_bytes(exact[1:], "little", signed=True) * _UNIT, special)


def _merge(time: int, row: Mapping[str, Any], functions: Mapping[str, OldToNew]) -> HeldMerge:
    kind = row["merge"]
    if kind.startswith("call "):
        args = tuple(value for column, value in row.items() if column.rpartition(".")[0] == kind)
        return HeldMerge(_BEFORE, time, "call", args, functions[kind])
    args = (row["element" if kind in OF_ELEMENTS else "arg"],)
    return HeldMerge(_BEFORE, time, kind, (*args, row["k"]) if kind == "top_k" else args)
