"""Reads constants: numbers, strings, durations, typed literals, lists and parameters.

A duration is a BIGINT in ticks (µs). The value of a TIMESTAMP literal is an int of ticks since
1970, that of a DATE an int of days since 1970.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation

import pyarrow as pa
from sqlglot import exp

from weir.errors import ScriptError
from weir.events.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    type_name,
)
from weir.events.value_text import parse_dates, parse_timestamps
from weir.plan.durations import UNITS
from weir.plan.expressions import Literal
from weir.plan.functions.coercion import coerce, common_type_of, widens
from weir.plan.usercode.functions import NO_FUNCTIONS, UserFunctions
from weir.script.cursor import offset_of
from weir.script.source import ProgramSource, did_you_mean
from weir.script.tree import DurationLiteral, TypedLiteral

_MIN, _MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGERS = (BIGINT, INT)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter: its typed value, and its digits as written."""

    literal: Literal
    text: str


@dataclass(frozen=True, slots=True)
class StatementScope:
    """The text of a statement, and the parameters and functions that it may use."""

    source: ProgramSource
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    functions: UserFunctions = NO_FUNCTIONS

    def error(self, message: str, node: exp.Expr, hint: str = "") -> ScriptError:
        return self.source.error(message, offset_of(node), hint)


def literal(node: exp.Expr, scope: StatementScope) -> Literal | None:
    """Return the value of a constant, or None if the node is something else."""
    position = scope.source.position(offset_of(node))
    match node:
        case exp.Literal(is_string=True):
            return Literal(node.name, type=STRING, position=position)
        case exp.Literal():
            value = _number(node, scope, 1)
        case DurationLiteral():
            value = _duration(node, scope, 1)
        case exp.Neg(this=exp.Literal(is_string=False) as inner):
            value = _number(inner, scope, -1)
        case exp.Neg(this=DurationLiteral() as inner):
            value = _duration(inner, scope, -1)
        case exp.Null():
            return Literal(None, type=NULL, position=position)
        case exp.Boolean():
            return Literal(bool(node.this), type=BOOLEAN, position=position)
        case TypedLiteral():
            return _typed(node, scope)
        case exp.Array():
            return _list(node, scope)
        case exp.Parameter():
            constant = parameter(node, scope).literal
            return Literal(constant.value, type=constant.type, position=position)
        case _:
            return None
    dtype = DOUBLE if isinstance(value, float) else BIGINT
    return Literal(value, type=dtype, position=position)


def _number(node: exp.Expr, scope: StatementScope, sign: int) -> int | float:
    text = node.name
    if text.isdigit():
        # Python refuses to convert thousands of digits; 19 are enough for BIGINT.
        if len(text.lstrip("0")) > 19 or not _MIN <= sign * int(text) <= _MAX:
            raise scope.error(f"{text} does not fit BIGINT", node, "write it with a dot for DOUBLE")
        return sign * int(text)
    try:
        value = sign * float(text)
    except ValueError:
        raise scope.error(f"`{text}` is not a number", node) from None
    if math.isinf(value):
        raise scope.error(f"{text} does not fit DOUBLE", node)
    return value


def _duration(node: exp.Expr, scope: StatementScope, sign: int) -> int:
    amount, unit = str(node.this), str(node.args["unit"])
    ticks = int(amount) * UNITS[unit] if len(amount) <= 19 else _MAX + 1
    if ticks > _MAX:
        raise scope.error(f"{amount}{unit} is too long: its ticks do not fit BIGINT", node)
    return sign * ticks


def _typed(node: exp.Expr, scope: StatementScope) -> Literal:
    text = node.args["expression"]
    dtype = TIMESTAMP if node.this == "TIMESTAMP" else DATE
    try:
        value = moment(text.name, dtype)
    except ValueError:
        example = "2024-01-31T08:00:00Z" if dtype == TIMESTAMP else "2024-01-31"
        raise scope.error(
            f"'{text.name}' is not a {node.this}", text, f"write it as in '{example}'"
        ) from None
    return Literal(value, type=dtype, position=scope.source.position(offset_of(node)))


def moment(text: str, dtype: pa.DataType) -> int:
    """Convert ISO 8601 text to ticks (TIMESTAMP, UTC unless it has an offset) or days (DATE); raise
    ValueError if it is invalid.

    >>> moment("1970-01-01T00:00:01Z", TIMESTAMP)
    1000000
    """
    if text.startswith(("+", "-", "0000-")):  # a year outside the range of Python's dates
        parse, number = (parse_dates, INT) if dtype == DATE else (parse_timestamps, BIGINT)
        return int(parse(pa.array([text])).view(number)[0].as_py())
    if dtype == DATE:
        return date.fromisoformat(text).toordinal() - _EPOCH.toordinal()
    parsed = datetime.fromisoformat(text)
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _list(node: exp.Expr, scope: StatementScope) -> Literal:
    elements = []
    for item in node.expressions:
        element = literal(item, scope)
        if element is None:
            raise scope.error("a list takes constants only", item)
        elements.append(element)
    dtype = common_type_of(e.type for e in elements if e.type is not None)
    if dtype is None:
        raise scope.error("the elements of a list must have one type", node)
    values = [coerce(e, dtype) for e in elements]
    position = scope.source.position(offset_of(node))
    plain = [v.value for v in values if isinstance(v, Literal)]
    return Literal(plain, type=pa.list_(dtype), position=position)


# --- parameters ----------------------------------------------------------------------------


def parameter(node: exp.Expr, scope: StatementScope) -> Parameter:
    param = scope.parameters.get(node.name)
    if param is None:
        hint = did_you_mean(node.name, scope.parameters) or "DECLARE it before its first use"
        raise scope.error(f"unknown parameter `@{node.name}`", node, hint)
    return param


def declared(node: exp.Expr, dtype: pa.DataType, scope: StatementScope) -> Parameter:
    """Make the parameter that DECLARE declares with the value `node`."""
    value = literal(node, scope)
    if value is None or value.type is None:
        raise scope.error("DECLARE takes a constant", node)
    text = node.name if isinstance(node, exp.Literal) else str(value.value)
    if isinstance(node, DurationLiteral):
        text = f"{node.this}{node.args['unit']}"
    if pa.types.is_decimal(dtype) and isinstance(node, exp.Literal | exp.Neg):
        return Parameter(_from_digits(node, dtype, scope), text)
    if dtype == INT and value.type == BIGINT and _fits_int(value.value):
        return Parameter(Literal(value.value, type=INT), text)
    if not widens(value.type, dtype):
        hint = "write TIMESTAMP '…' or DATE '…'" if dtype in (TIMESTAMP, DATE) else ""
        expected, actual = type_name(dtype), type_name(value.type)
        raise scope.error(f"expected a {expected}, found a {actual}", node, hint)
    typed = coerce(value, dtype)
    assert isinstance(typed, Literal)
    return Parameter(typed, text)


def _from_digits(node: exp.Expr, dtype: pa.DataType, scope: StatementScope) -> Literal:
    inner, sign = (node.this, "-") if isinstance(node, exp.Neg) else (node, "")
    value = converted(sign + inner.name, dtype)
    if value is None:
        raise scope.error(f"{sign}{inner.name} does not fit {type_name(dtype)}", node)
    return Literal(value, type=dtype)


def overridden(text: str, dtype: pa.DataType) -> Parameter | None:
    """Make the parameter that `--param name=text` gives, or return None if the text does not fit.

    >>> overridden("5s", BIGINT).literal.value
    5000000
    """
    value = converted(text.strip() if dtype != STRING else text, dtype)
    return None if value is None else Parameter(Literal(value, type=dtype), text.strip())


def converted(text: str, dtype: pa.DataType) -> object:
    """Return the text as a value of the type, or None."""
    try:
        if dtype in (BIGINT, INT):
            return _integer(text, dtype)
        if dtype == DOUBLE:
            return float(text)
        if dtype in (TIMESTAMP, DATE):
            return moment(text, dtype)
        if pa.types.is_decimal(dtype):
            value = Decimal(text)
            pa.scalar(value, dtype)
            return value
    except (ValueError, OverflowError, InvalidOperation, pa.ArrowException):
        return None
    if dtype == BOOLEAN:
        return {"true": True, "false": False}.get(text.lower())
    return text if dtype == STRING else None


def _integer(text: str, dtype: pa.DataType) -> int | None:
    unit = next((u for u in UNITS if text.endswith(u) and text[: -len(u)].isdigit()), "")
    value = int(text.removesuffix(unit)) * UNITS.get(unit, 1)
    fits = _fits_int(value) if dtype == INT else _MIN <= value <= _MAX
    return value if fits else None


def _fits_int(value: object) -> bool:
    return isinstance(value, int) and -(2**31) <= value < 2**31


# --- constants of one kind -----------------------------------------------------------------


def integer(node: exp.Expr, scope: StatementScope, what: str) -> int:
    """Return a whole number; a duration is not one."""
    constant = None if isinstance(node, DurationLiteral) else literal(node, scope)
    if constant is None or constant.type not in _INTEGERS or not isinstance(constant.value, int):
        raise scope.error(f"{what} must be a whole number", node)
    return constant.value


def ticks(node: exp.Expr, scope: StatementScope, what: str) -> int:
    """Return the ticks of a duration, or a plain number of ticks."""
    constant = literal(node, scope)
    if constant is None or constant.type not in _INTEGERS or not isinstance(constant.value, int):
        raise scope.error(
            f"{what} must be a duration", node, "as in 5s, 250ms or a number of ticks"
        )
    return constant.value


def string(node: exp.Expr, scope: StatementScope, what: str) -> str:
    constant = literal(node, scope)
    if constant is None or not isinstance(constant.value, str):
        raise scope.error(f"{what} must be a string", node)
    if "\0" in constant.value:
        raise scope.error(f"{what} has a NUL character in it, which no name has", node)
    return constant.value
