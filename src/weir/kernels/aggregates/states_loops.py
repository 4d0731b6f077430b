"""Compiled loops that write moments as bytes and read them (see `states.py` for the format)."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64, I32s, I64Table, U8s
from weir.loops.compiled import compiled, in_place

NAMES = 6
"""How many names a state may have."""
HEADER = 3
"""How many bytes come before the words of a name: the name, its first limb, the count of words."""
LANE, WIDTH, LIMB = range(3)
"""Fields of a name: its first lane, its count of lanes, its first limb."""


@in_place
def _words(lanes, row, at, width, words):
    """Write a sum's words in two's complement; return the range [first, end) of words to keep.

    All words outside of this range are redundant."""
    carry = np.int64(0)
    for i in range(width):
        total = lanes[row, at + i] + carry
        words[i] = total & 0xFFFFFFFF
        carry = total >> 32
    words[width] = carry & 0xFFFFFFFF
    words[width + 1] = (carry >> 32) & 0xFFFFFFFF
    stop = width + 2
    while stop > 1 and words[stop - 1] == (0xFFFFFFFF if words[stop - 2] >> 31 else 0):
        stop -= 1
    if stop == 1 and words[0] == 0:
        return 0, 0
    start = 0
    while words[start] == 0:
        start += 1
    return start, stop


@compiled
def pack_rows(lanes: I64Table, places: I64Table, offsets: I32s, data: U8s):
    """Write each row's state; return the length of all states in bytes."""
    words = np.empty(lanes.shape[1] + 2, dtype=np.int64)
    used = 0
    for row in range(len(lanes)):
        for name in range(len(places)):
            if places[name, WIDTH] == 0:
                continue
            start, stop = _words(lanes, row, places[name, LANE], places[name, WIDTH], words)
            if start == stop:
                continue
            data[used] = name
            data[used + 1] = places[name, LIMB] + start
            data[used + 2] = stop - start
            used += HEADER
            for i in range(start, stop):
                for byte in range(4):
                    data[used] = (words[i] >> (8 * byte)) & 0xFF
                    used += 1
        offsets[row + 1] = used
    return used


@in_place
def unpack_rows(offsets: I32s, data: U8s, places: I64Table, lanes: I64Table, at: I64):
    """Add each row's state to the row's lanes, from lane `at` on."""
    for row in range(len(offsets) - 1):
        place = offsets[row]
        while place < offsets[row + 1]:
            name, limb = data[place], np.int64(data[place + 1])
            count = np.int64(data[place + 2])
            first, width, low = places[name, LANE], places[name, WIDTH], places[name, LIMB]
            for i in range(count):
                word = np.int64(0)
                for byte in range(4):
                    word |= np.int64(data[place + HEADER + 4 * i + byte]) << (8 * byte)
                if i == count - 1 and word >> 31:
                    word -= 1 << 32
                # What is above the last lane goes into it: it has 64 bits.
                over = max(limb + i - low - (width - 1), 0)
                if width:
                    lanes[row, at + first + limb + i - low - over] += word << (32 * over)
            place += HEADER + 4 * count


@compiled
def extents_of(offsets: I32s, data: U8s):
    """Return the range [lowest, end) of limbs that the states have for each name.

    It is (0, 0) for a name that no state has."""
    extents = np.zeros((NAMES, 2), dtype=np.int64)
    for row in range(len(offsets) - 1):
        place = offsets[row]
        while place < offsets[row + 1]:
            extent = extents[data[place]]
            low, high = np.int64(data[place + 1]), np.int64(data[place + 1]) + data[place + 2]
            extent[0] = min(extent[0], low) if extent[1] else low
            extent[1] = max(extent[1], high)
            place += HEADER + 4 * np.int64(data[place + 2])
    return extents
