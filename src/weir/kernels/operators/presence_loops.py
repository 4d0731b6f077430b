"""Compiled loops of joins by keys alone (see `presence.py` for the contract)."""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN, START
from weir.kernels.structures.heaps_loops import AFTER, FIRST, ROOT, chain, insert, pop
from weir.loops.argument_types import I64, Bool, I64s, I64Table
from weir.loops.compiled import compiled

# Fields of a group, in addition to its rows: its presence, that presence's slot in the store, and
# when something is due next.
SINCE, EDGE, PLACE, TIMER = range(3, 7)
NO_TIMER = START
NOBODY = 0
"""The group of rows whose key is NULL: never present."""


@compiled
def walk(
    slots: I64s,
    groups: I64s,
    right_vs: I64s,
    right_ve: I64s,
    right_groups: I64s,
    vs: I64s,
    ve: I64s,
    links: I64Table,
    table: I64Table,
    semi: Bool,
):
    """Walk both sides' new rows in order of vs.

    Return the pieces (final, start, end, slot) and their count, the chain of rows that have left,
    and the right rows that are the first of their group.
    """
    pieces = np.empty((len(slots) + len(right_vs) + 16, 4), dtype=np.int64)
    met = np.empty(len(right_vs), dtype=np.int64)
    gone = np.int64(-1)
    count = found = i = j = np.int64(0)
    while i < len(slots) or j < len(right_vs):
        if i < len(slots) and (j == len(right_vs) or vs[slots[i]] <= right_vs[j]):
            slot, group = slots[i], groups[i]
            i += 1
            if ve[slot] > table[group, EDGE]:
                insert(slot, group, ve, links, table)
                continue
            if semi:
                pieces, count = _emit(pieces, count, vs[slot] + 1, vs[slot], ve[slot], slot)
            gone = chain(slot, gone, links)
            continue
        group, start, end = right_groups[j], right_vs[j], right_ve[j]
        since, edge = table[group, SINCE], table[group, EDGE]
        j += 1
        if group == NOBODY or end <= edge:
            continue
        if start > edge:
            if semi and since != OPEN:
                pieces, count = _cut(group, since, edge, vs, links, table, pieces, count)
            pieces, count, gone = _end(
                group, start, vs, ve, links, table, semi, pieces, count, gone
            )
            if not semi:
                pieces, count = _cut(group, edge, start, vs, links, table, pieces, count)
            table[group, SINCE] = start
        table[group, EDGE] = end
        while table[group, ROOT] >= 0 and ve[table[group, ROOT]] <= end:
            slot = pop(group, ve, links, table)
            if semi:
                from_ = max(vs[slot], table[group, SINCE])
                pieces, count = _emit(pieces, count, start + 1, from_, ve[slot], slot)
            gone = chain(slot, gone, links)
        if table[group, PLACE] < 0:
            table[group, PLACE] = 0  # its slot is not known yet
            met[found] = j - 1
            found += 1
    return pieces, count, gone, met[:found]


@compiled
def settle(
    touched: I64s,
    cti: I64,
    pieces: I64Table,
    count: I64,
    gone: I64,
    vs: I64s,
    ve: I64s,
    links: I64Table,
    table: I64Table,
    held: I64s,
    semi: Bool,
):
    """End the presences and rows that are over by this CTI.

    Also return the groups whose hold moved, those that need a timer, and those without rows or
    presence, which may come twice.
    """
    moved = np.empty(len(touched), dtype=np.int64)
    armed = np.empty(len(touched), dtype=np.int64)
    emptied = np.empty(len(touched), dtype=np.int64)
    moves = timers = empty = 0
    for group in touched:
        since, edge = table[group, SINCE], table[group, EDGE]
        if since != OPEN and min(edge, OPEN - 1) < cti:
            if semi:
                pieces, count = _cut(group, since, edge, vs, links, table, pieces, count)
            since = table[group, SINCE] = OPEN
        pieces, count, gone = _end(group, cti, vs, ve, links, table, semi, pieces, count, gone)
        root, first = table[group, ROOT], table[group, FIRST]
        hold = OPEN
        if root >= 0 and not (semi and since == OPEN):
            hold = max(vs[first], since if semi else edge)
        if hold != held[group]:
            held[group] = hold
            if hold != OPEN:
                moved[moves] = group
                moves += 1
        if root < 0 and since == OPEN:
            if group != NOBODY:
                emptied[empty] = group
                empty += 1
            continue
        due = OPEN if since == OPEN else min(edge, OPEN - 1) + 1
        if root >= 0:
            due = min(due, ve[root])
        if table[group, TIMER] == NO_TIMER or due < table[group, TIMER]:
            table[group, TIMER] = due
            armed[timers] = group
            timers += 1
    return pieces, count, gone, moved[:moves], armed[:timers], emptied[:empty]


@compiled
def rung(times: I64s, groups: I64s, table: I64Table):
    """Return the groups whose timer this is; skip timers that an earlier one has replaced."""
    rung = np.empty(len(groups), dtype=np.int64)
    count = 0
    for i in range(len(groups)):
        if table[groups[i], TIMER] == times[i]:
            table[groups[i], TIMER] = NO_TIMER
            rung[count] = groups[i]
            count += 1
    return rung[:count]


@compiled
def _emit(pieces, count, final, start, end, slot):
    if count == len(pieces):
        pieces = np.concatenate((pieces, np.empty((len(pieces) + 16, 4), dtype=np.int64)))
    pieces[count, 0], pieces[count, 1] = final, start
    pieces[count, 2], pieces[count, 3] = end, slot
    return pieces, count + 1


@compiled
def _cut(group, start, end, vs, links, table, pieces, count):
    """Write a piece from `start` or later up to `end` for each row of a group.

    None of the rows ends by then."""
    slot = table[group, FIRST]
    while slot >= 0 and vs[slot] < end:
        pieces, count = _emit(pieces, count, end + 1, max(vs[slot], start), end, slot)
        slot = links[slot, AFTER]
    return pieces, count


@compiled
def _end(group, until, vs, ve, links, table, semi, pieces, count, gone):
    """Remove the rows that end by `until`; for ANTI, write a last piece for each of them.

    The rows end after their key's edge, so their last piece is unmatched."""
    while table[group, ROOT] >= 0 and ve[table[group, ROOT]] <= until:
        slot = pop(group, ve, links, table)
        if not semi:
            from_ = max(vs[slot], table[group, EDGE])
            pieces, count = _emit(pieces, count, ve[slot], from_, ve[slot], slot)
        gone = chain(slot, gone, links)
    return pieces, count, gone
