"""Python's operators in values, one record each."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OR, AND, NOT, COMPARE, BITS, SUM, PRODUCT, SIGN, POWER, WHOLE = range(1, 11)
"""How tightly an operator binds, from loose to tight."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator: its name in `Op`, its node in a syntax tree, its sign."""

    name: str
    node: type[ast.operator | ast.unaryop | ast.cmpop | ast.boolop]
    sign: str
    binding: int
    function: Callable[..., Any] | None = None
    """The function that computes it during analysis, if all operands are constants."""

    @property
    def is_unary(self) -> bool:
        return issubclass(self.node, ast.unaryop)


_ALL = (
    Operation("or", ast.Or, "or", OR),
    Operation("and", ast.And, "and", AND),
    Operation("not", ast.Not, "not", NOT, operator.not_),
    Operation("eq", ast.Eq, "==", COMPARE, operator.eq),
    Operation("ne", ast.NotEq, "!=", COMPARE, operator.ne),
    Operation("lt", ast.Lt, "<", COMPARE, operator.lt),
    Operation("le", ast.LtE, "<=", COMPARE, operator.le),
    Operation("gt", ast.Gt, ">", COMPARE, operator.gt),
    Operation("ge", ast.GtE, ">=", COMPARE, operator.ge),
    Operation("is", ast.Is, "is", COMPARE, operator.is_),
    Operation("isnot", ast.IsNot, "is not", COMPARE, operator.is_not),
    Operation("in", ast.In, "in", COMPARE, lambda a, b: a in b),
    Operation("notin", ast.NotIn, "not in", COMPARE, lambda a, b: a not in b),
    Operation("bitor", ast.BitOr, "|", BITS, operator.or_),
    Operation("bitxor", ast.BitXor, "^", BITS, operator.xor),
    Operation("bitand", ast.BitAnd, "&", BITS, operator.and_),
    Operation("lshift", ast.LShift, "<<", BITS),
    Operation("rshift", ast.RShift, ">>", BITS),
    Operation("add", ast.Add, "+", SUM, operator.add),
    Operation("sub", ast.Sub, "-", SUM, operator.sub),
    Operation("mul", ast.Mult, "*", PRODUCT, operator.mul),
    Operation("truediv", ast.Div, "/", PRODUCT, operator.truediv),
    Operation("floordiv", ast.FloorDiv, "//", PRODUCT, operator.floordiv),
    Operation("mod", ast.Mod, "%", PRODUCT, operator.mod),
    Operation("neg", ast.USub, "-", SIGN, operator.neg),
    Operation("pos", ast.UAdd, "+", SIGN, operator.pos),
    Operation("invert", ast.Invert, "~", SIGN, operator.invert),
    Operation("pow", ast.Pow, "**", POWER),
)
OPERATIONS = {operation.name: operation for operation in _ALL}
NAMES: dict[type[ast.AST], str] = {operation.node: operation.name for operation in _ALL}
