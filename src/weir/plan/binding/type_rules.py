"""The type rules of the built-in functions.

A rule takes a call with bound arguments and gives it back with its type and with its arguments
cast to what the evaluator gets, or raises a PlanError that names the function.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import PlanError
from weir.events.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    is_integer,
    is_numeric,
    type_name,
)
from weir.plan.binding.coercion import coerce, common_type_of, decimal, decimal_of, type_of, widens
from weir.plan.expressions import Call, Expr, Literal
from weir.plan.render import COMPARISONS, function_text, render
from weir.plan.time_formats import code_format, letter_format

Rule: TypeAlias = Callable[[Call], Call]

DATE_UNITS = ("year", "quarter", "month", "week", "day")
TIME_UNITS = ("hour", "minute", "second", "millisecond", "microsecond")
FIELD_UNITS = ("dow", "doy", "epoch")


# --- what rules are made of ----------------------------------------------------------------


def _made(call: Call, args: tuple[Expr, ...], result: pa.DataType) -> Call:
    return replace(call, args=args, type=result)


def _error(call: Call, message: str, hint: str = "", python: str = "") -> PlanError:
    text = f"{function_text(call)}: {message}"
    return PlanError(text, position=call.position, hint=hint, python=python)


def _names(args: tuple[Expr, ...]) -> str:
    return " and ".join(type_name(type_of(a)) for a in args)


def _count(call: Call, least: int, most: int | None = None) -> None:
    count = len(call.args)
    if count < least or (most is not None and count > most):
        arity = f"{least}" if most == least else f"{least} to {most}" if most else f"{least}+"
        raise _error(call, f"takes {arity} argument(s), not {count}")


def _as(call: Call, index: int, target: pa.DataType) -> Expr:
    arg = call.args[index]
    if not widens(type_of(arg), target):
        name = type_name(target)
        raise _error(
            call,
            f"argument {index + 1} must be {name}, not {type_name(type_of(arg))}",
            hint=f"CAST(… AS {name})",
            python='each comparison stands in parentheses: (col("v") > 3) & (col("w") > 1)'
            if call.function in ("and", "or")
            else f"….cast({name!r})",
        )
    return coerce(arg, target)


def _constant(call: Call, index: int) -> Literal:
    arg = call.args[index]
    if not isinstance(arg, Literal) or arg.value is None:
        raise _error(call, f"argument {index + 1} must be a constant")
    return arg


def _shared(call: Call) -> pa.DataType:
    shared = common_type_of(type_of(a) for a in call.args)
    if shared is None:
        hint = _meeting_hint(call)
        python = f"in a text or weir.expr(…) {hint}" if hint else "cast one of them: .cast('INT')"
        if hint and TIMESTAMP in map(type_of, call.args):
            python = f"compare with a datetime; or {python}"
        message = f"{_names(call.args)} do not go together"
        raise _error(call, message, hint=hint or "CAST one of them", python=python)
    return shared


def _meeting_hint(call: Call) -> str:
    """Say how two sides of a comparison could be written so that they have one type."""
    if call.function not in COMPARISONS or len(call.args) != 2:
        return ""
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
        said = (sign.join((b, a) if first else (a, b)) for a, b in ways)
        return "write " + ", or ".join(said) if ways else ""
    return ""


def _same(call: Call, result: pa.DataType | None = None) -> Call:
    shared = _shared(call)
    return _made(call, tuple(coerce(a, shared) for a in call.args), result or shared)


# --- rules ---------------------------------------------------------------------------------


def fixed(
    *types: pa.DataType,
    result: pa.DataType,
    least: int | None = None,
    constant: tuple[int, ...] = (),
    default: object = None,
) -> Rule:
    """Make a rule for arguments of these types, the last ones optional from `least` on.

    Arguments at the indices `constant` must be literals; a missing last argument becomes the
    literal `default` if there is one.
    """

    def rule(call: Call) -> Call:
        _count(call, len(types) if least is None else least, len(types))
        args = tuple(_as(call, i, types[i]) for i in range(len(call.args)))
        for index in constant:
            if index < len(args):
                _constant(call, index)
        if default is not None and len(args) < len(types):
            args = (*args, Literal(default, type=types[-1]))
        return _made(call, args, result)

    return rule


def alike(*, least: int, most: int | None, result: pa.DataType | None = None) -> Rule:
    """Make a rule for arguments of one type, which is the result's unless `result` is set."""

    def rule(call: Call) -> Call:
        _count(call, least, most)
        return _same(call, result)

    return rule


def variadic(dtype: pa.DataType, least: int) -> Rule:
    """Make a rule for any number of arguments of this type, which is also the result's."""

    def rule(call: Call) -> Call:
        _count(call, least)
        return _made(call, tuple(_as(call, i, dtype) for i in range(len(call.args))), dtype)

    return rule


def one_of(*types: pa.DataType, result: pa.DataType) -> Rule:
    """Make a rule for one argument, of one of these types; NULL counts as the first."""

    def rule(call: Call) -> Call:
        _count(call, 1, 1)
        dtype = type_of(call.args[0])
        if dtype in types:
            return _made(call, call.args, result)
        return _made(call, (_as(call, 0, types[0]),), result)

    return rule


def arithmetic(call: Call) -> Call:
    _count(call, 2, 2)
    if any(type_of(a) == TIMESTAMP for a in call.args):
        return _time_arithmetic(call)
    shared = _number(call)
    if is_integer(shared):
        shared = BIGINT
    if not pa.types.is_decimal(shared):
        return _made(call, tuple(coerce(a, shared) for a in call.args), shared)
    if call.function == "mul":
        return _decimal_product(call)
    if call.function in ("floordiv", "mod", "truncated_mod"):
        raise _error(call, "does not take DECIMAL", hint="CAST to BIGINT or DOUBLE")
    args = tuple(coerce(a, shared) for a in call.args)
    return _made(call, args, decimal(shared.precision + 1, shared.scale))


def _number(call: Call) -> pa.DataType:
    shared = common_type_of(type_of(a) for a in call.args)
    if shared == NULL:
        return BIGINT
    if shared is None or not is_numeric(shared):
        hint, python = "CAST one of them", "cast one of them: .cast('DOUBLE')"
        if call.function == "add" and shared == STRING:
            hint = "texts are joined by ||"
            python = "texts are joined by weir.call('concat', …), or weir.expr(\"a || 'x'\")"
        raise _error(call, f"takes numbers, not {_names(call.args)}", hint=hint, python=python)
    return shared


def _time_arithmetic(call: Call) -> Call:
    left, right = call.args
    if call.function == "add" and type_of(right) == TIMESTAMP:
        left, right = right, left
    if call.function in ("add", "sub") and type_of(left) == TIMESTAMP:
        if widens(type_of(right), BIGINT):
            return _made(call, (left, coerce(right, BIGINT)), TIMESTAMP)
        if call.function == "sub" and type_of(right) == TIMESTAMP:
            return _made(call, (left, right), BIGINT)
    raise _error(call, f"does not take {_names(call.args)}", hint="a time moves by BIGINT ticks")


def _decimal_product(call: Call) -> Call:
    args = tuple(coerce(a, _as_decimal(a)) for a in call.args)
    left, right = (type_of(a) for a in args)
    if left.scale + right.scale > 38:
        raise _error(call, f"{_names(args)} have too many decimals", hint="CAST one of them")
    return _made(
        call, args, decimal(left.precision + right.precision + 1, left.scale + right.scale)
    )


def _as_decimal(arg: Expr) -> pa.DataType:
    # A written number needs its own digits only: 2 * price must not cost 19 of the 38.
    if isinstance(arg, Literal) and isinstance(arg.value, int):
        return pa.decimal128(len(str(abs(arg.value))), 0)
    return decimal(1, 0) if type_of(arg) == NULL else decimal_of(type_of(arg))


def same_number(call: Call) -> Call:
    _count(call, 1, 1)
    shared = _number(call)
    result = shared
    if call.function == "sign" and shared != DOUBLE:
        result = BIGINT
    if call.function in ("floor", "ceil") and pa.types.is_decimal(shared):
        result = decimal(shared.precision - shared.scale + 1, 0)
    return _made(call, (coerce(call.args[0], shared),), result)


def rounding(call: Call) -> Call:
    _count(call, 1, 2)
    dtype = _number(replace(call, args=call.args[:1]))
    args = [coerce(call.args[0], dtype)]
    if len(call.args) == 2:
        _constant(call, 1)
        args.append(_as(call, 1, BIGINT))
    grown = pa.types.is_decimal(dtype)
    return _made(call, tuple(args), decimal(dtype.precision + 1, dtype.scale) if grown else dtype)


def logic(call: Call) -> Call:
    _count(call, *((1, 1) if call.function == "not" else (2, None)))
    args = tuple(_as(call, i, BOOLEAN) for i in range(len(call.args)))
    return _made(call, args, BOOLEAN)


def null_test(call: Call) -> Call:
    _count(call, 1, 1)
    return _made(call, call.args, BOOLEAN)


def _unit(call: Call, index: int, allowed: tuple[str, ...]) -> None:
    unit = _constant(call, index).value
    if unit not in allowed:
        raise _error(call, f"unknown unit {unit!r} here", hint=f"one of {', '.join(allowed)}")


def _moment(call: Call, index: int) -> Expr:
    """Return the argument, which must be a TIMESTAMP or a DATE."""
    arg = call.args[index]
    return arg if type_of(arg) == DATE else _as(call, index, TIMESTAMP)


def truncate(call: Call) -> Call:
    _count(call, 2, 2)
    moment = _moment(call, 1)
    _unit(call, 0, DATE_UNITS if type_of(moment) == DATE else DATE_UNITS + TIME_UNITS)
    return _made(call, (call.args[0], moment), type_of(moment))


def extract(call: Call) -> Call:
    _count(call, 2, 2)
    moment = _moment(call, 1)
    units = DATE_UNITS if type_of(moment) == DATE else DATE_UNITS + TIME_UNITS
    _unit(call, 0, units + FIELD_UNITS)
    return _made(call, (call.args[0], moment), BIGINT)


def with_pattern(rule: Rule) -> Rule:
    """Extend a rule: its second argument is a regular expression that must compile."""

    def checked(call: Call) -> Call:
        typed_call = rule(call)
        pattern = _constant(typed_call, 1).value
        try:
            pc.match_substring_regex(pa.array([""]), str(pattern))
        except pa.ArrowInvalid as error:
            raise _error(call, f"invalid regular expression {pattern!r}: {error}") from error
        return typed_call

    return checked


def date_add(call: Call) -> Call:
    _count(call, 2, 3)
    moment = _moment(call, 0)
    if len(call.args) == 2:
        # Days for a DATE; for a TIMESTAMP what a duration such as 5ms is: ticks.
        unit = "day" if type_of(moment) == DATE else "microsecond"
        call = replace(call, args=(*call.args, Literal(unit, type=STRING)))
    _unit(call, 2, DATE_UNITS if type_of(moment) == DATE else DATE_UNITS + TIME_UNITS)
    return _made(call, (moment, _as(call, 1, BIGINT), call.args[2]), type_of(moment))


def formatted_time(call: Call) -> Call:
    if len(call.args) != 3:
        raise _error(call, "takes a time and a format", hint="as in DATE_FORMAT(t, 'yyyy-MM-dd')")
    moment, style = _moment(call, 0), _constant(call, 2).value
    if type_of(call.args[1]) != STRING:
        raise _error(call, "argument 2 must be a format, a constant text")
    form = str(_constant(call, 1).value)
    try:
        letter_format(form) if style == "letters" else code_format(form)
    except PlanError as error:
        raise PlanError(error.message, position=call.position, hint=error.hint) from None
    return _made(call, (moment, *call.args[1:]), STRING)


def to_timestamp(call: Call) -> Call:
    _count(call, 1, 2)
    if len(call.args) == 2:
        typed_call = fixed(STRING, STRING, result=TIMESTAMP, constant=(1,))(call)
        form = _constant(typed_call, 1).value
        if form is not None and "%" not in str(form):
            hint = "expected codes with a %, such as '%Y-%m-%d %H:%M:%S'"
            raise _error(call, f"invalid time format '{form}'", hint=hint)
        return typed_call
    if widens(type_of(call.args[0]), BIGINT):
        return _made(call, (coerce(call.args[0], BIGINT),), TIMESTAMP)
    return one_of(STRING, DATE, TIMESTAMP, result=TIMESTAMP)(call)


def _list(call: Call, count: int) -> pa.DataType:
    _count(call, count, count)
    dtype = type_of(call.args[0])
    if dtype == NULL:
        return pa.list_(NULL)
    if not pa.types.is_list(dtype):
        raise _error(call, f"argument 1 must be a LIST, not {type_name(dtype)}")
    return dtype


def array_length(call: Call) -> Call:
    dtype = _list(call, 1)
    return _made(call, (coerce(call.args[0], dtype),), BIGINT)


def array_contains(call: Call) -> Call:
    element = _list(call, 2).value_type
    shared = _shared(replace(call, args=(Literal(None, type=element), call.args[1])))
    args = (coerce(call.args[0], pa.list_(shared)), coerce(call.args[1], shared))
    return _made(call, args, BOOLEAN)


def element_at(call: Call) -> Call:
    dtype = _list(call, 2)
    return _made(call, (coerce(call.args[0], dtype), _as(call, 1, BIGINT)), dtype.value_type)


def field(call: Call) -> Call:
    _count(call, 2, 2)
    struct, name = type_of(call.args[0]), _constant(call, 1).value
    if not pa.types.is_struct(struct):
        raise _error(call, f"{type_name(struct)} has no fields")
    for member in struct:
        if member.name == name:
            return _made(call, call.args, member.type)
    close = difflib.get_close_matches(str(name).lower(), [f.name.lower() for f in struct], n=1)
    meant = [f.name for f in struct if f.name.lower() in close]
    hint = f"did you mean `{meant[0]}`?" if meant else ""
    raise _error(call, f"no field `{name}` in {type_name(struct)}", hint=hint)
