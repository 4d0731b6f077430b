"""Finds the parts of a function that are evaluated by every call that gets past them.

A call that reaches a later statement of the function's own body has run the earlier ones. Within a
statement, a part counts if Python evaluates it whatever the values of the other parts are. Only
forms that are listed here count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator


def certain_parts(function: ast.FunctionDef) -> frozenset[ast.AST]:
    """Return the expressions of a function that no call gets past without evaluating them.

    >>> tree = ast.parse("def f(e):\\n    a = g(1) if h(2) else k(3)").body[0]
    >>> assert isinstance(tree, ast.FunctionDef)
    >>> [ast.unparse(n) for n in certain_parts(tree) if isinstance(n, ast.Call)]
    ['h(2)']
    """
    certain: set[ast.AST] = set()
    stack = [part for statement in function.body for part in _of_statement(statement)]
    while stack:
        node = stack.pop()
        certain.add(node)
        stack += _of_expression(node)
    return frozenset(certain)


def _of_statement(node: ast.stmt) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(value=value) | ast.Expr(value=value) | ast.AugAssign(value=value):
            yield value
        case ast.AnnAssign(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
            yield value
        case ast.If(test=test) | ast.Assert(test=test):
            yield test
        case ast.For(iter=value):
            yield value
        case ast.Match(subject=value):
            yield value


def _of_expression(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.UnaryOp(operand=value) | ast.Attribute(value=value) | ast.NamedExpr(value=value):
            yield value
        case ast.Compare(left=left, comparators=[first, *_]):
            yield from (left, first)
        case ast.BoolOp(values=[first, *_]):
            yield first
        case ast.IfExp(test=test):
            yield test
        case ast.Call(func=function, args=args, keywords=keywords):
            yield from (function, *args, *(keyword.value for keyword in keywords))
        case ast.Starred(value=value) | ast.FormattedValue(value=value):
            yield value
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            yield from parts
        case ast.Subscript(value=value, slice=index):
            yield from (value, index)
