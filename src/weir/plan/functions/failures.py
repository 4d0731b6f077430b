"""Decides which expressions can fail at run time.

A failure is part of a program's answer, so no rewrite may add or remove one: an expression that can
fail is evaluated on exactly the rows that it was written for. `can_fail` is cautious: False is a
promise, True is not.
"""

from __future__ import annotations

import pyarrow as pa

from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, STRING, TIMESTAMP, is_numeric
from weir.plan.expressions import Call, Case, Cast, Column, Expr, Literal, UserCall, walk
from weir.plan.functions import FUNCTIONS


def can_fail(expr: Expr) -> bool:
    """Tell whether some value could make the expression fail.

    >>> v = Column("v", type=BIGINT)
    >>> can_fail(Call("lt", (v, v), type=BOOLEAN)), can_fail(Call("add", (v, v), type=BIGINT))
    (False, True)
    """
    return any(_fails_itself(part) for part in walk(expr))


def _fails_itself(expr: Expr) -> bool:
    """Tell whether this node itself can fail when its arguments do not."""
    match expr:
        case Column() | Literal() | Case():
            return False
        case Cast():
            return not expr.lenient and not _cast_is_total(expr.arg.type, expr.type)
        case Call():
            # Functions that handlers are compiled to (`py_add`) do not belong to the language.
            return expr.function not in FUNCTIONS or FUNCTIONS[expr.function].fails(expr)
        case UserCall():
            return True
    raise TypeError(f"{type(expr).__name__} does not occur in plans")


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
    """Tell whether the predicate returns the same for all equal payloads.

    A group is represented by one of its rows, and −0.0 = 0.0, although 1 / −0.0 < 1 / 0.0.
    """
    parts = list(walk(predicate))
    columns = [p for p in parts if isinstance(p, Column)]
    if not any(_has_doubles(c.type) for c in columns):
        return True
    return not any(
        isinstance(p, Cast | Case | UserCall) or (isinstance(p, Call) and not _is_blind(p.function))
        for p in parts
    )


def _is_blind(name: str) -> bool:
    return name in FUNCTIONS and FUNCTIONS[name].sees_equals_alike


def _has_doubles(dtype: pa.DataType | None) -> bool:
    return dtype is None or dtype == DOUBLE or bool(pa.types.is_nested(dtype))
