"""Arithmetic and comparison on columns, with the results that CPython gives.

Contract of all `py_…` functions
1. Where a function returns a value, it is CPython's. It raises `RowFailure` where CPython would
   raise (None in arithmetic, a zero divisor), where the value does not fit the column's type (an
   int beyond 64 bits), and where only CPython can decide (a float against an int that no DOUBLE
   equals).
2. Such a failure is never shown. Instead, `py_rows` has CPython compute the rows, which gives their
   values, or CPython's own error. So a failure may name any row.
3. NULL is None.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    RowFailure,
    Site,
    as_array,
    length_of,
    plain,
    spread,
)

_EXACT = 1 << 53
"""Up to this number, every int is a double."""
_INT64 = float(1 << 63)
_NEAR_HALF = 1e-4
_EXACT_WHOLE = 2.0**51
# The ranges of Python's datetime and date, in microseconds and days since 1970.
_PYTHON_TIMES = {TIMESTAMP: (-62135596800000000, 253402300799999999), DATE: (-719162, 2932896)}
_IEEE: Mapping[str, ArrayFunction] = {
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}


def asks_python(why: str) -> RowFailure:
    """Return the failure that makes CPython compute the rows."""
    return RowFailure(0, why)


def refuse_none(*data: Datum) -> None:
    for datum in data:
        if datum.null_count if isinstance(datum, pa.Array) else not datum.is_valid:
            raise asks_python("None")


def present(function: ArrayFunction) -> ArrayFunction:
    """Make a function fail if an argument is None, and leave Arrow's failures to CPython."""

    def run(*args: Datum) -> pa.Array:
        refuse_none(*args)
        try:
            return function(*args)
        except pa.ArrowInvalid as error:
            raise asks_python(str(error)) from None

    return run


def as_doubles(datum: Datum) -> Datum:
    """Convert ints to the nearest doubles, as Python does in arithmetic."""
    return datum.cast(DOUBLE, safe=False) if datum.type != DOUBLE else datum


def exact_doubles(datum: Datum) -> Datum:
    """Convert ints to doubles; fail if one might not be exact."""
    if datum.type == DOUBLE:
        return datum
    if isinstance(datum, pa.Scalar):
        low = high = datum.as_py()
    else:
        low, high = pc.min_max(datum).as_py().values()
    if low is not None and (low < -_EXACT or high > _EXACT):
        raise asks_python("an int that is perhaps no double")
    return as_doubles(datum)


def numpy_of(datum: pa.Array) -> npt.NDArray[np.generic]:
    """Return the values of a column without NULLs."""
    return np.asarray(datum.to_numpy(zero_copy_only=False))


# --- + - * / // % --------------------------------------------------------------------------


def _arithmetic(name: str) -> Builder:
    checked: ArrayFunction = getattr(pc, f"{name}_checked")
    unchecked: ArrayFunction = getattr(pc, name)

    def build(site: Site) -> ArrayFunction:
        if site.type == BIGINT:
            return present(checked)
        return present(lambda a, b: unchecked(as_doubles(a), as_doubles(b)))

    return build


def _divide(left: Datum, right: Datum) -> pa.Array:
    refuse_none(left, right)
    both_whole = BIGINT == left.type == right.type
    # Python rounds the quotient of two ints once. So does this, if both are exact doubles.
    convert = exact_doubles if both_whole else as_doubles
    a, b = convert(left), convert(right)
    _refuse_zero(b)
    return pc.divide(a, b)


def _refuse_zero(divisor: Datum) -> None:
    zero = pc.equal(divisor, pa.scalar(0, divisor.type))
    if zero.as_py() if isinstance(zero, pa.Scalar) else pc.any(zero).as_py():
        raise asks_python("division by zero")


def _division(name: str) -> Builder:
    def build(site: Site) -> ArrayFunction:
        whole = site.type == BIGINT

        def run(left: Datum, right: Datum) -> pa.Array:
            refuse_none(left, right)
            _refuse_zero(right)
            length = length_of((left, right))
            operands = (left, right) if whole else (as_doubles(left), as_doubles(right))
            a, b = (numpy_of(as_array(d, length)) for d in operands)
            if whole and name == "floordiv" and bool(((a == -(1 << 63)) & (b == -1)).any()):
                raise asks_python("overflow")
            with np.errstate(all="ignore"):
                return pa.array(np.floor_divide(a, b) if name == "floordiv" else np.remainder(a, b))

        return run

    return build


def _unary(name: str) -> Builder:
    checked: ArrayFunction = getattr(pc, f"{name}_checked")
    unchecked: ArrayFunction = getattr(pc, name)
    return lambda site: present(checked if site.type == BIGINT else unchecked)


_BITWISE: Mapping[str, tuple[ArrayFunction, ArrayFunction]] = {
    "bitand": (pc.bit_wise_and, pc.and_),
    "bitor": (pc.bit_wise_or, pc.or_),
    "bitxor": (pc.bit_wise_xor, pc.xor),
}


def _bits(name: str) -> Builder:
    of_ints, of_bools = _BITWISE[name]
    return lambda site: present(of_ints if site.type == BIGINT else of_bools)


# --- conversion and rounding ---------------------------------------------------------------


def _whole_numbers(values: npt.NDArray[np.float64]) -> pa.Array:
    if not bool((np.abs(values) < _INT64).all()):  # NaN is not an int either
        raise asks_python("no int of 64 bits")
    return pa.array(values.astype(np.int64))


def _int(column: Datum) -> pa.Array:
    return _whole_numbers(np.trunc(numpy_of(column)))


def _floor(column: Datum) -> pa.Array:
    return _whole_numbers(np.floor(numpy_of(column)))


def _ceil(column: Datum) -> pa.Array:
    return _whole_numbers(np.ceil(numpy_of(column)))


def _sqrt(column: Datum) -> pa.Array:
    if pc.any(pc.less(column, 0.0)).as_py():
        raise asks_python("the root of a negative number")
    return pc.sqrt(column)


def _round(column: Datum) -> pa.Array:
    return _whole_numbers(np.rint(numpy_of(column)))  # a half goes to the even one, as in Python


def _round_digits(site: Site) -> ArrayFunction:
    digits = site.constant(1)
    assert isinstance(digits, int)
    power = 10.0**digits

    def run(column: Datum, _: Datum) -> pa.Array:
        values = numpy_of(column).astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            scaled = values * power
            whole = np.rint(scaled)
            # Whole / power rounds exact numbers once, as Python does. Where the next digit is near
            # a half, or the number is huge, Python's own function decides.
            sure = np.abs(np.abs(scaled - whole) - 0.5) > _NEAR_HALF
            sure &= np.abs(whole) < _EXACT_WHOLE
            result = np.copysign(whole / power, values)
        for row in np.flatnonzero(~sure):
            result[row] = round(float(values[row]), digits)
        return pa.array(result)

    return present(spread(run))


# --- comparison ----------------------------------------------------------------------------


def _comparable(left: Datum, right: Datum) -> tuple[Datum, Datum]:
    for datum in (left, right):
        if datum.type in _PYTHON_TIMES:
            _refuse_far_times(datum)
    if left.type == right.type:
        return left, right
    return exact_doubles(left), exact_doubles(right)


def _refuse_far_times(datum: Datum) -> None:
    first, last = _PYTHON_TIMES[datum.type]
    values = as_array(datum, 1).cast(pa.int32() if datum.type == DATE else BIGINT)
    low, high = pc.min_max(values).as_py().values()
    if low is not None and not first <= low <= high <= last:
        raise asks_python("a time that Python has not")


def _order(name: str) -> Builder:
    compare = _IEEE[name]
    return plain(present(lambda a, b: compare(*_comparable(a, b))))


def equal(left: Datum, right: Datum) -> pa.Array:
    """Return whether two values are equal in Python; None is equal only to None."""
    a, b = _comparable(left, right)
    same = pc.equal(a, b)
    if not same.null_count:
        return same
    length = length_of((a, b))
    nothing = pc.and_(as_array(a, length).is_null(), as_array(b, length).is_null())
    return pc.coalesce(same, nothing)


def _extreme(name: str) -> Builder:
    """Build min or max: keep the first value unless the second is smaller or larger."""
    beats = _IEEE["gt" if name == "max" else "lt"]
    return plain(present(lambda a, b: pc.if_else(beats(b, a), b, a)))


# --- truth ---------------------------------------------------------------------------------


def _truth(site: Site) -> ArrayFunction:
    dtype = site.arg_types[0]
    if dtype == BOOLEAN:
        return lambda column: pc.fill_null(column, False)
    if dtype in (BIGINT, DOUBLE) or pa.types.is_decimal(dtype):
        zero = pa.scalar(0, dtype)
        return lambda column: pc.fill_null(pc.not_equal(column, zero), False)
    if dtype == STRING or pa.types.is_binary(dtype):
        return lambda column: pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
    if pa.types.is_list(dtype):
        return lambda column: pc.fill_null(pc.greater(pc.list_value_length(column), 0), False)
    return lambda column: column.is_valid()  # a datetime, a dict with keys


FUNCTIONS: Mapping[str, Builder] = {
    "py_add": _arithmetic("add"),
    "py_sub": _arithmetic("subtract"),
    "py_mul": _arithmetic("multiply"),
    "py_truediv": plain(_divide),
    "py_floordiv": _division("floordiv"),
    "py_mod": _division("mod"),
    "py_neg": _unary("negate"),
    "py_abs": _unary("abs"),
    "py_pos": plain(present(lambda column: column)),
    "py_invert": plain(present(pc.bit_wise_not)),
    **{f"py_{name}": _bits(name) for name in _BITWISE},
    "py_float": plain(present(as_doubles)),
    "py_exact_float": plain(lambda column: exact_doubles(column)),
    "py_int": plain(present(_int)),
    "py_trunc": plain(present(_int)),
    "py_floor": plain(present(_floor)),
    "py_ceil": plain(present(_ceil)),
    "py_sqrt": plain(present(_sqrt)),
    "py_isnan": plain(present(pc.is_nan)),
    "py_isinf": plain(present(pc.is_inf)),
    "py_isfinite": plain(present(pc.is_finite)),
    "py_round": plain(present(_round)),
    "py_round_digits": _round_digits,
    **{f"py_{name}": _order(name) for name in _IEEE},
    "py_eq": plain(equal),
    "py_ne": plain(lambda a, b: pc.invert(equal(a, b))),
    "py_max": _extreme("max"),
    "py_min": _extreme("min"),
    "py_truth": _truth,
    "py_checked": plain(lambda column: pc.or_(pc.is_valid(column), pc.is_null(column))),
}
