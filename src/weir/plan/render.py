"""Writes expressions as a script would, for `explain` and for messages.

It shows the casts that the binder inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from weir.events.types import type_name
from weir.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expr, Literal, UserCall

# How tightly an operator binds; an operand that binds less tightly gets parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _WHOLE = range(8)
_INFIX = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    "eq": ("=", _COMPARE),
    "ne": ("<>", _COMPARE),
    "lt": ("<", _COMPARE),
    "le": ("<=", _COMPARE),
    "gt": (">", _COMPARE),
    "ge": (">=", _COMPARE),
    "like": ("LIKE", _COMPARE),
    "rlike": ("RLIKE", _COMPARE),
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "concat": ("||", _SUM),
    "mul": ("*", _PRODUCT),
    "div": ("/", _PRODUCT),
    "floordiv": ("//", _PRODUCT),
    "mod": ("%", _PRODUCT),
}
_NAMES = {"neg": "`-`", "and": "AND", "or": "OR", "in": "IN", "field": "`.`"}
_INFIX |= {f"py_{name}": _INFIX[name] for name in _INFIX}
_INFIX["py_truediv"] = _INFIX["div"]
_CHAINED = ("or", "and", "concat")


def render(expr: Expr) -> str:
    """Return the expression as a script writes it.

    >>> from weir.events.types import BIGINT
    >>> v = Column("v", type=BIGINT)
    >>> render(Call("mul", (Call("add", (v, Literal(1))), v)))
    '(v + 1) * v'
    """
    return _render(expr)[0]


def render_part(expr: Expr) -> str:
    """Return the expression as a part of an AND."""
    return _inside(expr, _AND)


def _render(expr: Expr) -> tuple[str, int]:
    """Return the text, and how tightly its operator binds."""
    match expr:
        case Column():
            return expr.name, _WHOLE
        case Literal():
            return render_value(expr.value), _WHOLE
        case Call():
            return _call(expr)
        case Cast():
            name = "TRY_CAST" if expr.lenient else "CAST"
            target = "?" if expr.type is None else type_name(expr.type)
            return f"{name}({render(expr.arg)} AS {target})", _WHOLE
        case Case():
            branches = "".join(f" WHEN {render(c)} THEN {render(v)}" for c, v in expr.branches)
            return f"CASE{branches} ELSE {render(expr.otherwise)} END", _WHOLE
        case UserCall():
            return f"{expr.function.name}({_listed(expr.args)})", _WHOLE
        case AggregateCall():  # in an expression that is not bound yet
            return _aggregate(expr), _WHOLE
    raise TypeError(f"{type(expr).__name__} does not occur in plans")


def _aggregate(call: AggregateCall) -> str:
    name = call.function.removesuffix("_star").removesuffix("_distinct").upper()
    args = "*" if call.function == "count_star" else _listed(call.args)
    distinct = "DISTINCT " if call.distinct or call.function == "count_distinct" else ""
    kept = "" if call.filter is None else f" FILTER (WHERE {render(call.filter)})"
    return f"{name}({distinct}{', '.join((args, *call.params))}){kept}"


def _call(call: Call) -> tuple[str, int]:
    name, args = call.function, call.args
    if name == "py_rows":  # both arguments are the same, as columns and row by row
        return _render(args[0])
    match name:
        case "not":
            return f"NOT {_inside(args[0], _NOT)}", _NOT
        case "neg":
            return f"-{_inside(args[0], _SIGN + 1)}", _SIGN
        case "is_null" | "is_not_null":
            test = "IS NULL" if name == "is_null" else "IS NOT NULL"
            return f"{_inside(args[0], _SUM)} {test}", _COMPARE
        case "in":
            return f"{_inside(args[0], _SUM)} IN ({_listed(args[1:])})", _COMPARE
        case "py_matches":  # the text, and the pattern as it was written
            return f"MATCHES({_listed((args[0], args[2]))})", _WHOLE
        case "field" if isinstance(args[1], Literal):
            return f"{_inside(args[0], _WHOLE)}.{args[1].value}", _WHOLE
        case "extract" if isinstance(args[0], Literal):
            return f"EXTRACT({args[0].value} FROM {render(args[1])})", _WHOLE
        case "formatted_time":
            return f"{_format_name(call)}({_listed(args[:2])})", _WHOLE
        case "truncated_mod":
            return f"MOD({_listed(args)})", _WHOLE
    if name in _INFIX and len(args) > 1:
        return _infix(call)
    return f"{name.removeprefix('py_').upper()}({_listed(args)})", _WHOLE


def function_text(call: Call) -> str:
    """Return the function of a call as a script writes it, for messages.

    >>> function_text(Call("gt", ())), function_text(Call("abs", ()))
    ('`>`', 'ABS')
    """
    name = call.function
    if name == "formatted_time":
        return _format_name(call)
    if name == "truncated_mod":
        return "MOD"
    sign = _INFIX[name][0] if name in _INFIX else ""
    return _NAMES.get(name) or (f"`{sign}`" if sign else name.removeprefix("py_").upper())


def _format_name(call: Call) -> str:
    style = call.args[-1] if call.args else None
    is_code = isinstance(style, Literal) and style.value == "codes"
    return "STRFTIME" if is_code else "DATE_FORMAT"


def _infix(call: Call) -> tuple[str, int]:
    sign, binds = _INFIX[call.function]
    # a - (b - c) keeps its parentheses, a AND (b AND c) does not need them.
    inner = binds if call.function in _CHAINED else binds + 1
    first = _inside(call.args[0], binds if binds != _COMPARE else binds + 1)
    return f" {sign} ".join([first, *(_inside(a, inner) for a in call.args[1:])]), binds


def _inside(expr: Expr, least: int) -> str:
    text, binds = _render(expr)
    return text if binds >= least else f"({text})"


def _listed(exprs: Sequence[Expr]) -> str:
    return ", ".join(map(render, exprs))


def render_value(value: object) -> str:
    """Return a constant as a script writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return format(value, "f")
        case tuple() | list():
            return f"[{', '.join(map(render_value, value))}]"
    return str(value)
