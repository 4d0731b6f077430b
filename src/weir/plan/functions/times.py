"""Times and dates."""

from __future__ import annotations

from dataclasses import replace

from weir.errors import PlanError
from weir.events.types import BIGINT, DATE, STRING, TIMESTAMP
from weir.plan.expressions import Call, Expr, Literal
from weir.plan.functions.built_in import BuiltIn, always
from weir.plan.functions.coercion import coerce, type_of, widens
from weir.plan.functions.rules import (
    argument_as,
    check_count,
    constant_at,
    fixed,
    one_of,
    rule_error,
    with_type,
)
from weir.plan.functions.time_formats import code_format, letter_format

DATE_UNITS = ("year", "quarter", "month", "week", "day")
TIME_UNITS = ("hour", "minute", "second", "millisecond", "microsecond")
_FIELD_UNITS = ("dow", "doy", "epoch")


def _unit(call: Call, index: int, allowed: tuple[str, ...]) -> None:
    unit = constant_at(call, index).value
    if unit not in allowed:
        raise rule_error(call, f"unknown unit {unit!r} here", hint=f"one of {', '.join(allowed)}")


def _moment(call: Call, index: int) -> Expr:
    """Return the argument; it must be a TIMESTAMP or a DATE."""
    arg = call.args[index]
    return arg if type_of(arg) == DATE else argument_as(call, index, TIMESTAMP)


def _truncate(call: Call) -> Call:
    check_count(call, 2, 2)
    moment = _moment(call, 1)
    _unit(call, 0, DATE_UNITS if type_of(moment) == DATE else DATE_UNITS + TIME_UNITS)
    return with_type(call, (call.args[0], moment), type_of(moment))


def _extract(call: Call) -> Call:
    check_count(call, 2, 2)
    moment = _moment(call, 1)
    units = DATE_UNITS if type_of(moment) == DATE else DATE_UNITS + TIME_UNITS
    _unit(call, 0, units + _FIELD_UNITS)
    return with_type(call, (call.args[0], moment), BIGINT)


def _date_add(call: Call) -> Call:
    check_count(call, 2, 3)
    moment = _moment(call, 0)
    if len(call.args) == 2:
        # Days for a DATE; ticks for a TIMESTAMP, as a duration such as 5ms has.
        unit = "day" if type_of(moment) == DATE else "microsecond"
        call = replace(call, args=(*call.args, Literal(unit, type=STRING)))
    _unit(call, 2, DATE_UNITS if type_of(moment) == DATE else DATE_UNITS + TIME_UNITS)
    return with_type(call, (moment, argument_as(call, 1, BIGINT), call.args[2]), type_of(moment))


def _formatted_time(call: Call) -> Call:
    if len(call.args) != 3:
        raise rule_error(
            call, "takes a time and a format", hint="as in DATE_FORMAT(t, 'yyyy-MM-dd')"
        )
    moment, style = _moment(call, 0), constant_at(call, 2).value
    if type_of(call.args[1]) != STRING:
        raise rule_error(call, "argument 2 must be a format, a constant text")
    form = str(constant_at(call, 1).value)
    try:
        letter_format(form) if style == "letters" else code_format(form)
    except PlanError as error:
        raise PlanError(error.message, position=call.position, hint=error.hint) from None
    return with_type(call, (moment, *call.args[1:]), STRING)


def _to_timestamp(call: Call) -> Call:
    check_count(call, 1, 2)
    if len(call.args) == 2:
        typed_call = fixed(STRING, STRING, result=TIMESTAMP, constant=(1,))(call)
        form = constant_at(typed_call, 1).value
        if form is not None and "%" not in str(form):
            hint = "expected codes with a %, such as '%Y-%m-%d %H:%M:%S'"
            raise rule_error(call, f"invalid time format '{form}'", hint=hint)
        return typed_call
    if widens(type_of(call.args[0]), BIGINT):
        return with_type(call, (coerce(call.args[0], BIGINT),), TIMESTAMP)
    return one_of(STRING, DATE, TIMESTAMP, result=TIMESTAMP)(call)


def _date_may_be_too_far(call: Call) -> bool:
    return bool(call.args[1].type != TIMESTAMP)  # a DATE may lie beyond all TIMESTAMPs


FUNCTIONS = (
    BuiltIn(
        "date_trunc",
        "DATE_TRUNC('unit' STRING, t TIME)",
        "the type of `t`; weeks start on Monday",
        _truncate,
        fails=_date_may_be_too_far,
        unit=0,
    ),
    BuiltIn(
        "extract",
        "EXTRACT('unit' STRING, t TIME)",
        "BIGINT; `EXTRACT(unit FROM t)` is the same. `second` is whole, `week` ISO, `dow` 0 on "
        "Sunday, `epoch` whole seconds",
        _extract,
        fails=_date_may_be_too_far,
        other_names=("date_part",),
        unit=0,
    ),
    BuiltIn(
        "date_add",
        "DATE_ADD(t TIME, n BIGINT [, 'unit' STRING])",
        "the type of `t`; without a unit, days for a DATE and a duration (ticks) for a TIMESTAMP; "
        "months keep the day, or take the month's last",
        _date_add,
        fails=always,
        unit=2,
    ),
    BuiltIn(
        "to_timestamp",
        "TO_TIMESTAMP(x STRING or BIGINT or TIME [, 'format' STRING])",
        "TIMESTAMP, of ISO 8601 text, ticks or a DATE; or of text by a strptime format",
        _to_timestamp,
        fails=always,
    ),
    BuiltIn(
        "formatted_time",
        "DATE_FORMAT(t, 'format')",
        "STRING; STRFTIME is the same [by other formats](#what-other-dialects-write)",
        _formatted_time,
        fails=always,
    ),
)
