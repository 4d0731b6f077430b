"""COUNT(DISTINCT x): how many values have at least one pane in the group's window.

A value of a group has a number. It is held by the one of its panes that ends last: panes come
in order of their starts, so where the next one starts before that end, the value stays in the
window without a gap. Hence no value is visited when a pane enters or leaves: the pane knows how
many come with its start (GAIN) and go with its end (LOSS). A snapshot has each value once, in
the pane that holds it: behind a step every pane is part of its group's next answer, so it does
not matter with which of its panes the value came.

A pane that is dropped leaves its values to a list of the dropped, as a whole. They are freed
two for each row that comes, so neither does the end of a long window visit them all, nor are
there ever more numbers than values were in windows at one time and rows in an entry.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.compiled import compiled, in_place
from weir.events.hashing import hash_rows
from weir.kernels.aggregates.lanes import counted_rows
from weir.kernels.operators.panes import Operations, Panes
from weir.kernels.structures.keys import KeyIndex, grown
from weir.kernels.structures.rows import RowStore
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema

# Fields of a number: the slot of its value, its pane and how often that had been dropped, and
# its neighbours in its pane's list, which is a ring.
_SLOT, _PANE, _TICKET, _NEXT, _BEFORE = range(5)
# Fields of a pane: its list and the length of it (as the dropped have), values that come with
# its start, values that go with its end, how often a pane of this number was dropped.
_FIRST, _SIZE, _GAIN, _LOSS, _DROPS = range(5)


class DistinctMeasure:
    """See the module's docstring, and `measures.Measure` for the contract."""

    def __init__(self, aggregation: Aggregation, schema: Schema, table: Panes) -> None:
        self._arg = schema.index(aggregation.args[0])
        self._filter = None if aggregation.filter is None else schema.index(aggregation.filter)
        self._table = table
        self._numbers = KeyIndex()  # (group, value) → number
        self._values = RowStore([schema.types[self._arg]])
        self._held = np.full((0, 5), -1, dtype=np.int64)  # by number, see _SLOT
        self._panes = np.zeros((0, 5), dtype=np.int64)  # by pane, see _FIRST
        self._dropped = np.zeros((1, 2), dtype=np.int64)
        self._distinct = np.zeros(0, dtype=np.int64)  # by group

    @property
    def state_rows(self) -> int:
        return len(self._numbers) - int(self._dropped[0, _SIZE])

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
        numbers = self._numbers.encode(*hash_rows([pa.array(groups), column], len(groups)))
        self._held = grown(self._held, self._numbers.capacity, -1)
        fresh = _hold(
            numbers, panes, self._table.start, self._table.end,
            self._held, self._panes, self._dropped,
        )  # fmt: skip
        if len(fresh):
            zeros = np.zeros(len(fresh), dtype=np.int64)
            kept = Batch(zeros, zeros, (column.take(pa.array(fresh)),))
            self._held[numbers[fresh], _SLOT] = self._values.add(kept)

    def replay(self, operations: Operations) -> list[pa.Array]:
        out = np.empty(operations.emits, dtype=np.int64)
        _replay_distinct(
            operations.kinds, operations.groups, operations.panes, self._panes, self._distinct, out
        )
        return [pa.array(out)]

    def drop(self, panes: Int64s) -> None:
        _drop(panes, self._held, self._panes, self._dropped)

    def _free(self, most: int) -> None:
        """Forget values of dropped panes, at most so many."""
        numbers = _dropped_numbers(
            min(most, int(self._dropped[0, _SIZE])), self._held, self._dropped
        )
        self._values.free(self._held[numbers, _SLOT])
        self._held[numbers, _SLOT] = -1
        self._numbers.release(numbers)

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        at, numbers = _numbers_of(panes, self._held, self._panes)
        return at, {"value": self._values.columns(self._held[numbers, _SLOT])[0]}

    def restore(self, panes: Int64s, groups: Int64s, columns: dict[str, pa.Array]) -> None:
        self._put(columns["value"], panes, groups)


@in_place
def _link(number, held, lists, at):  # type: ignore[no-untyped-def]
    held[number, _NEXT] = held[number, _BEFORE] = number
    if lists[at, _SIZE]:
        _join(number, lists[at, _FIRST], held)
    lists[at, _FIRST] = number
    lists[at, _SIZE] += 1


@in_place
def _unlink(number, held, lists, at):  # type: ignore[no-untyped-def]
    following, before = held[number, _NEXT], held[number, _BEFORE]
    held[before, _NEXT], held[following, _BEFORE] = following, before
    lists[at, _FIRST] = following
    lists[at, _SIZE] -= 1


@in_place
def _join(one, other, held):  # type: ignore[no-untyped-def]
    """Make one ring of two."""
    last, other_last = held[one, _BEFORE], held[other, _BEFORE]
    held[last, _NEXT], held[other, _BEFORE] = other, last
    held[other_last, _NEXT], held[one, _BEFORE] = one, other_last


@compiled
def _hold(numbers, panes, start, end, held, lists, dropped):  # type: ignore[no-untyped-def]
    """Values come into panes; the rows that first name a number."""
    rows = np.empty(len(numbers), dtype=np.int64)
    count = 0
    for row in range(len(numbers)):
        number, pane = numbers[row], panes[row]
        before = held[number, _PANE]
        lasts = False
        if held[number, _SLOT] == -1:
            held[number, _SLOT] = -2
            rows[count] = row
            count += 1
        elif held[number, _TICKET] != lists[before, _DROPS]:
            _unlink(number, held, dropped, np.int64(0))
        elif end[before] >= end[pane]:
            continue
        else:
            lasts = start[pane] < end[before]
            _unlink(number, held, lists, before)
        if lasts:
            lists[before, _LOSS] -= 1
        else:
            lists[pane, _GAIN] += 1
        lists[pane, _LOSS] += 1
        held[number, _PANE], held[number, _TICKET] = pane, lists[pane, _DROPS]
        _link(number, held, lists, pane)
    return rows[:count]


@in_place
def _replay_distinct(kinds, groups, panes, lists, distinct, out):  # type: ignore[no-untyped-def]
    emitted = 0
    for op in range(len(kinds)):
        if kinds[op] == 2:
            out[emitted] = distinct[groups[op]]
            emitted += 1
        elif kinds[op] == 0:
            distinct[groups[op]] += lists[panes[op], _GAIN]
        else:
            distinct[groups[op]] -= lists[panes[op], _LOSS]


@in_place
def _drop(panes, held, lists, dropped):  # type: ignore[no-untyped-def]
    for pane in panes:
        if lists[pane, _SIZE]:
            if dropped[0, _SIZE]:
                _join(dropped[0, _FIRST], lists[pane, _FIRST], held)
            else:
                dropped[0, _FIRST] = lists[pane, _FIRST]
            dropped[0, _SIZE] += lists[pane, _SIZE]
        lists[pane, _SIZE] = lists[pane, _GAIN] = lists[pane, _LOSS] = 0
        lists[pane, _DROPS] += 1


@compiled
def _dropped_numbers(count, held, dropped):  # type: ignore[no-untyped-def]
    numbers = np.empty(count, dtype=np.int64)
    for i in range(count):
        numbers[i] = dropped[0, _FIRST]
        _unlink(numbers[i], held, dropped, np.int64(0))
    return numbers


@compiled
def _numbers_of(panes, held, lists):  # type: ignore[no-untyped-def]
    """All numbers that panes hold, with the index of the pane each belongs to."""
    count = 0
    for pane in panes:
        count += lists[pane, _SIZE]
    at = np.empty(count, dtype=np.int64)
    numbers = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(len(panes)):
        number = lists[panes[i], _FIRST]
        for _ in range(lists[panes[i], _SIZE]):
            at[count], numbers[count] = i, number
            count += 1
            number = held[number, _NEXT]
    return at, numbers
