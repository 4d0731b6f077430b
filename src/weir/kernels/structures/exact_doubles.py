"""An exact sum of doubles: an integer in units of 2^−1074, and which of NaN, ∞, −∞ were added.

Contract
1. `rounded()` is the nearest double of the exact sum, ties to even. NaN, or both infinities, make
   NaN. A sum beyond the largest double is infinite. A sum of zeros is 0, never −0.
2. `packed` returns the whole sum in the form of saved states (`plan/saved_states.py`).
"""

from __future__ import annotations

import math
from fractions import Fraction

from weir.kernels.aggregates.exact import nearest

NAN, PLUS, MINUS = 1, 2, 4
"""Flags of a sum: which of NaN, ∞ and −∞ are in it, in addition to its finite part."""
_UNIT = 1074


class ExactDouble:
    """A sum of doubles that is rounded when it is read."""

    __slots__ = ("_rounded", "special", "units")

    def __init__(self, units: int, special: int) -> None:
        self.units, self.special = units, special
        self._rounded: float | None = None

    @classmethod
    def of(cls, value: float) -> ExactDouble:
        """Return a sum that starts with this value."""
        sum_ = cls(0, 0)
        sum_.add(value)
        return sum_

    def add(self, value: float) -> None:
        self._rounded = None
        if math.isnan(value):
            self.special |= NAN
        elif math.isinf(value):
            self.special |= PLUS if value > 0 else MINUS
        else:
            numerator, denominator = value.as_integer_ratio()
            self.units += numerator * ((1 << _UNIT) // denominator)

    def rounded(self) -> float:
        if self._rounded is None:
            self._rounded = self._round()
        return self._rounded

    def _round(self) -> float:
        if self.special & NAN or self.special & (PLUS | MINUS) == PLUS | MINUS:
            return math.nan
        if self.special & PLUS:
            return math.inf
        if self.special & MINUS:
            return -math.inf
        return nearest(Fraction(self.units, 1 << _UNIT))

    def packed(self) -> bytes:
        length = (self.units.bit_length() + 8) // 8
        return bytes((self.special,)) + self.units.to_bytes(length, "little", signed=True)

    @classmethod
    def unpacked(cls, data: bytes) -> ExactDouble:
        return cls(int.from_bytes(data[1:], "little", signed=True), data[0])
