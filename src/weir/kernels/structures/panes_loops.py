"""Compiled loops that find and number the panes of rows."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64s
from weir.loops.compiled import compiled, in_place

ENTER, EXIT, EMIT = range(3)
"""Kinds of operations: a pane enters its group's window or leaves it, or a result is emitted."""
_NEW, _SEEN = -1, -2
"""Marks of an unknown number, before and after its first row was seen."""


@compiled
def first_of_new(numbers: I64s, known: I64s):
    """Return the first row of each number whose entry in `known` is −1; leave `known` unchanged."""
    rows = np.empty(len(numbers), dtype=np.int64)
    count = 0
    for row in range(len(numbers)):
        if known[numbers[row]] == _NEW:
            known[numbers[row]] = _SEEN
            rows[count] = row
            count += 1
    for i in range(count):
        known[numbers[rows[i]]] = _NEW
    return rows[:count]


@compiled
def recent_panes(
    groups: I64s,
    starts: I64s,
    ends: I64s,
    recent: I64s,
    group_of: I64s,
    start_of: I64s,
    end_of: I64s,
):
    """Return each row's pane, if it is the one that its group used last.

    For other rows it writes −2 − i. Row `missing[i]`, also returned, is the first of that pane
    since the group used another one. The caller writes the panes of those rows into `recent`.
    """
    panes = np.empty(len(groups), dtype=np.int64)
    missing = np.empty(len(groups), dtype=np.int64)
    count = 0
    for row in range(len(groups)):
        group = groups[row]
        pane = recent[group]
        if pane >= 0:
            same = (
                start_of[pane] == starts[row]
                and end_of[pane] == ends[row]
                and group_of[pane] == group
            )
        elif pane < -1:
            first = missing[-2 - pane]
            same = starts[first] == starts[row] and ends[first] == ends[row]
        else:
            same = False
        if not same:
            missing[count] = row
            pane = -2 - count
            recent[group] = pane
            count += 1
        panes[row] = pane
    return panes, missing[:count].copy()


@in_place
def fill_in(panes: I64s, found: I64s):
    """Write the panes that the caller found in place of the marks of `recent_panes`."""
    for row in range(len(panes)):
        if panes[row] < 0:
            panes[row] = found[-2 - panes[row]]
