"""Writes fast cells as saved cells, and reads them again (`plan/saved_states.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch, Int64s
from weir.events.types import DOUBLE
from weir.kernels.structures.fast_cells import FastCells
from weir.kernels.structures.fast_cells_loops import DOUBLES, NULL, SUMMED, WINDOW, read_sums
from weir.kernels.structures.fast_kinds import to_bits
from weir.kernels.structures.rows import valid_mask
from weir.loops.arrow_memory import numbers_of
from weir.plan.states import Cell


def fast_rows(cells: FastCells, state: int, live: Int64s) -> tuple[Int64s, Batch]:
    """Return the saved cells of a state, without their keys, and the group of each row.

    `live` are all groups."""
    groups = live[cells.merged(state, live)]
    if cells.kinds[state] == "window":
        return _merge_rows(cells, state, groups)
    times = cells.cells[groups, 2 * state + 1]
    bits, flags = cells.cells[groups, 2 * state], cells.flags[groups, state]
    if cells.kinds[state] == "sum":
        values = np.empty(len(groups))
        read_sums(
            groups,
            state,
            cells.table,
            cells.sums.limbs,
            cells.flags,
            cells.sums.digits,
            cells.cells.view(np.float64),
            values,
        )
        bits = values.view(np.int64)
    columns = [cells.answers(state, bits, flags & NULL)]
    if cells.states[state].type == DOUBLE:
        columns.append(_packed(cells, state, groups, flags & SUMMED != 0))
    return groups, Batch(times, times + 1, tuple(columns))


def _packed(cells: FastCells, state: int, groups: Int64s, summed: np.ndarray) -> pa.Array:
    packed: list[bytes | None] = [None] * len(groups)
    for i in np.flatnonzero(summed).tolist():
        flags = int(cells.flags[groups[i], state])
        packed[i] = cells.sums.packed(int(groups[i]), flags, cells.table[state])
    return pa.array(packed, pa.binary())


def _merge_rows(cells: FastCells, state: int, groups: Int64s) -> tuple[Int64s, Batch]:
    of, number, times, values = cells.windows.listed(groups, int(cells.table[state, WINDOW]))
    columns = {
        "number": pa.array(number),
        "merge": pa.array(["add"] * len(of), pa.string()),
        "arg": pa.array(values.view(np.float64) if cells.table[state, DOUBLES] else values),
    }
    return groups[of], Batch(times, times + 1, tuple(columns.values()))


def load_fast(
    cells: FastCells, state: int, groups: Int64s, rows: Batch, names: Sequence[str]
) -> None:
    """Load saved cells into these groups."""
    columns = dict(zip(names, rows.columns, strict=True))
    if cells.kinds[state] == "window":
        _check_merges(cells.states[state], columns["merge"])
        order = np.lexsort((numbers_of(columns["number"]), rows.vs))
        cells.push(state, groups[order], rows.vs[order], to_bits(columns["arg"])[order])
        return
    value = columns["value"]
    cells.cells[groups, 2 * state + 1] = rows.vs
    if cells.kinds[state] == "handle":
        handles = cells.values[state].bring(value)
        cells.cells[groups, 2 * state] = cells.values[state].settle(groups, handles)
        return
    valid, bits = valid_mask(value), to_bits(value)
    cells.cells[groups, 2 * state] = bits
    cells.flags[groups, state] = np.where(valid, 0, NULL)
    if cells.kinds[state] == "sum":
        cells.sums.fit_values(state, bits, valid, cells.table)
        for i, data in enumerate(columns["exact"].to_pylist()):
            if data is not None:
                group = int(groups[i])
                flags = cells.sums.unpack(group, state, data, cells.table)
                cells.flags[group, state] = SUMMED | flags


def _check_merges(cell: Cell, merges: pa.Array) -> None:
    """Raise SnapshotCorrupt if a window that is kept as a sum has merges other than `add`."""
    others = [name for name in merges.unique().to_pylist() if name != "add"]
    if others:
        names = ", ".join(map(str, others))
        raise SnapshotCorrupt(f"a window of {cell.state} has other merges than add: {names}")
