"""Values are written as syntax trees of Python, with the lines of the source.

A part that occurs twice is computed once, before all that needs it, if it is computed in any case:
both branches of an `if` may need it. Values have no effects, so only which of two errors is raised
depends on it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Iterator, Sequence

from weir.handlers.scope import first_line
from weir.handlers.values import Attribute, Const, Method, Op, Python, Tree, children
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
_LOAD, _STORE = ast.Load(), ast.Store()


class Sharing:
    """A `Sharing` knows the parts that several others need, and which are computed in any case.

    Shared parts are numbered, what a part is made of before the part; a set of them is the bits of
    an int.
    """

    def __init__(self, roots: Sequence[Tree], given: Container[Tree]) -> None:
        self._given = given
        needed: dict[Tree, int] = {}
        order: list[Tree] = []
        for root in roots:
            self._count(root, needed, order)
        shared = [tree for tree in order if needed[tree] > 1]
        self._bits = {tree: 1 << number for number, tree in enumerate(shared)}
        self._certain: dict[Tree, int] = {}

    def _count(self, tree: Tree, needed: dict[Tree, int], order: list[Tree]) -> None:
        if tree in self._given or isinstance(tree, Const):
            return
        if tree in needed:
            needed[tree] += 1
            return
        needed[tree] = 1
        for child in children(tree):
            self._count(child, needed, order)
        order.append(tree)

    def certain(self, tree: Tree) -> int:
        """Return the shared parts that are computed wherever the value is."""
        if tree not in self._certain:
            parts = () if tree in self._given else children(tree)
            below = [self.certain(child) for child in parts]
            found = self._bits.get(tree, 0)
            match tree:
                case _ if not below:
                    pass
                case Op(name="and" | "or"):
                    found |= below[0]
                case Op(name="if"):
                    found |= below[0] | below[1] & below[2]
                case _:
                    for bits in below:
                        found |= bits
            self._certain[tree] = found
        return self._certain[tree]

    def listed(self, bits: int) -> Iterator[tuple[Tree, int]]:
        """Give the parts of a set with their bits, in order."""
        return ((tree, bit) for tree, bit in self._bits.items() if bit & bits)


class Writer:
    """A `Writer` writes the code of one function; `constants` become its globals.

    `_bound` are the names of parts that are computed where the writer is.
    """

    def __init__(self, roots: Sequence[Tree], names: dict[Tree, str]) -> None:
        self.constants: dict[str, object] = {}
        self._names = names
        self._named: dict[Const, str] = {}
        self._sharing = Sharing(roots, names)
        self._bound: dict[Tree, str] = {}
        self._known = 0
        self._count = 0

    def assigned(self, trees: Sequence[Tree]) -> list[ast.NamedExpr]:
        """Write what these values need and share; from here on it has names."""
        wanted = 0
        for tree in trees:
            wanted |= self._sharing.certain(tree)
        made = []
        for part, bit in self._sharing.listed(wanted & ~self._known):
            value = self._located(part)
            self._count += 1
            self._bound[part] = f"t{self._count}"
            self._known |= bit
            made.append(ast.NamedExpr(ast.Name(self._bound[part], _STORE), value))
        return made

    def expr(self, tree: Tree) -> ast.expr:
        """Write a value, all of whose shared parts are bound or not needed in any case."""
        if tree in self._bound:
            return ast.Name(self._bound[tree], _LOAD)
        return self._located(tree)

    def branch(self, write: Callable[[], ast.expr], *trees: Tree) -> ast.expr:
        """Write what not every row reaches: what it computes is not known behind it."""
        bound, known = dict(self._bound), self._known
        parts: list[ast.expr] = [*self.assigned(trees), write()]
        self._bound, self._known = bound, known
        return parts[0] if len(parts) == 1 else ast.Subscript(
            ast.Tuple(parts, _LOAD), ast.Constant(-1), _LOAD
        )  # fmt: skip

    def constant(self, const: Const) -> ast.expr:
        value = const.value
        if value is None or type(value) in (bool, int, str, bytes):
            return ast.Constant(value)  # type: ignore[arg-type]
        if type(value) is float and math.isfinite(value):
            return ast.Constant(value)
        if const not in self._named:
            self._named[const] = f"k{len(self._named)}"
            self.constants[self._named[const]] = value
        return ast.Name(self._named[const], _LOAD)

    def _maybe(self, tree: Tree) -> ast.expr:
        return self.branch(lambda: self.expr(tree), tree)

    def _located(self, tree: Tree) -> ast.expr:
        made = self._fresh(tree)
        made.lineno = tree.line or first_line(tree) or 1
        return made

    def _fresh(self, tree: Tree) -> ast.expr:
        if tree in self._names:
            return ast.Name(self._names[tree], _LOAD)
        match tree:
            case Const():
                return self.constant(tree)
            case Op():
                return self._operation(tree)
            case Attribute(of=of, name=name):
                return ast.Attribute(self.expr(of), name, _LOAD)
            case Method(of=of, name=name, args=args, keywords=keywords):
                called: ast.expr = ast.Attribute(self.expr(of), name, _LOAD)
            case Python(function=function, args=args, keywords=keywords):
                plain = function.function if isinstance(function, ScalarFunction) else function
                called = self.constant(Const(plain))
            case _:
                raise AssertionError(f"no parameter for {tree}")
        given = [self.expr(a) for a in args]
        named = [ast.keyword(name, self.expr(value)) for name, value in keywords]
        return ast.Call(called, given, named)

    def _operation(self, tree: Op) -> ast.expr:
        name, args = tree.name, tree.args
        if name in _BINARY:
            return ast.BinOp(self.expr(args[0]), _BINARY[name], self.expr(args[1]))
        if name in _UNARY:
            return ast.UnaryOp(_UNARY[name], self.expr(args[0]))
        if name in _COMPARE:
            return ast.Compare(self.expr(args[0]), [_COMPARE[name]], [self.expr(args[1])])
        if name in ("and", "or"):
            parts = [self.expr(args[0]), *map(self._maybe, args[1:])]
            return ast.BoolOp(ast.And() if name == "and" else ast.Or(), parts)
        if name == "if":
            test = self.expr(args[0])
            return ast.IfExp(test, self._maybe(args[1]), self._maybe(args[2]))
        if name == "format":
            return self._formatted(args)
        return self._collected(name, [self.expr(a) for a in args])

    def _collected(self, name: str, parts: list[ast.expr]) -> ast.expr:
        match name:
            case "tuple":
                return ast.Tuple(parts, _LOAD)
            case "list":
                return ast.List(parts, _LOAD)
            case "set":
                return ast.Set(parts) if parts else ast.Call(self.constant(Const(set)), [], [])
            case "dict":
                return ast.Dict([*parts[::2]], parts[1::2])
            case "item":
                return ast.Subscript(parts[0], parts[1], _LOAD)
            case "slice":
                return ast.Subscript(parts[0], ast.Slice(*parts[1:]), _LOAD)
            case "join":
                text = ast.Attribute(ast.Constant(""), "join", _LOAD)
                return ast.Call(text, [ast.Tuple(parts, _LOAD)], [])
        raise AssertionError(f"no operation `{name}`")

    def _formatted(self, args: tuple[Tree, ...]) -> ast.expr:
        value, conversion = self.expr(args[0]), conversion_of(args[1])
        if conversion:
            value = ast.Call(self.constant(Const(_CONVERSIONS[conversion])), [value], [])
        spec = self.expr(args[2])
        if isinstance(args[2], Const) and args[2].value is None:
            spec = ast.Constant("")
        return ast.Call(self.constant(Const(format)), [value, spec], [])


def conversion_of(tree: Tree) -> str:
    """Return the conversion of a part of an f-string: "r", "s", "a", or none."""
    value = tree.value if isinstance(tree, Const) else None
    if isinstance(value, int):  # as the syntax tree has it
        return "" if value < 0 else chr(value)
    return value if isinstance(value, str) else ""


def locate(node: ast.AST, line: int) -> None:
    """Give a node the line that it has, or else that of what it is in; and all below it."""
    if "lineno" in node._attributes:
        line = getattr(node, "lineno", line)
        vars(node).update(lineno=line, end_lineno=line, col_offset=0, end_col_offset=0)
    for child in ast.iter_child_nodes(node):
        locate(child, line)
