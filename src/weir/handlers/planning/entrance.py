"""Gives the rows of each event type the origins that make up the log order.

Log order is (vs, event type in order of declaration, partition, offset). If all event types are
logs that are declared one after the other, the origins of their rows are in this order. Otherwise
(rows of a stream, rows without an origin of their own) the number of the event type is put in front
of the origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weir.errors import PlanError
from weir.events.types import BIGINT, BOOLEAN
from weir.handlers.api.declarations import EventType
from weir.plan.binding.binder import unknown
from weir.plan.expressions import Call, Cast, Column, Expr, Literal, all_of
from weir.plan.operators import Enter, Filter, Node, Number, Source, schema
from weir.plan.operators.source import SOURCE_ORIGIN_DEPTH
from weir.plan.origins import unique_origins
from weir.plan.traversal import ordered_nodes


@dataclass(frozen=True, slots=True)
class Entrance:
    """The rows of each event type by name, and how many origin columns identify an event."""

    rows: dict[str, Node]
    depth: int


def entrance(
    events: Sequence[EventType],
    paths: Mapping[str, str],
    start: int | None = None,
    end: int | None = None,
    first_index: int = 0,
) -> Entrance:
    """Return the rows of all event types: events with start ≤ vs < end.

    `paths` has the paths of logs, by event type. Sources are numbered from `first_index` on.
    """
    for name in paths:
        if name not in {e.name for e in events}:
            raise unknown("event type", name, [e.name for e in events])
    used_indexes = [
        node.index
        for event in events
        if not event.is_log
        for node in ordered_nodes([event.stream.node])
        if isinstance(node, Source)
    ]
    following = max([first_index - 1, *used_indexes]) + 1
    rows: dict[str, Node] = {}
    for event in events:
        node = event.stream.node
        if event.is_log:
            assert isinstance(node, Source)
            node = replace(node, path=paths.get(event.name, node.path), index=following)
            following += 1
        elif event.name in paths:
            raise PlanError(
                f"the events of `{event.name}` are a stream's: they have no log",
                hint="leave its --log out",
            )
        rows[event.name] = _between(node, start, end)
    if all(event.is_log for event in events):
        return Entrance(rows, SOURCE_ORIGIN_DEPTH)
    return _numbered(rows)


def _numbered(rows: Mapping[str, Node]) -> Entrance:
    """Put the number of its event type in front of each row's origin."""
    own = {name: node if _has_origins(node) else Number(node) for name, node in rows.items()}
    depth = 1 + max(_origin_depth(node) for node in own.values())
    entered = {name: Enter(node, n, depth) for n, (name, node) in enumerate(own.items())}
    return Entrance(dict(entered), depth)


def _has_origins(node: Node) -> bool:
    return unique_origins(ordered_nodes([node]))[node]


def _origin_depth(node: Node) -> int:
    depths: dict[Node, int] = {}
    for below in ordered_nodes([node]):
        depths[below] = below.origin_depth([depths[i] for i in below.inputs])
    return depths[node]


def _between(node: Node, start: int | None, end: int | None) -> Node:
    vs: Expr = Column("vs", type=schema(node).time)
    if vs.type != BIGINT:
        vs = Cast(vs, type=BIGINT)
    parts = []
    if start is not None:
        parts.append(Call("ge", (vs, Literal(start, type=BIGINT)), type=BOOLEAN))
    if end is not None:
        parts.append(Call("lt", (vs, Literal(end, type=BIGINT)), type=BOOLEAN))
    return Filter(node, all_of(parts)) if parts else node
