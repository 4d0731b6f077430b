"""Writes cells as rows, and reads them again (`plan/saved_states.py` defines the rows).

Snapshots of scans, the output of a final state and the input of a restored run use the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from weir.errors import RunError, SnapshotCorrupt
from weir.events.batch import OPEN, Batch
from weir.events.python_lists import python_column, python_list
from weir.events.types import DOUBLE
from weir.kernels.structures.cell_windows import PastMerge
from weir.kernels.structures.cells import CellTable, Function
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.saved_states import SavedCall, state_schema
from weir.plan.states import MERGE_TRAITS, Cell

KeysOf = Callable[[Sequence[Hashable]], tuple[pa.Array, ...]]
"""Returns the key columns of cells."""


def cell_rows(table: CellTable, keys_of: KeysOf, calls: Sequence[SavedCall]) -> Batch:
    """Return the cells as rows; the cells are in no particular order."""
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
    """Return a merge's value in a column of saved cells."""
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
    of_lists = MERGE_TRAITS[merge.kind].of_elements
    match column:
        case "arg":
            return None if of_lists else merge.args[0]
        case "element":
            return merge.args[0] if of_lists else None
        case "k":
            return merge.args[1] if MERGE_TRAITS[merge.kind].has_k else None
    raise AssertionError(f"no column of a saved merge is called {column}")


def load_cells(
    table: CellTable,
    keys: Sequence[Hashable],
    rows: Batch,
    names: Sequence[str],
    functions: Mapping[str, Function],
) -> None:
    """Load saved cells of these keys; `functions` are those that calls may call."""
    columns = {n: python_list(c) for n, c in zip(names, rows.columns, strict=True)}
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
            raise SnapshotCorrupt(f"a merge of {cell.state} calls {name}, which no longer exists")
        args = tuple(v for column, v in row.items() if column.rpartition(".")[0] == name)
        return PastMerge(time, "call", args, functions[name], name)
    traits = MERGE_TRAITS.get(name)
    if traits is None:
        raise SnapshotCorrupt(f"a merge of {cell.state} is of an unknown kind: {name}")
    arg = row["element" if traits.of_elements else "arg"]
    return PastMerge(time, traits.kind, (arg, row["k"]) if traits.has_k else (arg,))


def first_request(slices: Sequence[Batch], restored: Container[int]) -> int:
    """Return the time of the first row of a slice that is not a saved cell."""
    others = (batch for port, batch in enumerate(slices) if port not in restored and len(batch))
    return min((int(batch.vs[0]) for batch in others), default=OPEN)


def check_restored(cell: Cell, rows: Batch, first: int) -> None:
    """Raise SnapshotCorrupt if saved cells are later than the first row that a scan has processed.

    They would undo that row's merges."""
    if len(rows) and int(rows.vs.max()) > first:
        raise SnapshotCorrupt(
            f"a saved cell of {cell.state} was merged into at {rows.vs.max()}, which is after the "
            f"first event, at {first}: a run that continues from it must begin after it"
        )
