"""Infers the types of lists and dicts that a handler makes and then fills.

Rules
1. A variable that is set to an empty list has the type of everything that is put into it later. One
   that is set to an empty dict, which no column can hold, has the type of the keys
   (`Opaque.elements`).
2. This holds as long as no other code can have filled the container: no other variable stands for
   it, and it was not passed to code that is not read. If the type of something put in is not known,
   the container's type is not known either.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from weir.events.types import NULL
from weir.handlers.reading.execution import Execution
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, WrittenOut, as_tree
from weir.handlers.trees.static_types import widened
from weir.handlers.trees.values import Op, Opaque


def held(run: Execution, frame: Frame, node: ast.expr) -> Symbol | None:
    """Return what a variable stands for, if no other variable stands for the same.

    Return None if the expression is not a variable.
    """
    home = frame.binds(node.id) if isinstance(node, ast.Name) else None
    if home is None or not isinstance(node, ast.Name) or node.id not in home.variables:
        return None
    symbol = home.variables[node.id]
    for other in run.frames:
        for name, held_there in other.variables.items():
            if (other is not home or name != node.id) and _holds(held_there, symbol):
                return None
    return symbol


def _holds(symbol: Symbol, part: Symbol) -> bool:
    if isinstance(symbol, WrittenOut):
        return symbol is part or any(_holds(one, part) for one in symbol.parts)
    return symbol is part


def fill_by_call(
    run: Execution, frame: Frame, node: ast.Call, before: Symbol | None, args: Sequence[Symbol]
) -> None:
    """Note what a method puts into a list or dict.

    `before` is its symbol before the call.
    """
    match node.func, args:
        case ast.Attribute(value=of, attr="append"), [x]:
            _fill(run, frame, of, before, run.type_of(x), keyed=False)
        case ast.Attribute(value=of, attr="insert"), [_, x]:
            _fill(run, frame, of, before, run.type_of(x), keyed=False)
        case ast.Attribute(value=of, attr="extend"), [xs]:
            _fill(run, frame, of, before, element_type(run, xs), keyed=False)
        case ast.Attribute(value=of, attr="setdefault"), [key, *_]:
            _fill(run, frame, of, before, run.type_of(key), keyed=True)


def fill_by_key(
    run: Execution, frame: Frame, of: ast.expr, before: Symbol | None, key: Symbol
) -> None:
    """Note the key in `of[key] = …`, where `of` is a dict."""
    _fill(run, frame, of, before, run.type_of(key), keyed=True)


def _fill(
    run: Execution,
    frame: Frame,
    of: ast.expr,
    before: Symbol | None,
    dtype: pa.DataType | None,
    *,
    keyed: bool,
) -> None:
    home = frame.binds(of.id) if isinstance(of, ast.Name) else None
    if home is None or before is None or not isinstance(of, ast.Name):
        return
    inner, is_new = _inside(run, before, keyed=keyed)
    if inner is None:
        return
    new = widened(inner, dtype)
    filled = home.variables[of.id]
    if filled is before or filled in run.handed_on or not isinstance(filled, Opaque):
        filled = run.opaque(of, "it is filled")
    listed = None if new is None or keyed else pa.list_(new)
    home.variables[of.id] = replace(filled, type=listed, elements=new if is_new else None)


def _inside(run: Execution, symbol: Symbol, *, keyed: bool) -> tuple[pa.DataType | None, bool]:
    """Return a list's element type or a dict's key type, and whether it was filled one by one.

    The type is NULL if there are none yet, and None if it may be something else.
    """
    match symbol:
        case Opaque(type=listed, elements=elements) if elements is not None:
            return (elements if keyed == (listed is None) else None), True
        case Op(name="dict", args=()) if keyed:
            return NULL, True
        case WrittenOut(kind="list", parts=()) if not keyed:
            return NULL, True
    listed = None if keyed else run.type_of(symbol)
    if listed is None or not pa.types.is_list(listed):
        return None, False
    return listed.value_type, False


def element_type(run: Execution, over: Symbol) -> pa.DataType | None:
    """Return the type of the elements in a loop over a value, if it is known."""
    tree = as_tree(over)
    if isinstance(tree, Opaque) and tree.elements is not None:
        return tree.elements
    dtype = None if tree is None else run.static_type(tree)
    if dtype is None:
        return None
    return dtype.value_type if pa.types.is_list(dtype) else dtype if dtype == pa.string() else None
