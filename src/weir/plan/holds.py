"""These functions compute how long operators can hold rows back.

Results are final when they come out. An operator whose rows have an end that later input can
change holds them, and the output CTI at their start, until that end is known. How long that can
take follows from how long rows live at its input:

    a duration          of a lifetime that the program itself bounds
    longest lifetime    of rows that live as long as the data says
    unbounded           where rows that go on from one another have no end in sight, or where the
                        program makes events that never end
"""

from __future__ import annotations

from collections.abc import Iterable

from weir.plan.operators import Node
from weir.plan.spans import Span
from weir.plan.traversal import ordered_nodes


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
