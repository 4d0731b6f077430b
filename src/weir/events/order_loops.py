"""Compiled loops of the total order sort rows within ties."""

from __future__ import annotations

import numpy as np

from weir.events.compiled import compiled, in_place

_DIGIT = 11  # bits: the counts of a digit stay in the nearest cache
_FEW_DIGITS = 3


@compiled
def sort_within(groups, values):
    """Return the positions that sort each run of equal groups by value, stably.

    Runs are mostly a few rows long, where inserting one by one beats any general sort.
    """
    order = np.arange(len(groups))
    start = np.int64(0)
    while start < len(groups):
        stop = start + 1
        in_order = True
        while stop < len(groups) and groups[stop] == groups[start]:
            in_order &= values[stop - 1] <= values[stop]
            stop += 1
        if in_order:
            pass
        elif stop - start > 32:
            _sort_run(values, start, stop, order)
        else:
            for i in range(start + 1, stop):
                at = i
                while at > start and values[order[at - 1]] > values[i]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = i
        start = stop
    return order


@compiled
def _sort_run(values, start, stop, order):
    """Sort the positions `order[start:stop]` by value, stably.

    It goes digit by digit where the values lie so close together that they have few digits.
    """
    lowest, highest = values[start], values[start]
    for i in range(start, stop):
        lowest, highest = min(lowest, values[i]), max(highest, values[i])
    span = np.uint64(highest) - np.uint64(lowest)  # modulo 2⁶⁴, so it is right for any two
    digits = 0
    while digits <= _FEW_DIGITS and span >> np.uint64(_DIGIT * digits):
        digits += 1
    if digits > _FEW_DIGITS or stop - start < 1 << (_DIGIT - 3):
        order[start:stop] = start + np.argsort(values[start:stop], kind="mergesort")
        return
    other = np.empty(stop - start, dtype=np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    for digit in range(digits):
        shift = np.uint64(_DIGIT * digit)
        ends = np.zeros((1 << _DIGIT) + 1, dtype=np.int64)
        for i in range(start, stop):
            ends[((np.uint64(values[i]) - np.uint64(lowest)) >> shift & mask) + np.uint64(1)] += 1
        for i in range(1, len(ends)):
            ends[i] += ends[i - 1]
        for i in range(start, stop):
            at = (np.uint64(values[order[i]]) - np.uint64(lowest)) >> shift & mask
            other[ends[at]] = order[i]
            ends[at] += 1
        order[start:stop] = other


@compiled
def still_tied(groups, ordered, places):
    """Find the rows that are still tied after one more key, and the new tie of each.

    `places` are their positions in order; `groups` is the tie that each was in before.
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
def tell_apart(values, tied):
    """Clear `tied[i]` where row i + 1 is larger than row i, of the rows that are tied so far.

    Return how many ties are left; −1 at the first that is smaller.
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
