"""Expressions are trees of immutable nodes.

The same classes are used before and after binding. Before, `type` is None and names are what the
user wrote. After, every node has its type, and every `Column` names a column of the operator's
input (or `vs` / `ve`, the lifetime, which every input has).

Equality ignores the `position` of a node in a script, so that a script and the fluent API make
equal plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weir.errors import Position
from weir.events.types import BOOLEAN

if TYPE_CHECKING:
    from weir.plan.usercode.functions import ScalarFunction

LIFETIME_NAMES = ("vs", "ve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """A node of an expression; `position` is its place in a script."""

    type: pa.DataType | None = None
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column by name; after a join, `A.k` with the dot is one name."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant: None, bool, int, float, str, bytes, Decimal, or a tuple of these."""

    value: object

    def __post_init__(self) -> None:
        if isinstance(self.value, list):  # plans are hashed
            object.__setattr__(self, "value", tuple(self.value))


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A call of a built-in operator or function by its canonical name (see `plan/functions/`)."""

    function: str
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """CAST or TRY_CAST to `type`.

    If the value does not fit, CAST fails, and TRY_CAST is NULL."""

    arg: Expr
    lenient: bool = False

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """CASE WHEN condition THEN value … ELSE otherwise END; branches are tried in order."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*(e for branch in self.branches for e in branch), self.otherwise)


@dataclass(frozen=True, slots=True)
class UserCall(Expr):
    """A call of the user's scalar function."""

    function: ScalarFunction
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class AggregateCall(Expr):
    """An aggregate in a select list or HAVING; plan nodes have columns instead.

    `function` is the canonical lower-case name, or the name of the user's aggregate. `params` are
    constants such as a quantile's p, kept as the decimal that was written.
    """

    function: str
    args: tuple[Expr, ...]
    filter: Expr | None = None
    distinct: bool = False
    params: tuple[str, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args if self.filter is None else (*self.args, self.filter)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the node and all nodes below it, parents first."""
    yield expr
    for child in expr.children:
        yield from walk(child)


def depth_of(expr: Expr) -> int:
    """Return how deeply the nodes of an expression are nested.

    >>> depth_of(Call("neg", (Column("v"),)))
    2
    """
    depth, level = 0, [expr]
    while level:
        depth, level = depth + 1, [c for e in level for c in e.children]
    return depth


def columns_of(expr: Expr) -> frozenset[str]:
    """Return the names of all columns that the expression reads, including the lifetime's."""
    return frozenset(e.name for e in walk(expr) if isinstance(e, Column))


def map_columns(expr: Expr, change: Callable[[Column], Expr]) -> Expr:
    """Return the expression with each column replaced by what `change` returns.

    Positions and types of the rest stay."""

    def again(part: Expr) -> Expr:
        return map_columns(part, change)

    match expr:
        case Column():
            return change(expr)
        case Call() | UserCall():
            return replace(expr, args=tuple(map(again, expr.args)))
        case Cast():
            return replace(expr, arg=again(expr.arg))
        case Case():
            branches = tuple((again(c), again(v)) for c, v in expr.branches)
            return replace(expr, branches=branches, otherwise=again(expr.otherwise))
        case Literal():
            return expr
    raise TypeError(f"{type(expr).__name__} does not occur in plans")


def substituted(expr: Expr, columns: Mapping[str, Expr]) -> Expr:
    """Return the expression with these columns replaced; other columns and the lifetime stay."""
    return map_columns(expr, lambda c: columns.get(c.name, c))


def size_of(expr: Expr) -> int:
    """Return how many nodes the expression has."""
    return sum(1 for _ in walk(expr))


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """Return the parts of an AND, or the predicate itself."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for arg in predicate.args for part in conjuncts(arg))
    return (predicate,)


def all_of(parts: Sequence[Expr]) -> Expr:
    """Return one predicate that holds if all of these do; they are tried in order."""
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), type=BOOLEAN)
