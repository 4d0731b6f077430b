"""What is measured of a group's rows: lanes (counts and sums) and distinct counts.

Contract of a measure
1. `put` adds rows to panes; `replay` runs window operations and answers one value for each
   EMIT; `drop` forgets panes that have left. Costs are per row, per pane and per EMIT, never
   per window that a row is in.
2. `values(panes)` is what a snapshot keeps: rows of (index into panes, columns); `restore` puts
   them back into panes that were made anew. `reenter` puts panes that had entered before the
   snapshot back into their groups' running state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.compiled import compiled
from weir.events.hashing import hash_rows
from weir.kernels.keys import KeyIndex, count_down, grown
from weir.kernels.lanes import Lanes, counted_rows, relaid
from weir.kernels.panes import Operations, Panes, pair_hashes
from weir.kernels.rows import RowStore
from weir.plan.nodes import Aggregation, Schema


class Measure(Protocol):
    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None: ...
    def replay(self, operations: Operations) -> list[pa.Array]: ...
    def drop(self, panes: Int64s) -> None: ...
    def grow(self, panes: int, groups: int) -> None: ...
    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]: ...
    def restore(self, table: Panes, panes: Int64s, columns: dict[str, pa.Array]) -> None: ...
    @property
    def state_rows(self) -> int: ...


class LaneMeasure:
    """Every additive aggregate of the operator at once."""

    def __init__(self, aggregates: Sequence[Aggregation], schema: Schema) -> None:
        self._lanes = Lanes(aggregates, schema)
        self._panes = np.zeros((0, self._lanes.width), dtype=np.int64)
        self._running = np.zeros((0, self._lanes.width), dtype=np.int64)

    state_rows = 0  # one row of lanes a pane, which the kernel counts

    def grow(self, panes: int, groups: int) -> None:
        self._panes = grown(self._panes, panes)
        self._running = grown(self._running, groups)

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        if self._lanes.width == 1:
            _count_rows(self._panes, panes)
            return
        shares, moved = self._lanes.encode(batch.columns, len(batch))
        if moved is not None:
            self._panes = relaid(self._panes, moved, self._lanes.width)
            self._running = relaid(self._running, moved, self._lanes.width)
        _add_rows(self._panes, panes, shares)

    def replay(self, operations: Operations) -> list[pa.Array]:
        out = np.empty((operations.emits, self._lanes.width), dtype=np.int64)
        _replay_lanes(
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

    def restore(self, table: Panes, panes: Int64s, columns: dict[str, pa.Array]) -> None:
        self._lanes.load(list(columns))
        at = {name: i for i, name in enumerate(self._lanes.names)}
        self._panes = np.zeros((len(self._panes), self._lanes.width), dtype=np.int64)
        self._running = np.zeros((len(self._running), self._lanes.width), dtype=np.int64)
        for name, column in columns.items():
            self._panes[panes, at[name]] = column.to_numpy(zero_copy_only=False)


@compiled
def _count_rows(lanes, panes):  # type: ignore[no-untyped-def]
    for pane in panes:
        lanes[pane, 0] += 1


@compiled
def _add_rows(lanes, panes, shares):  # type: ignore[no-untyped-def]
    for row in range(len(panes)):
        for i in range(shares.shape[1]):
            lanes[panes[row], i] += shares[row, i]


@compiled
def _replay_lanes(kinds, groups, panes, lanes, running, out):  # type: ignore[no-untyped-def]
    emitted = 0
    for op in range(len(kinds)):
        if kinds[op] == 2:
            out[emitted] = running[groups[op]]
            emitted += 1
        elif kinds[op] == 0:
            running[groups[op]] += lanes[panes[op]]
        else:
            running[groups[op]] -= lanes[panes[op]]


class DistinctMeasure:
    """COUNT(DISTINCT x): how many values have at least one pane in the group's window.

    A value of a group has a number; a pane lists the numbers it holds, each once.
    """

    def __init__(self, aggregation: Aggregation, schema: Schema) -> None:
        self._arg = schema.index(aggregation.args[0])
        self._filter = None if aggregation.filter is None else schema.index(aggregation.filter)
        self._numbers = KeyIndex()  # (group, value) → number
        self._values = RowStore([schema.types[self._arg]])
        self._slots = np.full(0, -1, dtype=np.int64)  # by number
        self._uses = np.zeros(0, dtype=np.int64)  # by number: entries that name it
        self._live = np.zeros(0, dtype=np.int64)  # by number: panes in the window with it
        self._entries = KeyIndex()  # (pane, number) → entry
        self._number_of = np.full(0, -1, dtype=np.int64)  # by entry
        self._following = np.full(0, -1, dtype=np.int64)  # by entry: the pane's next
        self._heads = np.full(0, -1, dtype=np.int64)  # by pane
        self._distinct = np.zeros(0, dtype=np.int64)  # by group

    @property
    def state_rows(self) -> int:
        return len(self._entries)

    def grow(self, panes: int, groups: int) -> None:
        self._heads = grown(self._heads, panes, -1)
        self._distinct = grown(self._distinct, groups)

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        counted = counted_rows(batch.columns, self._arg, self._filter, len(batch))
        column = batch.columns[self._arg]
        if not counted.all():
            column, panes, groups = column.filter(counted), panes[counted], groups[counted]
        self._put(column, panes, groups)

    def _put(self, column: pa.Array, panes: Int64s, groups: Int64s) -> None:
        numbers = self._numbers.encode(*hash_rows([pa.array(groups), column], len(groups)))
        capacity = self._numbers.capacity
        self._slots = grown(self._slots, capacity, -1)
        self._uses, self._live = grown(self._uses, capacity), grown(self._live, capacity)
        entries = self._entries.encode(*pair_hashes(panes, numbers))
        self._number_of = grown(self._number_of, self._entries.capacity, -1)
        self._following = grown(self._following, self._entries.capacity, -1)
        fresh = _link_entries(
            entries, panes, numbers,
            self._number_of, self._following, self._heads, self._uses, self._slots,
        )  # fmt: skip
        if len(fresh):
            zeros = np.zeros(len(fresh), dtype=np.int64)
            kept = Batch(zeros, zeros, (column.take(pa.array(fresh)),))
            self._slots[numbers[fresh]] = self._values.add(kept)

    def replay(self, operations: Operations) -> list[pa.Array]:
        out = np.empty(operations.emits, dtype=np.int64)
        _replay_distinct(
            operations.kinds, operations.groups, operations.panes,
            self._heads, self._following, self._number_of, self._live, self._distinct, out,
        )  # fmt: skip
        return [pa.array(out)]

    def drop(self, panes: Int64s) -> None:
        entries = chain_members(panes, self._heads, self._following)
        numbers = self._number_of[entries]
        self._entries.release(entries)
        self._number_of[entries] = -1
        self._heads[panes] = -1
        unused = count_down(numbers, self._uses)
        self._values.free(self._slots[unused])
        self._slots[unused] = -1
        self._numbers.release(unused)

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        at, entries = chains_of(panes, self._heads, self._following)
        slots = self._slots[self._number_of[entries]]
        return at, {"value": self._values.columns(slots)[0]}

    def restore(self, table: Panes, panes: Int64s, columns: dict[str, pa.Array]) -> None:
        self._put(columns["value"], panes, table.group[panes])


@compiled
def _link_entries(entries, panes, numbers, number_of, following, heads, uses, slots):  # type: ignore[no-untyped-def]
    """Link new entries to their panes; the rows that first name a number (see `slots`)."""
    rows = np.empty(len(entries), dtype=np.int64)
    count = 0
    for row in range(len(entries)):
        entry, number = entries[row], numbers[row]
        if number_of[entry] == -1:
            number_of[entry] = number
            following[entry] = heads[panes[row]]
            heads[panes[row]] = entry
            uses[number] += 1
        if slots[number] == -1:
            slots[number] = -2
            rows[count] = row
            count += 1
    return rows[:count]


@compiled
def _replay_distinct(kinds, groups, panes, heads, following, number_of, live, distinct, out):  # type: ignore[no-untyped-def]
    emitted = 0
    for op in range(len(kinds)):
        group = groups[op]
        if kinds[op] == 2:
            out[emitted] = distinct[group]
            emitted += 1
            continue
        entry = heads[panes[op]]
        while entry >= 0:
            number = number_of[entry]
            if kinds[op] == 0:
                live[number] += 1
                if live[number] == 1:
                    distinct[group] += 1
            else:
                live[number] -= 1
                if live[number] == 0:
                    distinct[group] -= 1
            entry = following[entry]


@compiled
def _chains(panes, heads, following):  # type: ignore[no-untyped-def]
    count = 0
    for pane in panes:
        entry = heads[pane]
        while entry >= 0:
            count += 1
            entry = following[entry]
    at = np.empty(count, dtype=np.int64)
    members = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(len(panes)):
        entry = heads[panes[i]]
        while entry >= 0:
            at[count] = i
            members[count] = entry
            count += 1
            entry = following[entry]
    return at, members


def chains_of(panes: Int64s, heads: Int64s, following: Int64s) -> tuple[Int64s, Int64s]:
    """All members of the panes' chains, with the index of the pane each belongs to."""
    members: tuple[Int64s, Int64s] = _chains(panes, heads, following)
    return members


def chain_members(panes: Int64s, heads: Int64s, following: Int64s) -> Int64s:
    return chains_of(panes, heads, following)[1]
