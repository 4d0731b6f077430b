"""Saved cells as the values that a read at some time would find."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pyarrow as pa

from weir.events.batch import Batch, Int64s, ticks
from weir.events.python_lists import python_column, python_list
from weir.kernels.structures.cell_windows import canonical_key
from weir.kernels.structures.cells import CellTable, Function
from weir.kernels.structures.saved_cells import load_cells
from weir.plan.saved_states import key_names
from weir.plan.states import Cell


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
