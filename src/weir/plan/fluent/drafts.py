"""A draft is an unfinished SELECT: what calls of the fluent API have set so far.

`Stream` and `Selection` pass a `Draft` on; `planned` gives it to the builder. A stream keeps its
draft beside its plan until the next operator, because ORDER BY … LIMIT may follow a SELECT and read
columns that the SELECT does not return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from weir.errors import PlanError
from weir.plan.binding.builder import build_query
from weir.plan.binding.query import (
    JoinClause,
    NamedRelation,
    OrderItem,
    Query,
    Select,
    SelectItem,
    Star,
)
from weir.plan.expressions import Call, Expr
from weir.plan.fluent.terms import Term, col
from weir.plan.operators import Node
from weir.plan.usercode.functions import NO_FUNCTIONS, UserFunctions

Named: TypeAlias = "Term | str"
"""A term, or a column by its name."""

OneOfMany = TypeVar("OneOfMany")

ANONYMOUS = "input"


@dataclass(frozen=True, slots=True)
class Draft:
    """A query, with the streams that it names and the user's functions that it calls."""

    query: Query
    streams: Mapping[str, Node]
    functions: UserFunctions = field(default=NO_FUNCTIONS)

    @property
    def select(self) -> Select:
        return self.query.selects[0]

    def changed(self, select: Select, terms: Iterable[Term] = ()) -> Draft:
        """Return the draft with another SELECT, plus the user's functions in these terms."""
        functions = UserFunctions.of(f for t in terms for f in t.aggregates)
        query = replace(self.query, selects=(select,))
        return replace(self, query=query, functions=self.functions | functions)

    def joined(self, clause: JoinClause, node: Node) -> Draft:
        relation = clause.relation
        assert isinstance(relation, NamedRelation)
        if relation.stream in self.streams:
            raise PlanError(
                f"two inputs of the join are called `{relation.stream}`",
                hint='rename one with as_("…")',
            )
        streams = {**self.streams, relation.stream: node}
        select = replace(self.select, joins=(*self.select.joins, clause))
        return replace(self.changed(select), streams=streams)

    def ranked(self, limit: int, by: Sequence[Term], ties: bool) -> Draft:
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise PlanError(
                f"the number of rows must be a whole number, not {limit!r}", hint="top(3, by=…)"
            )
        order = tuple(OrderItem(t.expr, t.descending) for t in by)
        query = replace(self.query, order_by=order, limit=limit, ties=ties)
        return replace(self.changed(self.select, by), query=query)

    def planned(self) -> Node:
        return build_query(self.query, self.streams, self.functions)


def draft(node: Node, name: str | None) -> Draft:
    """Return the draft of SELECT * FROM a stream."""
    called = name or ANONYMOUS
    select = Select((SelectItem(Star()),), NamedRelation(called))
    return Draft(Query((select,)), {called: node})


def term(named: object) -> Term:
    """Return a term for a column name; return a term as it is."""
    if isinstance(named, str):
        return col(named)
    if not isinstance(named, Term):
        hint = 'expected a column\'s name, a term such as col("v") + 1, or lit(…) for a constant'
        raise PlanError(f"{named!r} ({type(named).__name__}) is not a column", hint=hint)
    return named


def listed(items: tuple[OneOfMany, ...]) -> tuple[OneOfMany, ...]:
    """Return the items; they may have been passed one by one, or all in one list."""
    match items:
        case (list() | tuple() as several,):
            return tuple(several)
    return items


def select_items(items: Sequence[Named], named: Mapping[str, Named]) -> tuple[SelectItem, ...]:
    """Make a select list: names and terms in order, then the items that keywords name."""
    plain = [_item(i) for i in items]
    return (*plain, *(SelectItem(term(t).expr, alias) for alias, t in named.items()))


def _item(named: Named) -> SelectItem:
    if isinstance(named, str):
        prefix, _, last = named.rpartition(".")
        if last == "*":
            return SelectItem(Star(prefix or None))
    shown = term(named)
    return SelectItem(shown.expr, shown.shown_as)


def both(left: Expr | None, right: Expr) -> Expr:
    """Return `left AND right`, or `right` if there is no left."""
    return right if left is None else Call("and", (left, right))
