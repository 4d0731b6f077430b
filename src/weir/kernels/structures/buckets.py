"""Live rows by group: each group's (end, slot) pairs lie side by side.

A probe reads one stretch of memory, however many rows a group has. A group's first pair lies in
its span, so that keys with one live row have nothing else; further ones in a block. Blocks come in
powers of two from one arena; a block that a group outgrew goes to the free list of its size.

Contract
1. `insert` appends to a group; rows that have ended by then may be dropped to make room.
2. A reader at time `now` passes over pairs whose end is ≤ now and drops them: nobody has to
   remove a row that ends. `remove` takes out rows that go before their end.
3. The arena is at most a small multiple of the most pairs that were ever held together.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.events.compiled import compiled, in_place, inlined
from weir.kernels.structures.keys import grown

_CLASSES = 48


class Buckets:
    """See the module's contract. The arrays are public for the compiled walks of the joins."""

    def __init__(self) -> None:
        self.arena = np.zeros((256, 2), dtype=np.int64)
        # By group: where its block starts, pairs, room in the block; without a block (room 0) the
        # slot of its one pair in place of the start, and that pair's end.
        self.spans = np.zeros((0, 4), dtype=np.int64)
        # The first free block of each size; last: the first unused place of the arena.
        self.free = np.full(_CLASSES + 1, -1, dtype=np.int64)
        self.free[_CLASSES] = 0

    def grow(self, groups: int) -> None:
        self.spans = grown(self.spans, groups)

    def remove(self, groups: Int64s, slots: Int64s) -> None:
        """Take rows out before their end."""
        _remove(groups, slots, self.arena, self.spans)

    def release(self, groups: Int64s) -> None:
        """Give back the blocks of groups that are forgotten."""
        _release(groups, self.arena, self.spans, self.free)

    def insert_all(self, groups: Int64s, slots: Int64s, ends: Int64s, now: int) -> None:
        self.arena = _insert_all(groups, slots, ends, now, self.arena, self.spans, self.free)


@inlined
def _class_of(room):  # type: ignore[no-untyped-def]
    size = 0
    while (1 << size) < room:
        size += 1
    return size


@inlined
def _move(arena, source, target):  # type: ignore[no-untyped-def]
    # By number: Numba copies a whole row ten times as slowly.
    arena[target, 0] = arena[source, 0]
    arena[target, 1] = arena[source, 1]


@compiled
def make_room(group, now, arena, spans, free):  # type: ignore[no-untyped-def]
    """Room for one more pair at least, where `insert` found none; the arena, which may be new."""
    start, count, room = spans[group, 0], spans[group, 1], spans[group, 2]
    if room:
        kept = start
        for i in range(start, start + count):
            if arena[i, 0] > now:
                _move(arena, i, kept)
                kept += 1
        count = spans[group, 1] = kept - start
        if 2 * count < room:
            return arena
    larger = max(2, 2 * room)
    size = _class_of(larger)
    block = free[size]
    if block >= 0:
        free[size] = arena[block, 0]
    else:
        block = free[_CLASSES]
        free[_CLASSES] += larger
        while free[_CLASSES] > len(arena):
            arena = np.concatenate((arena, np.empty_like(arena)))
    if room:
        for i in range(count):
            _move(arena, start + i, block + i)
        old = _class_of(room)
        arena[start, 0] = free[old]
        free[old] = start
    else:
        arena[block, 0], arena[block, 1] = spans[group, 3], start
    spans[group, 0] = block
    spans[group, 2] = larger
    return arena


@inlined
def insert(group, slot, end, now, arena, spans):  # type: ignore[no-untyped-def]
    """Append a pair; False when `make_room` must be called first."""
    count, room = spans[group, 1], spans[group, 2]
    done = True
    if room == 0:
        if count == 0 or spans[group, 3] <= now:
            spans[group, 0] = slot
            spans[group, 1] = 1
            spans[group, 3] = end
        else:
            done = False
    elif count < room:
        at = spans[group, 0] + count
        arena[at, 0] = end
        arena[at, 1] = slot
        spans[group, 1] = count + 1
    else:
        done = False
    return done


@inlined
def live(group, now, arena, spans, out, count):  # type: ignore[no-untyped-def]
    """Append the group's slots that are live at `now` to `out`; how many there are then, or −1
    when `out` is too short (nothing has happened then)."""
    pairs = spans[group, 1]
    if count + pairs > len(out):
        count = -1
    elif spans[group, 2]:
        start = spans[group, 0]
        kept = start
        for i in range(start, start + pairs):
            if arena[i, 0] > now:
                if i != kept:
                    _move(arena, i, kept)
                out[count] = arena[i, 1]
                kept += 1
                count += 1
        if kept != start + pairs:
            spans[group, 1] = kept - start
    elif pairs:
        if spans[group, 3] > now:
            out[count] = spans[group, 0]
            count += 1
        else:
            spans[group, 1] = 0
    return count


@compiled
def _insert_all(groups, slots, ends, now, arena, spans, free):  # type: ignore[no-untyped-def]
    for i in range(len(groups)):
        group = groups[i]
        if group < 0:
            continue
        while not insert(group, slots[i], ends[i], now, arena, spans):
            arena = make_room(group, now, arena, spans, free)
    return arena


@in_place
def _remove(groups, slots, arena, spans):  # type: ignore[no-untyped-def]
    for i in range(len(groups)):
        if groups[i] < 0:
            continue
        span = spans[groups[i]]
        if span[2] == 0:
            if span[1] and span[0] == slots[i]:
                span[1] = 0
            continue
        for at in range(span[0], span[0] + span[1]):
            if arena[at, 1] == slots[i]:
                _move(arena, span[0] + span[1] - 1, at)
                span[1] -= 1
                break


@in_place
def _release(groups, arena, spans, free):  # type: ignore[no-untyped-def]
    for group in groups:
        span = spans[group]
        if span[2]:
            size = _class_of(span[2])
            arena[span[0], 0] = free[size]
            free[size] = span[0]
        span[0] = span[1] = span[2] = 0
