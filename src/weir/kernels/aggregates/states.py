"""Encodes moments as bytes, called states: a partial aggregate sends them to the final one.

A moment is a few named integers: the count of its values, the counts of NaNs and of each infinity,
the exact sum of the values, the exact sum of their squares. A *state* contains those that are not
0, in the order of `_NAMES`:

    name u8 · first limb u8 · words u8 · the words, 32 bits each, the lowest first

The words are in two's complement; redundant words at either end are left out. So equal moments are
equal bytes, whatever lanes they were added up in. A state has no largest value: the final aggregate
checks whether a sum fits its type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.hashing import binary_buffers
from weir.kernels.aggregates.moments import Moment
from weir.kernels.aggregates.states_loops import (
    HEADER,
    LANE,
    LIMB,
    NAMES,
    WIDTH,
    extents_of,
    pack_rows,
    unpack_rows,
)
from weir.kernels.expressions.evaluation import Mask

_NAMES = {"n": 0, "nan": 1, "inf": 2, "-inf": 3, "sum": 4, "limb": 4, "square": 5}
_SPECIALS = slice(1, 4)
_SUM, _SQUARE = 4, 5
_NUMBERED = re.compile(r"(sum|limb|square)(\d+)")


def pack(lanes: Int64s, names: Sequence[str]) -> pa.Array:
    """Write each row of lanes as a state; `names` are the lanes' (see `Moment.lane_names`)."""
    spans = _lane_spans(names)
    most = sum(HEADER + 4 * (width + 2) for width in spans[:, WIDTH].tolist() if width)
    offsets = np.zeros(len(lanes) + 1, dtype=np.int32)
    data = np.empty(len(lanes) * most, dtype=np.uint8)
    used = pack_rows(np.ascontiguousarray(lanes), spans, offsets, data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[:used].copy())]
    return pa.Array.from_buffers(pa.binary(), len(lanes), buffers)


class MergedMoment:
    """Reads states instead of values, and adds them up in the lanes of an inner moment."""

    def __init__(self, inner: Moment) -> None:
        self._inner = inner
        self.result, self.load, self.widen = inner.result, inner.load, inner.widen

    @property
    def lane_names(self) -> list[str]:
        return self._inner.lane_names

    def fit(self, column: pa.Array | None, counted: Mask) -> bool:
        extents = extents_of(*binary_buffers(column))
        special = bool(extents[_SPECIALS, 1].any())
        # The lanes of squares range from twice the lowest limb to twice the highest.
        spans = [(low, high) for low, high in [extents[_SUM]] if high]
        spans += [(low // 2, -(-high // 2)) for low, high in [extents[_SQUARE]] if high]
        lowest = int(min((low for low, _ in spans), default=0))
        highest = int(max((high for _, high in spans), default=0))
        return self._inner.widen(lowest, highest, special)

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None:
        unpack_rows(*binary_buffers(column), _lane_spans(self.lane_names), lanes, at)


def _lane_spans(names: Sequence[str]) -> Int64s:
    """Return the first lane, the count of lanes and the first limb of each name of a state."""
    spans = np.zeros((NAMES, 3), dtype=np.int64)
    for lane, label in enumerate(names):
        numbered = _NUMBERED.fullmatch(label)
        name, limb = numbered.groups() if numbered else (label, "0")
        span = spans[_NAMES[name]]
        if not span[WIDTH]:
            span[LANE], span[LIMB] = lane, int(limb)
        span[WIDTH] += 1
    return spans
