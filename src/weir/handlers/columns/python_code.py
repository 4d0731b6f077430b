"""Compiles values back to Python code with the source's lines; CPython runs it row by row.

A `TreeFunction` describes such a function; each process that calls it compiles it once.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType

from weir.handlers.columns.python_writer import Writer, locate
from weir.handlers.trees.scope import first_line
from weir.handlers.trees.values import Const, Op, Python, Tree, bottom_up, children
from weir.plan.usercode.made_functions import MadeFunction, RowLoop

_FOLDED = frozenset(("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "invert"))
_FOLDED_BITS = 256
_LOAD, _STORE = ast.Load(), ast.Store()


@dataclass(frozen=True, slots=True)
class TreeFunction(MadeFunction):
    """Computes `trees` from `parameters`: the leaves that it gets as arguments.

    It returns the value of the only tree, or a tuple of all values. With a `guard` that is not
    true, it returns None (for each tree). `shapes` has, for each tree, a function that makes its
    result fit the column, or None.
    """

    name: str
    file: str
    parameters: tuple[Tree, ...]
    trees: tuple[Tree, ...]
    guard: Tree | None = None
    shapes: tuple[Callable[[object], object] | None, ...] = ()

    def make(self) -> Callable[..., object]:
        return _compiled(self, self.lines())[0]

    def make_loop(self) -> RowLoop:
        return _compiled(self, self.lines())[1]

    def lines(self) -> tuple[int, ...]:
        return lines_of(self.trees if self.guard is None else (self.guard, *self.trees))

    def identity(self) -> tuple[object, ...]:
        guard = () if self.guard is None else (self.guard,)
        roots = *guard, *self.trees
        # The call determines the meaning of each parameter.
        numbers = {tree: number for number, tree in enumerate(self.parameters)}
        nodes: list[tuple[object, ...]] = []
        for part in bottom_up(*roots, bound=self.parameters):
            if part not in numbers:
                numbers[part] = len(self.parameters) + len(nodes)
                below = tuple(numbers[child] for child in children(part))
                nodes.append((type(part).__name__, part.own(), below))
        ends = tuple(numbers[root] for root in roots)
        return tuple(nodes), ends, len(self.parameters), len(guard), self.shapes


def lines_of(trees: Sequence[Tree]) -> tuple[int, ...]:
    """Return the lines of all parts of values, and of the functions that they call."""
    lines: list[int] = []
    for part in bottom_up(*trees):
        lines.append(part.line)
        match part:
            case Python(function=MadeFunction() as called) | Const(value=MadeFunction() as called):
                lines += called.lines()
    return tuple(lines)


@lru_cache(maxsize=4096)
def _compiled(
    function: TreeFunction, lines: tuple[int, ...]
) -> tuple[Callable[..., object], RowLoop]:
    """Compile a function; one that is equal but has other lines is compiled separately."""
    namespace: dict[str, object] = {}
    # Both write the code again, with the same names for the same constants.
    for text, define in ((_Text(function), _Text.function), (_Text(function), _Text.loop)):
        module = ast.Module([define(text)], [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # the user's code may contain `x is 1`
            code = compile(module, function.file, "exec")
        namespace |= text.writer.constants
        exec(code, namespace)
    plain, loop = namespace["row"], namespace["rows"]
    assert isinstance(plain, FunctionType) and isinstance(loop, FunctionType)
    plain.__name__ = plain.__qualname__ = function.name
    return plain, loop


class _Text:
    """Writes one definition of a function."""

    def __init__(self, function: TreeFunction) -> None:
        self._function = function
        guard = () if function.guard is None else (function.guard,)
        names = {leaf: f"v{i}" for i, leaf in enumerate(function.parameters)}
        self._parameters = list(names.values())
        self.writer = Writer((*guard, *function.trees), names)

    def function(self) -> ast.FunctionDef:
        before, result = self._result()
        return self._definition("row", self._parameters, [*before, ast.Return(result)])

    def loop(self) -> ast.FunctionDef:
        target = ast.Tuple([ast.Name(name, _STORE) for name in self._parameters], _STORE)
        before, result = self._result()
        take = ast.Expr(ast.Call(ast.Name("take", _LOAD), [result], []))
        over = ast.For(target, ast.Name("rows", _LOAD), [*before, take], [])
        return self._definition("rows", ["take", "rows"], [over])

    def _definition(
        self, name: str, parameters: Sequence[str], body: list[ast.stmt]
    ) -> ast.FunctionDef:
        line = min(filter(None, map(first_line, self._function.trees)), default=1)
        arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
        definition = ast.FunctionDef(name, arguments, body, [], lineno=line)
        locate(definition, line)
        return definition

    def _result(self) -> tuple[list[ast.stmt], ast.expr]:
        """Return the statements that compute shared parts, and the result."""
        function, writer = self._function, self.writer
        if function.guard is None:
            return _statements(writer.assigned(function.trees)), self._together()
        before = _statements(writer.assigned((function.guard,)))
        test = writer.expr(function.guard)
        count = len(function.trees)
        nothing = [ast.Constant(None) for _ in range(count)]
        otherwise = nothing[0] if count == 1 else ast.Tuple([*nothing], _LOAD)
        return before, ast.IfExp(test, writer.branch(self._together, *function.trees), otherwise)

    def _together(self) -> ast.expr:
        shapes = self._function.shapes or (None,) * len(self._function.trees)
        values = [self._shaped(t, s) for t, s in zip(self._function.trees, shapes, strict=True)]
        return values[0] if len(values) == 1 else ast.Tuple(values, _LOAD)

    def _shaped(self, tree: Tree, shape: Callable[[object], object] | None) -> ast.expr:
        value = self.writer.expr(tree)
        return value if shape is None else ast.Call(self.writer.constant(Const(shape)), [value], [])


def _statements(assigned: Sequence[ast.NamedExpr]) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for part in assigned:
        statement = ast.Assign([part.target], part.value)
        statement.lineno = part.value.lineno
        statements.append(statement)
    return statements


def folded(tree: Op) -> Op | Const:
    """Return arithmetic on constants, or a tuple of constants, as one constant."""
    values = [a.value for a in tree.args if isinstance(a, Const)]
    if len(values) < len(tree.args):
        return tree
    if tree.name == "tuple":
        return Const(tuple(values), line=tree.line)
    if tree.name not in _FOLDED or not all(map(_is_small, values)):
        return tree
    try:
        value = TreeFunction("", "", (), (tree,)).make()()
    except (ArithmeticError, TypeError):  # raised again for the rows that reach it
        return tree
    return Const(value, line=tree.line)


def _is_small(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _FOLDED_BITS
    return isinstance(value, float)
