"""Compiled loops that keep each group's rows in a heap by end and in a list by arrival.

Contract
1. The owner keeps two tables of int64: `links` by slot, with the columns named here, and `table` by
   group. The first three columns of `table` are named here too, and are −1 in a group without rows;
   more columns may follow.
2. `insert` and `pop` (of the row that ends first) cost O(log n), amortised. The heap is a linked
   skew heap, so groups of any size share the tables and nothing is ever moved.
3. Popped rows can be chained through their links until they are freed.
"""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64, I64s, I64Table
from weir.loops.compiled import compiled, in_place

ROOT, FIRST, LAST = range(3)
"""Fields of a group: the row that ends first, the first and the last that came."""
ONE, OTHER, BEFORE, AFTER = range(4)
"""Fields of a slot: children in the heap, neighbours in the list."""


@in_place
def insert(slot, group, ve, links, table):
    """Insert a row into its group's heap, and append it to the group's list."""
    last = table[group, LAST]
    links[slot, ONE] = links[slot, OTHER] = links[slot, AFTER] = -1
    links[slot, BEFORE] = last
    if last >= 0:
        links[last, AFTER] = slot
    else:
        table[group, FIRST] = slot
    table[group, LAST] = slot
    table[group, ROOT] = _melded(table[group, ROOT], slot, ve, links)


@in_place
def insert_all(slots: I64s, groups: I64s, ve: I64s, links: I64Table, table: I64Table):
    """Insert rows into their groups."""
    for i in range(len(slots)):
        insert(slots[i], groups[i], ve, links, table)


@in_place
def pop(group, ve, links, table):
    """Remove and return the row that ends first."""
    slot = table[group, ROOT]
    table[group, ROOT] = _melded(links[slot, ONE], links[slot, OTHER], ve, links)
    before, after = links[slot, BEFORE], links[slot, AFTER]
    if before >= 0:
        links[before, AFTER] = after
    else:
        table[group, FIRST] = after
    if after >= 0:
        links[after, BEFORE] = before
    else:
        table[group, LAST] = before
    return slot


@in_place
def _melded(a, b, ve, links):
    """Return the meld of two skew heaps; swapping children on the way down keeps it shallow."""
    root = parent = -1
    while a >= 0 and b >= 0:
        if ve[b] < ve[a]:
            a, b = b, a
        if parent < 0:
            root = a
        else:
            links[parent, ONE] = a
        parent = a
        below = links[a, OTHER]
        links[a, OTHER] = links[a, ONE]
        a = below
    rest = a if a >= 0 else b
    if parent < 0:
        return rest
    links[parent, ONE] = rest
    return root


@in_place
def chain(slot, chained, links):
    """Insert a popped row at the head of a chain of popped rows; −1 is the empty chain."""
    links[slot, ONE] = chained
    return slot


@compiled
def slots_of(slot: I64, links: I64Table):
    """Return the rows of a chain."""
    count, at = 0, slot
    while at >= 0:
        count, at = count + 1, links[at, ONE]
    slots = np.empty(count, dtype=np.int64)
    for i in range(count):
        slots[i] = slot
        slot = links[slot, ONE]
    return slots
