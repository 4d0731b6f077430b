"""Values become Python again: code that CPython runs row by row, with the lines of the source.

A `TreeFunction` is the description of such a function. A part that occurs twice is computed once,
where the first of them is computed in any case before the second: values have no effects.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType

from weir.handlers.scope import first_line, is_leaf
from weir.handlers.values import (
    Attribute,
    Const,
    Method,
    Old,
    Op,
    Python,
    Tree,
    children,
)
from weir.plan.made_functions import MadeFunction, RowLoop
from weir.plan.user_code import ScalarFunction

_BINARY: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "truediv": ast.Div(),
    "floordiv": ast.FloorDiv(), "mod": ast.Mod(), "pow": ast.Pow(), "bitand": ast.BitAnd(),
    "bitor": ast.BitOr(), "bitxor": ast.BitXor(), "lshift": ast.LShift(), "rshift": ast.RShift(),
}  # fmt: skip
_UNARY: dict[str, ast.unaryop] = {
    "neg": ast.USub(), "pos": ast.UAdd(), "invert": ast.Invert(), "not": ast.Not(),
}  # fmt: skip
_COMPARE: dict[str, ast.cmpop] = {
    "eq": ast.Eq(), "ne": ast.NotEq(), "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(),
    "ge": ast.GtE(), "is": ast.Is(), "isnot": ast.IsNot(), "in": ast.In(), "notin": ast.NotIn(),
}  # fmt: skip
_CONVERSIONS: dict[object, Callable[[object], str]] = {"r": repr, "s": str, "a": ascii}
_FOLDED = frozenset(("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "invert"))
_FOLDED_BITS = 256
_LOAD, _STORE = ast.Load(), ast.Store()


@dataclass(frozen=True, slots=True)
class TreeFunction(MadeFunction):
    """A `TreeFunction` computes `trees` from `parameters`, the leaves that it gets as arguments.

    It returns the value of the only tree, or a tuple of all. Where there is a `guard`, it returns
    None (for each tree) if the guard is not true. `shapes` has for each tree what makes its result
    fit the column, or None.
    """

    name: str
    file: str
    parameters: tuple[Tree, ...]
    trees: tuple[Tree, ...]
    guard: Tree | None = None
    shapes: tuple[Callable[[object], object] | None, ...] = ()

    def make(self) -> Callable[..., object]:
        return _made(self)[0]

    def make_loop(self) -> RowLoop:
        return _made(self)[1]

    def identity(self) -> tuple[object, ...]:
        source, constants = _written(self)
        return source, tuple(constants.items())


@lru_cache(maxsize=4096)
def _made(function: TreeFunction) -> tuple[Callable[..., object], RowLoop]:
    writer = _Writer(function)
    module = ast.Module([writer.function(), _Writer(function, writer).loop()], [])
    known: dict[str, object] = dict(writer.constants)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `x is 1` is the user's to know
        exec(compile(module, function.file, "exec"), known)
    plain, loop = known["row"], known["rows"]
    assert isinstance(plain, FunctionType) and isinstance(loop, FunctionType)
    plain.__name__ = plain.__qualname__ = function.name
    return plain, loop


def _written(function: TreeFunction) -> tuple[str, dict[str, object]]:
    writer = _Writer(function)
    module = ast.Module([writer.function()], [])
    return ast.unparse(module), writer.constants


class _Writer:
    """A `_Writer` writes the syntax trees of one function.

    `constants` are the globals of the code, `_bound` the names of parts that were computed on the
    way to where the writer is.
    """

    def __init__(self, function: TreeFunction, other: _Writer | None = None) -> None:
        self._function = function
        self._names = {leaf: f"v{i}" for i, leaf in enumerate(function.parameters)}
        self.constants: dict[str, object] = {} if other is None else other.constants
        self._named: dict[Const, str] = {} if other is None else other._named
        self._bound: dict[Tree, str] = {}
        self._count = 0
        whole = function.trees if function.guard is None else (function.guard, *function.trees)
        self._often = Counter(part for tree in whole for part in _costly(tree))

    # --- functions -------------------------------------------------------------------------

    def function(self) -> ast.FunctionDef:
        return self._definition("row", self._parameters(), [ast.Return(self._result())])

    def loop(self) -> ast.FunctionDef:
        target = ast.Tuple([ast.Name(name, _STORE) for name in self._parameters()], _STORE)
        take = ast.Call(ast.Name("take", _LOAD), [self._result()], [])
        body: list[ast.stmt] = [ast.Expr(take)]
        over = ast.For(target, ast.Name("rows", _LOAD), body, [])
        return self._definition("rows", ["take", "rows"], [over])

    def _definition(
        self, name: str, parameters: Sequence[str], body: list[ast.stmt]
    ) -> ast.FunctionDef:
        line = min(filter(None, map(first_line, self._function.trees)), default=1)
        arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
        made = ast.FunctionDef(name, arguments, body, [], lineno=line, col_offset=0)
        _locate(made, line)
        return made

    def _parameters(self) -> list[str]:
        return list(self._names.values())

    def _result(self) -> ast.expr:
        if self._function.guard is None:
            return self._together()
        test = self._expr(self._function.guard)
        count = len(self._function.trees)
        nothing = [ast.Constant(None) for _ in range(count)]
        otherwise = nothing[0] if count == 1 else ast.Tuple(list(nothing), _LOAD)
        return ast.IfExp(test, self._together(), otherwise)

    def _together(self) -> ast.expr:
        shapes = self._function.shapes or (None,) * len(self._function.trees)
        values = [self._shaped(t, s) for t, s in zip(self._function.trees, shapes, strict=True)]
        return values[0] if len(values) == 1 else ast.Tuple(values, _LOAD)

    def _shaped(self, tree: Tree, shape: Callable[[object], object] | None) -> ast.expr:
        value = self._expr(tree)
        return value if shape is None else ast.Call(self._constant(Const(shape)), [value], [])

    # --- expressions -----------------------------------------------------------------------

    def _expr(self, tree: Tree) -> ast.expr:
        if tree in self._bound:
            return ast.Name(self._bound[tree], _LOAD)
        made = self._fresh(tree)
        made.lineno = first_line(tree) or 1
        if self._often[tree] < 2:
            return made
        self._count += 1
        name = f"t{self._count}"
        self._bound[tree] = name
        return ast.NamedExpr(ast.Name(name, _STORE), made)

    def _maybe(self, tree: Tree) -> ast.expr:
        """Write a part that not every row reaches: what it computes is not known behind it."""
        before = dict(self._bound)
        made = self._expr(tree)
        self._bound = before
        return made

    def _fresh(self, tree: Tree) -> ast.expr:
        if tree in self._names:
            return ast.Name(self._names[tree], _LOAD)
        match tree:
            case Const():
                return self._constant(tree)
            case Op():
                return self._operation(tree)
            case Attribute(of=of, name=name):
                return ast.Attribute(self._expr(of), name, _LOAD)
            case Method(of=of, name=name, args=args, keywords=keywords):
                called: ast.expr = ast.Attribute(self._expr(of), name, _LOAD)
            case Python(function=function, args=args, keywords=keywords):
                plain = function.function if isinstance(function, ScalarFunction) else function
                called = self._constant(Const(plain))
            case _:
                raise AssertionError(f"no parameter for {tree}")
        given = [self._expr(a) for a in args]
        named = [ast.keyword(name, self._expr(value)) for name, value in keywords]
        return ast.Call(called, given, named)

    def _constant(self, const: Const) -> ast.expr:
        value = const.value
        if value is None or type(value) in (bool, int, str, bytes):
            return ast.Constant(value)  # type: ignore[arg-type]
        if isinstance(value, float) and math.isfinite(value):
            return ast.Constant(value)
        if const not in self._named:
            self._named[const] = f"k{len(self._named)}"
            self.constants[self._named[const]] = value
        return ast.Name(self._named[const], _LOAD)

    def _operation(self, tree: Op) -> ast.expr:
        name, args = tree.name, tree.args
        if name in _BINARY:
            return ast.BinOp(self._expr(args[0]), _BINARY[name], self._expr(args[1]))
        if name in _UNARY:
            return ast.UnaryOp(_UNARY[name], self._expr(args[0]))
        if name in _COMPARE:
            return ast.Compare(self._expr(args[0]), [_COMPARE[name]], [self._expr(args[1])])
        if name in ("and", "or"):
            parts = [self._expr(args[0]), *(self._maybe(a) for a in args[1:])]
            return ast.BoolOp(ast.And() if name == "and" else ast.Or(), parts)
        if name == "if":
            test = self._expr(args[0])
            return ast.IfExp(test, self._maybe(args[1]), self._maybe(args[2]))
        if name == "dict":
            parts = [self._expr(a) for a in args]
            return ast.Dict([*parts[::2]], parts[1::2])
        if name == "format":
            return self._formatted(args)
        return self._collected(name, [self._expr(a) for a in args])

    def _collected(self, name: str, parts: list[ast.expr]) -> ast.expr:
        match name:
            case "tuple":
                return ast.Tuple(parts, _LOAD)
            case "list":
                return ast.List(parts, _LOAD)
            case "set":
                return ast.Set(parts) if parts else ast.Call(self._constant(Const(set)), [], [])
            case "item":
                return ast.Subscript(parts[0], parts[1], _LOAD)
            case "slice":
                return ast.Subscript(parts[0], ast.Slice(*parts[1:]), _LOAD)
            case "join":
                text = ast.Attribute(ast.Constant(""), "join", _LOAD)
                return ast.Call(text, [ast.Tuple(parts, _LOAD)], [])
        raise AssertionError(f"no operation `{name}`")

    def _formatted(self, args: tuple[Tree, ...]) -> ast.expr:
        value, conversion = self._expr(args[0]), conversion_of(args[1])
        if conversion:
            value = ast.Call(self._constant(Const(_CONVERSIONS[conversion])), [value], [])
        spec = self._expr(args[2])
        if isinstance(args[2], Const) and args[2].value is None:
            spec = ast.Constant("")
        return ast.Call(self._constant(Const(format)), [value, spec], [])


def conversion_of(tree: Tree) -> str:
    """Return the conversion of a part of an f-string: "r", "s", "a", or none."""
    value = tree.value if isinstance(tree, Const) else None
    if isinstance(value, int):  # as the syntax tree has it
        return "" if value < 0 else chr(value)
    return value if isinstance(value, str) else ""


def folded(tree: Op) -> Op | Const:
    """Return arithmetic on constants, and a tuple of them, as one constant."""
    values = [a.value for a in tree.args if isinstance(a, Const)]
    if len(values) < len(tree.args):
        return tree
    if tree.name == "tuple":
        return Const(tuple(values), line=tree.line)
    if tree.name not in _FOLDED or not all(map(_is_small, values)):
        return tree
    try:
        value = TreeFunction("", "", (), (tree,)).make()()
    except (ArithmeticError, TypeError):  # it is for the rows that reach it to say so
        return tree
    return Const(value, line=tree.line)


def _is_small(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _FOLDED_BITS
    return isinstance(value, float)


def _locate(node: ast.AST, line: int) -> None:
    """Give a node the line that it has, or else that of what it is in; and all below it."""
    if "lineno" in node._attributes:
        line = getattr(node, "lineno", line)
        vars(node).update(lineno=line, end_lineno=line, col_offset=0, end_col_offset=0)
    for child in ast.iter_child_nodes(node):
        _locate(child, line)


def _costly(tree: Tree) -> list[Tree]:
    """Return all parts that are worth a name."""
    found: list[Tree] = [] if is_leaf(tree) or isinstance(tree, Const | Old) else [tree]
    for child in children(tree):
        found += _costly(child)
    return found
