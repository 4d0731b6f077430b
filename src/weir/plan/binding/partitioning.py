"""Checks PARTITION BY against the operators that read the stream.

A stage that is split by a key can only contain operators whose own key includes it; else rows that
belong together would be in different vertices. The builder checks each operator in which rows meet,
so that an error has a position. It checks each `Partition` that it reaches by going down through
operators in which no rows meet. The cut into stages checks all operators of a plan again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from weir.errors import PlanError, Position
from weir.plan.operators import Node, Partition
from weir.plan.operators.facts import Meet, Names

MadeNode = TypeVar("MadeNode", bound=Node)


def checked(node: MadeNode, position: Position | None = None) -> MadeNode:
    """Return the node; raise PlanError if its key lacks columns of a partition that it reads.

    Its key has the columns that rows share when they meet."""
    meeting = node.meeting()
    if meeting is Meet.NEVER:
        return node
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
