"""Comparisons, logic, and functions that choose between values."""

from __future__ import annotations

from weir.events.types import (
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    is_integer,
    is_numeric,
    type_name,
)
from weir.plan.expressions import Call, Literal
from weir.plan.functions.built_in import BuiltIn, Nulls, never
from weir.plan.functions.coercion import type_of
from weir.plan.functions.rules import alike, argument_as, check_count, with_type
from weir.plan.render import function_text, render

_PARENTHESES = 'each comparison stands in parentheses: (col("v") > 3) & (col("w") > 1)'


def _hints(call: Call) -> tuple[str, str]:
    """Return hints, for a script and for Python, to give both sides of a comparison one type."""
    hint = _script_hint(call)
    python = f"in a text or weir.expr(…) {hint}" if hint else ""
    if hint and TIMESTAMP in map(type_of, call.args):
        python = f"compare with a datetime; or {python}"
    return hint, python


def _script_hint(call: Call) -> str:
    (left, right), sign = call.args, f" {function_text(call).strip('`')} "
    if {type_of(left), type_of(right)} == {TIMESTAMP, DATE}:
        text = render(left if type_of(left) == TIMESTAMP else right)
        return f"write CAST({text} AS DATE)"
    for value, other, first in ((left, right, True), (right, left, False)):
        if not isinstance(value, Literal) or isinstance(other, Literal):
            continue
        kind, text = type_of(other), render(other)
        ways: list[tuple[str, str]] = []
        if isinstance(value.value, str) and kind in (TIMESTAMP, DATE):
            ways.append((text, f"{type_name(kind)} {render(value)}"))
        elif isinstance(value.value, str) and is_numeric(kind):
            plain = value.value.strip()
            is_number = plain.lstrip("+-").replace(".", "", 1).isdecimal()
            ways.append((text, plain) if is_number else (f"CAST({text} AS STRING)", render(value)))
        elif kind == STRING and is_numeric(type_of(value)):
            ways.append((f"CAST({text} AS {type_name(type_of(value))})", render(value)))
            ways.append((text, f"'{render(value)}'"))
        elif kind == BOOLEAN and value.value in (0, 1):
            return f"write {text}, or NOT {text}: a BOOLEAN is a condition by itself"
        elif kind == TIMESTAMP and is_integer(type_of(value)):
            return f"write {text}{sign}TIMESTAMP '2024-01-31T08:00:00Z', or TO_TIMESTAMP(ticks)"
        options = (sign.join((b, a) if first else (a, b)) for a, b in ways)
        return "write " + ", or ".join(options) if ways else ""
    return ""


def _connective(call: Call) -> Call:
    check_count(call, 2, None)
    args = tuple(argument_as(call, i, BOOLEAN, _PARENTHESES) for i in range(len(call.args)))
    return with_type(call, args, BOOLEAN)


def _negation(call: Call) -> Call:
    check_count(call, 1, 1)
    return with_type(call, (argument_as(call, 0, BOOLEAN),), BOOLEAN)


def _null_test(call: Call) -> Call:
    check_count(call, 1, 1)
    return with_type(call, call.args, BOOLEAN)


_COMPARISON = alike(least=2, most=2, result=BOOLEAN, hints=_hints)
_ONE_OR_MORE = alike(least=1, most=None)


def _comparison(name: str, signature: str, meaning: str) -> BuiltIn:
    return BuiltIn(name, signature, meaning, _COMPARISON, fails=never, sees_equals_alike=True)


FUNCTIONS = (
    _comparison("eq", "a = b", "BOOLEAN; `==` is the same"),
    _comparison("ne", "a <> b", "BOOLEAN; `!=` is the same"),
    _comparison("lt", "a < b", "BOOLEAN, by the order of [values](#types)"),
    _comparison("le", "a <= b", "BOOLEAN"),
    _comparison("gt", "a > b", "BOOLEAN"),
    _comparison("ge", "a >= b", "BOOLEAN"),
    BuiltIn(
        "in",
        "x IN (a, …)",
        "BOOLEAN; NULL if `x` is none of them and a NULL is among them",
        alike(least=2, most=None, result=BOOLEAN),
        fails=never,
        nulls=Nulls.ARE_SEEN,
        sees_equals_alike=True,
    ),
    BuiltIn(
        "and",
        "a AND b",
        "FALSE if one side is FALSE, else NULL if one is NULL",
        _connective,
        fails=never,
        nulls=Nulls.ARE_SEEN,
        sees_equals_alike=True,
    ),
    BuiltIn(
        "or",
        "a OR b",
        "TRUE if one side is TRUE, else NULL if one is NULL",
        _connective,
        fails=never,
        nulls=Nulls.ARE_SEEN,
        sees_equals_alike=True,
    ),
    BuiltIn("not", "NOT a", "BOOLEAN", _negation, fails=never, sees_equals_alike=True),
    BuiltIn(
        "is_null",
        "x IS NULL",
        "BOOLEAN, never NULL",
        _null_test,
        fails=never,
        nulls=Nulls.ARE_TESTED,
        sees_equals_alike=True,
    ),
    BuiltIn(
        "is_not_null",
        "x IS NOT NULL",
        "BOOLEAN, never NULL",
        _null_test,
        fails=never,
        nulls=Nulls.ARE_TESTED,
        sees_equals_alike=True,
    ),
    BuiltIn(
        "coalesce",
        "COALESCE(a T, …)",
        "the first that is not NULL",
        _ONE_OR_MORE,
        fails=never,
        nulls=Nulls.ARE_SEEN,
        other_names=("ifnull", "nvl"),
    ),
    BuiltIn(
        "nullif",
        "NULLIF(a T, b T)",
        "NULL if they are equal, else `a`",
        alike(least=2, most=2),
        fails=never,
        nulls=Nulls.ARE_SEEN,
    ),
    BuiltIn(
        "greatest",
        "GREATEST(a T, …)",
        "the largest, without NULLs; NULL if all are",
        _ONE_OR_MORE,
        fails=never,
        nulls=Nulls.ARE_SEEN,
    ),
    BuiltIn(
        "least",
        "LEAST(a T, …)",
        "the smallest, without NULLs; NULL if all are",
        _ONE_OR_MORE,
        fails=never,
        nulls=Nulls.ARE_SEEN,
    ),
)
