"""Computes which rows carry their origin (where a row came from), and how much of it.

Rows carry origins from a source up to an operator that sees the order of rows: through operators
that treat each row alone, through UNION ALL, and through state scans, whose rows are their
reader's. `Number` makes origins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.errors import PlanError
from weir.plan.operators import Enter, FinalState, Node, Number, RowScan, StateScan
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes


def origin_depths(program: Program) -> dict[Node, int]:
    """Return how many origin columns each node's rows carry: 0 where nobody asks or there are
    none."""
    nodes = ordered_nodes(o.node for o in program.outputs)
    asked = _nodes_asked_for_origins(nodes)
    depths: dict[Node, int] = {}
    for node in nodes:
        below = [depths[i] for i in node.inputs]
        depths[node] = node.origin_depth(below) if node in asked else 0
        _check_depths(node, below)
    return depths


def _check_depths(node: Node, below: Sequence[int]) -> None:
    """Check that the rows of an app's events have the origins that its operators count on."""
    match node:
        case Enter() if below[0] and not (node.behind or 0) <= below[0] < node.depth:
            raise PlanError(f"{below[0]} origin columns do not fit around {node.detail()}")
        case StateScan() | RowScan() | FinalState():
            for port, depth in enumerate(below):
                if node.sees_order(port) and depth < node.depth:
                    raise PlanError(
                        f"{type(node).__name__}: rows of port {port} have {depth} origin columns, "
                        f"and an event needs {node.depth}",
                        hint="rows of a query or a DataFrame go through Number first",
                    )


def unique_origins(nodes: Sequence[Node]) -> Mapping[Node, bool]:
    """Tell whether no two rows of a node have the same origin, so that order never needs more than
    it.

    The nodes come with inputs before their readers.
    """
    depths: dict[Node, int] = {}
    unique: dict[Node, bool] = {}
    for node in nodes:
        depths[node] = node.origin_depth([depths[i] for i in node.inputs])
        unique[node] = depths[node] > 0 and _are_unique(node, unique)
    return unique


def _are_unique(node: Node, unique: Mapping[Node, bool]) -> bool:
    match node:
        case Number():
            return True
        case StateScan():
            return unique[node.streams[0]]
        case RowScan():
            return all(unique[i] for i in node.streams[: node.out_ports])
    return all(unique[i] for i in node.inputs)


def _nodes_asked_for_origins(nodes: Sequence[Node]) -> set[Node]:
    asked: set[Node] = set()
    for node in reversed(nodes):
        keeps = node.origin_depth([1] * len(node.inputs)) > 0
        for port, below in enumerate(node.inputs):
            if node.sees_order(port) or (keeps and node in asked):
                asked.add(below)
    return asked
