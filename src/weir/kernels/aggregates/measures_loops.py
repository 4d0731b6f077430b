"""Compiled loops of the measure of lanes."""

from __future__ import annotations

from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.loops.argument_types import I64s, I64Table
from weir.loops.compiled import in_place


@in_place
def count_rows(lanes: I64Table, panes: I64s):
    """Count each row in the only lane of its pane."""
    for pane in panes:
        lanes[pane, 0] += 1


@in_place
def add_rows(lanes: I64Table, panes: I64s, shares: I64Table):
    """Add each row's lanes to those of its pane."""
    for row in range(len(panes)):
        for i in range(shares.shape[1]):
            lanes[panes[row], i] += shares[row, i]


@in_place
def replay_lanes(
    kinds: I64s, groups: I64s, panes: I64s, lanes: I64Table, running: I64Table, out: I64Table
):
    """Run the operations; at each EMIT, write the running lanes of its group."""
    emitted = 0
    for op in range(len(kinds)):
        group, pane = groups[op], panes[op]
        # By index: a loop over rows would make an array for each row.
        for i in range(running.shape[1]):
            if kinds[op] == EMIT:
                out[emitted, i] = running[group, i]
            elif kinds[op] == ENTER:
                running[group, i] += lanes[pane, i]
            else:
                running[group, i] -= lanes[pane, i]
        if kinds[op] == EMIT:
            emitted += 1
