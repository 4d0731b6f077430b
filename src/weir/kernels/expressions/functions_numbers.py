"""Arithmetic functions: as in SQL for integers and decimals, and as in IEEE for doubles.

For integers, + − * fail on overflow. // rounds down and % has the divisor's sign, so that always a
= b * (a // b) + a % b; MOD has the dividend's sign. All three fail on a zero divisor. Doubles
follow IEEE: 1/0 is infinite, the root of −1 is NaN. ROUND rounds half away from zero, by a double's
shortest decimal text: ROUND(2.675, 2) is 2.68. DECIMAL results are exact; a result of more than 38
digits fails as an overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.python_lists import python_list
from weir.events.types import BIGINT, TIMESTAMP, is_integer, type_name
from weir.kernels.expressions.casts import cast_array
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    RowFailure,
    Site,
    fail_where,
    numbers,
    plain,
    spread,
    valid_rows,
    with_nulls,
)

Doubles = npt.NDArray[np.float64]

_MIN = np.iinfo(np.int64).min
_EXACT_POWER = 22  # 10**22 is the largest power of ten that is a double
_EXACT_WHOLE = 2.0**51
_NO_INTEGER = 20  # half of 10**20 is larger than any integer
_WIDE_DIGITS = 76
_EXACT = Context(prec=800)
_DIVISION_SIGNS = {"floordiv": "//", "mod": "%", "truncated_mod": "MOD"}
_REMAINDERS = {"mod": np.remainder, "truncated_mod": np.fmod}
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*"}


# --- + − * ---------------------------------------------------------------------------------


def _arithmetic(name: str) -> Builder:
    checked: ArrayFunction = getattr(pc, f"{name}_checked")
    unchecked: ArrayFunction = getattr(pc, name)

    def build(site: Site) -> ArrayFunction:
        if TIMESTAMP in site.arg_types:
            return lambda a, b: _ticks(checked(_ticks(a, BIGINT), _ticks(b, BIGINT)), site.type)
        if pa.types.is_decimal(site.type):
            return _decimal_arithmetic(unchecked, name, site.type)
        return checked if is_integer(site.type) else unchecked

    return build


def _ticks(datum: Datum, dtype: pa.DataType) -> Datum:
    return datum if datum.type == dtype else datum.cast(dtype)


def _decimal_arithmetic(operate: ArrayFunction, name: str, dtype: pa.DataType) -> ArrayFunction:
    def run(left: Datum, right: Datum) -> pa.Array:
        needed = _needed_digits(name, left.type, right.type)
        if needed <= dtype.precision:
            return cast_array(operate(left, right), dtype)
        if needed > _WIDE_DIGITS:
            return spread(lambda a, b: _row_by_row(name, a, b, dtype))(left, right)
        wide = operate(_widened(left), _widened(right))
        try:
            return cast_array(wide, dtype)
        except RowFailure as failure:
            a, b = (d if isinstance(d, pa.Scalar) else d[failure.row] for d in (left, right))
            raise _too_large(failure.row, name, a, b, dtype) from None

    return run


def _too_large(row: int, name: str, a: object, b: object, dtype: pa.DataType) -> RowFailure:
    return RowFailure(row, f"overflow: {a} {_SIGNS[name]} {b} does not fit {type_name(dtype)}")


def _needed_digits(name: str, left: pa.DataType, right: pa.DataType) -> int:
    if name == "multiply":
        return int(left.precision + right.precision + 1)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return int(whole + max(left.scale, right.scale) + 1)


def _widened(datum: Datum) -> Datum:
    return datum.cast(pa.decimal256(datum.type.precision, datum.type.scale))


def _row_by_row(name: str, left: pa.Array, right: pa.Array, dtype: pa.DataType) -> pa.Array:
    # The product of two factors of 38 digits can exceed the widest Arrow decimal.
    assert name == "multiply"
    limit = Decimal(10) ** (dtype.precision - dtype.scale)
    values: list[Decimal | None] = []
    pairs = zip(python_list(left), python_list(right), strict=True)
    for row, (a, b) in enumerate(pairs):
        value = None if a is None or b is None else _EXACT.multiply(a, b)
        if value is not None and abs(value) >= limit:
            raise _too_large(row, name, a, b, dtype)
        values.append(value)
    return pa.array(values, dtype)


# --- //, % and MOD -------------------------------------------------------------------------


def _division(name: str) -> Builder:
    def build(site: Site) -> ArrayFunction:
        divide = _integer_division if is_integer(site.type) else _double_division
        return spread(lambda a, b: divide(name, a, b))

    return build


def _integer_division(name: str, left: pa.Array, right: pa.Array) -> pa.Array:
    a, b = numbers(left), numbers(right)
    valid = valid_rows(left, right)
    sign = _DIVISION_SIGNS[name]
    zero = b == 0
    if zero.any():
        fail_where(zero, valid, lambda row: f"division by zero: {a[row]} {sign} 0")
        b = np.where(zero, 1, b)
    if name in _REMAINDERS:
        # x % −1 is 0 for every x, also where the quotient would not fit.
        return with_nulls(_REMAINDERS[name](a, b), valid)
    fail_where((a == _MIN) & (b == -1), valid, lambda row: f"overflow in {a[row]} // -1")
    with np.errstate(over="ignore"):
        return with_nulls(np.floor_divide(a, b), valid)


def _double_division(name: str, left: pa.Array, right: pa.Array) -> pa.Array:
    divide = np.floor_divide if name == "floordiv" else _REMAINDERS[name]
    with np.errstate(all="ignore"):
        result = divide(numbers(left), numbers(right))
    return with_nulls(result, valid_rows(left, right))


# --- rounding ------------------------------------------------------------------------------


def _round(site: Site) -> ArrayFunction:
    digits = site.constant(1) if len(site.constants) == 2 else 0
    assert isinstance(digits, int)
    if pa.types.is_decimal(site.type):
        return lambda column, *_: _round_decimals(column, digits, site.type)
    if is_integer(site.type):
        return lambda column, *_: _round_integers(column, digits)
    return lambda column, *_: with_nulls(
        _round_doubles(numbers(column).astype(np.float64, copy=False), digits), valid_rows(column)
    )


def _round_integers(column: pa.Array, digits: int) -> pa.Array:
    if digits >= 0:
        return column
    # As Python's integers, since the result may be one digit too long; rounding integers is rare.
    unit = 10 ** min(-digits, _NO_INTEGER)
    values = [_half_away(v, unit) for v in python_list(column)]
    for row, value in enumerate(values):
        if value is not None and value.bit_length() >= column.type.bit_width:
            raise RowFailure(row, f"overflow in round({column[row].as_py()}, {digits})")
    return pa.array(values, column.type)


def _half_away(value: int | None, unit: int) -> int | None:
    if value is None:
        return None
    whole = (2 * abs(value) + unit) // (2 * unit) * unit
    return whole if value >= 0 else -whole


def _round_decimals(column: pa.Array, digits: int, dtype: pa.DataType) -> pa.Array:
    wide = column.cast(pa.decimal256(_WIDE_DIGITS, dtype.scale))
    if digits < dtype.scale:
        # Beyond the leading digit, everything is zero.
        least = dtype.scale - dtype.precision - 1
        wide = pc.round(wide, max(digits, least), "half_towards_infinity")
    return cast_array(wide, dtype)


def _round_doubles(values: Doubles, digits: int) -> Doubles:
    if digits > 400 or not len(values):  # no double has that many decimals
        return values
    digits = max(digits, -400)  # no double is that large
    if not 0 <= digits <= _EXACT_POWER:
        return np.array([_round_text(v, digits) for v in values.tolist()])
    with np.errstate(all="ignore"):
        power = 10.0**digits
        scaled = values * power
        whole = np.rint(scaled)
        # Whole / power is one correctly rounded operation on exact numbers. The text decides only
        # where the next digit is near a half, or the number is huge.
        unsure = ~(np.abs(np.abs(scaled - whole) - 0.5) > 1e-4) | ~(np.abs(whole) < _EXACT_WHOLE)
        result: Doubles = np.copysign(whole / power, values)
    for row in np.flatnonzero(unsure):
        result[row] = _round_text(float(values[row]), digits)
    return result


def _round_text(value: float, digits: int) -> float:
    if not np.isfinite(value):
        return value
    quantum = Decimal(1).scaleb(-digits)
    return float(Decimal(repr(value)).quantize(quantum, ROUND_HALF_UP, _EXACT))


def _whole(name: str) -> Builder:
    function: ArrayFunction = getattr(pc, name)

    def build(site: Site) -> ArrayFunction:
        if is_integer(site.type):
            return lambda column: column
        if not pa.types.is_decimal(site.type):
            return function
        scale = site.arg_types[0].scale
        wide = pa.decimal256(_WIDE_DIGITS, scale)
        return lambda column: cast_array(function(column.cast(wide)), site.type)

    return build


def _checked_unary(name: str) -> Builder:
    def build(site: Site) -> ArrayFunction:
        function: ArrayFunction = getattr(pc, f"{name}_checked" if is_integer(site.type) else name)
        return function

    return build


def _sign(site: Site) -> ArrayFunction:
    if site.type != BIGINT:
        return lambda column: pc.sign(column)
    return lambda column: pc.sign(column).cast(BIGINT)


FUNCTIONS: Mapping[str, Builder] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("subtract"),
    "mul": _arithmetic("multiply"),
    "div": plain(pc.divide),
    "floordiv": _division("floordiv"),
    "mod": _division("mod"),
    "truncated_mod": _division("truncated_mod"),
    "neg": _checked_unary("negate"),
    "abs": _checked_unary("abs"),
    "sign": _sign,
    "round": _round,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "sqrt": plain(pc.sqrt),
    "exp": plain(pc.exp),
    "ln": plain(pc.ln),
    "log10": plain(pc.log10),
    "power": plain(pc.power),
}
