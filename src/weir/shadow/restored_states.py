"""Restores the serial loop's cells from saved states (`plan/saved_states.py`), and compares them.

A saved state may have millions of cells, but the first events touch only some hundred of them. So
the loop looks up each cell when it first touches it. The engine then starts with these cells only,
and must not need others.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, takewhile
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import ticks
from weir.events.python_lists import python_list
from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition
from weir.handlers.api.declarations import State
from weir.plan.operators import FinalState, Source
from weir.plan.saved_states import key_names, saved_name
from weir.plan.states import MergeKind
from weir.plan.usercode.made_functions import plain_function
from weir.runtime.partitions import Partitions
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
"""The rows of a saved state, and the functions that they refer to by name."""
_BEFORE = -1
"""The version number of saved merges."""
_UNIT = Fraction(1, 1 << 1074)
_SPECIAL = {1: math.nan, 2: math.inf, 4: -math.inf}


@dataclass(frozen=True, slots=True)
class CellContent:
    """The value that a read of a cell returns, and the merges that later values depend on.

    Each step has the time, the kind and the arguments of a merge in force. A cell without a window
    has one step that sets the value.
    """

    value: object
    steps: tuple[tuple[int, MergeKind, Hashable], ...]


def restore(
    cells: SerialCells, name: str, rows: Sequence[SavedRow], functions: Mapping[str, OldToNew]
) -> None:
    """Start cells with the rows of a saved state, before all merges.

    `functions` has the functions that a window's merges call, by their saved names.
    """
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
    """Return the functions that merges into a state call, by their saved names."""
    functions = (merge.function for of_port in saved.merges for merge in of_port)
    return {saved_name(f): plain_function(f.function) for f in functions if f is not None}


def contents(cells: SerialCells, name: str, time: int) -> dict[CellKey, CellContent]:
    """Return the cells of a state with a merge that is in force at a time."""
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
    """Return the value that a read of a window returns, or a text if the read fails."""
    try:
        return cells.folded(state, merges)
    except Exception as error:  # also from the user's function
        return f"it cannot be read: {type(error).__name__}"


def _exact(value: object) -> Hashable:
    """Return a cell's value as an exact sum; None unless it is a finite sum."""
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


@dataclass(frozen=True, slots=True)
class SavedTable:
    """The saved cells of one state.

    The engine reads them through `source`. `saved` is the state that they were saved from.
    """

    state: str
    source: Source
    saved: FinalState
    rows: pa.Table

    def of_key(self, parts: Sequence[object]) -> pa.Table:
        """Return the rows of a cell."""
        types = self.saved.state.keys
        if len(parts) != len(types):
            return self.rows.slice(0, 0)
        rows = self.rows
        for name, dtype, value in zip(key_names(self.saved.state), types, parts, strict=True):
            rows = rows.filter(_equal(rows.column(name), value, dtype))
        return rows


def _equal(column: pa.ChunkedArray, value: object, dtype: pa.DataType) -> pa.ChunkedArray:
    """Tell which values of a key column equal a value, by the equality of keys."""
    if value is None:
        return pc.is_null(column)
    if isinstance(value, float) and math.isnan(value):
        return pc.is_nan(column)
    try:
        return pc.equal(column, pa.scalar(value, dtype))
    except (pa.ArrowException, TypeError, ValueError):  # no cell has such a key
        return pc.is_in(column, value_set=pa.array([], dtype))


def saved_table(
    state: str, source: Source, saved: FinalState, partition: SourcePartition
) -> SavedTable:
    """Read the saved cells of a state."""
    names = [name for name, _ in source.declared]
    empty = pa.schema([pa.field(name, dtype) for name, dtype in source.declared])
    chunks = [chunk.rows.select(names) for chunk in partition.chunks()]
    return SavedTable(state, source, saved, pa.Table.from_batches(chunks, schema=empty))


def saved_rows(rows: pa.Table) -> list[SavedRow]:
    """Return the rows of saved cells in the loop's form."""
    whole = rows.combine_chunks()
    columns = {
        name: python_list(_one(whole.column(name))) for name in whole.column_names if name != "vs"
    }
    times = ticks(_one(whole.column("vs"))).tolist()
    return [(time, {n: c[row] for n, c in columns.items()}) for row, time in enumerate(times)]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


@dataclass(slots=True)
class TouchedCells:
    """Restores the saved cells that the loop touches, and records them."""

    tables: Mapping[str, SavedTable]
    _rows: dict[str, list[pa.Table]] = field(default_factory=dict)

    def restoring(self, cells: SerialCells) -> SerialCells:
        """Make cells start with saved values, and return them."""
        self._rows = {name: [table.rows.slice(0, 0)] for name, table in self.tables.items()}

        def on_first(name: str, parts: tuple[object, ...]) -> None:
            if name in self.tables:
                table = self.tables[name]
                rows = table.of_key(parts)
                self._rows[name].append(rows)
                restore(cells, name, saved_rows(rows), saved_functions(table.saved))

        if self.tables:
            cells.on_first = on_first
        return cells

    @property
    def partitions(self) -> Partitions:
        """The partitions of the touched cells, for the engine to start with."""
        partitions: dict[str, Sequence[SourcePartition]] = {}
        for name, parts in self._rows.items():
            rows = pa.concat_tables(parts)
            partitions[self.tables[name].source.name] = [TableRows(name, rows.sort_by("vs"))]
        return partitions


@dataclass(frozen=True, slots=True)
class TableRows:
    """A partition of the rows of a table, in order of their times."""

    name: str
    rows: pa.Table

    @property
    def size(self) -> int:
        return int(self.rows.num_rows)

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        rest = self.rows.slice(start).combine_chunks()
        for batch in rest.to_batches(max_chunksize=size):
            stop = start + batch.num_rows
            yield Chunk(batch, np.arange(start, stop), stop, read=stop)
            start = stop
