"""CHOP(p) cuts rows at every grid point inside their lifetime.

A piece comes out when the CTI passes its start. A row is held until its last piece has come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.errors import EventFailed
from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.expressions.failed_events import event_at
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.room import check_room
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.time_queue import TimeQueue
from weir.plan.durations import duration_text
from weir.plan.operators import Chop, schema


class ChopKernel:
    """Runs CHOP (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Chop) -> None:
        self._schema = schema(node)
        self._period, self._offset = node.period, node.offset
        # The vs of a held row is the start of its next piece.
        self._rows = RowStore(self._schema.types)
        self._next = TimeQueue()

    @property
    def state_rows(self) -> int:
        return len(self._rows)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        self._hold(slices[0])
        _, slots = self._next.pop(cti - 1)
        starts, ends = self._rows.vs[slots], self._rows.ve[slots]
        if cti == OPEN and (ends == OPEN).any():
            raise self._endless(slots[ends == OPEN][:1])
        # The grid points before `until` end the pieces that are due.
        until = np.minimum(ends, cti)
        first = (starts - self._offset) // self._period
        counts = (until - 1 - self._offset) // self._period - first + 1
        check_room(
            counts,
            f"CHOP({duration_text(self._period)})",
            "take a longer period, or clip long lifetimes first (CLIP_DURATION)",
        )
        rows = np.repeat(np.arange(len(slots)), counts)
        numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        cell = self._offset + (first[rows] + numbers) * self._period
        vs = np.maximum(cell, starts[rows])
        ve = np.minimum(ends[rows], cell + self._period)
        batch = Batch(vs, ve, self._rows.columns(slots[rows]))
        result = emitted([(vs + 1, batch)])
        self._go_on(slots, self._offset + (first + counts) * self._period)
        return result, cti

    def _hold(self, batch: Batch) -> None:
        self._next.add(batch.vs, self._rows.add(batch))

    def _endless(self, slot: Int64s) -> EventFailed:
        event = event_at(self._rows.take(slot), self._schema, 0)
        del event["vs"]  # no longer the event's own, but that of the next piece
        why = "CHOP of an open event never ends; clip it first (CLIP_DURATION)"
        return EventFailed(why, event=event)

    def _go_on(self, slots: Int64s, following: Int64s) -> None:
        done = following >= self._rows.ve[slots]
        self._rows.free(slots[done])
        self._rows.vs[slots[~done]] = following[~done]
        self._next.add(following[~done], slots[~done])

    def snapshot(self) -> Tables:
        return {"rows": rows_table(self._rows.take(self._rows.held()), self._schema.names)}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        self._hold(table_rows(tables["rows"])[0])
