"""Builds one SELECT, from its inputs to its rows.

`SelectBuilder` binds everything when it is created, so that errors come in the order of the text.
`carry` adds columns that ORDER BY needs but the query does not select. `build` then makes the
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.errors import PlanError, Position
from weir.events.types import type_name
from weir.plan.advice.plan_warnings import warn_of_gaps, warn_of_lone_points
from weir.plan.binding.aggregates import Aggregator, has_aggregate
from weir.plan.binding.binder import (
    NameScope,
    Visible,
    bind,
    bind_condition,
    lifetime,
    lookup,
    schema_scope,
    unknown,
)
from weir.plan.binding.joins import JoinInput, build_joins
from weir.plan.binding.lifetimes import (
    BoundChange,
    as_window,
    bind_lifetime,
    change_lifetime,
    check_clause,
)
from weir.plan.binding.partitioning import checked
from weir.plan.binding.projection import project, renamed
from weir.plan.binding.query import (
    COMPARES_WHOLE_ROWS,
    JoinClause,
    LifetimeClause,
    PartitionClause,
    Select,
    SelectItem,
    Star,
)
from weir.plan.expressions import LIFETIME_NAMES, Call, Column, Expr, Literal, columns_of
from weir.plan.functions.coercion import type_of
from weir.plan.lifetime_changes import SetLifetime
from weir.plan.limits import check_vertices
from weir.plan.names import WINDOW_COLUMNS, check_distinct, check_name
from weir.plan.operators import Distinct, Explode, Filter, Node, Partition, schema
from weir.plan.usercode.functions import NO_FUNCTIONS, UserFunctions
from weir.plan.windows import CountWindow, Session, SnapshotWindow, Window


@dataclass(frozen=True, slots=True)
class Item:
    """A bound column of the select list; `explode` means that its list is exploded."""

    name: str
    expr: Expr
    explode: bool = False
    position: Position | None = None

    @property
    def type(self) -> pa.DataType:
        dtype = type_of(self.expr)
        return dtype.value_type if self.explode else dtype


class SelectBuilder:
    """A SELECT whose names and types are resolved.

    Invariant: `items` are the visible columns in order; `_hidden` are further columns, with names
    that start with `$`, which `build` puts after them.
    """

    def __init__(
        self,
        select: Select,
        first: JoinInput,
        joins: Sequence[tuple[JoinClause, JoinInput]] = (),
        functions: UserFunctions = NO_FUNCTIONS,
        order: Sequence[Expr] = (),
    ) -> None:
        self.select = select
        self._position = select.partition.position if select.partition else select.position
        self._hidden: list[tuple[str, Expr]] = []
        self._group_by = select.group_by
        self._node, self._inside = _inputs(select, first, joins, functions)
        items = select.items
        if select.distinct and as_window(select.with_clause) and not self._is_aggregated(order):
            items = self._without_stars()
            self._group_by = self._distinct_keys(items)
        self._aggregator = self._aggregation(order)
        self._scope = self._aggregator.scope if self._aggregator else self._inside.at("SELECT")
        self.items = bind_items(items, self._scope)
        if self._aggregator is not None:
            self._aggregator.name_results({i.name: i.expr for i in self.items if not i.explode})
        self._having = None
        if select.having is not None:
            self._having = bind_condition(select.having, self._scope.at("HAVING"))
        self._change = self._lifetime_change()

    def output_scope(self) -> NameScope:
        """Return the scope of ORDER BY: the selected columns and the rows' own lifetime."""
        time = schema(self._node).time
        times = lifetime(time)
        if self._aggregator:
            times += lifetime(time, WINDOW_COLUMNS)
        columns = tuple(Visible(None, i.name, Column(i.name, type=i.type)) for i in self.items)
        return NameScope(columns, times, functions=self._inside.functions)

    def carry(self, expr: Expr) -> str:
        """Return the name of a column with the value of this expression.

        The expression may use the names of the select's own scope."""
        return self._carried(bind(expr, self._with_aliases("ORDER BY")), "ORDER BY")

    def build(self) -> Node:
        """Make the nodes of the SELECT, including hidden columns."""
        node = self._node
        if self._aggregator is not None:
            node = self._aggregator.node(self._position)
            self._warn_of_windows(self._aggregator)
        if self._having is not None:
            node = Filter(node, self._having)
        node = project(node, [*((i.name, i.expr) for i in self.items), *self._hidden])
        for item in self.items:
            if item.explode:
                node = Explode(node, item.name)
        if self.select.distinct:
            node = checked(Distinct(node), self._position)
        if self._change is not None:
            node = change_lifetime(node, self._change, self.select.with_position)
        return node

    # --- windows and lifetimes -----------------------------------------------------------

    def _aggregation(self, order: Sequence[Expr]) -> Aggregator | None:
        select, clause = self.select, self.select.with_clause
        if clause is not None:
            check_clause(clause, select.with_position)
        window = as_window(clause)
        if window is None and not self._is_aggregated(order):
            return None
        if window is None and clause is not None:
            raise PlanError(
                "WITH changes lifetimes only in a query without aggregates",
                position=select.with_position or select.position,
                hint="nest one query in the other",
            )
        keys = [self._group_key(e) for e in self._group_by]
        return Aggregator(self._node, self._inside, keys, window or SnapshotWindow())

    def _warn_of_windows(self, aggregator: Aggregator) -> None:
        window = as_window(self.select.with_clause)
        if window is None:
            first = next((e.position for e in self._group_by), None)
            at = first or self.select.position
            warn_of_lone_points(self._node, aggregator.keys, at)
        else:
            warn_of_gaps(window, self.select.with_position)

    def _without_stars(self) -> tuple[SelectItem, ...]:
        items: list[SelectItem] = []
        for item in self.select.items:
            if isinstance(item.expr, Star):
                at = item.position
                for column in _starred(item.expr, self._inside):
                    items.append(SelectItem(Column(column.full, position=at), column.name, at))
            else:
                items.append(item)
        return tuple(items)

    def _distinct_keys(self, items: Sequence[SelectItem]) -> tuple[Expr, ...]:
        """Return the columns that a SELECT DISTINCT over windows reads.

        It returns each window in which such rows exist."""
        if isinstance(self.select.with_clause, Session | CountWindow):
            raise PlanError(
                "SELECT DISTINCT over SESSION or COUNT windows needs GROUP BY",
                position=self.select.with_position,
                hint="such windows belong to groups: write SELECT … GROUP BY columns WITH …",
            )
        exprs = (item.expr for item in items if not isinstance(item.expr, Star))
        names = dict.fromkeys(name for expr in exprs for name in sorted(columns_of(expr)))
        times = (*LIFETIME_NAMES, *WINDOW_COLUMNS)
        return tuple(Column(name) for name in names if name not in times)

    def _is_aggregated(self, order: Sequence[Expr]) -> bool:
        exprs = [i.expr for i in self.select.items if not isinstance(i.expr, Star)]
        grouped = bool(self.select.group_by) or self.select.having is not None
        return grouped or any(has_aggregate(e, self._inside.functions) for e in (*exprs, *order))

    def _group_key(self, expr: Expr) -> Expr:
        if isinstance(expr, Column) and lookup(expr.name, self._inside) is None:
            # A column of the input takes precedence; else the name may be one of the select list.
            for item in self.select.items:
                if item.alias == expr.name and not isinstance(item.expr, Star):
                    expr = item.expr
                    break
        try:
            bound = bind(expr, self._inside.at("GROUP BY"))
        except PlanError as error:
            if isinstance(expr, Column) and expr.name.upper() == "ALL":
                hint = "name the columns: there is no GROUP BY ALL"
                raise PlanError(error.message, position=error.position, hint=hint) from None
            raise
        if isinstance(bound, Literal):
            raise PlanError(
                "GROUP BY takes columns and expressions, not a constant",
                position=expr.position,
                hint="name the column: a number does not stand for a column's position",
            )
        return bound

    def _lifetime_change(self) -> BoundChange | None:
        clause = self.select.with_clause
        if isinstance(clause, LifetimeClause):
            change = bind_lifetime(clause, self._with_aliases("LIFETIME"), self._node)
            check_clause(change, self.select.with_position)
            reads = sorted(columns_of(change.end) - {"vs", "ve"})
            names = {name: self._carried_column(name) for name in reads}
            return SetLifetime(change.shift, renamed(change.end, names))
        if clause is None or as_window(clause) is not None:
            return None
        assert not isinstance(clause, Window)
        return clause

    # --- hidden columns ------------------------------------------------------------------

    def _with_aliases(self, clause: str) -> NameScope:
        """Return the select list's scope, plus the list's own names where nothing else has them."""
        aliases = tuple(Visible(None, i.name, i.expr) for i in self.items if not i.explode)
        return replace(self._scope, clause=clause, aliases=aliases)

    def _carried_column(self, name: str) -> str:
        dtype = schema(self._node).type_of(name)
        return self._carried(Column(name, type=dtype), "LIFETIME")

    def _carried(self, bound: Expr, clause: str) -> str:
        columns = [*((i.name, i.expr) for i in self.items if not i.explode), *self._hidden]
        for name, expr in columns:
            if expr == bound:
                return name
        what = "SELECT DISTINCT" if self.select.distinct else ""
        if self.select.with_clause is not None:
            what = what or COMPARES_WHOLE_ROWS.get(type(self.select.with_clause), "")
        if what:
            raise PlanError(
                f"{clause} reads what is not selected, and {what} compares whole rows",
                position=bound.position,
                hint="select it too",
            )
        name = f"$h{len(self._hidden)}"
        self._hidden.append((name, bound))
        return name


# --- inputs and items ----------------------------------------------------------------------


def _inputs(
    select: Select,
    first: JoinInput,
    joins: Sequence[tuple[JoinClause, JoinInput]],
    functions: UserFunctions,
) -> tuple[Node, NameScope]:
    """Build the rows that the select list reads: FROM, PARTITION BY, joins and WHERE."""
    node, alias = first.node, first.alias
    if select.partition is not None:
        node = partition(node, select.partition, alias)
    if joins:
        joined = build_joins(JoinInput(node, alias, first.position), joins, functions)
        node, scope = joined.node, joined.scope(functions)
    else:
        scope = schema_scope(schema(node), alias, functions)
    if select.where is not None:
        node = Filter(node, bind_condition(select.where, scope.at("WHERE")))
    return node, scope


def partition(node: Node, clause: PartitionClause, alias: str | None = None) -> Node:
    """Apply PARTITION BY key INTO n AS 'uid' to its input."""
    scope = schema_scope(schema(node), alias).at("PARTITION BY")
    keys = [bind(k, scope) for k in clause.keys]
    names = [k.name for k in keys if isinstance(k, Column) and k.name not in ("vs", "ve")]
    if len(names) < len(keys) or not keys:
        raise PlanError("PARTITION BY takes columns", position=clause.position)
    check_vertices(clause.count, "the number of PARTITION BY … INTO", clause.position)
    return Partition(node, tuple(dict.fromkeys(names)), clause.count, clause.uid)


def bind_items(items: Sequence[SelectItem], scope: NameScope) -> list[Item]:
    """Bind the columns of a select list; expand stars, and make sure that names are unique."""
    bound = [b for item in items for b in _bind_item(item, scope)]
    check_distinct((i.name, i.position) for i in bound)
    exploded = [i for i in bound if i.explode]
    if len(exploded) > 1:
        raise PlanError(
            "a select list can EXPLODE one list only",
            position=exploded[1].position,
            hint="nest one query in the other",
        )
    return bound


def _bind_item(item: SelectItem, scope: NameScope) -> list[Item]:
    if isinstance(item.expr, Star):
        return _star(item.expr, scope)
    position = item.position or item.expr.position
    name = item.alias or _own_name(item.expr, position)
    check_name(name, position)
    if isinstance(item.expr, Call) and item.expr.function == "explode":
        return [Item(name, _exploded(item.expr, scope), True, position)]
    return [Item(name, bind(item.expr, scope), False, position)]


def _own_name(expr: Expr, position: Position | None) -> str:
    if isinstance(expr, Column):
        return expr.name.split(".")[-1]
    if isinstance(expr, Call) and expr.function == "field":
        field = expr.args[-1]
        assert isinstance(field, Literal)
        return str(field.value)
    raise PlanError(
        "an expression in a select list needs a name",
        position=position,
        hint="AS x",
        python="by keyword, x=…, or with .as_('x')",
    )


def _exploded(call: Call, scope: NameScope) -> Expr:
    if len(call.args) != 1:
        raise PlanError("EXPLODE takes one list", position=call.position)
    bound = bind(call.args[0], scope)
    if not pa.types.is_list(type_of(bound)):
        raise PlanError(
            f"EXPLODE takes a LIST, not {type_name(type_of(bound))}", position=call.position
        )
    return bound


def _star(star: Star, scope: NameScope) -> list[Item]:
    if scope.replaced is not None:
        raise PlanError(
            "`*` cannot be selected in a query with aggregates or GROUP BY", position=star.position
        )
    return [Item(v.name, v.expr, False, star.position) for v in _starred(star, scope)]


def _starred(star: Star, scope: NameScope) -> list[Visible]:
    qualifiers = {v.qualifier or "" for v in (*scope.visible, *scope.times)}
    if star.qualifier is not None and star.qualifier not in qualifiers:
        raise unknown("stream", star.qualifier, qualifiers, star.position)
    return [v for v in scope.visible if star.qualifier in (None, v.qualifier)]
