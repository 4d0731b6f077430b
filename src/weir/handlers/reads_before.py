"""Reads that stand in code which becomes a function (`outlining.py`) are made before it.

A read has no effect, so it may be made early if its key is known there: if it is made of columns
and variables that the code does not set. The list that a comprehension goes through is evaluated
in any case, so whatever stands in it is.
"""

from __future__ import annotations

import ast
import copy
from typing import Generic, TypeAlias, TypeVar

from weir.handlers.bindings import argument_names, assigned_names
from weir.handlers.declarations import State
from weir.handlers.execution import Execution
from weir.handlers.frames import Frame

_Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"
SyntaxPart = TypeVar("SyntaxPart", bound=ast.AST)


def reads_before(run: Execution, frame: Frame, node: SyntaxPart) -> SyntaxPart:
    """Make the reads of some code before it, where that is the same: keys that are columns."""
    if not run.touches(frame, [node]).reads:
        return node
    return _ReadsBefore(run, frame, node).changed


def _comprehensions(node: ast.AST) -> list[_Comprehension]:
    """Return the comprehensions whose first list is evaluated in any case."""
    nodes = node.args if isinstance(node, ast.Call) else [node]
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return [n for n in nodes if isinstance(n, kinds)]


class _ReadsBefore(ast.NodeTransformer, Generic[SyntaxPart]):
    """Puts variables in the place of `state.get(key)`."""

    def __init__(self, run: Execution, frame: Frame, node: SyntaxPart) -> None:
        self._run, self._frame = run, frame
        self._own = {
            name
            for n in ast.walk(node)
            for name in (
                assigned_names([n]) if not isinstance(n, ast.Lambda) else argument_names(n.args)
            )
        }
        copied = copy.deepcopy(node)
        for inner in _comprehensions(copied):
            first = inner.generators[0]
            if run.touches(frame, [first.iter]).accesses:
                first.iter = self._read(first.iter)
        made = self.visit(copied)
        assert isinstance(made, type(node))
        self.changed: SyntaxPart = made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[key]):
                is_state = isinstance(self._frame.thing(name), State)
                if is_state and not node.keywords and self._is_known(key):
                    return self._read(node)
        return self.generic_visit(node)

    def _is_known(self, key: ast.expr) -> bool:
        """Tell whether a key is made of columns and variables that the code does not set."""
        plain = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.Load)
        if not all(isinstance(n, plain) for n in ast.walk(key)):
            return False
        return not any(isinstance(n, ast.Name) and n.id in self._own for n in ast.walk(key))

    def _read(self, node: ast.expr) -> ast.Name:
        name = f"read {len(self._run.accesses)}"
        found = self._run.value(self._frame, node)
        self._frame.local_names |= {name}
        self._frame.variables[name] = found
        return ast.copy_location(ast.Name(name, ast.Load()), node)
