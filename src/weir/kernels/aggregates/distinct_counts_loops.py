"""Compiled loops of COUNT(DISTINCT) (see `distinct_counts.py` for how it counts)."""

from __future__ import annotations

import numpy as np

from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.loops.argument_types import I64, I64s, I64Table
from weir.loops.compiled import compiled, in_place

# Fields of a number: the slot of its value, the pane that holds it, how often that pane had been
# dropped, and its two neighbours in the pane's list, which is a ring.
SLOT, PANE, TICKET, NEXT, BEFORE = range(5)
# Fields of a pane: its list and that list's length (the list of dropped values has these two as
# well), the values that come with its start, the values that go with its end, and how often a pane
# of this number was dropped.
FIRST, SIZE, GAIN, LOSS, DROPS = range(5)
NO_SLOT, _SLOT_TO_COME = -1, -2
"""In place of a slot: the value is not held, or it is about to be."""


@in_place
def _link(number, held, lists, at):
    held[number, NEXT] = held[number, BEFORE] = number
    if lists[at, SIZE]:
        _join(number, lists[at, FIRST], held)
    lists[at, FIRST] = number
    lists[at, SIZE] += 1


@in_place
def _unlink(number, held, lists, at):
    following, before = held[number, NEXT], held[number, BEFORE]
    held[before, NEXT], held[following, BEFORE] = following, before
    lists[at, FIRST] = following
    lists[at, SIZE] -= 1


@in_place
def _join(one, other, held):
    """Join two rings into one."""
    last, other_last = held[one, BEFORE], held[other, BEFORE]
    held[last, NEXT], held[other, BEFORE] = other, last
    held[other_last, NEXT], held[one, BEFORE] = one, other_last


@compiled
def hold_values(
    numbers: I64s,
    panes: I64s,
    start: I64s,
    end: I64s,
    held: I64Table,
    lists: I64Table,
    dropped: I64Table,
):
    """Put values into panes; return the rows that are the first to have their number."""
    rows = np.empty(len(numbers), dtype=np.int64)
    count = 0
    for row in range(len(numbers)):
        number, pane = numbers[row], panes[row]
        before = held[number, PANE]
        lasts = False
        if held[number, SLOT] == NO_SLOT:
            held[number, SLOT] = _SLOT_TO_COME
            rows[count] = row
            count += 1
        elif held[number, TICKET] != lists[before, DROPS]:
            _unlink(number, held, dropped, np.int64(0))
        elif end[before] >= end[pane]:
            continue
        else:
            lasts = start[pane] < end[before]
            _unlink(number, held, lists, before)
        if lasts:
            lists[before, LOSS] -= 1
        else:
            lists[pane, GAIN] += 1
        lists[pane, LOSS] += 1
        held[number, PANE], held[number, TICKET] = pane, lists[pane, DROPS]
        _link(number, held, lists, pane)
    return rows[:count]


@in_place
def replay_distinct(
    kinds: I64s, groups: I64s, panes: I64s, lists: I64Table, distinct: I64s, out: I64s
):
    """Run the operations; at each EMIT, write how many distinct values its group has."""
    emitted = 0
    for op in range(len(kinds)):
        if kinds[op] == EMIT:
            out[emitted] = distinct[groups[op]]
            emitted += 1
        elif kinds[op] == ENTER:
            distinct[groups[op]] += lists[panes[op], GAIN]
        else:
            distinct[groups[op]] -= lists[panes[op], LOSS]


@in_place
def drop_panes(panes: I64s, held: I64Table, lists: I64Table, dropped: I64Table):
    """Move the values of these panes to the list of dropped ones."""
    for pane in panes:
        if lists[pane, SIZE]:
            if dropped[0, SIZE]:
                _join(dropped[0, FIRST], lists[pane, FIRST], held)
            else:
                dropped[0, FIRST] = lists[pane, FIRST]
            dropped[0, SIZE] += lists[pane, SIZE]
        lists[pane, SIZE] = lists[pane, GAIN] = lists[pane, LOSS] = 0
        lists[pane, DROPS] += 1


@compiled
def dropped_numbers(count: I64, held: I64Table, dropped: I64Table):
    """Remove this many numbers from the list of dropped values, and return them."""
    numbers = np.empty(count, dtype=np.int64)
    for i in range(count):
        numbers[i] = dropped[0, FIRST]
        _unlink(numbers[i], held, dropped, np.int64(0))
    return numbers


@compiled
def numbers_in(panes: I64s, held: I64Table, lists: I64Table):
    """Return all numbers that the panes hold, each with the index of its pane."""
    count = 0
    for pane in panes:
        count += lists[pane, SIZE]
    at = np.empty(count, dtype=np.int64)
    numbers = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(len(panes)):
        number = lists[panes[i], FIRST]
        for _ in range(lists[panes[i], SIZE]):
            at[count], numbers[count] = i, number
            count += 1
            number = held[number, NEXT]
    return at, numbers
