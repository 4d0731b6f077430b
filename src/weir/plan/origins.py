"""These functions say which rows carry their origin (where a row came from), and how much of it.

Rows carry origins from a source up to an operator that sees the order of rows: through operators
that treat each row alone and through UNION ALL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.plan.operators import Node
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes


def origin_depths(program: Program) -> dict[Node, int]:
    """Return how many origin columns each node's rows carry: 0 where nobody asks or there are
    none."""
    nodes = ordered_nodes(o.node for o in program.outputs)
    asked = _nodes_asked_for_origins(nodes)
    depths: dict[Node, int] = {}
    for node in nodes:
        depth = node.origin_depth([depths[i] for i in node.inputs])
        depths[node] = depth if node in asked else 0
    return depths


def unique_origins(nodes: Sequence[Node]) -> Mapping[Node, bool]:
    """Tell whether no two rows of a node have the same origin, so that order never needs more than
    it.

    The nodes come with inputs before their readers.
    """
    depths: dict[Node, int] = {}
    unique: dict[Node, bool] = {}
    for node in nodes:
        depths[node] = node.origin_depth([depths[i] for i in node.inputs])
        unique[node] = depths[node] > 0 and all(unique[i] for i in node.inputs)
    return unique


def _nodes_asked_for_origins(nodes: Sequence[Node]) -> set[Node]:
    asked: set[Node] = set()
    for node in reversed(nodes):
        keeps = node.origin_depth([1] * len(node.inputs)) > 0
        for port, below in enumerate(node.inputs):
            if node.sees_order(port) or (keeps and node in asked):
                asked.add(below)
    return asked
