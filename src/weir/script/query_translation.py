"""Translates syntax trees of queries to `plan.binding.query.Query`, with positions.

The builder, not this module, checks the numbers in a WITH clause (a positive hop, …), because the
fluent API makes the same clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from weir.errors import Position
from weir.plan.binding.query import (
    ChopChange,
    JoinClause,
    LifetimeClause,
    NamedQuery,
    NamedRelation,
    OrderItem,
    PartitionClause,
    Query,
    Relation,
    Select,
    SelectItem,
    Star,
    StitchChange,
    SubqueryRelation,
    WithClause,
)
from weir.plan.expressions import Expr
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    Point,
    PointAtEnd,
    Quantize,
    Shift,
)
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow
from weir.script.constants import StatementScope, integer, string, ticks
from weir.script.cursor import offset_of
from weir.script.expression_translation import expression
from weir.script.source import did_you_mean
from weir.script.tree import QueryExpression

Make: TypeAlias = Callable[..., WithClause]


@dataclass(frozen=True, slots=True)
class _Form:
    """A word after WITH: the names of its arguments, how many are required, and its maker."""

    arguments: tuple[str, ...]
    required: int
    make: Make
    read: Callable[[exp.Expr, StatementScope, str], object] = ticks

    def usage(self, name: str) -> str:
        needed, more = self.arguments[: self.required], self.arguments[self.required :]
        inner = ", ".join(needed) + "".join(f" [, {m}]" for m in more)
        return f"{name}({inner})" if inner else name


def _tumbling(size: int, offset: int = 0) -> WithClause:
    return Hopping(size, size, offset)


def _count(n: int, step: int | None = None) -> WithClause:
    return CountWindow(n, n if step is None else step)


def _expression(node: exp.Expr, scope: StatementScope, _what: str) -> object:
    return expression(node, scope)


_FORMS = {
    "TUMBLING": _Form(("size", "offset"), 1, _tumbling),
    "HOPPING": _Form(("size", "hop", "offset"), 2, Hopping),
    "SESSION": _Form(("timeout",), 1, Session),
    "SNAPSHOT": _Form((), 0, SnapshotWindow),
    "COUNT": _Form(("n", "step"), 1, _count, integer),
    "DURATION": _Form(("d",), 1, Duration),
    "SHIFT": _Form(("d",), 1, Shift),
    "EXTEND": _Form(("d",), 1, Extend),
    "CLIP_DURATION": _Form(("d",), 1, ClipDuration),
    "POINT": _Form((), 0, Point),
    "POINT_AT_END": _Form((), 0, PointAtEnd),
    "CHOP": _Form(("period", "offset"), 1, ChopChange),
    "QUANTIZE": _Form(("size", "hop", "offset"), 2, Quantize),
    "HOP_LIFETIME": _Form(("size", "hop", "offset"), 2, HopLifetime),
    "STITCH": _Form((), 0, StitchChange),
    "LIFETIME": _Form(("start", "end"), 2, LifetimeClause, _expression),
}


def with_clause(node: exp.Expr, scope: StatementScope) -> WithClause:
    """Make a window or a lifetime change from a parsed WITH."""
    name, arguments = str(node.this), node.expressions
    form = _FORMS.get(name)
    if form is None:
        hint = did_you_mean(name, _FORMS) or f"one of {', '.join(_FORMS)}"
        raise scope.error(f"unknown window or lifetime `{name}` after WITH", node, hint)
    if not form.required <= len(arguments) <= len(form.arguments):
        raise scope.error(
            f"{name} has {len(arguments)} argument(s)",
            node,
            f"write {form.usage(name)}",
        )
    names = zip(arguments, form.arguments, strict=False)
    return form.make(*(form.read(a, scope, f"the {what} of {name}") for a, what in names))


def translate_query(node: exp.Expr, scope: StatementScope) -> Query:
    """Translate a parsed SELECT … [UNION ALL …] to a query."""
    limit = node.args.get("limit")
    order = node.args.get("order") or ()
    return Query(
        selects=tuple(s for operand in node.expressions for s in _selects(operand, scope)),
        order_by=tuple(
            OrderItem(expression(o.this, scope), bool(o.args.get("desc"))) for o in order
        ),
        limit=None if limit is None else integer(limit, scope, "the k of LIMIT"),
        ties=bool(node.args.get("ties")),
        position=_position(node, scope),
        named=tuple(
            NamedQuery(n.name, translate_query(n.args["expression"], scope), _position(n, scope))
            for n in node.args.get("named") or ()
        ),
    )


def partition_clauses(query: Query) -> Iterator[PartitionClause]:
    """Yield every PARTITION BY of the query and of the sub-selects in it."""
    for named in query.named:
        yield from partition_clauses(named.query)
    for select in query.selects:
        if select.partition is not None:
            yield select.partition
        for relation in (select.relation, *(join.relation for join in select.joins)):
            if isinstance(relation, SubqueryRelation):
                yield from partition_clauses(relation.query)


def _position(node: exp.Expr, scope: StatementScope) -> Position:
    return scope.source.position(offset_of(node))


def _selects(operand: exp.Expr, scope: StatementScope) -> tuple[Select, ...]:
    """Return the SELECTs of an operand of UNION ALL. A SELECT in parentheses with a LIMIT is a
    sub-select."""
    if not isinstance(operand, QueryExpression):
        return (_select(operand, scope),)
    query = translate_query(operand, scope)
    if not query.order_by and query.limit is None and not query.named:
        return query.selects
    at = query.position
    star = SelectItem(Star(position=at), position=at)
    return (Select((star,), SubqueryRelation(query, position=at), position=at),)


def _select(node: exp.Expr, scope: StatementScope) -> Select:
    args = node.args
    partition, lifetime = args.get("partition"), args.get("lifetime")
    return Select(
        items=tuple(_item(i, scope) for i in node.expressions),
        relation=_relation(args["relation"], scope),
        partition=None if partition is None else _partition(partition, scope),
        joins=tuple(_join(j, scope) for j in args["joins"]),
        where=_optional(args.get("where"), scope),
        group_by=tuple(expression(g, scope) for g in args.get("group") or ()),
        having=_optional(args.get("having"), scope),
        with_clause=None if lifetime is None else with_clause(lifetime, scope),
        with_position=None if lifetime is None else _position(lifetime, scope),
        distinct=bool(args.get("distinct")),
        position=_position(node, scope),
    )


def _optional(node: exp.Expr | None, scope: StatementScope) -> Expr | None:
    return None if node is None else expression(node, scope)


def _item(node: exp.Expr, scope: StatementScope) -> SelectItem:
    at = _position(node, scope)
    match node:
        case exp.Star():
            return SelectItem(Star(position=at), position=at)
        case exp.Column(this=exp.Star()):
            return SelectItem(Star(node.args["table"].name, position=at), position=at)
        case exp.Alias():
            return SelectItem(expression(node.this, scope), node.args["alias"].name, at)
    return SelectItem(expression(node, scope), position=at)


def _relation(node: exp.Expr, scope: StatementScope) -> Relation:
    alias = node.args.get("alias")
    name = None if alias is None else alias.name
    at = _position(node, scope)
    if isinstance(node, exp.Subquery):
        return SubqueryRelation(translate_query(node.this, scope), name, at)
    return NamedRelation(node.name, name, at)


def _join(node: exp.Expr, scope: StatementScope) -> JoinClause:
    return JoinClause(
        kind=node.args["kind"],
        relation=_relation(node.this, scope),
        on=_optional(node.args.get("on"), scope),
        position=_position(node, scope),
    )


def _partition(node: exp.Expr, scope: StatementScope) -> PartitionClause:
    return PartitionClause(
        keys=tuple(expression(k, scope) for k in node.expressions),
        count=integer(node.args["count"], scope, "the number of partitions"),
        uid=string(node.args["uid"], scope, "the stage's name"),
        position=_position(node, scope),
    )
