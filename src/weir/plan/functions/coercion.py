"""Decides which types go together, and inserts the casts that bring them together.

Contract
1. The only silent conversions are INT to BIGINT to DOUBLE, integers to DECIMAL, DECIMAL to a wider
   DECIMAL and to DOUBLE, NULL to anything, LIST by its elements, and STRUCT by its fields if their
   names are the same. Everything else is an error.
2. `coerce` inserts a `Cast`, or converts a literal to one of the target type, so that an evaluator
   never has to convert anything itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import reduce

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    is_integer,
    is_numeric,
)
from weir.plan.expressions import Cast, Expr, Literal

MAX_PRECISION = 38
_DIGITS = {INT: 10, BIGINT: 19}


def type_of(expr: Expr) -> pa.DataType:
    """Return the type of a bound expression."""
    assert expr.type is not None, f"not bound: {expr}"
    return expr.type


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type to which both can be widened, or None.

    >>> common_type(INT, DOUBLE) == DOUBLE
    True
    """
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if pa.types.is_list(left) and pa.types.is_list(right):
        element = common_type(left.value_type, right.value_type)
        return None if element is None else pa.list_(element)
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return _common_struct(left, right)
    if not (is_numeric(left) and is_numeric(right)):
        return None
    if DOUBLE in (left, right):
        return DOUBLE
    if is_integer(left) and is_integer(right):
        return BIGINT
    return _common_decimal(decimal_of(left), decimal_of(right))


def _common_struct(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if [f.name for f in left] != [f.name for f in right]:
        return None
    types = [common_type(a.type, b.type) for a, b in zip(left, right, strict=True)]
    if None in types:
        return None
    return pa.struct([(f.name, dtype) for f, dtype in zip(left, types, strict=True)])


def common_type_of(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """Return the type to which all can be widened, or None."""

    def step(left: pa.DataType | None, right: pa.DataType) -> pa.DataType | None:
        return None if left is None else common_type(left, right)

    return reduce(step, types, NULL)


def decimal_of(dtype: pa.DataType) -> pa.DataType:
    """Return the DECIMAL that holds every value of an integer or DECIMAL type."""
    return dtype if pa.types.is_decimal(dtype) else pa.decimal128(_DIGITS[dtype], 0)


def decimal(precision: int, scale: int) -> pa.DataType:
    """Return DECIMAL(precision, scale), limited to 38 digits by dropping leading ones."""
    return pa.decimal128(max(1, min(MAX_PRECISION, precision)), scale)


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale, scale)


def widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Tell whether values of one type convert to the other without a CAST."""
    if pa.types.is_decimal(target) and (is_integer(source) or pa.types.is_decimal(source)):
        return _holds(target, decimal_of(source))
    return bool(common_type(source, target) == target)


def _holds(target: pa.DataType, source: pa.DataType) -> bool:
    """Tell whether a DECIMAL has room for another's digits.

    One of 38 digits has room for any whole part."""
    whole = source.precision - source.scale
    fits = whole <= target.precision - target.scale or target.precision == MAX_PRECISION
    return bool(fits and source.scale <= target.scale)


def coerce(expr: Expr, target: pa.DataType) -> Expr:
    """Convert the bound expression to `target`; the caller has checked that it widens.

    >>> coerce(Literal(1, type=BIGINT), DOUBLE)
    Literal(type=DataType(double), value=1.0)
    """
    if expr.type == target:
        return expr
    if isinstance(expr, Literal):
        return replace(expr, value=_fold(expr.value, target), type=target)
    return Cast(expr, type=target, position=expr.position)


def _fold(value: object, target: pa.DataType) -> object:
    if isinstance(value, tuple):
        return tuple(_fold(v, target.value_type) for v in value)
    if target == DOUBLE and isinstance(value, int | Decimal):
        return float(value)
    if pa.types.is_decimal(target) and isinstance(value, int):
        return Decimal(value)
    return value


def literal_type(literal: Literal) -> pa.DataType:
    """Return the type of an unbound literal; raise PlanError if the language has none."""
    dtype = _value_type(literal.value)
    if dtype is None:
        raise PlanError(
            f"the value {literal.value!r} fits no type of the language", position=literal.position
        )
    return dtype


def _is_text(value: str) -> bool:
    """Tell whether a Python text has no half of a surrogate pair, which UTF-8 cannot represent."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value_type(value: object) -> pa.DataType | None:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return BIGINT if -(2**63) <= value < 2**63 else None
        case float():
            return DOUBLE
        case str():
            return STRING if _is_text(value) else None
        case bytes():
            return BINARY
        case Decimal():
            return _decimal_type(value)
        case tuple() | list():
            types = [_value_type(v) for v in value]
            element = None if None in types else common_type_of(types)
            return None if element is None else pa.list_(element)
    return None


def _decimal_type(value: Decimal) -> pa.DataType | None:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # NaN and infinities have a letter as their exponent
        return None
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else None


def castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Tell whether CAST converts between these types; a value may still not fit.

    Casts exist among numbers and BOOLEAN; between TIMESTAMP and BIGINT (ticks) or DATE; between
    STRING and every scalar; for LIST by its elements, and for STRUCT by its fields.
    """
    if widens(source, target):
        return True
    if pa.types.is_list(source) and pa.types.is_list(target):
        return castable(source.value_type, target.value_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        names = [f.name for f in source] == [f.name for f in target]
        return names and all(castable(a.type, b.type) for a, b in zip(source, target, strict=True))
    if pa.types.is_nested(source) or pa.types.is_nested(target):
        return False
    if STRING in (source, target):
        return True
    if {source, target} in ({TIMESTAMP, BIGINT}, {TIMESTAMP, DATE}):
        return True
    return _counts(source) and _counts(target)


def _counts(dtype: pa.DataType) -> bool:
    return is_numeric(dtype) or bool(dtype == BOOLEAN)
