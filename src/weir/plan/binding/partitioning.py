"""PARTITION BY against the operators that read it.

A stage that is split by a key can only hold operators whose own key contains it: else rows that
belong together would meet in different vertices. Checked where a stateful operator is made:
from it down through operators that treat each row alone, to every `Partition` in reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from weir.errors import PlanError, Position
from weir.plan.expressions import Column
from weir.plan.nodes import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Partition,
    Project,
    Stitch,
    Top,
    Union,
    schema,
)

Stateful = TypeVar("Stateful", Aggregate, Distinct, Stitch, Top, Join, Apply)


def checked(node: Stateful, position: Position | None = None) -> Stateful:
    """The stateful node, if its key contains the key of every partition it reads; PlanError."""
    for below, keys in _keyed_inputs(node):
        for partition, covered in _partitions(below, keys):
            lost = sorted(set(partition.keys) - covered)
            if lost:
                raise _mismatch(node, partition, lost, position)
    return node


def _keyed_inputs(
    node: Aggregate | Distinct | Stitch | Top | Join | Apply,
) -> list[tuple[Node, frozenset[str]]]:
    match node:
        case Aggregate():
            return [(node.input, frozenset(node.keys))]
        case Distinct() | Stitch():
            return [(node.input, frozenset(schema(node.input).names))]
        case Top():
            return [(node.input, frozenset())]
        case Join():
            left, right = (frozenset(pair[side] for pair in node.keys) for side in (0, 1))
            return [(node.left, left), (node.right, right)]
        case _:
            return [(i, frozenset(k)) for i, k in zip(node.inputs, node.keys, strict=True)]


def _partitions(node: Node, keys: frozenset[str]) -> Iterator[tuple[Partition, frozenset[str]]]:
    """Each partition in reach, with those of its columns that `keys` above it come from."""
    match node:
        case Partition():
            yield node, keys
            yield from _partitions(node.input, keys)
        case Filter() | AlterLifetime() | Chop():
            yield from _partitions(node.input, keys)
        case Explode():
            yield from _partitions(node.input, keys - {node.column})
        case Project():
            plain = (e.name for n, e in node.columns if n in keys and isinstance(e, Column))
            yield from _partitions(node.input, frozenset(plain))
        case Union():
            places = [schema(node).index(k) for k in keys]
            for below in node.inputs:
                names = schema(below).names
                yield from _partitions(below, frozenset(names[p] for p in places))


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
