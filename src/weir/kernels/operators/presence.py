"""LEFT SEMI and LEFT ANTI joins by keys alone: what matters of the right side is where it is.

Without a further condition all left rows of a key are matched at the same instants, so there is
one *presence* a key: the last maximal piece [since, edge) that its right rows cover. A right row
lengthens it or, past a gap, begins the next one; then it is forgotten.

Contract (besides that of `kernel.Kernel`)
1. A left row is held until it has ended or is covered to its end: every held row ends after its
   key's edge. A key's rows lie in a heap by end and in a list by start.
2. A row that goes costs O(log n); beyond that only rows that give a piece are visited, so a step
   costs what goes in and what comes out, however many rows a key has.
3. A presence is over when the CTI has passed its edge (until then something may touch it): its
   `since` is OPEN then. Its edge stays while the key has rows: ANTI pieces begin there.
4. A piece is final as in `coverage.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.events.compiled import compiled
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.joins import encode_keys
from weir.kernels.structures.heaps import (
    AFTER,
    FIRST,
    ROOT,
    chain,
    insert,
    insert_all,
    pop,
    slots_of,
)
from weir.kernels.structures.keys import KeyIndex, each_once, grown
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.time_queue import Holds, TimeQueue
from weir.plan.operators import Join, schema

# Of a group, besides its rows: the presence, its place in the store, when something is due next.
_SINCE, _EDGE, _PLACE, _TIMER = range(3, 7)
_NO_TIMER = START
_EMPTY = np.array([-1, -1, -1, OPEN, START, -1, _NO_TIMER], dtype=np.int64)
_NOBODY = 0
"""The group of rows whose key is NULL: never present."""


class PresenceKernel:
    """See the module's contract."""

    right_from = START

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._semi = node.kind == "semi"
        self._names = left.names
        self._left_keys = [left.index(a) for a, _ in node.keys]
        self._right_keys = [right.index(b) for _, b in node.keys]
        # The right columns that are kept: one may be a key twice.
        self._kept = list(dict.fromkeys(self._right_keys))
        self._kept_names = [right.names[i] for i in self._kept]
        self._index = KeyIndex()
        self._rows = RowStore(left.types)
        self._links = np.zeros((0, 4), dtype=np.int64)  # by slot
        self._groups = _EMPTY.reshape(1, -1).copy()
        self._held = np.full(1, OPEN, dtype=np.int64)  # by group: start of its next piece
        self._presences = RowStore([right.types[i] for i in self._kept])  # their keys
        self._timers = TimeQueue()
        self._holds = Holds()

    @property
    def state_rows(self) -> int:
        return len(self._rows) + len(self._presences)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        left, right = slices
        slots, groups = self._hold(left)
        theirs = self._encode(right, self._right_keys)
        pieces, count, gone, met = _walk(
            slots, groups, right.vs, right.ve, theirs,
            self._rows.vs, self._rows.ve, self._links, self._groups, self._semi,
        )  # fmt: skip
        self._place(right.take(met), theirs[met])
        due = self._timers.pop(cti)
        touched = np.concatenate([groups, theirs, _rung(*due, self._groups)])
        pieces, count, gone = self._settle(touched, cti, pieces, count, gone)
        final, vs, ve, slots = np.ascontiguousarray(pieces[:count].T)
        rows = emitted([(final, Batch(vs, ve, self._rows.columns(slots)))])
        self._rows.free(slots_of(gone, self._links))
        return rows, min(cti, self._holds.minimum(self._held))

    def _encode(self, batch: Batch, columns: Sequence[int]) -> Int64s:
        groups = encode_keys(self._index, batch, columns) + 1
        missing = self._index.capacity + 1 - len(self._groups)
        if missing > 0:
            self._groups = np.concatenate([self._groups, np.tile(_EMPTY, (missing, 1))])
            self._held = grown(self._held, len(self._groups), OPEN)
        return groups

    def _hold(self, batch: Batch) -> tuple[Int64s, Int64s]:
        groups = self._encode(batch, self._left_keys)
        slots = self._rows.add(batch)
        self._links = grown(self._links, self._rows.capacity)
        return slots, groups

    def _place(self, rows: Batch, groups: Int64s) -> None:
        """Keep the keys of groups that have a presence for the first time."""
        keys = tuple(rows.columns[i] for i in self._kept)
        self._groups[groups, _PLACE] = self._presences.add(Batch(rows.vs, rows.ve, keys))

    def _settle(
        self, touched: Int64s, cti: int, pieces: Int64s, count: int, gone: int
    ) -> tuple[Int64s, int, int]:
        """Do what is due in these groups, and see to their holds and timers."""
        pieces, count, gone, moved, armed, emptied = _settle(
            touched, cti, pieces, count, gone,
            self._rows.vs, self._rows.ve, self._links, self._groups, self._held, self._semi,
        )  # fmt: skip
        self._holds.push(self._held[moved], moved, self._held)
        self._timers.add(self._groups[armed, _TIMER], armed)
        emptied = each_once(emptied)
        places = self._groups[emptied, _PLACE]
        self._presences.free(places[places >= 0])
        self._groups[emptied] = _EMPTY
        self._index.release(emptied - 1)
        return pieces, count, gone

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        present = np.flatnonzero(self._groups[:, _PLACE] >= 0)
        since, edge, places = self._groups[present][:, [_SINCE, _EDGE, _PLACE]].T
        presences = Batch(since, edge, self._presences.columns(places))
        return {
            "left": rows_table(self._rows.take(self._rows.held()), self._names),
            "right": rows_table(presences, self._kept_names),
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        presences, _ = table_rows(tables["right"])
        theirs = self._encode(presences, [self._kept.index(i) for i in self._right_keys])
        batch, _ = table_rows(tables["left"])
        slots, groups = self._hold(batch.take(np.argsort(batch.vs, kind="stable")))
        self._groups[theirs, _SINCE], self._groups[theirs, _EDGE] = presences.vs, presences.ve
        self._groups[theirs, _PLACE] = self._presences.add(presences)
        insert_all(slots, groups, self._rows.ve, self._links, self._groups)
        nothing = np.zeros((0, 4), dtype=np.int64)
        self._settle(np.concatenate([groups, theirs]), START, nothing, 0, -1)


@compiled
def _walk(slots, groups, right_vs, right_ve, right_groups, vs, ve, links, table, semi):  # type: ignore[no-untyped-def]
    """Walk both sides' new rows in order of vs. Pieces (final, start, end, slot) and how many;
    the chain of rows that are gone; the right rows that are the first of their group."""
    none = np.iinfo(np.int64).max
    pieces = np.empty((len(slots) + len(right_vs) + 16, 4), dtype=np.int64)
    met = np.empty(len(right_vs), dtype=np.int64)
    gone = np.int64(-1)
    count = found = i = j = np.int64(0)
    while i < len(slots) or j < len(right_vs):
        if i < len(slots) and (j == len(right_vs) or vs[slots[i]] <= right_vs[j]):
            slot, group = slots[i], groups[i]
            i += 1
            if ve[slot] > table[group, _EDGE]:
                insert(slot, group, ve, links, table)
                continue
            if semi:
                pieces, count = _emit(pieces, count, vs[slot] + 1, vs[slot], ve[slot], slot)
            gone = chain(slot, gone, links)
            continue
        group, start, end = right_groups[j], right_vs[j], right_ve[j]
        since, edge = table[group, _SINCE], table[group, _EDGE]
        j += 1
        if group == _NOBODY or end <= edge:
            continue
        if start > edge:
            if semi and since != none:
                pieces, count = _cut(group, since, edge, vs, links, table, pieces, count)
            pieces, count, gone = _end(group, start, vs, ve, links, table, semi,
                                       pieces, count, gone)  # fmt: skip
            if not semi:
                pieces, count = _cut(group, edge, start, vs, links, table, pieces, count)
            table[group, _SINCE] = start
        table[group, _EDGE] = end
        while table[group, ROOT] >= 0 and ve[table[group, ROOT]] <= end:
            slot = pop(group, ve, links, table)
            if semi:
                from_ = max(vs[slot], table[group, _SINCE])
                pieces, count = _emit(pieces, count, start + 1, from_, ve[slot], slot)
            gone = chain(slot, gone, links)
        if table[group, _PLACE] < 0:
            table[group, _PLACE] = 0  # its place is not known yet
            met[found] = j - 1
            found += 1
    return pieces, count, gone, met[:found]


@compiled
def _settle(touched, cti, pieces, count, gone, vs, ve, links, table, held, semi):  # type: ignore[no-untyped-def]
    """Presences that are over and rows that end by this CTI; then the groups whose hold moved,
    those that need a timer, and those without rows or presence (these may come twice)."""
    none = np.iinfo(np.int64).max
    moved = np.empty(len(touched), dtype=np.int64)
    armed = np.empty(len(touched), dtype=np.int64)
    emptied = np.empty(len(touched), dtype=np.int64)
    moves = timers = empty = 0
    for group in touched:
        since, edge = table[group, _SINCE], table[group, _EDGE]
        if since != none and min(edge, none - 1) < cti:
            if semi:
                pieces, count = _cut(group, since, edge, vs, links, table, pieces, count)
            since = table[group, _SINCE] = none
        pieces, count, gone = _end(group, cti, vs, ve, links, table, semi, pieces, count, gone)
        root, first = table[group, ROOT], table[group, FIRST]
        hold = none
        if root >= 0 and not (semi and since == none):
            hold = max(vs[first], since if semi else edge)
        if hold != held[group]:
            held[group] = hold
            if hold != none:
                moved[moves] = group
                moves += 1
        if root < 0 and since == none:
            if group != _NOBODY:
                emptied[empty] = group
                empty += 1
            continue
        due = none if since == none else min(edge, none - 1) + 1
        if root >= 0:
            due = min(due, ve[root])
        if table[group, _TIMER] == _NO_TIMER or due < table[group, _TIMER]:
            table[group, _TIMER] = due
            armed[timers] = group
            timers += 1
    return pieces, count, gone, moved[:moves], armed[:timers], emptied[:empty]


@compiled
def _rung(times, groups, table):  # type: ignore[no-untyped-def]
    """The groups whose timer this is; one that was set anew, earlier, is not it any more."""
    rung = np.empty(len(groups), dtype=np.int64)
    count = 0
    for i in range(len(groups)):
        if table[groups[i], _TIMER] == times[i]:
            table[groups[i], _TIMER] = _NO_TIMER
            rung[count] = groups[i]
            count += 1
    return rung[:count]


@compiled
def _emit(pieces, count, final, start, end, slot):  # type: ignore[no-untyped-def]
    if count == len(pieces):
        pieces = np.concatenate((pieces, np.empty((len(pieces) + 16, 4), dtype=np.int64)))
    pieces[count, 0], pieces[count, 1] = final, start
    pieces[count, 2], pieces[count, 3] = end, slot
    return pieces, count + 1


@compiled
def _cut(group, start, end, vs, links, table, pieces, count):  # type: ignore[no-untyped-def]
    """Rows of a group, all of which go on, have a piece from `start` or later up to `end`."""
    slot = table[group, FIRST]
    while slot >= 0 and vs[slot] < end:
        pieces, count = _emit(pieces, count, end + 1, max(vs[slot], start), end, slot)
        slot = links[slot, AFTER]
    return pieces, count


@compiled
def _end(group, until, vs, ve, links, table, semi, pieces, count, gone):  # type: ignore[no-untyped-def]
    """Rows that end by then, past the edge: unmatched since."""
    while table[group, ROOT] >= 0 and ve[table[group, ROOT]] <= until:
        slot = pop(group, ve, links, table)
        if not semi:
            from_ = max(vs[slot], table[group, _EDGE])
            pieces, count = _emit(pieces, count, ve[slot], from_, ve[slot], slot)
        gone = chain(slot, gone, links)
    return pieces, count, gone
