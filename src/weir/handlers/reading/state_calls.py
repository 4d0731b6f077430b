"""Calls that make accesses: the methods of states, and `app.emit`."""

from __future__ import annotations

import ast
import difflib

import pyarrow as pa

from weir.events.types import is_numeric, type_name
from weir.handlers.api.declarations import MERGES, State
from weir.handlers.reading.arguments import CallArguments, called_with
from weir.handlers.reading.execution import Execution
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, WrittenOut, op
from weir.handlers.trees.scope import has_old
from weir.handlers.trees.values import Const, Old, Op, Opaque, Tree


def call_state(run: Execution, frame: Frame, state: State, method: str, node: ast.Call) -> Symbol:
    """Run `state.get(key)` or a merge."""
    if method != "get" and method not in MERGES:
        close = difflib.get_close_matches(method, ["get", *MERGES], n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"there are get, {', '.join(MERGES)}"
        raise frame.file.error(f"states have no method `{method}`", node, hint)
    if method != "get" and run.merging is not None:
        message = f"`{state.name}` is merged inside of a merge function of `{run.merging.name}`"
        raise frame.file.error(message, node, "merge it before or after")
    _check_type(state, method, frame, node)
    arguments = _named(state, method, called_with(run, frame, node), frame, node)
    key = key_columns(run, frame, arguments["key"], node)
    if len(key) == 1 and isinstance(key[0], Opaque) and state.keys is not None:
        key = run.key_parts(key[0], len(state.keys), node)
    if state.keys is not None and len(state.keys) != len(key):
        message = f"the key of `{state.name}` has {len(state.keys)} parts, not {len(key)}"
        raise frame.file.error(message, node, "as app.state(…, key=…) says")
    if method == "get":
        _check_key(run, frame, state, key, node)
        return run.read(state, key, node)
    if method == "merge":
        new = _merged(run, frame, state, arguments["function"], node)
        run.merge(state, key, "call", (), new, node)
    else:
        args = [run.data(frame, s, node) for name, s in arguments.items() if name != "key"]
        if MERGES[method].has_k:
            _check_k(args[1], frame, node)
        run.merge(state, key, MERGES[method].kind, tuple(args), None, node)
    return Const(None, line=node.lineno)


def _check_type(state: State, method: str, frame: Frame, node: ast.AST) -> None:
    """Refuse a merge that the state's type does not support."""
    dtype, of = state.type, "values" if method == "get" else MERGES[method].of
    if of in ("elements", "ordered elements") and not pa.types.is_list(dtype):
        expected, hint = (
            "a LIST type",
            f"app.state('{state.name}', default=[], type='LIST(BIGINT)')",
        )
    elif of == "numbers" and not is_numeric(dtype):
        expected, hint = "numbers", f"{state.name}.merge(key, lambda old: …) takes any type"
    elif of == "ordered values" and pa.types.is_nested(dtype):
        expected, hint = "ordered values", f"{state.name}.merge(key, lambda old: …) takes any type"
    elif of == "ordered elements" and pa.types.is_nested(dtype.value_type):
        expected, hint = "a LIST of ordered values", "keep what they are ordered by"
    else:
        return
    message = f"`{method}` is for states of {expected}, and `{state.name}` is {type_name(dtype)}"
    raise frame.file.error(message, node, hint)


def _named(
    state: State, method: str, call: CallArguments, frame: Frame, node: ast.AST
) -> dict[str, Symbol]:
    names = ("key",) if method == "get" else ("key", *MERGES[method].takes)
    arguments = dict(zip(names, call.plain, strict=False)) | dict(call.keywords)
    if len(call.plain) + len(call.keywords) != len(names) or set(arguments) != set(names):
        shown = f"{state.name}.{method}({', '.join(names)})"
        raise frame.file.error(f"{state.name}.{method}() takes other arguments", node, shown)
    return arguments


def key_columns(run: Execution, frame: Frame, key: Symbol, node: ast.AST) -> tuple[Tree, ...]:
    """Return the columns of a key, several if it is a tuple."""
    line = getattr(node, "lineno", 0)
    match key:
        case WrittenOut(kind="tuple", parts=parts):
            return tuple(run.data(frame, part, node) for part in parts)
        case Const(value=tuple() as parts):
            return tuple(Const(part, line=line) for part in parts)
        case Op(name="tuple", args=parts):
            return parts
        case Op(name="if", args=(condition, then, otherwise)):
            first = key_columns(run, frame, then, node)
            second = key_columns(run, frame, otherwise, node)
            if len(first) == len(second) and len(first) > 1:
                pairs = zip(first, second, strict=True)
                return tuple(op("if", condition, a, b, line=line) for a, b in pairs)
            if len(first) != len(second):
                message = f"the key has {len(first)} parts or {len(second)}, by the event"
                raise frame.file.error(message, node)
    return (run.data(frame, key, node),)


def _check_key(
    run: Execution, frame: Frame, state: State, key: tuple[Tree, ...], node: ast.AST
) -> None:
    if run.merging is not None and any(has_old(part) for part in key):
        message = f"the key of `{state.name}.get()` depends on the old value that is merged"
        hint = f"read `{run.merging.name}` with get() before the merge, and use that"
        raise frame.file.error(message, node, hint)


def _merged(run: Execution, frame: Frame, state: State, function: Symbol, node: ast.Call) -> Tree:
    """Return the result of a merge function for `Old`."""
    before, run.merging = run.merging, state
    try:
        old = Old(line=node.lineno)
        result = run.steps.apply(run, frame, function, [old], node)
    finally:
        run.merging = before
    return run.data(frame, result, node)


def _check_k(k: Tree, frame: Frame, node: ast.AST) -> None:
    if not (isinstance(k, Const) and type(k.value) is int and k.value > 0):
        message = "the number of top_k is a constant, at least 1"
        raise frame.file.error(message, node, "top_k(key, x, 10)")


def call_app(run: Execution, frame: Frame, method: str, node: ast.Call) -> Symbol:
    """Run `app.emit(name, field=value, …)`."""
    if method != "emit":
        close = difflib.get_close_matches(method, ["emit"], n=1)
        hint = f"did you mean `{close[0]}`?" if close else "app.emit(…) emits rows"
        raise frame.file.error(f"app.{method}() inside of a handler", node, hint)
    if run.merging is not None:
        message = f"app.emit() inside of a merge function of `{run.merging.name}`"
        raise frame.file.error(message, node, "emit before or after the merge")
    arguments = called_with(run, frame, node)
    match arguments.plain:
        case (Const(value=str() as name),):
            pass
        case _:
            hint = 'app.emit("spam", message=e.id)'
            raise frame.file.error("app.emit() takes a name, then fields by name", node, hint)
    check_fields(run, frame, name, list(arguments.keywords), node)
    fields = [(n, run.data(frame, s, node)) for n, s in arguments.keywords.items()]
    run.emit(name, fields, node)
    return Const(None, line=node.lineno)


def check_fields(run: Execution, frame: Frame, name: str, fields: list[str], node: ast.AST) -> None:
    """Refuse fields that an emitted stream cannot have."""
    declared = run.app.emit_declarations.get(name)
    if not fields and declared is None:
        raise frame.file.error(f"what is emitted as `{name}` has no fields", node)
    for field in fields:
        if field in ("vs", "ve"):
            message = f"a field cannot be called `{field}`: emitted rows have the event's lifetime"
            raise frame.file.error(message, node)
        names = [] if declared is None else [n for n, _ in declared.columns]
        if declared is not None and field not in names:
            close = difflib.get_close_matches(field, names, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"they are {', '.join(names)}"
            message = f"app.emits() declares no column `{field}` for `{name}`"
            raise frame.file.error(message, node, hint)
