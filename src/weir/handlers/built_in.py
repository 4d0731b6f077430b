"""Built-in functions that analysis carries out itself where their arguments are written out:
`range(3)`, `enumerate((a, b))`, `any(x in e.text for x in WORDS)`."""

from __future__ import annotations

import ast

from weir.handlers.comprehensions import any_or_all, unrolled
from weir.handlers.evaluating import column
from weir.handlers.execution import Execution
from weir.handlers.frames import Frame
from weir.handlers.symbols import Known, Symbol, TheEvent, WrittenOut, as_tree
from weir.handlers.targets import spread_out
from weir.handlers.values import Const, Python

_MOST_ROUNDS = 10_000


def call_built_in(run: Execution, frame: Frame, callee: Symbol, node: ast.Call) -> Symbol | None:
    """Return what a built-in gives, or None if the run has to call it."""
    if not isinstance(callee, Known) or node.keywords:
        return None
    function = callee.thing
    if function is getattr and len(node.args) == 2:
        return _getattr(run, frame, node)
    if function is range:
        return _range(run, frame, node)
    if function in (enumerate, zip, reversed):
        return _paired(run, frame, function, node)
    if function in (any, all, tuple, list, len, sum, min, max, sorted) and len(node.args) == 1:
        return _of_items(run, frame, function, node)
    return None


def _getattr(run: Execution, frame: Frame, node: ast.Call) -> Symbol | None:
    base, name = run.value(frame, node.args[0]), run.value(frame, node.args[1])
    if isinstance(base, TheEvent) and isinstance(name, Const) and isinstance(name.value, str):
        return column(run, frame, name.value, node)
    return None


def _range(run: Execution, frame: Frame, node: ast.Call) -> Symbol | None:
    ends = [run.value(frame, a) for a in node.args]
    numbers = [e.value for e in ends if isinstance(e, Const) and type(e.value) is int]
    if len(numbers) < len(ends) or not 1 <= len(numbers) <= 3 or numbers[2:] == [0]:
        return None
    made = range(*numbers)
    return Const(made, line=node.lineno) if len(made) <= _MOST_ROUNDS else None


def _paired(run: Execution, frame: Frame, function: object, node: ast.Call) -> Symbol | None:
    if any(isinstance(a, ast.GeneratorExp | ast.Starred) for a in node.args):
        return None
    before = len(run.accesses)
    lists = [spread_out(run, run.value(frame, a), node.lineno) for a in node.args]
    known = [one for one in lists if one is not None]
    if len(known) < len(lists) or not known or (function is not zip and len(known) != 1):
        del run.accesses[before:]
        return None
    if function is reversed:
        return WrittenOut("list", tuple(reversed(known[0])))
    if function is enumerate:
        numbers: list[Symbol] = [Const(n) for n in range(len(known[0]))]
        known = [numbers, known[0]]
    return WrittenOut(
        "list", tuple(WrittenOut("tuple", parts) for parts in zip(*known, strict=False))
    )


def _of_items(run: Execution, frame: Frame, function: object, node: ast.Call) -> Symbol | None:
    """Run a function of one list that is written out."""
    (arg,) = node.args
    before = len(run.accesses)
    if isinstance(arg, ast.GeneratorExp):
        items = unrolled(run, frame, arg)
    elif isinstance(arg, ast.Starred):
        return None
    else:
        items = run.value(frame, arg)
    if not isinstance(items, WrittenOut):
        del run.accesses[before:]
        return None
    if function is len:
        return Const(len(items.parts), line=node.lineno)
    if function is tuple or function is list:
        return WrittenOut("tuple" if function is tuple else "list", items.parts)
    tree = as_tree(items, node.lineno)
    if tree is None:
        del run.accesses[before:]
        return None
    if (function is any or function is all) and items.parts:
        parts = tuple(run.data(frame, part, node) for part in items.parts)
        return any_or_all(function is all, parts, node.lineno)
    assert callable(function)
    return Python(function, (tree,), line=node.lineno)
