"""Keeps sums of doubles exactly, as integers in limbs.

A finite double is m·2^e with a 53-bit integer m. In units of 2^`unit` (−1074 for values, −2148 for
squares) it is an integer, cut into 32-bit limbs; limb i is worth 2^(32·i). A lane is the int64 sum
of one limb over many values. So adding or removing a value adds or subtracts small integers:
exactly, in any order, for up to 2³¹ values. A sum is rounded only once, to the nearest double with
ties to even, when it becomes a result (`round_quotient`).
"""

from __future__ import annotations

import math

import numpy as np

from weir.loops.argument_types import I64, Booleans, I64s, I64Table
from weir.loops.compiled import compiled, in_place

VALUE_UNIT = -1074
SQUARE_UNIT = -2148
MAX_VALUES = 2**31


@in_place
def limb_range(bits: I64s, counted: Booleans):
    """Return the range [lowest, end) of limbs that the counted doubles need.

    Also return whether one is NaN or infinite. The doubles come as their bits. If none is counted,
    the range is (0, 0).
    """
    low, high, special = 1 << 30, 0, False
    for row in range(len(bits)):
        if not counted[row]:
            continue
        exponent = (bits[row] >> 52) & 0x7FF
        if exponent == 0x7FF:
            special = True
        elif bits[row] << 1 != 0:
            limb = max(exponent - 1, 0) >> 5
            low = min(low, limb)
            high = max(high, limb + 3)
    if high == 0:
        low = 0
    return low, high, special


@in_place
def add_limbs(lanes, row, at, low, magnitude, negative, position):
    """Add ±magnitude·2^position to the lanes, the first of which is of limb `low`.

    The magnitude is below 2⁵⁴."""
    limb = (position >> 5) - low + at
    shift = np.uint64(position & 31)
    mask = np.uint64(0xFFFFFFFF)
    low_part = (magnitude & mask) << shift
    high_part = (magnitude >> np.uint64(32)) << shift
    first = np.int64(low_part & mask)
    second = np.int64((low_part >> np.uint64(32)) + (high_part & mask))
    third = np.int64(high_part >> np.uint64(32))
    sign = -1 if negative else 1
    lanes[row, limb] += sign * first
    lanes[row, limb + 1] += sign * second
    lanes[row, limb + 2] += sign * third


@in_place
def split_double(bits):
    """Return the magnitude m and position p of a double: its absolute value is m·2^(p − 1074)."""
    exponent = (bits >> 52) & 0x7FF
    magnitude = np.uint64(bits & ((1 << 52) - 1))
    if exponent == 0:
        return magnitude, 0
    return magnitude | (np.uint64(1) << np.uint64(52)), exponent - 1


@in_place
def encode_sums(bits: I64s, counted: Booleans, lanes: I64Table, at: I64, low: I64):
    """Write each counted finite double into its row's lanes `at`, `at + 1`, …"""
    for row in range(len(bits)):
        if counted[row] and (bits[row] >> 52) & 0x7FF != 0x7FF and bits[row] << 1 != 0:
            magnitude, position = split_double(bits[row])
            add_limbs(lanes, row, at, low, magnitude, bits[row] < 0, position)


@in_place
def encode_squares(bits: I64s, counted: Booleans, lanes: I64Table, at: I64, low: I64):
    """Write the square of each counted finite double into its row's lanes, in units of 2^−2148."""
    half = np.uint64((1 << 27) - 1)
    for row in range(len(bits)):
        if counted[row] and (bits[row] >> 52) & 0x7FF != 0x7FF and bits[row] << 1 != 0:
            magnitude, position = split_double(bits[row])
            a, b = magnitude >> np.uint64(27), magnitude & half
            add_limbs(lanes, row, at, low, a * a, False, 2 * position + 54)
            add_limbs(lanes, row, at, low, a * b, False, 2 * position + 28)
            add_limbs(lanes, row, at, low, b * b, False, 2 * position)


@in_place
def encode_specials(bits: I64s, counted: Booleans, lanes: I64Table, at: I64):
    """Count NaN, +∞ and −∞ in three lanes."""
    for row in range(len(bits)):
        if counted[row] and (bits[row] >> 52) & 0x7FF == 0x7FF:
            if bits[row] & ((1 << 52) - 1):
                lanes[row, at] += 1
            elif bits[row] > 0:
                lanes[row, at + 1] += 1
            else:
                lanes[row, at + 2] += 1


@compiled
def round_quotient(lanes: I64Table, low: I64, unit: I64, divisors: I64s):
    """Divide each row's sum by the row's divisor (1 ≤ divisor < 2³¹), rounded once.

    Also return a mask of the rows that are left to `exact_sum`, because their results are
    subnormal.
    """
    rows, width = lanes.shape
    result = np.zeros(rows)
    left_over = np.zeros(rows, dtype=np.bool_)
    digits = np.zeros(width + 5, dtype=np.int64)  # three fraction digits, limbs, two carries
    for row in range(rows):
        sign = _digits_of(lanes, row, digits)
        remainder = np.int64(0)
        for i in range(width + 4, -1, -1):
            current = (remainder << 32) | digits[i]
            digits[i] = current // divisors[row]
            remainder = current - digits[i] * divisors[row]
        top = width + 4
        while top >= 0 and digits[top] == 0:
            top -= 1
        if top < 0:
            continue
        u, shift, sticky = _leading_bits(digits, top, remainder != 0)
        exponent = 32 * (low + top - 3 - 1) - shift + unit
        if exponent + 63 < -1022 and (divisors[row] != 1 or unit != VALUE_UNIT):
            left_over[row] = True
            continue
        mantissa = u >> np.uint64(11)
        rest = u & np.uint64(0x7FF)
        if rest > 0x400 or (rest == 0x400 and (sticky or mantissa & np.uint64(1))):
            mantissa += np.uint64(1)
        result[row] = sign * math.ldexp(float(np.int64(mantissa)), exponent + 11)
    return result, left_over


@in_place
def _digits_of(lanes, row, digits):
    """Write the base-2³² digits of a row's absolute value above three zero digits.

    Return its sign."""
    width = lanes.shape[1]
    for sign in (1, -1):
        carry = np.int64(0)
        for i in range(width):
            total = sign * lanes[row, i] + carry
            digits[i + 3] = total & 0xFFFFFFFF
            carry = total >> 32
        if carry >= 0:
            digits[width + 3] = carry & 0xFFFFFFFF
            digits[width + 4] = carry >> 32
            digits[0] = digits[1] = digits[2] = 0
            return sign
    return 0


@in_place
def _leading_bits(digits, top, sticky):
    """Return the 64 leading bits, their shift, and whether any lower bit is set."""
    u = (np.uint64(digits[top]) << np.uint64(32)) | np.uint64(digits[top - 1] if top >= 1 else 0)
    shift = 0
    while not (u >> np.uint64(63)):
        u <<= np.uint64(1)
        shift += 1
    third = np.uint64(digits[top - 2] if top >= 2 else 0)
    if shift:
        u |= third >> np.uint64(32 - shift)
    if third & ((np.uint64(1) << np.uint64(32 - shift)) - np.uint64(1)):
        sticky = True
    for i in range(top - 2):
        if digits[i]:
            sticky = True
    return u, shift, sticky
