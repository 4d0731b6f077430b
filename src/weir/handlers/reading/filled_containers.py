"""The types of lists and dicts that a handler makes and then fills.

Rules
1. A variable that stands for a list has the type of all that is appended to it. One that stands for
   a dict, which no column holds, has the type of its keys (`Opaque.keys`).
2. Where something is put in whose type is not known, nor is the container's; of a dict that code
   gets hold of which is not read, no types are known either.
3. A type says only what a column needs that takes the value: what does not fit there fails when it
   is emitted.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from weir.events.types import NULL
from weir.handlers.reading.execution import Execution
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, as_tree
from weir.handlers.trees.static_types import widened
from weir.handlers.trees.values import Op, Opaque


def held(frame: Frame, node: ast.expr) -> Symbol | None:
    """Return what a variable stands for, if an expression is one."""
    home = frame.binds(node.id) if isinstance(node, ast.Name) else None
    return None if home is None or not isinstance(node, ast.Name) else home.variables.get(node.id)


def fill_by_call(
    run: Execution, frame: Frame, node: ast.Call, before: Symbol | None, args: Sequence[Symbol]
) -> None:
    """Note what a method puts into a list or dict, which `before` the call was this symbol."""
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
    """Note the key of what is put into a dict by `of[key] = …`."""
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
    keys, listed = _keys_of(before), run.type_of(before)
    if keyed and keys is not None:
        keys, listed = widened(keys, dtype), None
    elif not keyed and listed is not None and pa.types.is_list(listed):
        inner = widened(listed.value_type, dtype)
        keys, listed = None, None if inner is None else pa.list_(inner)
    else:
        return
    filled = home.variables[of.id]
    if filled is before or filled in run.handed_on or not isinstance(filled, Opaque):
        filled = run.opaque(of, "it is filled")
    home.variables[of.id] = replace(filled, type=listed, keys=keys)


def _keys_of(symbol: Symbol) -> pa.DataType | None:
    """Return the type of a dict's keys, NULL if it has none yet; None for what may be no dict."""
    match symbol:
        case Op(name="dict", args=()):
            return NULL
        case Opaque(keys=keys):
            return keys
    return None


def element_type(run: Execution, over: Symbol) -> pa.DataType | None:
    """Return the type of what a loop over a value gives, if it is known."""
    tree = as_tree(over)
    if isinstance(tree, Opaque) and tree.keys is not None:
        return tree.keys
    dtype = None if tree is None else run.static_type(tree)
    if dtype is None:
        return None
    return dtype.value_type if pa.types.is_list(dtype) else dtype if dtype == pa.string() else None
