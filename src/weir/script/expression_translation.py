"""Translates syntax trees of expressions to unbound `Expr`s.

Built-in functions get their canonical lower-case names. Any other name stays as written; the binder
looks it up among the user's functions. Every node has a position: that of the operator, the call's
name, or the constant.

Functions of other SQL dialects, with other names (in the records of `plan/functions/`) or other
forms (`_ACCEPTED`), become ours. A user's function with such a name takes precedence, so programs
that had one keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from weir.errors import Position
from weir.events.types import BIGINT, DOUBLE, NULL, STRING
from weir.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expr, Literal, walk
from weir.plan.functions import FUNCTIONS, is_called
from weir.plan.functions.aggregates import AGGREGATES
from weir.script.constants import StatementScope, literal, parameter
from weir.script.cursor import offset_of
from weir.script.type_names import arrow_type

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.IntDiv: "floordiv",
    exp.Mod: "mod",
    exp.DPipe: "concat",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.And: "and",
    exp.Or: "or",
    exp.Like: "like",
    exp.RegexpLike: "rlike",
}
MAX_REPEATED = 200


def expression(node: exp.Expr, scope: StatementScope) -> Expr:
    """Translate a tree to an unbound expression; raise ScriptError for anything else."""
    constant = literal(node, scope)
    if constant is not None:
        return constant
    if type(node) in _BINARY:
        return _chain(node, scope)
    at = scope.source.position(offset_of(node))
    match node:
        case exp.Column(this=exp.Star()):
            raise scope.error("`.*` stands alone in a select list", node)
        case exp.Column():
            return Column(node.name, position=at)
        case exp.Dot():
            return _dotted(node, scope)
        case exp.Neg():
            return Call("neg", (expression(node.this, scope),), position=at)
        case exp.Not(this=exp.Is() as test):
            return Call("is_not_null", (expression(test.this, scope),), position=at)
        case exp.Not():
            return Call("not", (expression(node.this, scope),), position=at)
        case exp.Is():
            return Call("is_null", (expression(node.this, scope),), position=at)
        case exp.In():
            items = (node.this, *node.expressions)
            return Call("in", tuple(expression(i, scope) for i in items), position=at)
        case exp.Between():
            return _between(node, scope, at)
        case exp.Case():
            return _case(node, scope, at)
        case exp.Cast():  # includes TryCast, a subclass
            dtype = arrow_type(node.args["to"], scope.source)
            lenient = isinstance(node, exp.TryCast)
            return Cast(expression(node.this, scope), lenient, type=dtype, position=at)
        case exp.Filter():
            condition = expression(node.args["expression"].this, scope)
            return _call(node.this, scope, at, condition)
        case exp.Anonymous():
            return _call(node, scope, at, None)
    raise scope.error("this cannot stand in an expression", node)


def _chain(node: exp.Expr, scope: StatementScope) -> Expr:
    """Translate a binary operator. A loop follows the left operands, so a long sum needs no deep
    recursion."""
    spine = []
    while type(node) in _BINARY:
        spine.append(node)
        node = node.this

    def apply(left: Expr, operator: exp.Expr) -> Expr:
        right = expression(operator.args["expression"], scope)
        at = scope.source.position(offset_of(operator))
        return Call(_BINARY[type(operator)], (left, right), position=at)

    return reduce(apply, reversed(spine), expression(node, scope))


def _dotted(node: exp.Expr, scope: StatementScope) -> Expr:
    """Translate `A.k` and `k.field` to one name for the binder, and a field of anything else to a
    call."""
    fields = []
    inner = node
    while isinstance(inner, exp.Dot):
        fields.append(inner.args["expression"])
        inner = inner.this
    base = expression(inner, scope)
    names = [f.name for f in reversed(fields)]
    if isinstance(base, Column):
        return Column(".".join((base.name, *names)), position=base.position)
    at = scope.source.position(offset_of(node))

    def field(value: Expr, name: str) -> Expr:
        return Call("field", (value, Literal(name, type=STRING, position=at)), position=at)

    return reduce(field, names, base)


def _repeated(node: exp.Expr, scope: StatementScope) -> Expr:
    """Reject an operand that is too large to stand in the plan more than once: nested, such plans
    grow as 2ⁿ."""
    value = expression(node, scope)
    if sum(1 for _ in islice(walk(value), MAX_REPEATED + 1)) > MAX_REPEATED:
        raise scope.error(
            "this is too large for BETWEEN or CASE", node, "name it in a sub-select first"
        )
    return value


def _between(node: exp.Expr, scope: StatementScope, at: Position) -> Expr:
    value = _repeated(node.this, scope)
    low = Call("ge", (value, expression(node.args["low"], scope)), position=at)
    high = Call("le", (value, expression(node.args["high"], scope)), position=at)
    return Call("and", (low, high), position=at)


def _case(node: exp.Expr, scope: StatementScope, at: Position) -> Expr:
    """Translate CASE; CASE x WHEN v … becomes CASE WHEN x = v …."""
    subject = None if node.this is None else _repeated(node.this, scope)
    branches = []
    for branch in node.args["ifs"]:
        condition = expression(branch.this, scope)
        if subject is not None:
            condition = Call("eq", (subject, condition), position=condition.position)
        branches.append((condition, expression(branch.args["true"], scope)))
    default = node.args.get("default")
    otherwise = Literal(None, type=NULL, position=at)
    return Case(
        tuple(branches),
        expression(default, scope) if default else otherwise,
        position=at,
    )


# --- calls ---------------------------------------------------------------------------------


def _call(node: exp.Expr, scope: StatementScope, at: Position, condition: Expr | None) -> Expr:
    if not isinstance(node, exp.Anonymous):
        raise scope.error("FILTER belongs to an aggregate", node)
    name, lower = node.name, node.name.lower()
    if lower in AGGREGATES and AGGREGATES[lower].is_called:
        return _aggregate(node, lower, scope, at, condition)
    first = node.expressions[0] if node.expressions else None
    if isinstance(first, exp.Star | exp.Distinct):
        raise scope.error(
            f"{name} takes no {'*' if isinstance(first, exp.Star) else 'DISTINCT'}",
            first,
        )
    args = tuple(expression(a, scope) for a in node.expressions)
    if name in scope.functions.aggregates:
        return AggregateCall(name, args, condition, position=at)
    if condition is not None:
        raise scope.error(f"FILTER belongs to an aggregate, and {name} is not one", node)
    call = None if name in scope.functions.scalars else accepted(name, args, at)
    if isinstance(call, Call):
        return replace(call, args=_with_unit(call.function, call.args))
    if call is not None:
        return call
    if lower in FUNCTIONS and not is_called(lower):
        raise scope.error(f"unknown function `{name}`", node)
    if lower in FUNCTIONS or lower == "explode":
        return Call(lower, _with_unit(lower, args), position=at)
    return Call(name, args, position=at)


def _with_unit(function: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the arguments with their unit of time in lower case."""
    unit = FUNCTIONS[function].unit if function in FUNCTIONS else None
    return tuple(
        Literal(a.value.lower(), type=STRING, position=a.position)
        if i == unit and isinstance(a, Literal) and isinstance(a.value, str)
        else a
        for i, a in enumerate(args)
    )


def _aggregate(
    node: exp.Expr, function: str, scope: StatementScope, at: Position, condition: Expr | None
) -> Expr:
    args = list(node.expressions)
    distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
    if distinct:
        args = args[0].expressions
        if function != "count":
            raise scope.error("only COUNT takes DISTINCT", node, "SELECT DISTINCT in a sub-select")
    if function == "count" and len(args) == 1 and isinstance(args[0], exp.Star):
        return AggregateCall("count_star", (), condition, position=at)
    arity = 2 if AGGREGATES[function].has_share else 1
    if len(args) != arity or isinstance(args[0], exp.Star):
        hint = ""
        if function == "count":
            hint = "COUNT(*) counts rows" if not args else "over a sub-select: SELECT DISTINCT a, b"
        plural = "s" * (arity - 1)
        raise scope.error(f"{function.upper()} takes {arity} argument{plural}", node, hint)
    params = (_fraction(args[1], scope),) if arity == 2 else ()
    value = expression(args[0], scope)
    return AggregateCall(function, (value,), condition, distinct, params, position=at)


def _fraction(node: exp.Expr, scope: StatementScope) -> str:
    """Read the p of a quantile by its digits: 0.1 is exactly one tenth, not the nearest double."""
    value = literal(node, scope)
    number = value.value if value is not None and _is_number(value.type) else None
    if not isinstance(number, int | float) or not 0 <= number <= 1:
        raise scope.error("the p of a quantile must be a number from 0 to 1", node)
    return parameter(node, scope).text if isinstance(node, exp.Parameter) else node.name


def _is_number(dtype: pa.DataType | None) -> bool:
    return dtype in (BIGINT, DOUBLE)


Args: TypeAlias = tuple[Expr, ...]
SqlFunction: TypeAlias = Callable[[Args, Position], Expr | None]


def accepted(name: str, args: Args, at: Position) -> Expr | None:
    """Return our call for a function of another dialect, or None."""
    accept = _ACCEPTED.get(name.lower())
    return None if accept is None else accept(args, at)


def _renamed(function: str) -> SqlFunction:
    return lambda args, at: Call(function, args, position=at)


def _field(unit: str) -> SqlFunction:
    def accept(args: Args, at: Position) -> Expr:
        return Call("extract", (Literal(unit, type=STRING, position=at), *args), position=at)

    return accept


def _format(style: str) -> SqlFunction:
    def accept(args: Args, at: Position) -> Expr:
        named = Literal(style, type=STRING, position=at)
        return Call("formatted_time", (*args, named), position=at)

    return accept


def _if(args: Args, at: Position) -> Expr | None:
    if len(args) not in (2, 3):
        return None
    otherwise = args[2] if len(args) == 3 else Literal(None, type=NULL, position=at)
    return Case(((args[0], args[1]),), otherwise, position=at)


_ACCEPTED: Mapping[str, SqlFunction] = {
    **{name: _renamed(f.name) for f in FUNCTIONS.values() for name in f.other_names},
    "date_format": _format("letters"),
    "strftime": _format("codes"),
    **{unit: _field(unit) for unit in ("year", "quarter", "month", "week", "day")},
    **{unit: _field(unit) for unit in ("hour", "minute", "second")},
    "dayofmonth": _field("day"),
    "dayofyear": _field("doy"),
    "weekofyear": _field("week"),
    **dict.fromkeys(("if", "iif"), _if),
}
