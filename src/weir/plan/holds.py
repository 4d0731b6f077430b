"""Computes how long operators can hold rows back.

Results are final when they come out. An operator whose rows have an end that later input can
change holds them, and the output CTI at their start, until that end is known. How long that can
take follows from how long rows live at its input:

    a duration          of a lifetime that the program itself bounds
    longest lifetime    of rows that live as long as the data says
    unbounded           where rows can continue one another without end, or where the
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
    """Return the longest lifetime of every operator's rows."""
    lives: dict[Node, Span] = {}
    for node in ordered_nodes(roots):
        lives[node] = node.longest_lifetime([lives[i] for i in node.inputs])
    return lives


def overlaps(plan: StagedPlan) -> dict[int, int]:
    """Return, for each stage whose windows overlap, by how many ticks they do: when a window has
    ended, the stage has written all rows up to the beginning of the next one."""
    overlap_ticks: dict[int, int] = {}
    for stage in plan.stages:
        windows = [o.window for o in stage.operators if isinstance(o, Aggregate)]
        ticks = sum(max(0, w.size - w.hop) for w in windows if isinstance(w, Hopping))
        if ticks:
            overlap_ticks[stage.number] = ticks
    return overlap_ticks
