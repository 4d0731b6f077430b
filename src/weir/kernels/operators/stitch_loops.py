"""Compiled loops of STITCH: chains of rows, in lists by group."""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN
from weir.loops.argument_types import I64s
from weir.loops.compiled import compiled, in_place


@in_place
def _append(slot, group, following, oldest, youngest):
    if youngest[group] >= 0:
        following[youngest[group]] = slot
    else:
        oldest[group] = slot
    youngest[group] = slot


@in_place
def append_chains(slots: I64s, groups: I64s, following: I64s, oldest: I64s, youngest: I64s):
    """Append chains to their groups' lists."""
    for i in range(len(slots)):
        _append(slots[i], groups[i], following, oldest, youngest)


@compiled
def stitch_rows(
    slots: I64s, groups: I64s, vs: I64s, ve: I64s, following: I64s, oldest: I64s, youngest: I64s
):
    """Return the chains that rows extended or began, and the slots of rows that began none."""
    touched = np.empty(len(slots), dtype=np.int64)
    unused = np.empty(len(slots), dtype=np.int64)
    count = 0
    for i in range(len(slots)):
        row, group = slots[i], groups[i]
        chain = oldest[group]
        while chain >= 0 and ve[chain] != vs[row]:
            chain = following[chain]
        if chain >= 0:
            ve[chain] = ve[row]
            unused[count] = row
            count += 1
        else:
            _append(row, group, following, oldest, youngest)
            chain = row
        touched[i] = chain
    return touched, unused[:count]


@in_place
def unlink_chains(
    gone: I64s, group_of: I64s, start: I64s, following: I64s, oldest: I64s, youngest: I64s
):
    """Remove ended chains from their groups' lists, with one walk for each group."""
    for chain in gone:
        start[chain] = OPEN
    for chain in gone:
        group = group_of[chain]
        before, at = -1, oldest[group]
        while at >= 0:
            younger = following[at]
            if start[at] == OPEN:
                if before >= 0:
                    following[before] = younger
                else:
                    oldest[group] = younger
                if youngest[group] == at:
                    youngest[group] = before
            else:
                before = at
            at = younger
