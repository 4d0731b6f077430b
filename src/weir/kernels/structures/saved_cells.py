"""Cells are written as rows and read again (`plan/saved_states.py` says what the rows are).

Snapshots of scans, the rows of a final state and what a run is restored from are the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from weir.errors import RunError, SnapshotCorrupt
from weir.events.batch import Batch, Int64s, ticks
from weir.events.frozen_values import frozen
from weir.events.python_lists import python_column, python_list
from weir.events.types import DOUBLE
from weir.kernels.structures.cells import (
    CellTable,
    Function,
    PastMerge,
    canonical_key,
)
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.saved_states import SavedCall, key_names, state_schema
from weir.plan.states import Cell, MergeKind

KeysOf = Callable[[Sequence[Hashable]], tuple[pa.Array, ...]]
"""Gives the key columns of cells."""

_OF_LISTS = ("append", "add_to_set", "top_k")


def cell_rows(table: CellTable, keys_of: KeysOf, calls: Sequence[SavedCall]) -> Batch:
    """Return the cells as rows, in no order between cells."""
    if table.cell.last is not None:
        return _merge_rows(table, keys_of, calls)
    keys, held = list(table.values), list(table.values.values())
    times = np.array([table.times.get(key, 0) for key in keys], dtype=np.int64)
    sums = [value if isinstance(value, ExactDouble) else None for value in held]
    values = [v if e is None else e.rounded() for v, e in zip(held, sums, strict=True)]
    columns = [*keys_of(keys), python_column(values, table.cell.type)]
    if table.cell.type == DOUBLE:
        columns.append(pa.array([e.packed() if e else None for e in sums], pa.binary()))
    return Batch(times, times + 1, tuple(columns))


def _merge_rows(table: CellTable, keys_of: KeysOf, calls: Sequence[SavedCall]) -> Batch:
    keys = [key for key, past in table.pasts.items() for _ in past]
    numbers = [number for past in table.pasts.values() for number in range(len(past))]
    merges = [merge for past in table.pasts.values() for merge in past]
    times = np.array([merge.time for merge in merges], dtype=np.int64)
    columns, state = list(keys_of(keys)), table.cell.state
    for name, dtype in state_schema(table.cell, calls)[len(table.cell.keys) :]:
        values = numbers if name == "number" else [_saved(m, name, state) for m in merges]
        columns.append(python_column(values, dtype))
    return Batch(times, times + 1, tuple(columns))


def _saved(merge: PastMerge, column: str, state: str) -> object:
    """Return what a merge has in a column."""
    if column == "merge":
        if merge.kind == "call" and not merge.name:
            raise RunError(
                f"a checkpoint cannot keep the window of {state}, which holds merges by functions "
                "of a serial group; use add, set, max, min, append, add_to_set or top_k there"
            )
        return merge.name or merge.kind
    called, _, at = column.rpartition(".")
    if called:
        return merge.args[int(at)] if called == merge.name else None
    if merge.kind == "call":
        return None
    of_lists = merge.kind in _OF_LISTS
    match column:
        case "arg":
            return None if of_lists else merge.args[0]
        case "element":
            return merge.args[0] if of_lists else None
        case "k":
            return merge.args[1] if merge.kind == "top_k" else None
    raise AssertionError(f"no column of a saved merge is called {column}")


def load_cells(
    table: CellTable,
    keys: Sequence[Hashable],
    rows: Batch,
    names: Sequence[str],
    functions: Mapping[str, Function],
) -> None:
    """Take over saved cells, whose keys are these; `functions` are those that calls may call."""
    columns = {n: python_list(c) for n, c in zip(names, rows.columns, strict=True)}
    columns = {n: [frozen(v) for v in c] for n, c in columns.items()}
    times = rows.vs.tolist()
    if table.cell.last is None:
        exacts = columns.get("exact", [None] * len(times))
        for key, time, value, exact in zip(keys, times, columns["value"], exacts, strict=True):
            table.values[key] = value if exact is None else ExactDouble.unpacked(exact)
            table.times[key] = time
        return
    for row in np.lexsort((columns["number"], rows.vs)).tolist() if times else ():
        merge = _past(times[row], {n: c[row] for n, c in columns.items()}, functions, table.cell)
        table.hold(keys[row], merge)


def _past(
    time: int, row: Mapping[str, Any], functions: Mapping[str, Function], cell: Cell
) -> PastMerge:
    name = row["merge"]
    if name.startswith("call "):
        if name not in functions:
            raise SnapshotCorrupt(f"a merge of {cell.state} calls {name}, which is not there now")
        args = tuple(v for column, v in row.items() if column.rpartition(".")[0] == name)
        return PastMerge(time, "call", args, functions[name], name)
    kind = cast("MergeKind", name)
    if kind == "top_k":
        return PastMerge(time, kind, (row["element"], row["k"]))
    return PastMerge(time, kind, (row["element" if kind in _OF_LISTS else "arg"],))


def cells_as_of(
    saved: pa.Table, cell: Cell, time: int, functions: Mapping[str, Function] | None = None
) -> pa.Table:
    """Return the cells that a read at this time would find other than the default.

    `saved` has the columns of `state_schema` and `vs`; the result has the key columns and `value`.
    A cell that was merged into and holds the default is left out, as one that has expired is.
    """
    table = CellTable(cell)
    names = key_names(cell)
    at_hand = saved.filter(pa.array(_ticks(saved) <= time))
    keys = [python_list(at_hand.column(name).combine_chunks()) for name in names]
    payload = [n for n in at_hand.column_names if n not in (*names, "vs", "ve")]
    columns = tuple(at_hand.column(name).combine_chunks() for name in payload)
    starts = _ticks(at_hand)
    found: dict[Hashable, tuple[object, ...]] = {}
    groups: list[Hashable] = []
    for row in zip(*keys, strict=True) if keys else [()] * len(starts):
        groups.append(canonical_key(row))
        found[groups[-1]] = row
    load_cells(table, groups, Batch(starts, starts + 1, columns), payload, functions or {})
    kept = [(row, table.get(group, time)) for group, row in found.items()]
    kept = [(row, value) for row, value in kept if not _same(value, table.default)]
    result = {
        name: python_column([row[i] for row, _ in kept], cell.keys[i])
        for i, name in enumerate(names)
    }
    return pa.table({**result, "value": python_column([value for _, value in kept], cell.type)})


def _ticks(saved: pa.Table) -> Int64s:
    return ticks(saved.column("vs").combine_chunks())


def _same(value: object, default: object) -> bool:
    """Tell whether two values of one type cannot be told apart: −0 and 0 can, NaN and NaN not."""
    return repr(value) == repr(default)
