"""SELECT DISTINCT returns one row for each payload and maximal interval in which it is live.

A live payload has one open piece, from its first start to the furthest end so far. A row that
starts no later than that end extends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.distinct_loops import maximal_pieces
from weir.kernels.structures.keys import each_once, grown
from weir.kernels.structures.panes import Groups
from weir.kernels.structures.time_queue import Holds, TimeQueue, after
from weir.plan.operators import Distinct, schema


class DistinctKernel:
    """Runs SELECT DISTINCT (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Distinct) -> None:
        shape = schema(node)
        self._names = shape.names
        self._groups = Groups(range(len(shape.types)), shape.types)
        self._start = np.full(0, OPEN, dtype=np.int64)  # by group: where its piece starts
        self._end = np.full(0, OPEN, dtype=np.int64)  # by group: the furthest end so far
        self._timers = TimeQueue()
        self._holds = Holds()

    @property
    def state_rows(self) -> int:
        return len(self._groups)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (batch,) = slices
        groups = self._encode(batch)
        started, ended, starts, ends = maximal_pieces(
            batch.vs, batch.ve, groups, self._start, self._end
        )
        self._watch(started)
        self._holds.push(self._start[started], started, self._start)
        parts = [(ends + 1, Batch(starts, ends, self._groups.keys(ended)))]
        due = self._over(cti)
        piece = Batch(self._start[due], self._end[due], self._groups.keys(due))
        parts.append((after(piece.ve), piece))
        self._start[due] = OPEN
        self._groups.release(due)
        return emitted(parts), min(cti, self._holds.minimum(self._start))

    def _encode(self, batch: Batch) -> Int64s:
        groups = self._groups.encode(batch)
        self._start = grown(self._start, self._groups.capacity, OPEN)
        self._end = grown(self._end, self._groups.capacity, OPEN)
        return groups

    def _over(self, cti: int) -> Int64s:
        """Return the groups whose piece has ended and cannot grow any more."""
        due = self._timers.pop(cti)[1]
        due = each_once(due[self._start[due] != OPEN])
        over = after(self._end[due]) <= cti
        self._watch(due[~over])  # extended since: a piece has one timer at a time
        return due[over]

    def _watch(self, groups: Int64s) -> None:
        self._timers.add(after(self._end[groups]), groups)

    def snapshot(self) -> Tables:
        live = self._groups.live()
        batch = Batch(self._start[live], self._end[live], self._groups.keys(live))
        return {"pieces": rows_table(batch, self._names)}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        batch, _ = table_rows(tables["pieces"])
        groups = self._encode(batch)
        self._start[groups], self._end[groups] = batch.vs, batch.ve
        self._watch(groups)
        self._holds.push(batch.vs, groups, self._start)
