"""Builds the nodes of a query; every plan is made here.

The script and the fluent API both call `build_query`, so they make equal plans.

The operators of a SELECT come in this order: inputs, Partition, joins, Filter (WHERE), Aggregate,
Filter (HAVING), Project, Explode, Distinct, the lifetime change of WITH. Then, for the whole query,
come Union, Top, and a Project that removes hidden columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa

from weir.errors import PlanError, Position
from weir.events.types import type_name
from weir.plan.binding.aggregates import has_aggregate
from weir.plan.binding.binder import NameScope, bind, lookup, schema_scope, unknown
from weir.plan.binding.joins import JoinInput
from weir.plan.binding.partitioning import checked
from weir.plan.binding.projection import keep_only, passed, project, with_columns
from weir.plan.binding.query import (
    JoinClause,
    NamedRelation,
    Query,
    Relation,
    Select,
    SubqueryRelation,
)
from weir.plan.binding.selects import SelectBuilder
from weir.plan.expressions import Column, Expr, columns_of
from weir.plan.expressions import Literal as Constant
from weir.plan.functions.coercion import coerce, common_type_of
from weir.plan.limits import sized
from weir.plan.names import check_name
from weir.plan.operators import Apply, Node, Top, Union, schema
from weir.plan.usercode.functions import NO_FUNCTIONS, OperatorCall, UserFunctions
from weir.plan.usercode.undeclared_state import LOST, declare_hint
from weir.plan.windows import Hopping

MOST_JOINS = 100
"""The most joins in one SELECT: every join reads all columns of the joins before it."""


def build_query(
    query: Query, streams: Mapping[str, Node], functions: UserFunctions = NO_FUNCTIONS
) -> Node:
    """Build the bound plan of a query over named streams; raise PlanError if it is invalid."""
    _check_limit(query)
    for named in query.named:
        if named.name in streams:
            hint = "call the query after WITH something else"
            message = f"there is a stream `{named.name}` already"
            raise PlanError(message, position=named.position, hint=hint)
        streams = {**streams, named.name: build_query(named.query, streams, functions)}
    if len(query.selects) == 1:
        order = [item.expr for item in query.order_by]
        single = _single(query, _select(query.selects[0], streams, functions, order))
        return sized(single, query.position)
    selects = [_select(s, streams, functions) for s in query.selects]
    node = sized(union([_finished(s) for s in selects], query.position), query.position)
    scope = schema_scope(schema(node), functions=functions)
    return sized(_ranked(query, node, scope, {}, "instant"), query.position)


def _check_limit(query: Query) -> None:
    if query.order_by and query.limit is None:
        raise PlanError(
            "ORDER BY needs LIMIT: a stream has no order of its own",
            position=query.order_by[0].expr.position or query.position,
            hint="add LIMIT k for the first of each window or instant; files are sorted by time",
        )
    if query.limit is not None and not 0 < query.limit < 2**62:
        wrong = "must be positive, not" if query.limit <= 0 else "is out of range:"
        raise PlanError(f"LIMIT {wrong} {query.limit}", position=query.position)
    if query.ties and not query.order_by:
        raise PlanError("WITH TIES needs ORDER BY", position=query.position)


def _select(
    select: Select,
    streams: Mapping[str, Node],
    functions: UserFunctions,
    order: Sequence[Expr] = (),
) -> SelectBuilder:
    first = _relation(select.relation, streams, functions)
    joins: list[tuple[JoinClause, JoinInput]] = []
    for join in select.joins:
        if len(joins) == MOST_JOINS:
            raise PlanError(
                f"more than {MOST_JOINS} joins in one SELECT",
                position=join.relation.position,
                hint="name what some of them give as a stream of its own",
            )
        joins.append((join, _relation(join.relation, streams, functions)))
    return SelectBuilder(select, first, joins, functions, order)


def _relation(
    relation: Relation, streams: Mapping[str, Node], functions: UserFunctions
) -> JoinInput:
    match relation:
        case NamedRelation():
            if relation.stream not in streams:
                raise unknown("stream", relation.stream, streams, relation.position)
            alias = relation.alias or relation.stream
            return JoinInput(streams[relation.stream], alias, relation.position)
        case SubqueryRelation():
            node = build_query(relation.query, streams, functions)
            return JoinInput(node, relation.alias, relation.position)


def _finished(builder: SelectBuilder) -> Node:
    return keep_only(builder.build(), [item.name for item in builder.items])


# --- ORDER BY … LIMIT ----------------------------------------------------------------------


def _single(query: Query, builder: SelectBuilder) -> Node:
    """Build one SELECT; hidden columns carry what ORDER BY reads and the query does not select."""
    outputs = builder.output_scope()
    hidden = {
        index: builder.carry(item.expr)
        for index, item in enumerate(query.order_by)
        if not _readable(item.expr, outputs)
    }
    windowed = isinstance(builder.select.with_clause, Hopping)
    return _ranked(query, builder.build(), outputs, hidden, "window" if windowed else "instant")


def _readable(expr: Expr, outputs: NameScope) -> bool:
    if has_aggregate(expr, outputs.functions):
        return False
    return all(lookup(name, outputs) is not None for name in columns_of(expr))


def _ranked(
    query: Query,
    node: Node,
    outputs: NameScope,
    hidden: Mapping[int, str],
    scope: Literal["window", "instant"],
) -> Node:
    """Apply ORDER BY and LIMIT; `hidden` are the order columns that the node already has."""
    if query.limit is not None:
        order: list[tuple[str, bool]] = []
        for index, item in enumerate(query.order_by):
            name = hidden.get(index)
            if name is None:
                name, node = _order_column(node, item.expr, outputs, f"$o{index}")
            _check_order(item.expr)
            order.append((name, item.descending))
        top = Top(node, tuple(order), query.limit, query.ties, scope)
        node = checked(top, query.position)
    return keep_only(node, [v.name for v in outputs.visible])


def _order_column(node: Node, expr: Expr, outputs: NameScope, name: str) -> tuple[str, Node]:
    """Return the name of the column to order by, and a node that has it."""
    bound = bind(expr, outputs.at("ORDER BY"))
    if isinstance(bound, Column) and bound.name not in ("vs", "ve"):
        return bound.name, node
    return name, with_columns(node, [(name, bound)])


def _check_order(expr: Expr) -> None:
    if isinstance(expr, Constant):
        raise PlanError(
            "ORDER BY takes columns, not a constant",
            position=expr.position,
            hint="name the column: a number does not stand for a column's position",
        )


# --- several inputs ------------------------------------------------------------------------


def union(nodes: Sequence[Node], position: Position | None = None) -> Node:
    """Make a UNION ALL: columns match by position and have the first input's names.

    Columns of different types are widened."""
    schemas = [schema(n) for n in nodes]
    width = len(schemas[0].columns)
    for other in schemas[1:]:
        if len(other.columns) != width:
            raise PlanError(
                f"UNION ALL of {width} and {len(other.columns)} columns", position=position
            )
    types = tuple(
        _union_type(index, [s.columns[index] for s in schemas], position) for index in range(width)
    )
    return Union(tuple(_widened(n, types) for n in nodes))


def _union_type(
    index: int, columns: Sequence[tuple[str, pa.DataType]], position: Position | None
) -> pa.DataType:
    shared = common_type_of(dtype for _, dtype in columns)
    if shared is None:
        types = ", ".join(dict.fromkeys(type_name(dtype) for _, dtype in columns))
        raise PlanError(
            f"UNION ALL: column {index + 1} (`{columns[0][0]}`) has types {types}",
            position=position,
            hint="CAST one of them",
        )
    return shared


def _widened(node: Node, types: tuple[pa.DataType, ...]) -> Node:
    columns = [(n, coerce(e, t)) for (n, e), t in zip(passed(node), types, strict=True)]
    return project(node, columns)


def apply(
    inputs: Sequence[Node],
    keys: Sequence[Sequence[str]],
    call: OperatorCall,
    position: Position | None = None,
) -> Node:
    """Make the node of a user's operator: PROCESS (no keys), REDUCE (keys), COMBINE (two inputs).

    `keys` has one list of column names for each input; keys at the same position have equal types.
    """
    for node, names in zip(inputs, keys, strict=True):
        for name in names:
            if name not in schema(node).names:
                raise unknown("column", name, schema(node).names, position)
    kinds = {
        tuple(schema(node).type_of(k) for k in names)
        for node, names in zip(inputs, keys, strict=True)
    }
    if len(kinds) > 1:
        raise PlanError("the keys of COMBINE have different types", position=position)
    value: object = call
    if not isinstance(value, OperatorCall):
        hint = "expected a call of a class with @weir.operator, such as Op() or Op(limit=3)"
        raise PlanError(f"{value!r:.60} is not an operator", position=position, hint=hint)
    for name, _ in call.columns:
        check_name(name, position)
    if call.misfit:
        raise PlanError(call.misfit, position=position)
    if (undeclared := call.undeclared) is not None:
        raise PlanError(
            f"{call.operator.name}.{undeclared}, which is not declared as state: {LOST}",
            position=position,
            hint=declare_hint(undeclared.attribute),
        )
    applied = checked(Apply(tuple(inputs), tuple(tuple(k) for k in keys), call), position)
    return sized(applied, position)
