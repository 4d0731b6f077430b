"""Compiled loops of joins, which find pairs of rows that are live at the same time."""

from __future__ import annotations

import numpy as np

from weir.kernels.structures.buckets_loops import BLOCK, insert, live, make_room
from weir.loops.argument_types import I64s, I64Table
from weir.loops.compiled import compiled, in_place, inlined

_DONE, _PAIRS, _BUCKET = range(3)
"""Why a walk stops: it is done, the pairs are full, or the next row's bucket is full."""
_A, _B, _COUNT, _FULL, _NOW = range(5)
"""Where a walk is: counts of left rows, right rows and pairs; a full bucket; the time."""
_AHEAD = 64
"""How many look-ups are prepared at a time (see `_touch`)."""


@compiled
def meet(
    a: I64s,
    a_vs: I64s,
    a_ve: I64s,
    a_groups: I64s,
    b: I64s,
    b_vs: I64s,
    b_ve: I64s,
    b_groups: I64s,
    arena: I64Table,
    spans: I64Table,
    free: I64s,
):
    """Walk both sides' new rows in order of vs; pair each with the live rows of the other side."""
    rows = np.empty(len(a) + len(b) + 16, dtype=np.int64)  # of each pair: slot, or ~slot of right
    found = np.empty(len(rows), dtype=np.int64)  # the live row that it meets
    at = np.zeros(5, dtype=np.int64)
    while at[_A] + at[_B] < len(a) + len(b):
        full = _walk(
            a, a_vs, a_ve, a_groups, b, b_vs, b_ve, b_groups, arena, spans, rows, found, at
        )
        if full == _PAIRS:
            rows = np.concatenate((rows, np.empty_like(rows)))
            found = np.concatenate((found, np.empty_like(found)))
        elif full == _BUCKET:
            arena = make_room(at[_FULL], at[_NOW], arena, spans, free)
    left, right = _as_pairs(rows, found, at[_COUNT])
    return left, right, arena


@in_place
def _walk(a, a_vs, a_ve, a_groups, b, b_vs, b_ve, b_groups, arena, spans, rows, found, at):
    """Continue the walk from where `at` says; return why it stops."""
    i, j, count = at[_A], at[_B], at[_COUNT]
    full, read = _DONE, 0
    while i + j < len(a) + len(b):
        if i < len(a) and (j == len(b) or a_vs[i] <= b_vs[j]):
            if i % _AHEAD == 0:
                read += _touch(a_groups, i, spans)
            side, slot, group, now, end = 0, a[i], a_groups[i], a_vs[i], a_ve[i]
        else:
            if j % _AHEAD == 0:
                read += _touch(b_groups, j, spans)
            side, slot, group, now, end = 1, b[j], b_groups[j], b_vs[j], b_ve[j]
        if group >= 0:
            bucket = 2 * group + side
            more = live(bucket ^ 1, now, arena, spans, found, count)
            if more < 0:
                full = _PAIRS
                break
            if not insert(bucket, slot, end, now, arena, spans):
                full = _BUCKET
                at[_FULL], at[_NOW] = bucket, now
                break
            while count < more:
                rows[count] = ~slot if side else slot
                count += 1
        i += 1 - side
        j += side
    at[_A], at[_B], at[_COUNT] = i, j, count
    if full == _DONE:
        at[_FULL] = read  # so that the compiler keeps the reads
    return full


@inlined
def _touch(groups, first, spans):
    """Read what the next `_AHEAD` look-ups of both sides will read.

    A look-up branches on what it reads, so it has to wait for the memory; here the waits overlap.
    The caller stores the returned number, so that the compiler cannot leave the reads out.
    """
    total = 0
    for i in range(first, min(first + _AHEAD, len(groups))):
        total += spans[2 * max(groups[i], 0), BLOCK]
    return total


@compiled
def intersect(
    left: I64s, right: I64s, left_vs: I64s, left_ve: I64s, right_vs: I64s, right_ve: I64s
):
    """Return the interval in which both rows of each pair are live."""
    vs = np.empty(len(left), dtype=np.int64)
    ve = np.empty(len(left), dtype=np.int64)
    for i in range(len(left)):
        vs[i] = max(left_vs[left[i]], right_vs[right[i]])
        ve[i] = min(left_ve[left[i]], right_ve[right[i]])
    return vs, ve


@compiled
def _as_pairs(rows, found, count):
    left = np.empty(count, dtype=np.int64)
    right = np.empty(count, dtype=np.int64)
    for i in range(count):
        left[i] = rows[i] if rows[i] >= 0 else found[i]
        right[i] = found[i] if rows[i] >= 0 else ~rows[i]
    return left, right
