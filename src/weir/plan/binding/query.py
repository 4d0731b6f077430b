"""What a SELECT says, before it is bound: the seam between the script and the builder.

The script turns text into these; `builder.build_query` binds them to nodes. Expressions are
unbound `Expr` trees: a qualified name `A.k` is `Column("A.k")`, an aggregate is an
`AggregateCall`, `EXPLODE(x)` is `Call("explode", (x,))`, a call of any function that the
language does not have is `Call(name, args)` (the builder looks among the user's). Every part
carries its position, for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.errors import Position
from weir.plan.expressions import Expr
from weir.plan.lifetime_changes import LifetimeChange
from weir.plan.windows import Window


@dataclass(frozen=True, slots=True)
class ChopChange:
    period: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class StitchChange:
    pass


@dataclass(frozen=True, slots=True)
class LifetimeClause:
    """WITH LIFETIME(start, end), unbound: the builder checks that start is `vs + constant`."""

    start: Expr
    end: Expr


WithClause: TypeAlias = Window | LifetimeChange | LifetimeClause | ChopChange | StitchChange


@dataclass(frozen=True, slots=True)
class Star:
    """`*`, or `A.*` with a qualifier."""

    qualifier: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SelectItem:
    expr: Expr | Star
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NamedRelation:
    stream: str
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SubqueryRelation:
    query: Query
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


Relation: TypeAlias = NamedRelation | SubqueryRelation


@dataclass(frozen=True, slots=True)
class JoinClause:
    kind: Literal[
        "inner", "left", "right", "full", "semi", "anti", "clip", "asof", "left_asof", "cross"
    ]
    relation: Relation
    on: Expr | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PartitionClause:
    keys: tuple[Expr, ...]
    count: int
    uid: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
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
    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """One or more SELECTs joined by UNION ALL; ORDER BY and LIMIT bind to the whole."""

    selects: tuple[Select, ...]
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None
    ties: bool = False
    position: Position | None = field(default=None, compare=False)
