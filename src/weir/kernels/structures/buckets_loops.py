"""Compiled loops of the buckets (see `buckets.py` for their contract)."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64, I64s, I64Table
from weir.loops.compiled import compiled, in_place, inlined

CLASSES = 48
"""How many sizes of blocks there are, each twice the one before."""
END, SLOT = range(2)
"""Columns of the arena: a pair. In a free block, END has the next free block of its size."""
BLOCK, PAIRS, ROOM, ONLY_END = range(4)
"""Columns of `spans`: where the group's block starts, its count of pairs, the room in its block.

A group without a block has room 0. Then BLOCK has the slot of its only pair, and ONLY_END that
pair's end."""


@inlined
def _class_of(room):
    size = 0
    while (1 << size) < room:
        size += 1
    return size


@inlined
def _move(arena, source, target):
    # Element by element: Numba is ten times as slow when it copies a whole row.
    arena[target, END] = arena[source, END]
    arena[target, SLOT] = arena[source, SLOT]


@compiled
def make_room(group, now, arena, spans, free):
    """Make room for at least one more pair, after `insert` found none.

    Return the arena, which may be new."""
    start, count, room = spans[group, BLOCK], spans[group, PAIRS], spans[group, ROOM]
    if room:
        kept = start
        for i in range(start, start + count):
            if arena[i, END] > now:
                _move(arena, i, kept)
                kept += 1
        count = spans[group, PAIRS] = kept - start
        if 2 * count < room:
            return arena
    larger = max(2, 2 * room)
    size = _class_of(larger)
    block = free[size]
    if block >= 0:
        free[size] = arena[block, END]
    else:
        block = free[CLASSES]
        free[CLASSES] += larger
        while free[CLASSES] > len(arena):
            arena = np.concatenate((arena, np.empty_like(arena)))
    if room:
        for i in range(count):
            _move(arena, start + i, block + i)
        old = _class_of(room)
        arena[start, END] = free[old]
        free[old] = start
    else:
        arena[block, END], arena[block, SLOT] = spans[group, ONLY_END], start
    spans[group, BLOCK] = block
    spans[group, ROOM] = larger
    return arena


@inlined
def insert(group, slot, end, now, arena, spans):
    """Append a pair; return False if `make_room` must be called first."""
    count, room = spans[group, PAIRS], spans[group, ROOM]
    done = True
    if room == 0:
        if count == 0 or spans[group, ONLY_END] <= now:
            spans[group, BLOCK] = slot
            spans[group, PAIRS] = 1
            spans[group, ONLY_END] = end
        else:
            done = False
    elif count < room:
        at = spans[group, BLOCK] + count
        arena[at, END] = end
        arena[at, SLOT] = slot
        spans[group, PAIRS] = count + 1
    else:
        done = False
    return done


@inlined
def live(group, now, arena, spans, out, count):
    """Append the group's slots that are live at `now` to `out`; return the new count of `out`.

    Return −1, without any change, if `out` is too short.
    """
    pairs = spans[group, PAIRS]
    if count + pairs > len(out):
        count = -1
    elif spans[group, ROOM]:
        start = spans[group, BLOCK]
        kept = start
        for i in range(start, start + pairs):
            if arena[i, END] > now:
                if i != kept:
                    _move(arena, i, kept)
                out[count] = arena[i, SLOT]
                kept += 1
                count += 1
        if kept != start + pairs:
            spans[group, PAIRS] = kept - start
    elif pairs:
        if spans[group, ONLY_END] > now:
            out[count] = spans[group, BLOCK]
            count += 1
        else:
            spans[group, PAIRS] = 0
    return count


@compiled
def insert_pairs(
    groups: I64s, slots: I64s, ends: I64s, now: I64, arena: I64Table, spans: I64Table, free: I64s
):
    """Append pairs to their groups, except those of group −1.

    Return the arena, which may be new."""
    for i in range(len(groups)):
        group = groups[i]
        if group < 0:
            continue
        while not insert(group, slots[i], ends[i], now, arena, spans):
            arena = make_room(group, now, arena, spans, free)
    return arena


@in_place
def remove_pairs(groups: I64s, slots: I64s, arena: I64Table, spans: I64Table):
    """Remove pairs from their groups."""
    for i in range(len(groups)):
        if groups[i] < 0:
            continue
        span = spans[groups[i]]
        if span[ROOM] == 0:
            if span[PAIRS] and span[BLOCK] == slots[i]:
                span[PAIRS] = 0
            continue
        for at in range(span[BLOCK], span[BLOCK] + span[PAIRS]):
            if arena[at, SLOT] == slots[i]:
                _move(arena, span[BLOCK] + span[PAIRS] - 1, at)
                span[PAIRS] -= 1
                break


@in_place
def release_blocks(groups: I64s, arena: I64Table, spans: I64Table, free: I64s):
    """Free the groups' blocks; the groups are then empty."""
    for group in groups:
        span = spans[group]
        if span[ROOM]:
            size = _class_of(span[ROOM])
            arena[span[BLOCK], END] = free[size]
            free[size] = span[BLOCK]
        span[BLOCK] = span[PAIRS] = span[ROOM] = 0
