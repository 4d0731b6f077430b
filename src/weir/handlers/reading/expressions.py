"""Evaluates the expressions of a handler to symbols.

Contract
1. An expression that Python evaluates only under a condition (the right side of `and`, a branch of
   `if else`) is evaluated under that condition, which guards the reads in it.
2. An expression that does not depend on the event is evaluated at once, by Python itself.
3. An expression that is not on the list raises `NotListed`.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable
from types import ModuleType

import pyarrow as pa

from weir.events.types import DOUBLE
from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reach.static_attributes import DYNAMIC, attribute, missing_in_module
from weir.handlers.reading import comprehensions
from weir.handlers.reading.bindings import written_defaults
from weir.handlers.reading.execution import Execution, NotListed, shown
from weir.handlers.reading.frames import Frame, choice, chosen_variables
from weir.handlers.reading.symbols import (
    BoundMethod,
    Known,
    LocalFunction,
    OneOf,
    Symbol,
    TheEvent,
    Unusable,
    WrittenOut,
    known,
    negated,
    op,
    truth,
)
from weir.handlers.reading.targets import spread_out
from weir.handlers.trees.operations import NAMES
from weir.handlers.trees.tree_walks import walk_tree
from weir.handlers.trees.values import Attribute, Const, Field, Instant, Op, Python, Tree

_CONTAINERS = frozenset(("tuple", "list", "set", "dict"))


def evaluate(run: Execution, frame: Frame, node: ast.expr) -> Symbol:
    """Return what an expression stands for."""
    line = node.lineno
    match node:
        case ast.Constant(value=value):
            return Const(value, line=line)
        case ast.Name(id=name):
            return _name(run, frame, name, node)
        case ast.Attribute(value=of, attr=name):
            return _attribute(run, frame, node, of, name)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in NAMES:
            return _binary(run, frame, node, left, NAMES[type(operation)], right)
        case ast.UnaryOp(op=operation, operand=operand):
            return op(NAMES[type(operation)], run.tree(frame, operand), line=line)
        case ast.BoolOp(op=operation, values=values):
            return _logic(run, frame, isinstance(operation, ast.And), values)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(run, frame, left, [NAMES[type(o)] for o in ops], comparators)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _if(run, frame, test, body, orelse)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return _items(run, frame, "tuple" if isinstance(node, ast.Tuple) else "list", elts)
        case ast.Set(elts=elts):
            return Op("set", tuple(run.tree(frame, e) for e in elts), line=line)
        case ast.Dict(keys=keys, values=values):
            return _dict(run, frame, node, keys, values)
        case ast.Subscript(value=of, slice=index):
            return _subscript(run, frame, of, index, line)
        case ast.JoinedStr(values=values):
            return Op("join", tuple(_part(run, frame, v) for v in values), line=line)
        case ast.Call():
            return run.steps.call(run, frame, node)
        case ast.Lambda(args=arguments):
            return LocalFunction(node, frame, _defaults(run, frame, arguments))
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            if frame.binds(name) is not frame:
                raise NotListed("`:=` inside of a comprehension", node)
            frame.variables[name] = run.value(frame, value)
            return frame.variables[name]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return comprehensions.evaluate(run, frame, node)
    raise NotListed(f"`{shown(node)}` has no form in columns", node)


def under(run: Execution, frame: Frame, condition: Tree, make: Callable[[], Symbol]) -> Symbol:
    """Evaluate something only where a condition holds."""
    conditions, before = run.conditions, frame.variables
    run.conditions = (*conditions, condition)
    frame.variables = dict(before)
    result = make()
    after, run.conditions = frame.variables, conditions
    changed = any(before.get(name) is not symbol for name, symbol in after.items())
    frame.variables = chosen_variables(condition, after, before) if changed else before
    return result


# --- names ----------------------------------------------------------------------------------


def _name(run: Execution, frame: Frame, name: str, node: ast.expr) -> Symbol:
    home = frame.binds(name)
    if home is not None:
        if home.is_volatile(name):
            raise NotListed(f"`{name}` may be set by a function inside of this one", node)
        if run.deferring and home is not frame and home.is_set_after(name, node):
            raise NotListed(f"`{name}` may be set before this runs", node)
        symbol = home.variables.get(name)
        if symbol is None:
            raise NotListed(f"`{name}` may have no value", node)
        return symbol
    thing = frame.resolve(name)
    if thing is DYNAMIC:
        near = difflib.get_close_matches(name, [*frame.variables, *frame.globals], n=1)
        hint = f"did you mean `{near[0]}`?" if near else ""
        raise frame.file.error(f"`{name}` is not defined", node, hint)
    return known(thing, node.lineno, run.params)


def _defaults(run: Execution, frame: Frame, arguments: ast.arguments) -> dict[str, Symbol]:
    """Evaluate the defaults of a function's parameters, where the function is defined."""
    return {name: run.value(frame, node) for name, node in written_defaults(arguments).items()}


def local_function(run: Execution, frame: Frame, node: ast.FunctionDef) -> LocalFunction:
    """Return a function that is defined inside another."""
    return LocalFunction(node, frame, _defaults(run, frame, node.args))


def _attribute(
    run: Execution, frame: Frame, node: ast.Attribute, of: ast.expr, name: str
) -> Symbol:
    if name == "value" and isinstance(of, ast.Name) and frame.binds(of.id) is None:
        thing = frame.resolve(of.id)
        if isinstance(thing, AppParam):
            return known(thing, node.lineno, run.params)
    base = run.value(frame, of)
    match base:
        case TheEvent():
            return column(run, frame, name, node)
        case OneOf():
            raise NotListed("what it is depends on the event", node)
        case Known(thing=App() | State()) | WrittenOut() | LocalFunction() | BoundMethod():
            return BoundMethod(base, name)
        case Known(thing=thing):
            part = attribute(thing, name)
            if part is not DYNAMIC:
                return known(part, node.lineno, run.params)
            if type(thing) is ModuleType:
                message, hint = missing_in_module(thing, name)
                raise frame.file.error(message, node, hint)
            raise NotListed(f"`{shown(node)}` runs code of a property", node)
    tree = run.data(frame, base, of)
    dtype = run.static_type(tree)
    if dtype is not None and pa.types.is_struct(dtype):
        if not hasattr(dict, name):
            return Attribute(tree, name, line=node.lineno)
        if dtype.get_field_index(name) >= 0:
            message = f"`.{name}` of a struct is the method that every dict has, not the field"
            raise frame.file.error(message, node, f'write ["{name}"]')
    raise NotListed(f"the attribute `.{name}` of a value", node)


def column(run: Execution, frame: Frame, name: str, node: ast.AST) -> Symbol:
    """Return `e.name`; raise an error at once if there is no such column."""
    line = getattr(node, "lineno", 0)
    if name in ("vs", "ve"):
        return Instant(name, line=line)
    names = [n for n, _ in run.event.columns]
    if name in names:
        return Field(name, line=line)
    close = difflib.get_close_matches(name, [*names, "vs", "ve"], n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"its columns are {', '.join(names)}"
    message = f"events of `{run.event.name}` have no column `{name}`"
    raise frame.file.error(message, node, hint)


# --- operators --------------------------------------------------------------------------------


def _binary(
    run: Execution, frame: Frame, node: ast.expr, left: ast.expr, name: str, right: ast.expr
) -> Symbol:
    a, b = run.value(frame, left), run.value(frame, right)
    if (
        name == "add"
        and isinstance(a, WrittenOut)
        and isinstance(b, WrittenOut)
        and a.kind == b.kind
    ):
        return WrittenOut(a.kind, (*a.parts, *b.parts))
    return op(name, run.data(frame, a, left), run.data(frame, b, right), line=node.lineno)


def _logic(run: Execution, frame: Frame, is_and: bool, values: list[ast.expr]) -> Symbol:
    """Evaluate `and` and `or`: return an operand, and evaluate only those that Python does."""
    first, *others = values
    tree = run.tree(frame, first)
    if not others:
        return tree
    decided = truth(tree)
    if decided is not None:
        return _logic(run, frame, is_and, others) if decided == is_and else tree
    condition = tree if is_and else negated(tree)
    rest = under(run, frame, condition, lambda: _logic(run, frame, is_and, others))
    inner = run.data(frame, rest, others[0])
    name = "and" if is_and else "or"
    parts = inner.args if isinstance(inner, Op) and inner.name == name else (inner,)
    return Op(name, (tree, *parts), line=first.lineno)


def _compare(
    run: Execution, frame: Frame, left: ast.expr, names: list[str], others: list[ast.expr]
) -> Symbol:
    """Evaluate a chain of comparisons, each operand once."""

    def further(a: Tree, number: int) -> Tree:
        b = run.tree(frame, others[number])
        if names[number] in ("is", "isnot") and not (_is_single(a) or _is_single(b)):
            raise NotListed("`is` of anything but None, True and False", left)
        if names[number] in ("in", "notin", "eq", "ne") and _may_share_nan(run, a, b):
            raise NotListed("a NaN that is computed may be equal to itself, or not", left)
        first = op(names[number], a, b, line=left.lineno)
        if number + 1 == len(others):
            return first
        decided = truth(first)
        if decided is not None:
            return further(b, number + 1) if decided else first
        rest = under(run, frame, first, lambda: further(b, number + 1))
        assert isinstance(rest, Tree)
        parts = rest.args if isinstance(rest, Op) and rest.name == "and" else (rest,)
        return Op("and", (first, *parts), line=left.lineno)

    return further(run.tree(frame, left), 0)


def _may_share_nan(run: Execution, one: Tree, other: Tree) -> bool:
    """Tell whether two containers may have a NaN in common, or one that is written alike.

    Python takes an object for equal to itself, and trees do not show how often a value is computed.
    """
    if not any(isinstance(t, Op) and t.name in _CONTAINERS for t in (one, other)):
        return False
    mine = {t for t in walk_tree(one) if isinstance(t, Op) and t.name not in _CONTAINERS}
    shared = (t for t in walk_tree(other) if isinstance(t, Op) and t in mine)
    return any(run.type_of(t) in (None, DOUBLE) for t in shared)


def _is_single(tree: Tree) -> bool:
    """Tell whether a value is one of those that exist as one object only."""
    return isinstance(tree, Const) and any(tree.value is one for one in (None, True, False, ...))


def _if(run: Execution, frame: Frame, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Symbol:
    condition = run.tree(frame, test)
    decided = truth(condition)
    if decided is not None:
        return run.value(frame, body if decided else orelse)
    then = under(run, frame, condition, lambda: run.value(frame, body))
    otherwise = under(run, frame, negated(condition), lambda: run.value(frame, orelse))
    return choice(condition, then, otherwise)


# --- displays -----------------------------------------------------------------------------


def _items(run: Execution, frame: Frame, kind: str, elts: list[ast.expr]) -> Symbol:
    """Return a tuple or list that is written out; `*` of values is `tuple(values) + …`."""
    joined: Tree | None = None
    parts: list[Symbol] = []
    for elt in elts:
        if not isinstance(elt, ast.Starred):
            parts.append(run.value(frame, elt))
            continue
        line, symbol = elt.lineno, run.value(frame, elt.value)
        spread = spread_out(run, symbol, line)
        if spread is not None:
            parts += spread
            continue
        constructor = tuple if kind == "tuple" else list
        values = Python(constructor, (run.data(frame, symbol, elt),), line=line)
        before = _joined(run, frame, kind, joined, parts, elt)
        joined = values if before is None else Op("add", (before, values), line=line)
        parts = []
    if joined is None:
        return WrittenOut(kind, tuple(parts))
    whole = _joined(run, frame, kind, joined, parts, elts[0])
    assert whole is not None
    return whole


def _joined(
    run: Execution,
    frame: Frame,
    kind: str,
    joined: Tree | None,
    parts: list[Symbol],
    node: ast.AST,
) -> Tree | None:
    """Return a list with more parts after it; None if there is nothing."""
    if not parts:
        return joined
    tail = run.data(frame, WrittenOut(kind, tuple(parts)), node)
    return tail if joined is None else Op("add", (joined, tail), line=tail.line)


def _dict(
    run: Execution,
    frame: Frame,
    node: ast.Dict,
    keys: list[ast.expr | None],
    values: list[ast.expr],
) -> Symbol:
    parts: list[Tree] = []
    for key, value in zip(keys, values, strict=True):
        if key is None:
            inner = run.tree(frame, value)
            if not (isinstance(inner, Op) and inner.name == "dict"):
                raise NotListed("`**` of a dict that depends on the event", node)
            parts += inner.args
        else:
            parts += (run.tree(frame, key), run.tree(frame, value))
    return Op("dict", tuple(parts), line=node.lineno)


def _subscript(run: Execution, frame: Frame, of: ast.expr, index: ast.expr, line: int) -> Symbol:
    base = run.value(frame, of)
    if isinstance(index, ast.Slice):
        ends = [Const(None) if e is None else run.tree(frame, e) for e in _ends(index)]
        return Op("slice", (run.data(frame, base, of), *ends), line=line)
    at = run.value(frame, index)
    if isinstance(at, Const):
        parts = spread_out(run, base, line) if isinstance(base, WrittenOut | Op) else None
        if parts is not None and type(at.value) is int and -len(parts) <= at.value < len(parts):
            return parts[at.value]
    if isinstance(base, Const) and isinstance(base.value, tuple | list | dict):
        return _known_item(run, frame, base, run.data(frame, at, index), of, line)
    return op("item", run.data(frame, base, of), run.data(frame, at, index), line=line)


def _known_item(
    run: Execution, frame: Frame, base: Const, at: Tree, of: ast.expr, line: int
) -> Symbol:
    """Return an item of a global list or dict, which may contain states and functions too."""
    if isinstance(at, Const):
        container = base.value
        assert isinstance(container, tuple | list | dict)
        try:
            item: object = container[at.value]  # type: ignore[call-overload]
        except (LookupError, TypeError):  # fails at run time, if it is reached
            return Op("item", (base, at), line=line)
        return known(item, line, run.params)
    if run.touches_thing(base.value):
        held = base.value.values() if isinstance(base.value, dict) else base.value
        assert isinstance(held, Iterable)
        choices = tuple(known(thing, line, run.params) for thing in held)
        return Unusable("which one it is depends on the event", choices)
    return Op("item", (base, at), line=line)


def _ends(node: ast.Slice) -> tuple[ast.expr | None, ...]:
    return node.lower, node.upper, node.step


def _formatted(shown: Tree, how: Const, form: Tree, line: int) -> Tree:
    """Return a part of an f-string; a constant part is formatted at once."""
    plain = isinstance(shown, Const) and type(shown.value) in (str, int, float, bool)
    if plain and isinstance(shown, Const) and isinstance(form, Const) and not how.value:
        try:
            return Const(format(shown.value, str(form.value)), line=line)
        except ValueError:  # fails at run time, if it is reached
            pass
    return Op("format", (shown, how, form), line=line)


def _part(run: Execution, frame: Frame, node: ast.expr) -> Tree:
    """Return a part of an f-string."""
    match node:
        case ast.Constant(value=value):
            return Const(value, line=node.lineno)
        case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
            shown = run.tree(frame, value)
            how = Const("" if conversion < 0 else chr(conversion))
            form: Tree = Const("")
            if isinstance(spec, ast.JoinedStr):
                parts = tuple(_part(run, frame, v) for v in spec.values)
                texts = [p.value for p in parts if isinstance(p, Const)]
                plain = len(texts) == len(parts)
                form = Const("".join(map(str, texts))) if plain else Op("join", parts)
            return _formatted(shown, how, form, node.lineno)
    raise AssertionError(f"a part of an f-string is a {type(node).__name__}")
