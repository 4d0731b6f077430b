"""The type of a comprehension is that of one round: `sum(i * 2 for i in e.nums)` is a sum of values
like `e.nums[0] * 2`.

A comprehension over values is called as it is (`outlining.py`), as a function of some arguments.
What stands here is never computed: only its type is asked for.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from weir.errors import PlanError
from weir.handlers.execution import Execution, NotAccesses
from weir.handlers.frames import Frame
from weir.handlers.scope import is_leaf
from weir.handlers.values import Field, Old, Op, Python, Tree, bottom_up, children

_FOLDS = (sum, min, max, any, all, len, sorted, list, tuple)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)


def round_of(run: Execution, frame: Frame, node: ast.expr, args: Sequence[Tree]) -> Tree | None:
    """Return a value that has the type of a comprehension, or of a built-in function's call with
    one, over `Field("0")`, `Field("1")` … in the place of its arguments; None if that is not known.
    """
    match node:
        case ast.ListComp() | ast.GeneratorExp():
            return _over(_listed(run, frame, node), args)
        case ast.Call(func=ast.Name(id=name), args=[ast.ListComp() | ast.GeneratorExp() as inner]):
            function: Any = frame.resolve(name) if frame.binds(name) is None else None
            if any(function is fold for fold in _FOLDS) and not node.keywords:
                listed = _listed(run, frame, inner)
                called = None if listed is None else Python(function, (listed,), line=node.lineno)
                return _over(called, args)
    return None


def _listed(run: Execution, frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Tree | None:
    """Return the list of one round, whose elements are the first ones."""
    if any(isinstance(part, _SCOPES) for part in ast.walk(node) if part is not node):
        return None  # names may mean something else there
    element = copy.deepcopy(node.elt)
    for generator in reversed(node.generators):
        if not isinstance(generator.target, ast.Name):
            return None
        first = ast.Subscript(generator.iter, ast.Constant(0), ast.Load())
        element = _Put(generator.target.id, ast.copy_location(first, generator.iter)).visit(element)
    done, checks = len(run.accesses), len(run.checks)
    try:
        with run.attempt(frame):
            value = run.tree(frame, ast.fix_missing_locations(element))
    except (NotAccesses, PlanError):  # what is wrong with the code itself is said by who runs it
        return None
    del run.accesses[done:], run.checks[checks:]
    return Op("list", (value,), line=node.lineno)


def _over(tree: Tree | None, args: Sequence[Tree]) -> Tree | None:
    if tree is None:
        return None
    places = {arg: Field(str(number)) for number, arg in enumerate(args)}
    made: dict[int, Tree] = {}
    for part in bottom_up(tree, given=places):
        if part in places:
            made[id(part)] = places[part]
        elif is_leaf(part) or isinstance(part, Old):
            return None
        else:
            below = [made[id(child)] for child in children(part)]
            made[id(part)] = type(part).made(below, line=part.line, **part.named())
    return made[id(tree)]


class _Put(ast.NodeTransformer):
    """Puts an expression in the place of a variable."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self._value) if node.id == self._name else node
