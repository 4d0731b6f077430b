"""Tells which expressions can fail at run time.

A failure is part of a program's answer, so no rewrite may add one or take one away: an
expression that can fail is evaluated on exactly the rows it was written for. `can_fail` is
cautious: False is a promise, True is not.
"""

from __future__ import annotations

import pyarrow as pa

from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, STRING, TIMESTAMP, is_numeric
from weir.plan.expressions import Call, Case, Cast, Column, Expr, Literal, UserCall, walk

_COMPARING = frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "in", "and", "or", "not", "is_null", "is_not_null")
)
_TOTAL = _COMPARING | {
    *("coalesce", "nullif", "greatest", "least"),
    *("div", "sqrt", "exp", "ln", "log10", "power", "sign"),
    *("like", "rlike", "regexp_extract", "starts_with", "ends_with", "contains"),
    *("length", "lower", "upper", "trim", "ltrim", "rtrim", "reverse"),
    *("concat", "substring", "replace", "split", "md5", "sha256", "xxhash64"),
    *("array_length", "array_contains", "element_at", "field"),
}
_CHECKED = frozenset(("add", "sub", "mul", "neg", "abs", "round", "floor", "ceil"))


def can_fail(expr: Expr) -> bool:
    """Tell whether some value could make the expression fail.

    >>> v = Column("v", type=BIGINT)
    >>> can_fail(Call("lt", (v, v), type=BOOLEAN)), can_fail(Call("add", (v, v), type=BIGINT))
    (False, True)
    """
    return any(_fails_itself(part) for part in walk(expr))


def _fails_itself(expr: Expr) -> bool:
    """Tell whether this very node can fail when its arguments do not."""
    match expr:
        case Column() | Literal() | Case():
            return False
        case Cast():
            return not expr.lenient and not _cast_is_total(expr.arg.type, expr.type)
        case Call():
            return expr.function not in _TOTAL and not _call_is_total(expr)
        case UserCall():
            return True
    raise TypeError(f"{type(expr).__name__} does not occur in plans")


def _call_is_total(call: Call) -> bool:
    name, args = call.function, call.args
    if name in _CHECKED:
        return bool(call.type == DOUBLE)
    if name in ("floordiv", "mod", "truncated_mod"):
        return bool(call.type == DOUBLE) or _divides(name, args[1])
    if name == "split_part":
        return isinstance(args[2], Literal) and args[2].value != 0
    if name in ("date_trunc", "extract"):
        return bool(args[1].type == TIMESTAMP)  # a DATE may lie beyond all TIMESTAMPs
    return False


def _divides(name: str, divisor: Expr) -> bool:
    # The smallest integer // −1 does not fit.
    refused = (0, -1) if name == "floordiv" else (0,)
    return isinstance(divisor, Literal) and divisor.value not in (None, *refused)


def _cast_is_total(source: pa.DataType | None, target: pa.DataType | None) -> bool:
    if source is None or target is None:
        return False
    if source in (target, NULL):
        return True
    if pa.types.is_list(source) and pa.types.is_list(target):
        return _cast_is_total(source.value_type, target.value_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return all(_cast_is_total(a.type, b.type) for a, b in zip(source, target, strict=True))
    if target in (STRING, DOUBLE, BOOLEAN):
        return is_numeric(source) or bool(source == BOOLEAN)
    if target == BIGINT:
        return source in (INT, BOOLEAN, TIMESTAMP)
    return bool(target == TIMESTAMP and source == BIGINT)


def sees_equals_alike(predicate: Expr) -> bool:
    """Tell whether the predicate has one value for all payloads that are equal.

    A group is represented by one of its rows, and −0.0 = 0.0 while 1 / −0.0 < 1 / 0.0.
    """
    parts = list(walk(predicate))
    columns = [p for p in parts if isinstance(p, Column)]
    if not any(_has_doubles(c.type) for c in columns):
        return True
    return not any(
        isinstance(p, Cast | Case | UserCall)
        or (isinstance(p, Call) and p.function not in _COMPARING)
        for p in parts
    )


def _has_doubles(dtype: pa.DataType | None) -> bool:
    return dtype is None or dtype == DOUBLE or bool(pa.types.is_nested(dtype))
