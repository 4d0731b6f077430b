"""Maps the leaves of a handler's values to columns.

A NULL of a column is Python's None; an INT and a BIGINT are ints, a LIST is a list, a STRUCT a dict
whose keys can be read as attributes too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BIGINT
from weir.handlers.trees.tree_walks import walk_tree
from weir.handlers.trees.values import (
    Element,
    Field,
    Instant,
    Old,
    ReadValue,
    Tree,
    bottom_up,
    children,
)
from weir.plan.expressions import Cast, Column, Expr


@dataclass(frozen=True)
class Scope:
    """The plan's columns for the leaves of one handler's values."""

    fields: Mapping[str, tuple[str, pa.DataType]] = field(default_factory=dict)
    """`e.name` → column and type."""
    answers: Mapping[int, tuple[str, pa.DataType]] = field(default_factory=dict)
    """The order of a read → column and type."""
    elements: Mapping[int, tuple[str, pa.DataType]] = field(default_factory=dict)
    """The block of a loop → column and type."""
    time: pa.DataType = BIGINT
    """The type of the time columns; handlers see ticks."""
    where: str = ""
    """The file of the handler, for messages."""
    handler: str = ""
    vectorise: bool = True
    """Whether values become column expressions; otherwise only bare columns and constants do."""
    memo: dict[object, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Results about values of this scope, by what they are and the value's id.

    The values are kept too, so that no other value gets the same id.
    """


_Result = TypeVar("_Result")


def remembered(scope: Scope, what: object, tree: Tree, work: Callable[[], _Result]) -> _Result:
    """Compute something about a value once, so that a part of many values is visited once."""
    key = what, id(tree)
    if key not in scope.memo:
        scope.memo[key] = tree, work()
    result: _Result = scope.memo[key][1]
    return result


def from_below(tree: Tree, scope: Scope, what: object, work: Callable[[Tree], object]) -> None:
    """Compute something for all parts of a value, from the leaves up.

    So no computation needs Python's stack for the parts below.
    """
    if (what, id(tree)) not in scope.memo:
        for part in bottom_up(tree):
            work(part)


class NotAColumn(Exception):
    """The value is not computed as a column: which construct prevents it, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line, self.why = line, why


def is_leaf(tree: Tree) -> bool:
    return isinstance(tree, Field | Instant | ReadValue | Element)


def leaf_type(tree: Tree, scope: Scope) -> pa.DataType:
    """Return the type of a leaf's column."""
    return BIGINT if isinstance(tree, Instant) else _column_of_leaf(tree, scope)[1]


def leaf_column(tree: Tree, scope: Scope) -> Expr:
    """Return the column of a leaf; times are in ticks."""
    if isinstance(tree, Instant):
        column = Column(tree.name, type=scope.time)
        return column if scope.time == BIGINT else Cast(column, type=BIGINT)
    name, dtype = _column_of_leaf(tree, scope)
    return Column(name, type=dtype)


def _column_of_leaf(tree: Tree, scope: Scope) -> tuple[str, pa.DataType]:
    match tree:
        case Field(name=name) if name in scope.fields:
            return scope.fields[name]
        case ReadValue(order=order) if order in scope.answers:
            return scope.answers[order]
        case Element(block=block) if block in scope.elements:
            return scope.elements[block]
        case Field(name=name):
            raise PlanError(
                f"{at(scope, tree.line)}: the event has no column `{name}`",
                hint=f"it has {', '.join(scope.fields)}",
            )
    raise AssertionError(f"no column for {tree}")


def at(scope: Scope, line: int) -> str:
    """Write the place of a handler's line, for the start of a message."""
    return f"{scope.handler} ({scope.where}:{line})"


def leaves(
    trees: tuple[Tree, ...], is_one: Callable[[Tree], bool] = lambda tree: False
) -> tuple[Tree, ...]:
    """Return the leaves of values, each once, in order of first use.

    A part for which `is_one` is true counts as a leaf.
    """
    unique: dict[Tree, None] = {}
    seen: set[int] = set()
    stack = list(reversed(trees))
    while stack:
        tree = stack.pop()
        if id(tree) in seen:
            continue
        seen.add(id(tree))
        if is_leaf(tree) or is_one(tree):
            unique[tree] = None
        else:
            stack.extend(reversed(children(tree)))
    return tuple(unique)


def has_old(tree: Tree) -> bool:
    """Tell whether a tree depends on the old value of a merge."""
    return any(isinstance(part, Old) for part in walk_tree(tree))


def first_line(tree: Tree) -> int:
    """Return the line of a value, or of the first of its parts with a line."""
    return next((part.line for part in walk_tree(tree) if part.line), 0)
