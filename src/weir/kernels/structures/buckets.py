"""Buckets keep the live rows of each group as (end, slot) pairs, side by side.

So a probe reads one stretch of memory, however many rows a group has. A group's first pair is in
its span, so that a key with one live row needs nothing else; further pairs are in a block. Blocks
come in powers of two from one arena. A block that a group has outgrown goes to the free list of its
size.

Contract
1. `insert` appends to a group; rows that have ended by then may be dropped to make room.
2. A reader at time `now` skips pairs whose end is ≤ now and drops them, so nobody has to remove a
   row that ends. `remove` is for rows that leave before their end.
3. The arena is at most a small multiple of the most pairs that were ever held together.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.kernels.structures.buckets_loops import (
    CLASSES,
    insert_pairs,
    release_blocks,
    remove_pairs,
)
from weir.kernels.structures.keys import grown


class Buckets:
    """The live rows of each group; the arrays are public for the compiled walks of joins."""

    def __init__(self) -> None:
        self.arena = np.zeros((256, 2), dtype=np.int64)
        self.spans = np.zeros((0, 4), dtype=np.int64)  # by group: see `buckets_loops`
        # The first free block of each size; the last element is the first unused index of the
        # arena.
        self.free = np.full(CLASSES + 1, -1, dtype=np.int64)
        self.free[CLASSES] = 0

    def grow(self, groups: int) -> None:
        self.spans = grown(self.spans, groups)

    def remove(self, groups: Int64s, slots: Int64s) -> None:
        """Remove rows before their end."""
        remove_pairs(groups, slots, self.arena, self.spans)

    def release(self, groups: Int64s) -> None:
        """Free the blocks of groups that are forgotten."""
        release_blocks(groups, self.arena, self.spans, self.free)

    def insert_all(self, groups: Int64s, slots: Int64s, ends: Int64s, now: int) -> None:
        self.arena = insert_pairs(groups, slots, ends, now, self.arena, self.spans, self.free)
