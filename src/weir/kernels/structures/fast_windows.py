"""Windows of fast cells: the merges of each cell in a list, oldest first, and their sum."""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.kernels.structures.fast_cells_loops import list_merges
from weir.kernels.structures.keys import grown


class FastWindows:
    """`FastWindows` has the merges that windows of numbers hold, for `count` states.

    `pool` has the time and the value of each, and the slot of the next one of its cell; `free` is
    the first slot that is not in use, and how many are.
    """

    def __init__(self, count: int) -> None:
        self.heads = np.zeros((0, count, 4), dtype=np.int64)
        self.pool = np.zeros((0, 3), dtype=np.int64)
        self.free = np.array([-1, 0], dtype=np.int64)

    @property
    def held(self) -> int:
        """Return how many merges are held."""
        return int(self.free[1])

    def grow(self, capacity: int) -> None:
        self.heads = grown(self.heads, capacity)

    def make_room(self, count: int) -> None:
        """Have free slots for so many merges."""
        old, missing = len(self.pool), self.held + count - len(self.pool)
        if missing <= 0:
            return
        new = max(64, 2 * old, old + missing)
        pool = np.zeros((new, 3), dtype=np.int64)
        pool[:old] = self.pool
        pool[old:, 2] = np.arange(old + 1, new + 1)
        pool[-1, 2] = self.free[0]
        self.pool, self.free[0] = pool, old

    def listed(self, groups: Int64s, window: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Return the merges in a window of these groups: the position of the group among them, the
        number of the merge within its cell, its time and its value."""
        of, number, times, values = np.empty((4, self.held), dtype=np.int64)
        count = list_merges(groups, window, self.heads, self.pool, of, number, times, values)
        return of[:count], number[:count], times[:count], values[:count]
