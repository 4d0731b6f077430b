"""The loop's cells beside saved states (`plan/saved_states.py`): taken over, and compared."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, takewhile
from typing import Any, TypeAlias

from weir.plan.states import MergeKind
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
    """Let cells begin with those of a saved state. `functions` are those that the merges of a
    window call, by the names under which they were saved."""
    state = cells.states[name]
    if state.last is not None:
        rows = sorted(rows, key=lambda row: (row[0], row[1]["number"]))
    for time, row in rows:
        names = takewhile(row.__contains__, (f"key{i}" for i in count()))
        key = tuple(same_as_key(row[name]) for name in names)
        if state.last is None:
            cells.replace(state, key, HeldValue(time, _value(row)))
        else:
            cells.hold(state, key, _merge(cells.version, time, row, functions))


def contents(cells: SerialCells, name: str, time: int) -> dict[CellKey, CellContent]:
    """Return the cells of a state in which a merge is in force at a time."""
    state, found = cells.states[name], {}
    for key in cells.windows[name]:
        if merges := cells.in_force(state, key, cells.version, time):
            steps = tuple((m.time, m.kind, same_as_key(m.args)) for m in merges)
            found[key] = CellContent(cells.folded(state, merges), steps)
    for key, held in cells.values[name].items():
        if state.expires is None or time < held.time + state.expires:
            value, exact = seen(held.value), _exact(held.value)
            found[key] = CellContent(value, ((held.time, "set", (same_as_key(value), exact)),))
    return found


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


def _merge(
    version: int, time: int, row: Mapping[str, Any], functions: Mapping[str, OldToNew]
) -> HeldMerge:
    kind = row["merge"]
    if kind.startswith("call "):
        args = tuple(value for column, value in row.items() if column.rpartition(".")[0] == kind)
        return HeldMerge(version, time, "call", args, functions[kind])
    args = (row["element" if kind in OF_ELEMENTS else "arg"],)
    return HeldMerge(version, time, kind, (*args, row["k"]) if kind == "top_k" else args)
