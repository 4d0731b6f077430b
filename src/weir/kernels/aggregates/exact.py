"""Converts exact sums to Python's integers and fractions, and rounds them once.

`exact_loops.py` explains limbs.
"""

from __future__ import annotations

import math
from fractions import Fraction

from weir.events.batch import Int64s


def exact_sum(lanes: Int64s, low: int) -> int:
    """Return one row's limbs as a Python integer, in units of limb 0."""
    return sum(int(lane) << (32 * (low + i)) for i, lane in enumerate(lanes.tolist()))


def nearest(value: Fraction) -> float:
    """Return the nearest double, ties to even; a value beyond the range becomes an infinity."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def nearest_root(value: Fraction) -> float:
    """Return the double nearest to the square root of a value ≥ 0, rounded once."""
    if value == 0:
        return 0.0
    # A quotient of 140 bits gives a root of 70 bits; an odd last bit stands for the rest.
    scale = max(0, 140 - value.numerator.bit_length() + value.denominator.bit_length())
    scale += scale & 1
    quotient, remainder = divmod(value.numerator << scale, value.denominator)
    root = math.isqrt(quotient)
    inexact = remainder != 0 or root * root != quotient
    return nearest(Fraction(2 * root + inexact, 1 << (scale // 2 + 1)))
