"""Measures compute one or more aggregates of a group's rows; the one for lanes is here.

Contract of a measure
1. `put` adds rows to panes; `replay` runs window operations and returns one value for each EMIT;
   `drop` forgets panes that have left. Costs are per row, per pane and per EMIT, never per window
   that a row is in.
2. `values(panes)` returns what a snapshot keeps: rows of (index into panes, columns). `restore`
   puts them back into new panes. Then a `replay` with an ENTER for each pane that had entered
   before the snapshot rebuilds the groups' running state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.kernels.aggregates.lanes import Lanes, relaid
from weir.kernels.aggregates.measures_loops import add_rows, count_rows, replay_lanes
from weir.kernels.structures.keys import grown
from weir.kernels.structures.panes import Operations
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema


class Measure(Protocol):
    """Keeps what its aggregates need of each pane, and computes results of whole windows."""

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None: ...
    def replay(self, operations: Operations) -> list[pa.Array]: ...
    def drop(self, panes: Int64s) -> None: ...
    def grow(self, panes: int, groups: int) -> None: ...
    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]: ...
    def restore(self, panes: Int64s, groups: Int64s, columns: dict[str, pa.Array]) -> None: ...
    @property
    def state_rows(self) -> int: ...


class LaneMeasure:
    """Computes all counts and sums of the operator at once."""

    def __init__(self, aggregates: Sequence[Aggregation], schema: Schema) -> None:
        self._lanes = Lanes(aggregates, schema)
        self._panes = np.zeros((0, self._lanes.width), dtype=np.int64)
        # By group: the sum of the panes in its window.
        self._running = np.zeros((0, self._lanes.width), dtype=np.int64)

    state_rows = 0  # one row of lanes per pane, which the kernel counts

    def grow(self, panes: int, groups: int) -> None:
        self._panes = grown(self._panes, panes)
        self._running = grown(self._running, groups)

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        if self._lanes.width == 1:
            count_rows(self._panes, panes)
            return
        shares, moved = self._lanes.encode(batch.columns, len(batch))
        if moved is not None:
            self._panes = relaid(self._panes, moved, self._lanes.width)
            self._running = relaid(self._running, moved, self._lanes.width)
        add_rows(self._panes, panes, shares)

    def replay(self, operations: Operations) -> list[pa.Array]:
        out = np.empty((operations.emits, self._lanes.width), dtype=np.int64)
        replay_lanes(
            operations.kinds, operations.groups, operations.panes, self._panes, self._running, out
        )
        return self._lanes.results(out)

    def drop(self, panes: Int64s) -> None:
        self._panes[panes] = 0

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        lanes = self._panes[panes]
        columns = {
            name: pa.array(np.ascontiguousarray(lanes[:, i]))
            for i, name in enumerate(self._lanes.names)
        }
        return np.arange(len(panes)), columns

    def restore(self, panes: Int64s, groups: Int64s, columns: dict[str, pa.Array]) -> None:
        self._lanes.load(list(columns))
        at = {name: i for i, name in enumerate(self._lanes.names)}
        self._panes = np.zeros((len(self._panes), self._lanes.width), dtype=np.int64)
        self._running = np.zeros((len(self._running), self._lanes.width), dtype=np.int64)
        for name, column in columns.items():
            self._panes[panes, at[name]] = column.to_numpy(zero_copy_only=False)
