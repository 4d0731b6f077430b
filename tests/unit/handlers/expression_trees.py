"""Expressions of Python become values of handlers, as analysis makes them; for tests only."""

import ast
import builtins
import math
import re

from weir.handlers.trees.values import (
    Attribute,
    Const,
    Field,
    Instant,
    Method,
    Old,
    Op,
    Python,
    Tree,
)

BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
COMPARE = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is",
    ast.IsNot: "isnot",
    ast.In: "in",
    ast.NotIn: "notin",
}
KNOWN: dict[str, object] = {"re": re, "math": math, **vars(builtins)}


def tree_of(source: str, constants: dict[str, object] | None = None) -> Tree:
    """Names that are no constants are the event's fields; `old` is a merge's old value."""
    return _Reader({**KNOWN, **(constants or {})}).read(ast.parse(source.strip(), mode="eval").body)


class _Reader:
    def __init__(self, known: dict[str, object]) -> None:
        self.known = known

    def read(self, node: ast.expr) -> Tree:
        line = node.lineno
        match node:
            case ast.Constant(value=value):
                return Const(value, line=line)
            case ast.Name(id="old"):
                return Old(line=line)
            case ast.Name(id="vs" | "ve" as name):
                return Instant(name, line=line)
            case ast.Name(id=name) if name in self.known:
                return Const(self.known[name], line=line)
            case ast.Name(id=name):
                return Field(name, line=line)
            case ast.BinOp(left=a, op=op, right=b):
                return Op(BINARY[type(op)], (self.read(a), self.read(b)), line=line)
            case ast.UnaryOp(op=op, operand=a):
                inner = self.read(a)
                if isinstance(op, ast.USub) and isinstance(inner, Const):
                    return Const(-inner.value, line=line)
                return Op(UNARY[type(op)], (inner,), line=line)
            case ast.BoolOp(op=op, values=values):
                name = "and" if isinstance(op, ast.And) else "or"
                return Op(name, tuple(map(self.read, values)), line=line)
            case ast.Compare():
                return self.compared(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return Op("if", tuple(map(self.read, (test, body, orelse))), line=line)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                return Op(type(node).__name__.lower(), tuple(map(self.read, elts)), line=line)
            case ast.Dict(keys=keys, values=values):
                parts = (p for pair in zip(keys, values, strict=True) for p in pair)
                return Op("dict", tuple(map(self.read, parts)), line=line)
            case ast.Subscript(value=of, slice=ast.Slice(lower=a, upper=b, step=c)):
                cuts = (Const(None) if p is None else self.read(p) for p in (a, b, c))
                return Op("slice", (self.read(of), *cuts), line=line)
            case ast.Subscript(value=of, slice=index):
                return Op("item", (self.read(of), self.read(index)), line=line)
            case ast.JoinedStr(values=values):
                return Op("join", tuple(map(self.read, values)), line=line)
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                text = "" if spec is None else "".join(v.value for v in spec.values)
                parts = (self.read(value), Const(conversion), Const(text))
                return Op("format", parts, line=line)
            case ast.Attribute(value=of, attr=name):
                inner = self.read(of)
                if isinstance(inner, Const) and inner.value in (re, math):
                    return Const(getattr(inner.value, name), line=line)
                return Attribute(inner, name, line=line)
            case ast.Call():
                return self.called(node)
        raise AssertionError(ast.dump(node))

    def compared(self, node: ast.Compare) -> Tree:
        values = [self.read(v) for v in (node.left, *node.comparators)]
        links = [
            Op(COMPARE[type(op)], (a, b), line=node.lineno)
            for op, a, b in zip(node.ops, values, values[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else Op("and", tuple(links), line=node.lineno)

    def called(self, node: ast.Call) -> Tree:
        args = tuple(map(self.read, node.args))
        keywords = tuple((k.arg, self.read(k.value)) for k in node.keywords)
        if isinstance(node.func, ast.Attribute):
            of = self.read(node.func.value)
            if not (isinstance(of, Const) and of.value in (re, math)):
                return Method(of, node.func.attr, args, keywords, line=node.lineno)
        function = self.read(node.func)
        assert isinstance(function, Const)
        return Python(function.value, args, keywords, line=node.lineno)
