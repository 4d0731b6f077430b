"""What fast cells store outside of their matrix: limbs of exact sums, values, merges in windows.

1. Exact sums of doubles (`FastSums`) are limbs in one matrix, by group
   (`aggregates/exact_loops.py`). A state has the limbs that its values have needed so far; if a
   value needs others, the matrix is laid out again.
2. Values that are not numbers (`StoredValues`) are stored one for each cell; the compiled loop sees
   their handles. A handle is the slot of a stored value, −1 for the default, and −2 − i for value i
   of the slice.
3. Windows (`FastWindows`) have the merges of each cell in a list, oldest first, and their sum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.kernels.aggregates.exact import exact_sum
from weir.kernels.aggregates.exact_loops import limb_range
from weir.kernels.structures.exact_doubles import MINUS, NAN, PLUS, ExactDouble
from weir.kernels.structures.fast_cells_loops import LIMBS, LOW, WIDTH, carry_limbs, list_merges
from weir.kernels.structures.fast_cells_loops import MINUS as FAST_MINUS
from weir.kernels.structures.fast_cells_loops import NAN as FAST_NAN
from weir.kernels.structures.fast_cells_loops import PLUS as FAST_PLUS
from weir.kernels.structures.fast_kinds import default_column
from weir.kernels.structures.keys import grown
from weir.kernels.structures.rows import RowStore
from weir.plan.states import Cell

_MOST_ADDED = 2**30
"""How many values are added before the limbs are reduced by their carries."""
_SPECIALS = ((NAN, FAST_NAN), (PLUS, FAST_PLUS), (MINUS, FAST_MINUS))


class FastSums:
    """Holds the limbs of all exact sums of a scan."""

    def __init__(self) -> None:
        self.limbs = np.zeros((0, 0), dtype=np.int64)
        self.digits = np.zeros(2, dtype=np.int64)
        self._ranges: dict[int, tuple[int, int]] = {}
        self._added = 0

    def grow(self, capacity: int) -> None:
        self.limbs = grown(self.limbs, capacity)

    def fit_values(
        self, state: int, bits: Int64s, counted: npt.NDArray[np.bool_], table: Int64s
    ) -> None:
        """Extend the limbs to cover these doubles; `table` describes all states of the scan."""
        low, high, _ = limb_range(bits, counted)
        self._fit(state, low, high, table)
        self._added += len(bits)
        if self._added > _MOST_ADDED:
            self._added = 0
            for at, width in zip(table[:, LIMBS], table[:, WIDTH], strict=True):
                if width:
                    carry_limbs(self.limbs, at, width)

    def _fit(self, state: int, low: int, high: int, table: Int64s) -> None:
        if low == high:
            return
        range_so_far = self._ranges.get(state)
        if range_so_far is not None and range_so_far[0] <= low and high <= range_so_far[1]:
            return
        if range_so_far is not None:
            low, high = min(low, range_so_far[0]), max(high, range_so_far[1])
        before = {s: (int(table[s, LIMBS]), *r) for s, r in self._ranges.items()}
        self._ranges[state] = (low, high)
        limbs = np.zeros(
            (len(self.limbs), sum(h - lo for lo, h in self._ranges.values())), dtype=np.int64
        )
        at = 0
        for s, (new_low, new_high) in self._ranges.items():
            if s in before:
                old_at, old_low, old_high = before[s]
                start, width = at + old_low - new_low, old_high - old_low
                limbs[:, start : start + width] = self.limbs[:, old_at : old_at + width]
            table[s, LIMBS], table[s, LOW], table[s, WIDTH] = at, new_low, new_high - new_low
            at += new_high - new_low
        self.limbs = limbs
        self.digits = np.zeros(limbs.shape[1] + 2, dtype=np.int64)

    # --- saved sums --------------------------------------------------------------------------

    def packed(self, group: int, flags: int, row: Int64s) -> bytes:
        """Return the sum of a cell in the form of saved states; `row` describes its state."""
        limbs = self.limbs[group, row[LIMBS] : row[LIMBS] + row[WIDTH]]
        special = sum(saved for saved, fast in _SPECIALS if flags & fast)
        return ExactDouble(exact_sum(limbs, int(row[LOW])), special).packed()

    def unpack(self, group: int, state: int, data: bytes, table: Int64s) -> int:
        """Load a saved sum; return the flags of its cell, without the one for a sum."""
        sum_ = ExactDouble.unpacked(data)
        units = abs(sum_.units)
        if not units:
            at, width = int(table[state, LIMBS]), int(table[state, WIDTH])
            self.limbs[group, at : at + width] = 0
        else:
            low = ((units & -units).bit_length() - 1) // 32
            self._fit(state, low, units.bit_length() // 32 + 1, table)
            sign = 1 if sum_.units > 0 else -1
            at, first, width = (int(table[state, column]) for column in (LIMBS, LOW, WIDTH))
            for i in range(width):
                digit = (units >> (32 * (first + i))) & 0xFFFFFFFF
                self.limbs[group, at + i] = sign * digit
        return sum(fast for saved, fast in _SPECIALS if sum_.special & saved)


class StoredValues:
    """Holds the values of a state's cells."""

    def __init__(self, cell: Cell) -> None:
        self._default = default_column(cell)
        self._store = RowStore([cell.type])
        self._slots = np.full(0, -1, dtype=np.int64)  # by group
        self._brought: list[pa.Array] = []
        self._count = 0

    def grow(self, capacity: int) -> None:
        self._slots = grown(self._slots, capacity, -1)

    def bring(self, column: pa.Array) -> Int64s:
        """Take the values of a slice; return their handles."""
        first, self._count = self._count, self._count + len(column)
        self._brought.append(column)
        return -2 - np.arange(first, self._count, dtype=np.int64)

    def answers(self, handles: Int64s) -> pa.Array:
        """Return the values of these handles."""
        stored = handles >= 0
        held = self._store.columns(handles[stored])[0]
        index = np.where(handles == -1, 0, len(held) - 1 - handles)
        index[stored] = np.arange(1, len(held) + 1)
        return pa.concat_arrays([self._default, held, *self._brought]).take(pa.array(index))

    def settle(self, groups: Int64s, handles: Int64s) -> Int64s:
        """Store the new values of these groups, each named once; return their lasting handles."""
        new = handles <= -2
        if new.any():
            values = pa.concat_arrays(self._brought).take(pa.array(-2 - handles[new]))
            self.forget(groups[new])
            zeros = np.zeros(len(values), dtype=np.int64)
            self._slots[groups[new]] = self._store.add(Batch(zeros, zeros, (values,)))
        self._brought, self._count = [], 0
        return self._slots[groups]

    def forget(self, groups: Int64s) -> None:
        """Drop the values of these groups, each named once."""
        slots = self._slots[groups]
        self._store.free(slots[slots >= 0])
        self._slots[groups] = -1


class FastWindows:
    """Holds the merges of all windows of numbers, for `count` states.

    `pool` has the time and the value of each merge, and the slot of the next merge of its cell;
    `free` has the first unused slot, and the count of unused slots.
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
        """Make sure that this many slots are free."""
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
        """Return the merges in a window of these groups, as four arrays.

        They are the group's index in `groups`, the merge's number within its cell, its time and its
        value."""
        of, number, times, values = np.empty((4, self.held), dtype=np.int64)
        count = list_merges(groups, window, self.heads, self.pool, of, number, times, values)
        return of[:count], number[:count], times[:count], values[:count]
