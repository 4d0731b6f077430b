"""ORDER BY … LIMIT k returns the first rows of each window or of each instant.

For windows, the rows of a window have one lifetime and come in one slice, so nothing is held. For
instants, it works as a snapshot window without groups: for every cell, it returns the first k rows
of an ordered multiset. The order of the rows breaks ties of the order columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import START, Batch, Int64s, empty_batch
from weir.events.order import order_codes
from weir.events.order_bytes import as_binary, equally_long, number_bytes, order_bytes
from weir.events.order_bytes_loops import side_by_side
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.top_loops import ranks_of, replay_top
from weir.kernels.operators.windows import SnapshotWindows
from weir.kernels.structures.chains_loops import chain, chains_of
from weir.kernels.structures.keys import grown
from weir.kernels.structures.panes import Panes
from weir.kernels.structures.panes_loops import ENTER
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.treap_loops import PRIORITY
from weir.kernels.structures.treap_nodes import TreapNodes
from weir.plan.operators import Top, schema


class TopOfWindow:
    """Returns the first rows of each window (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Top) -> None:
        shape = schema(node)
        self._order = [(shape.index(name), descending) for name, descending in node.order]
        self._limit, self._ties = node.limit, node.ties

    state_rows = 0

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (batch,) = slices
        codes = [_directed(batch.columns[i], down) for i, down in self._order]
        # A window is identified by its start and end; rows that tie keep their order of arrival.
        order = np.lexsort([*reversed(codes), batch.ve, batch.vs])
        window_changes = _changes([batch.vs, batch.ve], order)
        order_changes = _changes([batch.vs, batch.ve, *codes], order)
        ranks = ranks_of(window_changes, order_changes, self._ties)
        kept = np.sort(order[ranks < self._limit])
        rows = batch.take(kept)
        rows = Batch(rows.vs, rows.ve, rows.columns)
        return emitted([(rows.vs + 1, rows)]), cti

    def snapshot(self) -> Tables:
        return {}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        pass


def _directed(column: pa.Array, descending: bool) -> Int64s:
    codes = order_codes(column)
    return ~codes if descending else codes


def _changes(keys: Sequence[Int64s], order: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return where a row in this order differs from the one before it."""
    changes = np.zeros(len(order), dtype=np.bool_)
    for key in keys:
        values = key[order]
        changes[1:] |= values[1:] != values[:-1]
    return changes


class TopOfInstant:
    """Returns the first rows of each instant (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Top) -> None:
        shape = schema(node)
        self._schema = shape
        self._order = [(shape.index(name), descending) for name, descending in node.order]
        self._limit, self._ties = node.limit, node.ties
        self._panes = Panes()
        self._windows = SnapshotWindows(self._panes)
        self._windows.grow(1)
        self._rows = RowStore([*shape.types, pa.binary()])  # with the sort key
        self._arrival = np.zeros(0, dtype=np.int64)  # by row
        self._nodes = TreapNodes()
        self._following = np.full(0, -1, dtype=np.int64)
        self._heads = np.full(0, -1, dtype=np.int64)
        self._roots = np.full(1, -1, dtype=np.int64)
        self._arrivals = 0

    @property
    def state_rows(self) -> int:
        return len(self._rows)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (batch,) = slices
        if len(batch):
            self._take_in(batch, np.arange(self._arrivals, self._arrivals + len(batch)))
        due = self._windows.due(cti)
        counts = np.empty(due.operations.emits, dtype=np.int64)
        rows = replay_top(
            due.operations.kinds,
            due.operations.panes,
            self._heads,
            self._following,
            self._nodes.table,
            self._roots,
            *self._rows.bytes_of(len(self._schema.types)),
            self._limit,
            self._ties,
            counts,
        )
        result = empty_batch(self._schema.types)
        if len(rows):
            cells = np.repeat(np.arange(len(counts)), counts)
            columns = self._rows.columns(rows)[:-1]
            top_rows = Batch(due.results.vs[cells], due.results.ve[cells], columns)
            result = emitted([(due.results.final[cells], top_rows)])
        self._rows.free(chains_of(due.gone, self._heads, self._following)[1])
        self._heads[due.gone] = -1
        self._panes.release(due.gone)
        return result, self._windows.output_cti(cti)

    def _take_in(self, batch: Batch, arrivals: Int64s) -> None:
        self._arrivals = max(self._arrivals, int(arrivals.max()) + 1)
        self._windows.opened(self._put(batch, arrivals))

    def _put(self, batch: Batch, arrivals: Int64s) -> Int64s:
        """Hold rows; return the panes made for them."""
        keys = row_keys([(batch.columns[i], down) for i, down in self._order], arrivals)
        slots = self._rows.add(Batch(batch.vs, batch.ve, (*batch.columns, keys)))
        groups = np.zeros(len(batch), dtype=np.int64)
        panes, new = self._panes.encode(groups, batch.vs, batch.ve)
        self._nodes.grow(self._rows.capacity)
        self._arrival = grown(self._arrival, self._rows.capacity)
        self._following = grown(self._following, self._rows.capacity, -1)
        self._heads = grown(self._heads, self._panes.capacity, -1)
        self._arrival[slots] = arrivals
        self._nodes.table[slots, :PRIORITY] = (0, -1, -1, 1)
        chain(slots, panes, self._following, self._heads)
        return new

    def snapshot(self) -> Tables:
        slots = self._rows.held()
        held = self._rows.take(slots)
        rows = Batch(held.vs, held.ve, held.columns[:-1])
        cut = self._windows.group_state(np.zeros(1, dtype=np.int64))["cut"]
        return {
            "rows": rows_table(rows, self._schema.names, arrival=self._arrival[slots]),
            "cut": pa.table({"cut": cut}),
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        batch, extra = table_rows(tables["rows"])
        cut = np.array(tables["cut"].column(0).to_numpy(), dtype=np.int64)
        if len(batch):
            self._put(batch, extra["arrival"])
            self._arrivals = int(extra["arrival"].max()) + 1
        panes = self._panes.live()
        group = np.zeros(1, dtype=np.int64)
        self._windows.restore(group, {"cut": cut}, panes, START)
        enter = np.full_like(panes, ENTER)
        replay_top(
            enter,
            panes,
            self._heads,
            self._following,
            self._nodes.table,
            self._roots,
            *self._rows.bytes_of(len(self._schema.types)),
            self._limit,
            self._ties,
            panes,
        )


def row_keys(columns: Sequence[tuple[pa.Array, bool]], arrivals: Int64s) -> pa.Array:
    """Return one BINARY key for each row; the keys compare as the rows do.

    `columns` has pairs of a column and whether its order is descending. Each column contributes the
    bytes of `events/order_bytes.py`, inverted if the order is descending. The row's number in the
    order of arrival ends the key, so no two keys are equal.
    """
    key = equally_long(number_bytes(arrivals))
    for column, descending in reversed(columns):
        offsets, data = order_bytes(column)
        key = side_by_side(offsets, ~data if descending else data, *key)
    return as_binary(key).cast(pa.binary())
