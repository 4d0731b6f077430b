"""Builds the joins of FROM: qualifies names, and splits ON into keys and a condition.

Contract
1. Each side's columns become `A.k`, its lifetime `A.vs` and `A.ve`. These are payload columns, so
   they outlive the join. Bare `vs` / `ve` is the joined row's own lifetime.
2. An equality between an expression of the left and one of the right is a key. A computed key
   becomes a hidden column below the join. Everything else in ON is the condition.
3. Joins are built from left to right. SEMI, ANTI and CLIP hide their right side from everything
   after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir.errors import PlanError, Position
from weir.events.types import BOOLEAN
from weir.plan.advice.plan_warnings import warn_of_missed_points, warn_of_pairs
from weir.plan.binding.binder import NameScope, Visible, bind_condition, lifetime
from weir.plan.binding.partitioning import checked
from weir.plan.binding.projection import passed, with_columns
from weir.plan.binding.query import JoinClause
from weir.plan.expressions import Call, Column, Expr, columns_of
from weir.plan.operators import Join, JoinKind, Node, Project, schema
from weir.plan.usercode.functions import NO_FUNCTIONS, UserFunctions


@dataclass(frozen=True, slots=True)
class JoinInput:
    """An input of a join, under its name in the query."""

    node: Node
    alias: str | None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """The joins so far: their node, and the visible columns and lifetimes of the inputs."""

    node: Node
    visible: tuple[Visible, ...]
    times: tuple[Visible, ...]
    aliases: tuple[str, ...]
    keys: int = 0

    def scope(self, functions: UserFunctions = NO_FUNCTIONS) -> NameScope:
        own = lifetime(schema(self.node).time)
        return NameScope(self.visible, (*own, *self.times), functions=functions)


def build_joins(
    first: JoinInput,
    clauses: Sequence[tuple[JoinClause, JoinInput]],
    functions: UserFunctions = NO_FUNCTIONS,
) -> Joined:
    """Build all joins of a FROM clause, from left to right."""
    joined = _qualified(first)
    for clause, side in clauses:
        joined = _join(joined, clause, _qualified(side, joined.aliases), functions)
    return joined


def _qualified(side: JoinInput, aliases: tuple[str, ...] = ()) -> Joined:
    if side.alias is None:
        raise PlanError("a sub-select in a join needs a name", position=side.position, hint="AS x")
    if side.alias in aliases:
        raise PlanError(
            f"two inputs of the join are called `{side.alias}`",
            position=side.position,
            hint="rename one with AS",
        )
    time = schema(side.node).time
    own = [(v.name, v.expr) for v in lifetime(time)]
    columns = tuple((f"{side.alias}.{n}", e) for n, e in (*passed(side.node), *own))
    node = Project(side.node, columns)
    visible = tuple(
        Visible(side.alias, full.removeprefix(f"{side.alias}."), Column(full, type=e.type))
        for full, e in columns
    )
    return Joined(node, visible[:-2], visible[-2:], (side.alias,))


def _join(left: Joined, clause: JoinClause, right: Joined, functions: UserFunctions) -> Joined:
    kind, on = _checked_clause(clause)
    visible, times = left.visible + right.visible, left.times + right.times
    parts: list[Expr] = []
    if on is not None:
        bound = bind_condition(on, NameScope(visible, times, clause="ON", functions=functions))
        parts = _conjuncts(bound)
    sides = (frozenset(schema(left.node).names), frozenset(schema(right.node).names))
    pairs = [_key(part, *sides) for part in parts]
    rest = [part for part, pair in zip(parts, pairs, strict=True) if pair is None]
    keys = [pair for pair in pairs if pair is not None]
    if on is not None and not keys:
        warn_of_pairs(clause.position)
    warn_of_missed_points((left.node, right.node), kind, keys, clause.position)
    node = _keyed_join(left, right, kind, keys, _all_of(rest), clause.position)
    aliases = (*left.aliases, *right.aliases)
    if kind in ("semi", "anti", "clip"):
        visible, times = left.visible, left.times
    return Joined(node, visible, times, aliases, left.keys + len(keys))


def _checked_clause(clause: JoinClause) -> tuple[JoinKind, Expr | None]:
    if clause.kind == "cross":
        if clause.on is not None:
            raise PlanError("CROSS JOIN has no ON", position=clause.position, hint="INNER JOIN has")
        return "inner", None
    if clause.on is None:
        name = clause.kind.upper().replace("_", " ")
        python = 'on="A.k = B.k", with the names of the streams'
        raise PlanError(f"{name} JOIN needs ON", position=clause.position, python=python)
    return clause.kind, clause.on


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Call) and condition.function == "and":
        return [part for arg in condition.args for part in _conjuncts(arg)]
    return [condition]


def _all_of(parts: list[Expr]) -> Expr | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), type=BOOLEAN)


def _key(part: Expr, left: frozenset[str], right: frozenset[str]) -> tuple[Expr, Expr] | None:
    if not isinstance(part, Call) or part.function != "eq":
        return None
    one, other = part.args
    if _reads_only(one, left) and _reads_only(other, right):
        return one, other
    if _reads_only(one, right) and _reads_only(other, left):
        return other, one
    return None


def _reads_only(expr: Expr, names: frozenset[str]) -> bool:
    return bool(columns_of(expr)) and columns_of(expr) <= names


def _keyed_join(
    left: Joined,
    right: Joined,
    kind: JoinKind,
    keys: list[tuple[Expr, Expr]],
    condition: Expr | None,
    position: Position | None,
) -> Node:
    # Numbering continues from the joins before: their hidden keys are still among the left columns.
    left_keys, left_hidden = _key_columns([k for k, _ in keys], "$l", left.keys)
    right_keys, right_hidden = _key_columns([k for _, k in keys], "$r", left.keys)
    return checked(
        Join(
            with_columns(left.node, left_hidden),
            with_columns(right.node, right_hidden),
            kind,
            tuple(zip(left_keys, right_keys, strict=True)),
            condition,
        ),
        position,
    )


def _key_columns(
    keys: list[Expr], prefix: str, start: int
) -> tuple[list[str], list[tuple[str, Expr]]]:
    names: list[str] = []
    hidden: list[tuple[str, Expr]] = []
    for number, key in enumerate(keys, start):
        if isinstance(key, Column):
            names.append(key.name)
        else:
            names.append(f"{prefix}{number}")
            hidden.append((names[-1], replace(key, position=None)))
    return names, hidden
