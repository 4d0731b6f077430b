"""Arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from weir.events.types import BIGINT, DOUBLE, NULL, STRING, TIMESTAMP, is_integer, is_numeric
from weir.plan.expressions import Call, Expr, Literal
from weir.plan.functions.built_in import BuiltIn, never, unless_double
from weir.plan.functions.coercion import (
    coerce,
    common_type_of,
    decimal,
    decimal_of,
    type_of,
    widens,
)
from weir.plan.functions.rules import (
    argument_as,
    check_count,
    constant_at,
    fixed,
    rule_error,
    type_names,
    with_type,
)


def _arithmetic(call: Call) -> Call:
    check_count(call, 2, 2)
    if any(type_of(a) == TIMESTAMP for a in call.args):
        return _time_arithmetic(call)
    shared = _number(call)
    if is_integer(shared):
        shared = BIGINT
    if not pa.types.is_decimal(shared):
        return with_type(call, tuple(coerce(a, shared) for a in call.args), shared)
    if call.function == "mul":
        return _decimal_product(call)
    if call.function in ("floordiv", "mod", "truncated_mod"):
        raise rule_error(call, "does not take DECIMAL", hint="CAST to BIGINT or DOUBLE")
    args = tuple(coerce(a, shared) for a in call.args)
    return with_type(call, args, decimal(shared.precision + 1, shared.scale))


def _number(call: Call) -> pa.DataType:
    shared = common_type_of(type_of(a) for a in call.args)
    if shared == NULL:
        return BIGINT
    if shared is None or not is_numeric(shared):
        hint, python = "CAST one of them", "cast one of them: .cast('DOUBLE')"
        if call.function == "add" and shared == STRING:
            hint = "texts are joined by ||"
            python = "texts are joined by weir.call('concat', …), or weir.expr(\"a || 'x'\")"
        raise rule_error(
            call, f"takes numbers, not {type_names(call.args)}", hint=hint, python=python
        )
    return shared


def _time_arithmetic(call: Call) -> Call:
    left, right = call.args
    if call.function == "add" and type_of(right) == TIMESTAMP:
        left, right = right, left
    if call.function in ("add", "sub") and type_of(left) == TIMESTAMP:
        if widens(type_of(right), BIGINT):
            return with_type(call, (left, coerce(right, BIGINT)), TIMESTAMP)
        if call.function == "sub" and type_of(right) == TIMESTAMP:
            return with_type(call, (left, right), BIGINT)
    raise rule_error(
        call, f"does not take {type_names(call.args)}", hint="a time moves by BIGINT ticks"
    )


def _decimal_product(call: Call) -> Call:
    args = tuple(coerce(a, _as_decimal(a)) for a in call.args)
    left, right = (type_of(a) for a in args)
    if left.scale + right.scale > 38:
        raise rule_error(
            call, f"{type_names(args)} have too many decimals", hint="CAST one of them"
        )
    return with_type(
        call, args, decimal(left.precision + right.precision + 1, left.scale + right.scale)
    )


def _as_decimal(arg: Expr) -> pa.DataType:
    # A literal needs only its own digits: 2 * price must not use up 19 of the 38.
    if isinstance(arg, Literal) and isinstance(arg.value, int):
        return pa.decimal128(len(str(abs(arg.value))), 0)
    return decimal(1, 0) if type_of(arg) == NULL else decimal_of(type_of(arg))


def _same_number(call: Call) -> Call:
    check_count(call, 1, 1)
    shared = _number(call)
    return with_type(call, (coerce(call.args[0], shared),), shared)


def _sign(call: Call) -> Call:
    call = _same_number(call)
    return replace(call, type=DOUBLE if call.type == DOUBLE else BIGINT)


def _whole(call: Call) -> Call:
    call = _same_number(call)
    dtype = type_of(call)
    if not pa.types.is_decimal(dtype):
        return call
    return replace(call, type=decimal(dtype.precision - dtype.scale + 1, 0))


def _rounding(call: Call) -> Call:
    check_count(call, 1, 2)
    dtype = _number(replace(call, args=call.args[:1]))
    args = [coerce(call.args[0], dtype)]
    if len(call.args) == 2:
        constant_at(call, 1)
        args.append(argument_as(call, 1, BIGINT))
    grown = pa.types.is_decimal(dtype)
    return with_type(
        call, tuple(args), decimal(dtype.precision + 1, dtype.scale) if grown else dtype
    )


def _unless_divided_by_other_than(*refused: int) -> Callable[[Call], bool]:
    """Return a test whether a division can fail.

    It is false for doubles, and for literal divisors other than the `refused` ones."""

    def fails(call: Call) -> bool:
        divisor = call.args[1]
        divides = isinstance(divisor, Literal) and divisor.value not in (None, *refused)
        return unless_double(call) and not divides

    return fails


_REAL = fixed(DOUBLE, result=DOUBLE)
_TWO_REALS = fixed(DOUBLE, DOUBLE, result=DOUBLE)

FUNCTIONS = (
    BuiltIn(
        "add",
        "a + b",
        "BIGINT of integers, DOUBLE where one is a DOUBLE, else a DECIMAL with a digit more; "
        "TIMESTAMP of a TIMESTAMP and a duration (ticks)",
        _arithmetic,
        fails=unless_double,
    ),
    BuiltIn(
        "sub",
        "a - b",
        "as `+`; BIGINT of two TIMESTAMPs, the ticks between them",
        _arithmetic,
        fails=unless_double,
    ),
    BuiltIn(
        "mul",
        "a * b",
        "as `+`; DECIMAL(p + q + 1, s + t) of DECIMAL(p, s) and DECIMAL(q, t)",
        _arithmetic,
        fails=unless_double,
    ),
    BuiltIn("div", "a / b", "DOUBLE, by IEEE rules", _TWO_REALS, fails=never),
    BuiltIn(
        "floordiv",
        "a // b",
        "BIGINT or DOUBLE, rounded down; an integer divided by 0 is an error",
        _arithmetic,
        # The smallest integer // −1 does not fit.
        fails=_unless_divided_by_other_than(0, -1),
    ),
    BuiltIn(
        "mod",
        "a % b",
        "the remainder of `//`, with the sign of `b`: `a = b * (a // b) + a % b`",
        _arithmetic,
        fails=_unless_divided_by_other_than(0),
    ),
    BuiltIn(
        "truncated_mod",
        "MOD(a, b)",
        "the remainder with the sign of `a`",
        _arithmetic,
        fails=_unless_divided_by_other_than(0),
        other_names=("mod",),
    ),
    BuiltIn("neg", "-x", "the type of `x`", _same_number, fails=unless_double),
    BuiltIn("abs", "ABS(x NUMBER)", "the type of `x`", _same_number, fails=unless_double),
    BuiltIn(
        "sign",
        "SIGN(x NUMBER)",
        "-1, 0 or 1: DOUBLE of a DOUBLE, BIGINT of other numbers",
        _sign,
        fails=never,
    ),
    BuiltIn(
        "round",
        "ROUND(x NUMBER [, 'digits' BIGINT])",
        "the type of `x`, a DECIMAL with a digit more; half away from zero, of a double's "
        "shortest decimal text",
        _rounding,
        fails=unless_double,
    ),
    BuiltIn(
        "floor",
        "FLOOR(x NUMBER)",
        "the type of `x`, a DECIMAL without decimals; rounded down",
        _whole,
        fails=unless_double,
    ),
    BuiltIn(
        "ceil",
        "CEIL(x NUMBER)",
        "as FLOOR, rounded up",
        _whole,
        fails=unless_double,
        other_names=("ceiling",),
    ),
    BuiltIn("sqrt", "SQRT(x DOUBLE)", "DOUBLE, by IEEE rules", _REAL, fails=never),
    BuiltIn("exp", "EXP(x DOUBLE)", "DOUBLE, by IEEE rules", _REAL, fails=never),
    BuiltIn("ln", "LN(x DOUBLE)", "DOUBLE, by IEEE rules", _REAL, fails=never),
    BuiltIn("log10", "LOG10(x DOUBLE)", "DOUBLE, by IEEE rules", _REAL, fails=never),
    BuiltIn(
        "power",
        "POWER(x DOUBLE, y DOUBLE)",
        "DOUBLE, by IEEE rules",
        _TWO_REALS,
        fails=never,
        other_names=("pow",),
    ),
)
