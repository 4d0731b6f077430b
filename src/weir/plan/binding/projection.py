"""Projections set the payload of rows.

The name of a hidden column starts with `$`. The builder adds one for a value that an operator needs
but the query does not select. It removes hidden columns before the query ends: no stream has any.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from weir.plan.expressions import Column, Expr, map_columns
from weir.plan.operators import Node, Project, schema


def project(node: Node, columns: Sequence[tuple[str, Expr]]) -> Node:
    """Make a `Project`, or return the node itself if that would change nothing."""
    if tuple(columns) == passed(node):
        return node
    return Project(node, tuple(columns))


def passed(node: Node) -> tuple[tuple[str, Expr], ...]:
    """Return all columns of a node, unchanged, as a select list."""
    return tuple((n, Column(n, type=t)) for n, t in schema(node).columns)


def with_columns(node: Node, columns: Sequence[tuple[str, Expr]]) -> Node:
    """Make a node with the node's columns, followed by these.

    The node must not have their names already: tables of snapshots find columns by name."""
    own = set(schema(node).names)
    assert not own & {name for name, _ in columns}, "two columns of one name"
    return project(node, (*passed(node), *columns))


def keep_only(node: Node, names: Collection[str]) -> Node:
    """Make a node with only those columns of the node that have these names, in its order."""
    kept = frozenset(names)
    return project(node, tuple((n, e) for n, e in passed(node) if n in kept))


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return the expression with its columns renamed."""
    return map_columns(expr, lambda c: replace(c, name=names.get(c.name, c.name)))
