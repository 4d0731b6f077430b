"""Merge functions that are a ready-made merge are recognised; the others are called.

A function counts as `add`, `max` or `min` only where it is equal to it for all values: on ints (and
texts, for max and min), never on floats, whose sum depends on the order and whose NaN is less than
nothing.
"""

from __future__ import annotations

import pyarrow as pa

from weir.events.types import BIGINT, DOUBLE, INT, STRING
from weir.handlers.columns import lowered
from weir.handlers.python_code import TreeFunction
from weir.handlers.scope import Scope, first_line, has_old, is_leaf, leaves
from weir.handlers.static_types import as_number, static_type, type_of
from weir.handlers.values import Const, Old, Op, Python, Tree, children
from weir.plan.states import MergeFunction, MergeKind

_ORDERED = (BIGINT, INT, STRING)
_LARGER = {"gt": ("max", "min"), "ge": ("max", "min"), "lt": ("min", "max"), "le": ("min", "max")}


def recognised(
    new: Tree, cell_type: pa.DataType, scope: Scope
) -> tuple[MergeKind, tuple[Tree, ...], MergeFunction | None]:
    """Return a merge's kind, its arguments, and its function if it has to be called."""
    new = lowered(new, scope, cell_type)
    if not has_old(new):
        return "set", (new,), None
    match new:
        case Op(name="add", args=(Old(), other) | (other, Old())) if not has_old(other):
            found = static_type(other, scope)
            if cell_type in (BIGINT, INT) and as_number(found) == BIGINT:
                return "add", (other,), None
            if cell_type == DOUBLE and as_number(found) is not None:
                number = other if found == DOUBLE else Python(float, (other,), line=other.line)
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
    """Recognise `max(old, x)`, `x if x > old else old` and their kin."""
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
    found = static_type(other, scope)
    same = found == STRING if cell_type == STRING else found in (BIGINT, INT)
    return (("max" if kind == "max" else "min"), (other,)) if same else None


def _arguments(new: Tree, scope: Scope) -> tuple[Tree, ...]:
    """Return the largest parts without the old value that are computed in any case and have a
    type; of others, the leaves."""
    found: list[Tree] = []

    def visit(tree: Tree, *, always: bool) -> None:
        if isinstance(tree, Const | Old):
            return
        if not has_old(tree):
            known = always and type_of(tree, scope) is not None and not _is_constant(tree)
            found.extend((tree,) if known or is_leaf(tree) else leaves((tree,)))
            return
        for number, child in enumerate(children(tree)):
            visit(child, always=always and (number == 0 or not _is_conditional(tree)))

    visit(new, always=True)
    return tuple(dict.fromkeys(found))


def _is_constant(tree: Tree) -> bool:
    return not leaves((tree,))


def _is_conditional(tree: Tree) -> bool:
    return isinstance(tree, Op) and tree.name in ("and", "or", "if")


def _function(new: Tree, args: tuple[Tree, ...], scope: Scope, step: str = "") -> MergeFunction:
    made = TreeFunction(scope.handler, scope.where, (Old(), *args), (new,))
    return MergeFunction(scope.handler, made, first_line(new), step)
