"""Compiled loops of stateless operators."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64, I32s, I64s
from weir.loops.compiled import compiled

# A de Bruijn sequence: after a multiplication by a power of two, its first six bits tell the power.
_DE_BRUIJN = 0x03F79D71B4CB0A89
BIT_NUMBERS = np.empty(64, dtype=np.int64)
BIT_NUMBERS[[(_DE_BRUIJN << i) >> 58 & 63 for i in range(64)]] = np.arange(64)


@compiled
def set_bits(words: I64s, bit_numbers: I64s, count: I64):
    """Return the numbers of the bits that are set; there are `count` of them."""
    rows = np.empty(count, dtype=np.int64)
    found = 0
    for at in range(len(words)):
        word = words[at]
        while word and found < count:  # bits after the last row are arbitrary
            rows[found] = 64 * at + bit_numbers[((word & -word) * _DE_BRUIJN) >> 58 & 63]
            found += 1
            word &= word - 1
    return rows


@compiled
def repeated(vs: I64s, ve: I64s, counts: I32s, total: I64):
    """Repeat each lifetime as often as its count says, `total` lifetimes in all."""
    starts, ends = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    at = 0
    for row in range(len(counts)):
        for _ in range(counts[row]):
            starts[at], ends[at] = vs[row], ve[row]
            at += 1
    return starts, ends
