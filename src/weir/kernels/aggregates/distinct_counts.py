"""COUNT(DISTINCT x) counts the values that have at least one pane in the group's window.

Each value of a group has a number. Of the panes that contain the value, the one that ends last
holds it. Panes come in the order of their starts. So if the next pane of the value starts before
that end, the value stays in the window without a gap. Hence no value is visited when a pane enters
or leaves: the pane keeps two counts, of the values that enter the window at its start (GAIN) and of
those that leave at its end (LOSS). A snapshot has each value once, in the pane that holds it. It
does not matter which panes the value came with, because after a step every pane is part of its
group's next answer.

When a pane is dropped, its whole list of values is appended to the list of dropped values. Each row
that comes frees two of these. So the end of a long window does not visit all its values. There are
never more numbers than the most values that were in windows at one time plus the rows of an entry.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.kernels.aggregates.distinct_counts_loops import (
    NO_SLOT,
    SIZE,
    SLOT,
    drop_panes,
    dropped_numbers,
    hold_values,
    numbers_in,
    replay_distinct,
)
from weir.kernels.aggregates.lanes import counted_rows
from weir.kernels.structures.keys import KeyIndex, grown
from weir.kernels.structures.panes import Operations, Panes
from weir.kernels.structures.rows import RowStore
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema


class DistinctMeasure:
    """Answers COUNT(DISTINCT x) for the windows of each group (see `Measure`)."""

    def __init__(self, aggregation: Aggregation, schema: Schema, table: Panes) -> None:
        self._arg = schema.index(aggregation.args[0])
        self._filter = None if aggregation.filter is None else schema.index(aggregation.filter)
        self._table = table
        self._numbers = KeyIndex()  # (group, value) → number
        self._values = RowStore([schema.types[self._arg]])
        self._held = np.full((0, 5), NO_SLOT, dtype=np.int64)  # by number: the fields from SLOT on
        self._panes = np.zeros((0, 5), dtype=np.int64)  # by pane: the fields from FIRST on
        self._dropped = np.zeros((1, 2), dtype=np.int64)  # the list of dropped values
        self._distinct = np.zeros(0, dtype=np.int64)  # by group: how many values are in the window

    @property
    def state_rows(self) -> int:
        return len(self._numbers) - int(self._dropped[0, SIZE])

    def grow(self, panes: int, groups: int) -> None:
        self._panes = grown(self._panes, panes)
        self._distinct = grown(self._distinct, groups)

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        counted = counted_rows(batch.columns, self._arg, self._filter, len(batch))
        column = batch.columns[self._arg]
        if not counted.all():
            column, panes, groups = column.filter(counted), panes[counted], groups[counted]
        self._put(column, panes, groups)

    def _put(self, column: pa.Array, panes: Int64s, groups: Int64s) -> None:
        self._free(2 * len(panes))
        hashes = self._numbers.hashes([pa.array(groups), column], len(groups))
        numbers = self._numbers.encode(*hashes)
        self._held = grown(self._held, self._numbers.capacity, NO_SLOT)
        fresh = hold_values(
            numbers,
            panes,
            self._table.start,
            self._table.end,
            self._held,
            self._panes,
            self._dropped,
        )
        if len(fresh):
            zeros = np.zeros(len(fresh), dtype=np.int64)
            kept = Batch(zeros, zeros, (column.take(pa.array(fresh)),))
            self._held[numbers[fresh], SLOT] = self._values.add(kept)

    def replay(self, operations: Operations) -> list[pa.Array]:
        out = np.empty(operations.emits, dtype=np.int64)
        replay_distinct(
            operations.kinds, operations.groups, operations.panes, self._panes, self._distinct, out
        )
        return [pa.array(out)]

    def drop(self, panes: Int64s) -> None:
        drop_panes(panes, self._held, self._panes, self._dropped)

    def _free(self, most: int) -> None:
        """Free the numbers of values of dropped panes, at most this many."""
        numbers = dropped_numbers(min(most, int(self._dropped[0, SIZE])), self._held, self._dropped)
        self._values.free(self._held[numbers, SLOT])
        self._held[numbers, SLOT] = NO_SLOT
        self._numbers.release(numbers)

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        at, numbers = numbers_in(panes, self._held, self._panes)
        return at, {"value": self._values.columns(self._held[numbers, SLOT])[0]}

    def restore(self, panes: Int64s, groups: Int64s, columns: dict[str, pa.Array]) -> None:
        self._put(columns["value"], panes, groups)
