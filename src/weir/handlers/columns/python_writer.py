"""Writes values as Python syntax trees, with the lines of the source.

A part that occurs twice is computed once, before everything that needs it, if it is always
computed. That includes a part that both branches of an `if` need. Values have no effects, so this
can only change which of two errors is raised.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import chain

from weir.handlers.trees.operations import OPERATIONS
from weir.handlers.trees.scope import first_line
from weir.handlers.trees.values import (
    Attribute,
    Const,
    Method,
    Op,
    Python,
    Tree,
    bottom_up,
    children,
)
from weir.plan.usercode.functions import ScalarFunction
from weir.plan.usercode.made_functions import plain_function

_CONVERSIONS: dict[object, Callable[[object], str]] = {"r": repr, "s": str, "a": ascii}
_LOAD, _STORE = ast.Load(), ast.Store()


_DEEPEST = 30
"""The most levels of parts in one expression; deeper ones get a name, if always computed."""


class Sharing:
    """Knows which parts several others need, and which of these are always computed.

    Shared parts are numbered, each after the parts that it is made of. A set of them is an int,
    with a bit for each.
    """

    def __init__(self, roots: Sequence[Tree], parameters: Container[Tree]) -> None:
        order = list(dict.fromkeys(bottom_up(*roots, bound=parameters)))
        below = {tree: () if tree in parameters else children(tree) for tree in order}
        needed = Counter(chain(roots, *below.values()))
        depths: dict[Tree, int] = {}
        shared = []
        for tree in order:
            depths[tree] = 1 + max((depths[child] for child in below[tree]), default=0)
            if below[tree] and (needed[tree] > 1 or depths[tree] >= _DEEPEST):
                shared.append(tree)  # what is deep gets a name too: it is written in steps
                depths[tree] = 0
        self._bits = {tree: 1 << number for number, tree in enumerate(shared)}
        self._certain: dict[Tree, int] = {}
        for tree in order:
            self._certain[tree] = self._always(tree, [self._certain[c] for c in below[tree]])

    def _always(self, tree: Tree, below: list[int]) -> int:
        certain = self._bits.get(tree, 0)
        match tree:
            case _ if not below:
                pass
            case Op(name="and" | "or"):
                certain |= below[0]
            case Op(name="if"):
                certain |= below[0] | below[1] & below[2]
            case _:
                for bits in below:
                    certain |= bits
        return certain

    def certain(self, tree: Tree) -> int:
        """Return the shared parts that are always computed when the value is."""
        return self._certain[tree]

    def listed(self, bits: int) -> Iterator[tuple[Tree, int]]:
        """Yield the parts of a set with their bits, in order."""
        return ((tree, bit) for tree, bit in self._bits.items() if bit & bits)


class Writer:
    """Writes the code of one function; `constants` become its globals.

    `_bound` has the names of parts that are already computed at the current point.
    """

    def __init__(self, roots: Sequence[Tree], names: dict[Tree, str]) -> None:
        self.constants: dict[str, object] = {}
        self._names = names
        self._named: dict[Const, str] = {}
        self._sharing = Sharing(roots, names)
        self._bound: dict[Tree, str] = {}
        self._assigned = 0
        self._count = 0

    def assigned(self, trees: Sequence[Tree]) -> list[ast.NamedExpr]:
        """Write the shared parts that these values need; later code can use their names."""
        needed = 0
        for tree in trees:
            needed |= self._sharing.certain(tree)
        assignments = []
        for part, bit in self._sharing.listed(needed & ~self._assigned):
            value = self._located(part)
            self._count += 1
            self._bound[part] = f"t{self._count}"
            self._assigned |= bit
            assignments.append(ast.NamedExpr(ast.Name(self._bound[part], _STORE), value))
        return assignments

    def expr(self, tree: Tree) -> ast.expr:
        """Write a value whose shared parts are bound, or not always needed."""
        if tree in self._bound:
            return ast.Name(self._bound[tree], _LOAD)
        return self._located(tree)

    def branch(self, write: Callable[[], ast.expr], *trees: Tree) -> ast.expr:
        """Write code that not every row reaches; later code cannot use the names it binds."""
        bound, assigned = dict(self._bound), self._assigned
        written = _after(self.assigned(trees), write())
        self._bound, self._assigned = bound, assigned
        return written

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
        expr = self._fresh(tree)
        expr.lineno = tree.line or first_line(tree) or 1
        return expr

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
                called = self.constant(Const(plain_function(plain)))
            case _:
                raise AssertionError(f"no parameter for {tree}")
        arguments = [self.expr(a) for a in args]
        named = [ast.keyword(name, self.expr(value)) for name, value in keywords]
        return ast.Call(called, arguments, named)

    def _operation(self, tree: Op) -> ast.expr:
        name, args = tree.name, tree.args
        node = OPERATIONS[name].node() if name in OPERATIONS else None
        if isinstance(node, ast.operator):
            return ast.BinOp(self.expr(args[0]), node, self.expr(args[1]))
        if isinstance(node, ast.unaryop):
            return ast.UnaryOp(node, self.expr(args[0]))
        if isinstance(node, ast.cmpop):
            return ast.Compare(self.expr(args[0]), [node], [self.expr(args[1])])
        if isinstance(node, ast.boolop):
            parts = [self.expr(args[0]), *map(self._maybe, self._flat(tree)[1:])]
            return ast.BoolOp(node, parts)
        if name == "if":
            return self._chosen(tree)
        if name == "format":
            return self._formatted(args)
        return self._collected(name, [self.expr(a) for a in args])

    def _flat(self, tree: Op) -> list[Tree]:
        """Return the operands of `a and (b and (c …))` as operands of one `and`."""
        parts = list(tree.args)
        while isinstance(parts[-1], Op) and parts[-1].name == tree.name:
            if parts[-1] in self._bound:
                break
            parts += parts.pop().args  # type: ignore[attr-defined]
        return parts

    def _chosen(self, tree: Op) -> ast.expr:
        """Write a chain of `if`s (each in the last branch of the one before) in a loop.

        There may be hundreds.
        """
        bound, assigned = dict(self._bound), self._assigned
        steps: list[tuple[Op, ast.expr, ast.expr, list[ast.NamedExpr]]] = []
        last: Tree = tree
        while isinstance(last, Op) and last.name == "if" and last not in self._bound:
            test, then = self.expr(last.args[0]), self._maybe(last.args[1])
            steps.append((last, test, then, self.assigned(last.args[2:])))
            last = last.args[2]
        written = self.expr(last)
        for part, test, then, before in reversed(steps):
            written = ast.IfExp(test, then, _after(before, written), lineno=part.line or 1)
        self._bound, self._assigned = bound, assigned
        return written

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
            case "checked":
                both = ast.Tuple([parts[0], ast.Constant(True)], _LOAD)
                return ast.Subscript(both, ast.Constant(1), _LOAD)
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


def _after(before: Sequence[ast.expr], value: ast.expr) -> ast.expr:
    """Write an expression that computes others before it."""
    if not before:
        return value
    return ast.Subscript(ast.Tuple([*before, value], _LOAD), ast.Constant(-1), _LOAD)


def conversion_of(tree: Tree) -> str:
    """Return the conversion in a part of an f-string: "r", "s", "a", or none."""
    value = tree.value if isinstance(tree, Const) else None
    if isinstance(value, int):  # as the syntax tree has it
        return "" if value < 0 else chr(value)
    return value if isinstance(value, str) else ""


def locate(node: ast.AST, line: int) -> None:
    """Give a node its own line, or else the line of the node around it; and all nodes below it."""
    if "lineno" in node._attributes:
        line = getattr(node, "lineno", line)
        vars(node).update(lineno=line, end_lineno=line, col_offset=0, end_col_offset=0)
    for child in ast.iter_child_nodes(node):
        locate(child, line)
