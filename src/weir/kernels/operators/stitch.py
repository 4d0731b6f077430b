"""STITCH joins rows of equal payload where one ends exactly where another starts.

A *chain* is a run of such rows so far. A row that starts at t extends the oldest chain of its
payload that ends at t: the one that began first. Without such a chain, the row begins one. A chain
is final once all rows that start at its end have come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.stitch_loops import append_chains, stitch_rows, unlink_chains
from weir.kernels.structures.keys import each_once, grown
from weir.kernels.structures.keys_loops import count_down, count_up
from weir.kernels.structures.panes import Groups
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.time_queue import Holds, TimeQueue, after
from weir.plan.operators import Stitch, schema


class StitchKernel:
    """Runs STITCH (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Stitch) -> None:
        shape = schema(node)
        self._names = shape.names
        self._groups = Groups(range(len(shape.types)), shape.types)
        self._chains = RowStore([])  # vs and ve of a chain; the payload is its group's
        self._began = np.zeros(0, dtype=np.int64)  # by chain: its number in the order of beginning
        self._group = np.full(0, -1, dtype=np.int64)  # by chain
        self._next = np.full(0, -1, dtype=np.int64)  # by chain: the next younger one of its group
        self._start = np.full(0, OPEN, dtype=np.int64)  # by chain: vs while it is held
        self._oldest = np.full(0, -1, dtype=np.int64)  # by group: its oldest chain
        self._youngest = np.full(0, -1, dtype=np.int64)  # by group: its youngest chain
        self._counter = 0
        self._timers = TimeQueue()
        self._holds = Holds()

    @property
    def state_rows(self) -> int:
        return len(self._chains)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (batch,) = slices
        groups = self._encode(batch)
        # Every row begins a chain; the chains of rows that extend another chain are freed below.
        slots = self._add(batch, groups)
        touched, unused = stitch_rows(
            slots,
            groups,
            self._chains.vs,
            self._chains.ve,
            self._next,
            self._oldest,
            self._youngest,
        )
        self._drop(unused)
        self._timers.add(after(self._chains.ve[touched]), touched)
        due_at, due = self._timers.pop(cti)
        alive = (self._start[due] != OPEN) & (after(self._chains.ve[due]) == due_at)
        due = each_once(due[alive])
        rows = Batch(
            self._chains.vs[due], self._chains.ve[due], self._groups.keys(self._group[due])
        )
        result = emitted([(after(rows.ve), rows)])
        unlink_chains(due, self._group, self._start, self._next, self._oldest, self._youngest)
        self._drop(due)
        return result, min(cti, self._holds.minimum(self._start))

    def _encode(self, batch: Batch) -> Int64s:
        groups = self._groups.encode(batch)
        self._oldest = grown(self._oldest, self._groups.capacity, -1)
        self._youngest = grown(self._youngest, self._groups.capacity, -1)
        return groups

    def _add(self, batch: Batch, groups: Int64s) -> Int64s:
        slots = self._chains.add(Batch(batch.vs, batch.ve, ()))
        for name, fill in (("_began", 0), ("_group", -1), ("_next", -1), ("_start", OPEN)):
            setattr(self, name, grown(getattr(self, name), self._chains.capacity, fill))
        self._began[slots] = np.arange(self._counter, self._counter + len(slots))
        self._counter += len(slots)
        self._group[slots], self._start[slots], self._next[slots] = groups, batch.vs, -1
        count_up(groups, self._groups.members)
        self._holds.push(batch.vs, slots, self._start)
        return slots

    def _drop(self, chains: Int64s) -> None:
        self._start[chains] = OPEN
        self._groups.release(count_down(self._group[chains], self._groups.members))
        self._chains.free(chains)

    def snapshot(self) -> Tables:
        slots = self._chains.held()
        slots = slots[np.argsort(self._began[slots])]
        keys = self._groups.keys(self._group[slots])
        batch = Batch(self._chains.vs[slots], self._chains.ve[slots], keys)
        return {"chains": rows_table(batch, self._names)}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        batch, _ = table_rows(tables["chains"])
        groups = self._encode(batch)
        slots = self._add(batch, groups)
        append_chains(slots, groups, self._next, self._oldest, self._youngest)
        self._timers.add(after(batch.ve), slots)
