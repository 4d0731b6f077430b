"""Keeps exact sums of doubles in one matrix of limbs, by group (`aggregates/exact_loops.py`).

A state has the limbs that its values have needed so far; when one needs others, the matrix is laid
out again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weir.events.batch import Int64s
from weir.kernels.aggregates.exact import exact_sum
from weir.kernels.aggregates.exact_loops import limb_range
from weir.kernels.structures.exact_doubles import MINUS, NAN, PLUS, ExactDouble
from weir.kernels.structures.fast_cells_loops import LIMBS, LOW, WIDTH, carry_limbs
from weir.kernels.structures.fast_cells_loops import MINUS as FAST_MINUS
from weir.kernels.structures.fast_cells_loops import NAN as FAST_NAN
from weir.kernels.structures.fast_cells_loops import PLUS as FAST_PLUS
from weir.kernels.structures.keys import grown

_MOST_ADDED = 2**30
"""Values that are added before the carries of limbs are taken up."""
_SPECIALS = ((NAN, FAST_NAN), (PLUS, FAST_PLUS), (MINUS, FAST_MINUS))


class FastSums:
    """`FastSums` has the limbs of all exact sums of a scan."""

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
        """Have the limbs that these doubles need; `table` describes all states of the scan."""
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
        """Return the sum of a cell as saved states have it; `row` describes its state."""
        limbs = self.limbs[group, row[LIMBS] : row[LIMBS] + row[WIDTH]]
        special = sum(saved for saved, fast in _SPECIALS if flags & fast)
        return ExactDouble(exact_sum(limbs, int(row[LOW])), special).packed()

    def unpack(self, group: int, state: int, data: bytes, table: Int64s) -> int:
        """Take over a saved sum; return the flags of its cell, without the one for a sum."""
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
