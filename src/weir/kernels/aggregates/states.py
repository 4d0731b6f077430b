"""Moments as bytes: what a partial aggregate hands to the final one.

A moment is a few integers, each by a name: how many values there were, how many of them NaN or
an infinity, their exact sum, the exact sum of their squares. A *state* is those that are not 0,
in the order of `_NAMES`:

    name u8 · first limb u8 · words u8 · the words, 32 bits each, the lowest first

in two's complement, without words that say nothing at either end. So equal moments are equal
bytes, whatever lanes they were added up in; and a state has no largest value: whether a sum
fits its type is for the final aggregate to judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.compiled import compiled, in_place
from weir.events.hashing import binary_buffers
from weir.kernels.aggregates.moments import Mask, Moment

_NAMES = {"n": 0, "nan": 1, "inf": 2, "-inf": 3, "sum": 4, "limb": 4, "square": 5}
_SPECIALS = slice(1, 4)
_SUM, _SQUARE, _COUNT = 4, 5, 6
_HEADER = 3
_NUMBERED = re.compile(r"(sum|limb|square)(\d+)")


def pack(lanes: Int64s, names: Sequence[str]) -> pa.Array:
    """The state of each row of lanes, which are called so (see `Moment.lane_names`)."""
    places = _places(names)
    most = sum(_HEADER + 4 * (width + 2) for width in places[:, 1].tolist() if width)
    offsets = np.zeros(len(lanes) + 1, dtype=np.int32)
    data = np.empty(len(lanes) * most, dtype=np.uint8)
    used = _pack(np.ascontiguousarray(lanes), places, offsets, data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[:used].copy())]
    return pa.Array.from_buffers(pa.binary(), len(lanes), buffers)


class MergedMoment:
    """A moment whose rows are states: what they stand for is added up in the inner's lanes."""

    def __init__(self, inner: Moment) -> None:
        self._inner = inner
        self.result, self.load, self.widen = inner.result, inner.load, inner.widen

    @property
    def lane_names(self) -> list[str]:
        return self._inner.lane_names

    def fit(self, column: pa.Array | None, counted: Mask) -> bool:
        extents = _extents(*binary_buffers(column))
        special = bool(extents[_SPECIALS, 1].any())
        # The lanes of squares reach from twice the lowest limb to twice the highest.
        spans = [(low, high) for low, high in [extents[_SUM]] if high]
        spans += [(low // 2, -(-high // 2)) for low, high in [extents[_SQUARE]] if high]
        lowest = int(min((low for low, _ in spans), default=0))
        highest = int(max((high for _, high in spans), default=0))
        return self._inner.widen(lowest, highest, special)

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None:
        _unpack(*binary_buffers(column), _places(self.lane_names), lanes, at)


def _places(names: Sequence[str]) -> Int64s:
    """For each of a state's names its first lane, how many lanes it has, its first limb."""
    places = np.zeros((_COUNT, 3), dtype=np.int64)
    for lane, label in enumerate(names):
        numbered = _NUMBERED.fullmatch(label)
        name, limb = numbered.groups() if numbered else (label, "0")
        place = places[_NAMES[name]]
        if not place[1]:
            place[0], place[2] = lane, int(limb)
        place[1] += 1
    return places


@in_place
def _words(lanes, row, at, width, words):  # type: ignore[no-untyped-def]
    """A sum's words in two's complement; the first and one past the last that say something."""
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
def _pack(lanes, places, offsets, data):  # type: ignore[no-untyped-def]
    words = np.empty(lanes.shape[1] + 2, dtype=np.int64)
    used = 0
    for row in range(len(lanes)):
        for name in range(len(places)):
            if places[name, 1] == 0:
                continue
            start, stop = _words(lanes, row, places[name, 0], places[name, 1], words)
            if start == stop:
                continue
            data[used] = name
            data[used + 1] = places[name, 2] + start
            data[used + 2] = stop - start
            used += 3
            for i in range(start, stop):
                for byte in range(4):
                    data[used] = (words[i] >> (8 * byte)) & 0xFF
                    used += 1
        offsets[row + 1] = used
    return used


@in_place
def _unpack(offsets, data, places, lanes, at):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        place = offsets[row]
        while place < offsets[row + 1]:
            name, limb = data[place], np.int64(data[place + 1])
            count = np.int64(data[place + 2])
            first, width, low = places[name, 0], places[name, 1], places[name, 2]
            for i in range(count):
                word = np.int64(0)
                for byte in range(4):
                    word |= np.int64(data[place + 3 + 4 * i + byte]) << (8 * byte)
                if i == count - 1 and word >> 31:
                    word -= 1 << 32
                # What is above the last lane goes into it: a lane has 64 bits.
                over = max(limb + i - low - (width - 1), 0)
                if width:
                    lanes[row, at + first + limb + i - low - over] += word << (32 * over)
            place += 3 + 4 * count


@compiled
def _extents(offsets, data):  # type: ignore[no-untyped-def]
    """For each name the lowest limb that a state has and one past the highest; 0, 0: none."""
    extents = np.zeros((6, 2), dtype=np.int64)
    for row in range(len(offsets) - 1):
        place = offsets[row]
        while place < offsets[row + 1]:
            extent = extents[data[place]]
            low, high = np.int64(data[place + 1]), np.int64(data[place + 1]) + data[place + 2]
            extent[0] = min(extent[0], low) if extent[1] else low
            extent[1] = max(extent[1], high)
            place += 3 + 4 * np.int64(data[place + 2])
    return extents
