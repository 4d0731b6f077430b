"""PARTITION BY is checked against the operators that read it.

A stage that is split by a key can only hold operators whose own key contains it: else rows that
belong together would be in different vertices. The check is made when a stateful operator is made:
from it down through operators that treat each row alone, to every `Partition` in reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from weir.errors import PlanError, Position
from weir.plan.operators import Aggregate, Apply, Distinct, Join, Node, Partition, Stitch, Top
from weir.plan.operators.facts import Meet, Names

_Stateful = TypeVar("_Stateful", Aggregate, Distinct, Stitch, Top, Join, Apply)


def checked(node: _Stateful, position: Position | None = None) -> _Stateful:
    """Return the stateful node if its key contains the key of every partition it reads; else
    raise PlanError."""
    meeting = node.meeting()
    for port, below in enumerate(node.inputs):
        keys = frozenset() if isinstance(meeting, Meet) else frozenset(meeting[port])
        for partition, covered in _partitions(below, keys):
            lost = sorted(set(partition.keys) - covered)
            if lost:
                raise _mismatch(node, partition, lost, position)
    return node


def _partitions(node: Node, keys: Names) -> Iterator[tuple[Partition, Names]]:
    """Yield each partition in reach, with those of its columns that `keys` above it come from."""
    stack = [(node, keys)]
    while stack:
        node, keys = stack.pop()
        if isinstance(node, Partition):
            yield node, keys
        if node.meeting() is Meet.NEVER:
            for port, below in reversed(list(enumerate(node.inputs))):
                passed = node.passed_columns(port)
                stack.append((below, frozenset(passed[k] for k in keys if k in passed)))


def _mismatch(
    node: Node, partition: Partition, lost: list[str], position: Position | None
) -> PlanError:
    columns = ", ".join(f"`{name}`" for name in lost)
    what = type(node).__name__.lower()
    return PlanError(
        f"PARTITION BY of '{partition.uid}' splits by {columns}, "
        f"which is not in the key of the {what} that reads it",
        position=position,
        hint="partition by a part of that key, or not at all",
    )
