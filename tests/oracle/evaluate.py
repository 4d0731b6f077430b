"""A node's rows, from its inputs' rows. Which operators keep origins is architecture §3.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from oracle.expressions import evaluate_expression, scope
from oracle.ingress import Item, ingress
from oracle.joins import joined
from oracle.lifetimes import altered, chopped, stitched
from oracle.rows import Row
from oracle.user_operators import applied
from oracle.windows import aggregated, distinct, top
from weir.plan.operators import (
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
    Source,
    Stitch,
    Top,
    Union,
    schema,
)

Inputs = Mapping[str, Sequence[Sequence[Item]]]
"""The partitions of each source, by its name."""


def evaluate(node: Node, inputs: Inputs) -> list[Row]:
    """Every row that the node ever gives; raises `OracleError` where a run must fail."""
    below = [evaluate(i, inputs) for i in node.inputs]
    match node:
        case Source():
            return ingress(node, inputs[node.name])
        case Project():
            return [_projected(row, node) for row in below[0]]
        case Filter():
            return [r for r in below[0] if evaluate_expression(node.predicate, scope(r)) is True]
        case Explode():
            return [e for row in below[0] for e in _exploded(row, node.column)]
        case AlterLifetime():
            return [new for row in below[0] for new in altered(row, node.change)]
        case Chop():
            return [p for row in below[0] for p in chopped(row, node.period, node.offset)]
        case Stitch():
            return stitched(below[0])
        case Aggregate():
            return aggregated(node, below[0])
        case Distinct():
            return distinct(below[0])
        case Top():
            return top(node, below[0])
        case Join():
            return joined(node, below[0], below[1], (_absent(node.left), _absent(node.right)))
        case Union():
            return _union(node, below)
        case Apply():
            return applied(node, below)
        case Partition():
            return below[0]


def _projected(row: Row, node: Project) -> Row:
    values = scope(row)
    return replace(row, payload={n: evaluate_expression(e, values) for n, e in node.columns})


def _exploded(row: Row, column: str) -> Iterable[Row]:
    for index, element in enumerate(row.payload[column] or []):
        origin = None if row.origin is None else (*row.origin, index)
        yield replace(row, payload=row.payload | {column: element}, origin=origin)


def _absent(node: Node) -> dict[str, None]:
    return dict.fromkeys(schema(node).names)


def _union(node: Union, branches: Sequence[list[Row]]) -> list[Row]:
    """All rows, under the first branch's names. Origins are brought to one width (a shorter one
    stands before those it begins), then end in the branch's number; a row without one stays
    without."""
    names = schema(node).names
    width = max((len(r.origin) for rows in branches for r in rows if r.origin), default=0)
    result = []
    for branch, rows in enumerate(branches):
        for row in rows:
            payload = dict(zip(names, row.payload.values(), strict=True))
            origin = row.origin
            if origin is not None:
                origin = (*origin, *[-1] * (width - len(origin)), branch)
            result.append(replace(row, payload=payload, origin=origin))
    return result
