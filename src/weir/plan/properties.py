"""What the planner needs to know of each operator: order, origins, keys.

- *Order-sensitive* operators look at the order of rows within an instant; all others see each
  instant as a whole.
- *Origins* (architecture: where a row came from) are carried from a source as far as an
  order-sensitive operator may ask for them: through stateless operators and UNION ALL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from weir.plan.nodes import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    CountWindow,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    PartialAggregate,
    Partition,
    Program,
    Project,
    Source,
    Stitch,
    Top,
    Union,
    inputs_of,
    schema,
)

Stateless: TypeAlias = Project | Filter | Explode | AlterLifetime
STATELESS = (Project, Filter, Explode, AlterLifetime)

SOURCE_ORIGIN_DEPTH = 2
_ORDERED_AGGREGATES = frozenset({"first", "last", "collect", "user"})


def is_stateless(node: Node) -> bool:
    """Whether the operator maps rows one by one (UNION ALL and PARTITION BY only route them)."""
    return isinstance(node, (*STATELESS, Partition))


def order_sensitive(node: Node, port: int) -> bool:
    """Whether the order of rows within an instant at this input can change the answer."""
    match node:
        case Aggregate():
            by_order = any(a.function in _ORDERED_AGGREGATES for _, a in node.aggregates)
            return by_order or isinstance(node.window, CountWindow)
        case Join():
            return node.kind in ("asof", "left_asof") and port == 1
        case Stitch() | Top() | Apply():
            return True
        case _:
            return False


def keys_of(node: Node) -> tuple[tuple[str, ...], ...] | None:
    """For each input the columns that rows which meet must share; None: all rows may meet.

    A union and stateless operators have no say: they are asked only through their readers.
    """
    match node:
        case Aggregate():
            return (node.keys,) if node.keys else None
        case Join():
            if not node.keys:
                return None
            return tuple(a for a, _ in node.keys), tuple(b for _, b in node.keys)
        case Distinct() | Stitch():
            names = schema(node).names
            return (names,) if names else None
        case Apply():
            return node.keys if node.keys[0] else None
        case Chop() | PartialAggregate():
            return ((),)
        case _:
            return None


def walk_nodes(node: Node) -> Iterator[Node]:
    """Every distinct node, inputs before the nodes that read them."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, expanded = stack.pop()
        if expanded:
            yield current
        elif current not in seen:
            seen.add(current)
            stack.append((current, True))
            stack.extend((i, False) for i in reversed(inputs_of(current)))


def origin_depths(program: Program) -> dict[Node, int]:
    """How many origin columns each node's rows carry: 0 where nobody asks or there are none."""
    nodes = list(dict.fromkeys(n for o in program.outputs for n in walk_nodes(o.node)))
    asked = _nodes_asked_for_origins(nodes)
    depths: dict[Node, int] = {}
    for node in nodes:
        below = [depths[i] for i in inputs_of(node)]
        match node:
            case Source():
                depth = SOURCE_ORIGIN_DEPTH if node.has_origins else 0
            case Explode():
                depth = below[0] + 1 if below[0] else 0
            case Union():
                depth = max(below) + 1 if max(below) else 0
            case _:
                depth = below[0] if is_stateless(node) else 0
        depths[node] = depth if node in asked else 0
    return depths


def _nodes_asked_for_origins(nodes: list[Node]) -> set[Node]:
    asked: set[Node] = set()
    for node in reversed(nodes):
        keeps = is_stateless(node) or isinstance(node, Union)
        for port, below in enumerate(inputs_of(node)):
            if order_sensitive(node, port) or (keeps and node in asked):
                asked.add(below)
    return asked
