"""Compiled loops of the total order, which sort rows within ties."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import Booleans, I64s
from weir.loops.compiled import compiled, in_place

_DIGIT = 11  # bits: the counts of a digit stay in the nearest cache
_FEW_DIGITS = 3
_SHORT = 32  # rows that insertion sort handles


@compiled
def sort_within(groups: I64s, values: I64s):
    """Return the positions that sort each run of equal groups by value, stably.

    Most runs are a few rows long, where insertion sort beats any general sort.
    """
    order = np.empty(len(groups), dtype=np.int64)
    for i in range(len(groups)):
        order[i] = i
    other = order[:0]
    ends = order[:0]
    start = np.int64(0)
    while start < len(groups):
        stop = start + 1
        in_order = True
        while stop < len(groups) and groups[stop] == groups[start]:
            in_order &= values[stop - 1] <= values[stop]
            stop += 1
        if in_order:
            pass
        elif stop - start > _SHORT:
            if len(other) < stop:
                other = np.empty(len(groups), dtype=np.int64)
                ends = np.empty((1 << _DIGIT) + 1, dtype=np.int64)
            _sort_run(values, start, stop, order, other, ends)
        else:
            _insert(values, start, stop, order)
        start = stop
    return order


@in_place
def _insert(values, start, stop, order):
    """Sort the ascending positions `order[start:stop]` by their values, by insertion."""
    for i in range(start + 1, stop):
        row, at = order[i], i
        while at > start and values[order[at - 1]] > values[row]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = row


@in_place
def _sort_run(values, start, stop, order, other, ends):
    """Sort the positions `order[start:stop]` by value, stably; `other` and `ends` are scratch.

    It sorts digit by digit where the values differ in few digits.
    """
    lowest, highest = values[start], values[start]
    for i in range(start, stop):
        lowest = values[i] if values[i] < lowest else lowest
        highest = values[i] if values[i] > highest else highest
    span = np.uint64(highest) - np.uint64(lowest)  # modulo 2⁶⁴, so right for any two values
    digits = 0
    while digits <= _FEW_DIGITS and span >> np.uint64(_DIGIT * digits):
        digits += 1
    if digits > _FEW_DIGITS or stop - start < 1 << (_DIGIT - 3):
        _merge_sort(values, start, stop, order, other)
        return
    mask = np.uint64((1 << _DIGIT) - 1)
    for digit in range(digits):
        shift = np.uint64(_DIGIT * digit)
        for i in range(len(ends)):
            ends[i] = 0
        for i in range(start, stop):
            ends[((np.uint64(values[i]) - np.uint64(lowest)) >> shift & mask) + np.uint64(1)] += 1
        for i in range(1, len(ends)):
            ends[i] += ends[i - 1]
        for i in range(start, stop):
            at = (np.uint64(values[order[i]]) - np.uint64(lowest)) >> shift & mask
            other[start + ends[at]] = order[i]
            ends[at] += 1
        for i in range(start, stop):
            order[i] = other[i]


@in_place
def _merge_sort(values, start, stop, order, other):
    """Sort short pieces by insertion, then merge neighbours until one is left.

    NumPy's argsort within a loop takes seconds to compile."""
    for piece in range(start, stop, _SHORT):
        _insert(values, piece, piece + _SHORT if piece + _SHORT < stop else stop, order)
    length = _SHORT
    while length < stop - start:
        for piece in range(start, stop, 2 * length):
            middle = piece + length if piece + length < stop else stop
            end = middle + length if middle + length < stop else stop
            left, right = piece, middle
            for at in range(piece, end):
                take_left = left < middle
                if take_left and right < end:
                    take_left = values[order[left]] <= values[order[right]]
                if take_left:
                    other[at] = order[left]
                    left += 1
                else:
                    other[at] = order[right]
                    right += 1
        for i in range(start, stop):
            order[i] = other[i]
        length *= 2


@compiled
def still_tied(groups: I64s, ordered: I64s, places: I64s):
    """Find the rows that still tie after one more key, and the new tie of each.

    `places` are their positions in order; `groups` has the tie that each was in before.
    """
    kept = np.empty_like(places)
    ties = np.empty(len(places), dtype=np.int64)
    count = start = 0
    for at in range(1, len(places) + 1):
        if at < len(places) and groups[at] == groups[start] and ordered[at] == ordered[start]:
            continue
        if at - start > 1:
            for i in range(start, at):
                kept[count] = places[i]
                ties[count] = start
                count += 1
        start = at
    return kept[:count], ties[:count]


@in_place
def tell_apart(values: I64s, tied: Booleans):
    """Clear `tied[i]` where row i + 1 is larger than row i; only rows that still tie are compared.

    Return how many ties are left, or −1 at the first row that is smaller.
    """
    left = 0
    for i in range(len(tied)):
        if tied[i]:
            if values[i + 1] < values[i]:
                return -1
            if values[i + 1] > values[i]:
                tied[i] = False
            else:
                left += 1
    return left
