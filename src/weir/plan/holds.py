"""Computes how long operators can hold rows back.

Rows are final when they come out. Some operators make rows with an end that later input can change.
Such an operator holds these rows until the end is known, and meanwhile holds the output CTI at
their start. How long that can take follows from how long rows are valid at its input:

    a duration          if the program itself limits their lifetimes
    longest lifetime    if the data decides how long rows are valid
    unbounded           if rows can continue each other without end, or if the
                        program makes events that never end
"""

from __future__ import annotations

from collections.abc import Iterable

from weir.plan.operators import Aggregate, Node
from weir.plan.operators.spans import Span
from weir.plan.stages import StagedPlan
from weir.plan.traversal import ordered_nodes
from weir.plan.windows import Hopping


def longest_holds(roots: Iterable[Node]) -> dict[Node, Span]:
    """Return the longest hold of every operator below these."""
    lives = longest_lifetimes(roots)
    return {node: node.longest_hold([lives[i] for i in node.inputs]) for node in lives}


def longest_lifetimes(roots: Iterable[Node]) -> dict[Node, Span]:
    """Return the longest lifetime of the rows of every operator below these."""
    lives: dict[Node, Span] = {}
    for node in ordered_nodes(roots):
        lives[node] = node.longest_lifetime([lives[i] for i in node.inputs])
    return lives


def overlaps(plan: StagedPlan) -> dict[int, int]:
    """Return by how many ticks the windows of a stage overlap, for each stage where they do.

    When a window has ended, the stage has written all rows up to the beginning of the next one."""
    overlap_ticks: dict[int, int] = {}
    for stage in plan.stages:
        windows = [o.window for o in stage.operators if isinstance(o, Aggregate)]
        ticks = sum(max(0, w.size - w.hop) for w in windows if isinstance(w, Hopping))
        if ticks:
            overlap_ticks[stage.number] = ticks
    return overlap_ticks
