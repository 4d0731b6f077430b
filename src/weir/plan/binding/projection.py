"""Projections set the payload of rows: which columns there are, and which names they may have.

A hidden column has a name that starts with `$`. The builder adds one for a value that an operator
needs and nobody selected, and removes it before the query ends: no stream has hidden columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from weir.errors import PlanError, Position
from weir.plan.expressions import Column, Expr, map_columns
from weir.plan.operators import Node, Project, schema

RESERVED = ("vs", "ve", "window_start", "window_end")


def project(node: Node, columns: Sequence[tuple[str, Expr]]) -> Node:
    """Make a `Project`, or return the node itself where it would change nothing."""
    if tuple(columns) == passed(node):
        return node
    return Project(node, tuple(columns))


def passed(node: Node) -> tuple[tuple[str, Expr], ...]:
    """Return all columns of a node, unchanged, as a select list."""
    return tuple((n, Column(n, type=t)) for n, t in schema(node).columns)


def with_columns(node: Node, columns: Sequence[tuple[str, Expr]]) -> Node:
    """Make a node with the node's columns, then these."""
    return project(node, (*passed(node), *columns))


def keep_only(node: Node, names: Collection[str]) -> Node:
    """Make a node with only the node's columns of these names, in their order."""
    kept = frozenset(names)
    return project(node, tuple((n, e) for n, e in passed(node) if n in kept))


def check_name(name: str, position: Position | None = None) -> None:
    """Raise PlanError for a name that a payload column cannot have."""
    if name in RESERVED:
        raise PlanError(
            f"a payload column cannot be called `{name}`",
            position=position,
            hint="give it another name with AS",
            python="give it another name",
        )
    if name.startswith(("$", "@")):
        raise PlanError(f"`{name}`: names with `$` or `@` in front are reserved", position=position)


def check_distinct(names: Iterable[tuple[str, Position | None]]) -> None:
    """Raise PlanError when two columns have one name."""
    seen: set[str] = set()
    for name, position in names:
        if name in seen:
            raise PlanError(
                f"two columns are called `{name}`",
                position=position,
                hint="rename one with AS",
                python=f"name those that are wanted, w=col({name!r}) under another name; of a "
                "join, 'A.*' are those of one side",
            )
        seen.add(name)


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return the expression with its columns renamed."""
    return map_columns(expr, lambda c: replace(c, name=names.get(c.name, c.name)))
