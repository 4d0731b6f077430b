"""A `Query` is an unbound SELECT: the script makes it, and the builder turns it into nodes.

`builder.build_query` takes it from scripts and from the fluent API. Expressions are unbound `Expr`
trees. A qualified name `A.k` is `Column("A.k")`; an aggregate is an `AggregateCall`; `EXPLODE(x)`
is `Call("explode", (x,))`. A call of a function that the language does not have is `Call(name,
args)`; the builder looks for it among the user's functions. Every part carries its position, for
messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.errors import Position
from weir.plan.expressions import Expr
from weir.plan.lifetime_changes import LifetimeChange
from weir.plan.windows import Window


@dataclass(frozen=True, slots=True)
class ChopChange:
    """WITH CHOP(period, offset), which cuts lifetimes at the points of a grid."""

    period: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class StitchChange:
    """WITH STITCH, which joins rows that continue each other."""


@dataclass(frozen=True, slots=True)
class LifetimeClause:
    """WITH LIFETIME(start, end), unbound.

    The builder checks that start is `vs + constant`."""

    start: Expr
    end: Expr


WithClause: TypeAlias = Window | LifetimeChange | LifetimeClause | ChopChange | StitchChange

COMPARES_WHOLE_ROWS: Mapping[type[WithClause], str] = {StitchChange: "STITCH"}
"""The clauses whose operators compare whole rows, as scripts write them.

Their rows cannot have hidden columns."""


@dataclass(frozen=True, slots=True)
class Star:
    """`*`, or `A.*` with a qualifier."""

    qualifier: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One element of a select list."""

    expr: Expr | Star
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NamedRelation:
    """A stream by its name in FROM or JOIN."""

    stream: str
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SubqueryRelation:
    """A query in parentheses in FROM or JOIN."""

    query: Query
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


Relation: TypeAlias = NamedRelation | SubqueryRelation


@dataclass(frozen=True, slots=True)
class JoinClause:
    """One JOIN with its kind, its right side and its ON."""

    kind: Literal[
        "inner", "left", "right", "full", "semi", "anti", "clip", "asof", "left_asof", "cross"
    ]
    relation: Relation
    on: Expr | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PartitionClause:
    """PARTITION BY keys INTO count AS uid."""

    keys: tuple[Expr, ...]
    count: int
    uid: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT, with its clauses as they were written."""

    items: tuple[SelectItem, ...]
    relation: Relation
    partition: PartitionClause | None = None
    joins: tuple[JoinClause, ...] = ()
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    with_clause: WithClause | None = None
    with_position: Position | None = field(default=None, compare=False)
    distinct: bool = False
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One element of ORDER BY."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """WITH name AS (query): a stream that only one query can read."""

    name: str
    query: Query
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """One or more SELECTs joined by UNION ALL; ORDER BY and LIMIT apply to the whole."""

    selects: tuple[Select, ...]
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None
    ties: bool = False
    position: Position | None = field(default=None, compare=False)
    named: tuple[NamedQuery, ...] = ()
    """Queries that this one can read as streams; each can also read those before it."""
