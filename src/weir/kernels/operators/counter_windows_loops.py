"""Compiled loops of sessions and count windows."""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT
from weir.loops.argument_types import I64, I64s, I64Table
from weir.loops.compiled import compiled, in_place


@compiled
def sessions_of(vs: I64s, groups: I64s, timeout: I64, first: I64s, last: I64s, number: I64s):
    """Return each row's session number, the closed sessions, and the groups of the rows.

    A later event closes a session. A closed session is (group, number, first start, last start).
    """
    numbers = np.empty(len(vs), dtype=np.int64)
    closed = np.empty((len(vs), 4), dtype=np.int64)
    count = 0
    for row in range(len(vs)):
        group = groups[row]
        if first[group] != OPEN and vs[row] >= last[group] + timeout:
            closed[count, 0], closed[count, 1] = group, number[group]
            closed[count, 2], closed[count, 3] = first[group], last[group]
            count += 1
            number[group] += 1
            first[group] = OPEN
        if first[group] == OPEN:
            first[group] = vs[row]
        last[group] = vs[row]
        numbers[row] = number[group]
    touched = np.empty(len(vs), dtype=np.int64)
    seen = 0
    for row in range(len(vs)):
        # Only the last row of a group in this slice counts; earlier ones have other times, or
        # repeat the group, which is harmless.
        if last[groups[row]] == vs[row]:
            touched[seen] = groups[row]
            seen += 1
    return numbers, closed[:count], touched[:seen]


@compiled
def windows_of(vs: I64s, ve: I64s, groups: I64s, n: I64, step: I64, seen: I64s):
    """Return each row's interval of windows, and the windows that become full.

    A full window is (group, number, vs, ve)."""
    starts = np.empty(len(groups), dtype=np.int64)
    ends = np.empty(len(groups), dtype=np.int64)
    full = np.empty((len(groups), 4), dtype=np.int64)
    count = 0
    for row in range(len(groups)):
        group = groups[row]
        place = seen[group]
        seen[group] += 1
        starts[row] = max(0, -((n - 1 - place) // step))
        ends[row] = place // step + 1
        if place >= n - 1 and (place - n + 1) % step == 0:
            full[count, 0], full[count, 1] = group, (place - n + 1) // step
            full[count, 2], full[count, 3] = vs[row], ve[row]
            count += 1
    return starts, ends, full[:count]


@in_place
def append_panes(
    panes: I64s, group_of: I64s, following: I64s, to_enter: I64s, to_leave: I64s, youngest: I64s
):
    """Append new panes to their groups' lists."""
    for pane in panes:
        group = group_of[pane]
        following[pane] = -1
        if youngest[group] >= 0:
            following[youngest[group]] = pane
        youngest[group] = pane
        if to_enter[group] < 0:
            to_enter[group] = pane
        if to_leave[group] < 0:
            to_leave[group] = pane


@compiled
def count_operations(
    full: I64Table,
    start: I64s,
    end: I64s,
    following: I64s,
    to_enter: I64s,
    to_leave: I64s,
    youngest: I64s,
):
    """Return the operations of full windows: panes enter, the window's EMIT, panes leave."""
    kinds = np.empty(64, dtype=np.int64)
    groups = np.empty(64, dtype=np.int64)
    panes = np.empty(64, dtype=np.int64)
    ops = 0
    for i in range(len(full)):
        group, number = full[i, 0], full[i, 1]
        for kind in (ENTER, EMIT, EXIT):
            while True:
                if ops == len(kinds):
                    kinds = np.concatenate((kinds, np.empty_like(kinds)))
                    groups = np.concatenate((groups, np.empty_like(groups)))
                    panes = np.concatenate((panes, np.empty_like(panes)))
                pane = -1
                if kind == ENTER:
                    pane = to_enter[group]
                    if pane < 0 or start[pane] > number:
                        break
                    to_enter[group] = following[pane]
                elif kind == EXIT:
                    pane = to_leave[group]
                    if pane < 0 or end[pane] > number + 1:
                        break
                    to_leave[group] = following[pane]
                    if youngest[group] == pane:
                        youngest[group] = -1
                kinds[ops], groups[ops], panes[ops] = kind, group, pane
                ops += 1
                if kind == EMIT:
                    break
    return kinds[:ops], groups[:ops], panes[:ops]
