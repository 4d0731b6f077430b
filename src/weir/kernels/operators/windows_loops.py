"""Compiled loops of windows by time, for cells between changes and for window numbers."""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT
from weir.loops.argument_types import I64, I64s
from weir.loops.compiled import compiled


@compiled
def cut_cells(
    enter_at: I64s,
    entering: I64s,
    exit_at: I64s,
    leaving: I64s,
    group_of: I64s,
    inside: I64s,
    cut: I64s,
):
    """Let panes enter and leave in order, with an EMIT wherever a group's contents change.

    Return the kinds, groups and panes of the operations, and the EMITs' cells (from, to, whether an
    exit cut it).
    """
    total = len(entering) + len(leaving)
    kinds = np.empty(2 * total, dtype=np.int64)
    groups = np.empty(2 * total, dtype=np.int64)
    panes = np.empty(2 * total, dtype=np.int64)
    cells = np.empty((total, 3), dtype=np.int64)
    ops = emits = i = j = 0
    while i < len(entering) or j < len(leaving):
        # At each position, panes leave before others enter.
        leaves = j < len(leaving) and (i == len(entering) or exit_at[j] <= enter_at[i])
        at = exit_at[j] if leaves else enter_at[i]
        pane = leaving[j] if leaves else entering[i]
        group = group_of[pane]
        if inside[group] > 0 and cut[group] < at:
            kinds[ops], groups[ops], panes[ops] = EMIT, group, -1
            cells[emits, 0], cells[emits, 1], cells[emits, 2] = cut[group], at, leaves
            ops += 1
            emits += 1
        cut[group] = at
        kinds[ops], groups[ops], panes[ops] = EXIT if leaves else ENTER, group, pane
        ops += 1
        if leaves:
            inside[group] -= 1
            if inside[group] == 0:
                cut[group] = OPEN
            j += 1
        else:
            inside[group] += 1
            i += 1
    return kinds[:ops], groups[:ops], panes[:ops], cells[:emits]


@compiled
def window_numbers(vs: I64s, ve: I64s, size: I64, hop: I64, offset: I64):
    """Return the first window that each lifetime meets, and one past the last.

    Neighbouring rows mostly have the same windows, so the divisions are skipped while a time stays
    in the same step of the grid.
    """
    starts = np.empty(len(vs), dtype=np.int64)
    ends = np.empty(len(vs), dtype=np.int64)
    start = end = 0
    start_from = start_until = end_from = end_until = np.int64(0)
    for row in range(len(vs)):
        if not start_from <= vs[row] < start_until:
            start = (vs[row] - offset - size) // hop + 1
            start_from = (start - 1) * hop + offset + size
            start_until = start_from + hop
        starts[row] = start
        if ve[row] == OPEN:
            ends[row] = OPEN
            continue
        if not end_from < ve[row] <= end_until:
            end = -((offset - ve[row]) // hop)
            end_until = end * hop + offset
            end_from = end_until - hop
        ends[row] = end
    return starts, ends
