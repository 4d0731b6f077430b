"""Built-in functions that analysis runs itself if their arguments are written out.

Examples are `range(3)`, `enumerate((a, b))`, `any(x in e.text for x in WORDS)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from weir.handlers.reading.column_constructs import is_plain_constant
from weir.handlers.reading.comprehensions import any_or_all, over_values, unrolled
from weir.handlers.reading.execution import Execution, NotListed
from weir.handlers.reading.expressions import column, under
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import (
    ITERATOR,
    Known,
    Symbol,
    TheEvent,
    WrittenOut,
    as_tree,
    negated,
    truth,
)
from weir.handlers.reading.targets import bind, spread_out
from weir.handlers.trees.values import Const, Op, Python, Tree

_MOST_ROUNDS = 10_000


def call_built_in(run: Execution, frame: Frame, callee: Symbol, node: ast.Call) -> Symbol | None:
    """Return the result of a built-in, or None if it is called like any other function.

    With None, nothing has been evaluated.
    """
    if not isinstance(callee, Known) or node.keywords:
        return None
    function = callee.thing
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return None
    if function is getattr and len(node.args) == 2:
        return _getattr(run, frame, callee, node)
    if function is isinstance and len(node.args) == 2:
        return _isinstance(run, frame, callee, node)
    if function is range:
        return _range(run, frame, callee, node)
    if function in (enumerate, zip, reversed):
        return _paired(run, frame, function, node)
    if function in (any, all) and len(node.args) == 1:
        (arg,) = node.args
        if isinstance(arg, ast.GeneratorExp):
            return _any_round(run, frame, arg, is_all=function is all)
    if function in (any, all, tuple, list, len, sum, min, max, sorted) and len(node.args) == 1:
        return _of_items(run, frame, callee, node)
    return None


def _getattr(run: Execution, frame: Frame, callee: Known, node: ast.Call) -> Symbol:
    base, name = run.value(frame, node.args[0]), run.value(frame, node.args[1])
    if isinstance(base, TheEvent) and isinstance(name, Const) and isinstance(name.value, str):
        return column(run, frame, name.value, node)
    return run.steps.apply(run, frame, callee, [base, name], node)


def _isinstance(run: Execution, frame: Frame, callee: Known, node: ast.Call) -> Symbol:
    value, kind = run.tree(frame, node.args[0]), run.value(frame, node.args[1])
    parts = kind.parts if isinstance(kind, WrittenOut) else (kind,)
    kinds = [part.thing for part in parts if isinstance(part, Known)]
    if len(kinds) < len(parts) or not all(map(is_plain_constant, kinds)):
        return run.steps.apply(run, frame, callee, [value, kind], node)
    constant = Const(tuple(kinds), line=node.lineno)
    return Python(isinstance, (value, constant), line=node.lineno)


def _range(run: Execution, frame: Frame, callee: Known, node: ast.Call) -> Symbol:
    ends = [run.value(frame, a) for a in node.args]
    numbers = [e.value for e in ends if isinstance(e, Const) and type(e.value) is int]
    if len(numbers) == len(ends) and 1 <= len(numbers) <= 3 and numbers[2:] != [0]:
        written = range(*numbers)
        if len(written) <= _MOST_ROUNDS:
            return Const(written, line=node.lineno)
    return run.steps.apply(run, frame, callee, ends, node)


def _paired(run: Execution, frame: Frame, function: object, node: ast.Call) -> Symbol:
    if any(isinstance(a, ast.GeneratorExp) for a in node.args):
        raise NotListed("an iterator over a generator", node)
    values = [run.value(frame, a, consumed=function is not reversed) for a in node.args]
    lists = [spread_out(run, value, node.lineno) for value in values]
    written = [one for one in lists if one is not None]
    if len(written) < len(lists) or not written or (function is not zip and len(written) != 1):
        raise NotListed("an iterator over values of the event", node)
    if function is reversed:
        return WrittenOut(ITERATOR, tuple(reversed(written[0])))
    if function is enumerate:
        numbers: list[Symbol] = [Const(n) for n in range(len(written[0]))]
        written = [numbers, written[0]]
    pairs = (WrittenOut("tuple", parts) for parts in zip(*written, strict=False))
    return WrittenOut(ITERATOR, tuple(pairs))


def _any_round(run: Execution, frame: Frame, node: ast.GeneratorExp, *, is_all: bool) -> Symbol:
    """Return `any` or `all` of a generator over constants; stop where Python stops."""
    if len(node.generators) != 1:
        raise NotListed("a generator over several lists", node)
    (generator,) = node.generators
    before = run.point(frame)
    elements = spread_out(run, run.value(frame, generator.iter, consumed=True), node.lineno)
    if elements is None:
        run.take_back(frame, before)
        return over_values(run, frame, node, all if is_all else any)
    home = Frame(
        frame.name,
        frame.file,
        frozenset(_names(generator.target)),
        frame.resolve,
        frame.globals,
        frame,
    )
    left = list(elements)

    def further() -> Tree:
        while left:
            bind(run, home, generator.target, left.pop(0), node)
            kept = [truth(run.tree(home, test)) for test in generator.ifs]
            if None in kept:
                raise NotListed("a condition on values of the event", node)
            if all(kept):
                break
        else:
            return Const(is_all, line=node.lineno)
        test = run.tree(home, node.elt)
        decided = truth(test)
        if decided is not None and decided != is_all:
            return Const(decided, line=node.lineno)
        if not left:
            return test
        condition = test if is_all else negated(test)
        rest = under(run, home, condition, further) if decided is None else further()
        tree = as_tree(rest)
        assert tree is not None
        return tree if decided is not None else Op("and" if is_all else "or", (test, tree))

    return any_or_all(is_all, (further(),), node.lineno)


def _fold(
    run: Execution, frame: Frame, function: Callable[..., object], node: ast.GeneratorExp
) -> Symbol:
    """Return the call of a function on a generator over values of the event."""
    if function is len:
        raise NotListed("`len` of a generator", node)
    listed = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
    return Python(function, (over_values(run, frame, listed),), line=node.lineno)


def _names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _of_items(run: Execution, frame: Frame, callee: Known, node: ast.Call) -> Symbol:
    """Run a function of one argument, a list that is written out."""
    function, (arg,) = callee.thing, node.args
    items = unrolled(run, frame, arg) if isinstance(arg, ast.GeneratorExp) else None
    if items is None:
        if isinstance(arg, ast.GeneratorExp):
            assert callable(function)
            return _fold(run, frame, function, arg)
        items = run.value(frame, arg, consumed=True)
    if not isinstance(items, WrittenOut):
        return run.steps.apply(run, frame, callee, [items], node)
    if function is len and items.kind != ITERATOR:
        return Const(len(items.parts), line=node.lineno)
    if function is tuple or function is list:
        return WrittenOut("tuple" if function is tuple else "list", items.parts)
    tree = as_tree(WrittenOut("list", items.parts), node.lineno)
    if tree is None or function is len:
        raise NotListed("a list of something that is not data", node)
    if (function is any or function is all) and items.parts:
        parts = tuple(run.data(frame, part, node) for part in items.parts)
        return any_or_all(function is all, parts, node.lineno)
    assert callable(function)
    return Python(function, (tree,), line=node.lineno)
