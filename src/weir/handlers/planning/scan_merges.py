"""Turns a handler's merge into a merge of a scan: its kind, and what its arguments must be.

A merge function that is a ready-made merge is recognised; any other is called. A function counts as
`add`, `max` or `min` only if it gives the same for all values. That is so on ints (and on texts,
for max and min). It is not so on floats: their sum depends on the order, and NaN is not ordered.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BIGINT, DOUBLE, INT, STRING
from weir.handlers.columns.column_values import lowered
from weir.handlers.columns.python_code import TreeFunction
from weir.handlers.trees.accesses import MergeAccess
from weir.handlers.trees.scope import Scope, at, first_line, has_old, is_leaf, leaves
from weir.handlers.trees.static_types import as_number, static_type, type_of
from weir.handlers.trees.tree_text import tree_text
from weir.handlers.trees.values import Const, Old, Op, Python, Tree, children
from weir.plan.states import MERGE_TRAITS, Cell, MergeFunction, MergeKind


@dataclass(frozen=True, slots=True)
class MergeForm:
    """The kind of a merge and its arguments, each with the type of its column."""

    kind: MergeKind
    args: tuple[tuple[Tree, pa.DataType], ...]
    k: int = 0
    function: MergeFunction | None = None


def merge_form(merge: MergeAccess, cell: Cell, scope: Scope) -> MergeForm:
    """Return the form of a merge in a scan; PlanError if the state cannot take the merge."""
    where = at(scope, merge.line)
    if merge.kind == "call":
        assert merge.new is not None
        kind, args, function = recognised(merge.new, cell.type, scope)
        types = [_own_type(tree, scope, where) if kind == "call" else cell.type for tree in args]
        return MergeForm(kind, tuple(zip(args, types, strict=True)), function=function)
    if MERGE_TRAITS[merge.kind].of_elements:
        element = ((merge.args[0], cell.type.value_type),)
        return MergeForm(merge.kind, element, _largest(merge, where))
    return MergeForm(merge.kind, ((merge.args[0], cell.type),))


def _own_type(tree: Tree, scope: Scope, where: str) -> pa.DataType:
    dtype = type_of(tree, scope)
    if dtype is None:
        raise PlanError(
            f"{where}: the type of {tree_text(tree)}, which a merge's function uses, is not known",
            hint="annotate the result of the function that gives it",
        )
    return dtype


def _largest(merge: MergeAccess, where: str) -> int:
    if not MERGE_TRAITS[merge.kind].has_k:
        return 0
    k = constant_k(merge)
    if k < 1:
        raise PlanError(f"{where}: the k of `top_k` is a positive integer that is written there")
    return k


def constant_k(merge: MergeAccess) -> int:
    """Return the k of a `top_k` if it is a constant, else 0."""
    k = merge.args[1].value if isinstance(merge.args[1], Const) else None
    return k if type(k) is int else 0


_ORDERED = (BIGINT, INT, STRING)
_LARGER = {"gt": ("max", "min"), "ge": ("max", "min"), "lt": ("min", "max"), "le": ("min", "max")}


def recognised(
    new: Tree, cell_type: pa.DataType, scope: Scope
) -> tuple[MergeKind, tuple[Tree, ...], MergeFunction | None]:
    """Return a merge's kind, its arguments, and its function if it must be called."""
    new = lowered(new, scope, cell_type)
    if not has_old(new):
        return "set", (new,), None
    match new:
        case Op(name="add", args=(Old(), other) | (other, Old())) if not has_old(other):
            other_type = static_type(other, scope)
            if cell_type in (BIGINT, INT) and as_number(other_type) == BIGINT:
                return "add", (other,), None
            if cell_type == DOUBLE and as_number(other_type) is not None:
                number = other if other_type == DOUBLE else Python(float, (other,), line=other.line)
                function = _function(new, (other,), scope, step="add_float")
                return "call", (number,), function
        case Op(name="sub", args=(Old(), Const(value=int() as value))):
            if cell_type in (BIGINT, INT):
                return "add", (Const(-value, line=new.line),), None
    if cell_type in _ORDERED:
        extreme = _extreme(new, cell_type, scope)
        if extreme is not None:
            return *extreme, None
    args = _arguments(new, scope)
    return "call", args, _function(new, args, scope)


def _extreme(
    new: Tree, cell_type: pa.DataType, scope: Scope
) -> tuple[MergeKind, tuple[Tree, ...]] | None:
    """Recognise `max(old, x)`, `x if x > old else old` and similar forms."""
    kind, other = "", Tree()
    match new:
        case Python(function=function, args=(Old(), x) | (x, Old()), keywords=()):
            kind = "max" if function is max else "min" if function is min else ""
            other = x
        case Op(name="if", args=(Op(name=name, args=(a, b)), then, otherwise)) if name in _LARGER:
            if {a, b} == {then, otherwise} and Old() in (a, b) and a != b:
                kind = _LARGER[name][then != a]
                other = b if a == Old() else a
    if not kind or has_old(other):
        return None
    other_type = static_type(other, scope)
    same = other_type == STRING if cell_type == STRING else other_type in (BIGINT, INT)
    return (("max" if kind == "max" else "min"), (other,)) if same else None


def _arguments(new: Tree, scope: Scope) -> tuple[Tree, ...]:
    """Return the largest parts of a merge's result that can be arguments.

    They do not use the old value, are always computed, and have a type. Of other parts, the leaves
    are arguments.
    """
    arguments: list[Tree] = []

    def visit(tree: Tree, *, always: bool) -> None:
        if isinstance(tree, Const | Old):
            return
        if not has_old(tree):
            has_type = always and type_of(tree, scope) is not None and not _is_constant(tree)
            arguments.extend((tree,) if has_type or is_leaf(tree) else leaves((tree,)))
            return
        for number, child in enumerate(children(tree)):
            visit(child, always=always and (number == 0 or not _is_conditional(tree)))

    visit(new, always=True)
    return tuple(dict.fromkeys(arguments))


def _is_constant(tree: Tree) -> bool:
    return not leaves((tree,))


def _is_conditional(tree: Tree) -> bool:
    return isinstance(tree, Op) and tree.name in ("and", "or", "if")


def _function(new: Tree, args: tuple[Tree, ...], scope: Scope, step: str = "") -> MergeFunction:
    function = TreeFunction(scope.handler, scope.where, (Old(), *args), (new,))
    return MergeFunction(scope.handler, function, first_line(new), step)
