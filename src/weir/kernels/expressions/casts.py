"""Converters of CAST and TRY_CAST, one for each pair of types.

Rules
1. DOUBLE and DECIMAL to an integer are cut towards zero. A conversion to a DECIMAL of fewer
   decimals rounds half away from zero; a DOUBLE counts as its shortest decimal text (0.1, not
   0.1000000000000000055…). An integer or DECIMAL becomes the nearest DOUBLE.
2. Text must be the value and nothing else: no blanks around it, no hexadecimal. TIMESTAMP is ISO
   8601. DOUBLE accepts NaN and Infinity. BOOLEAN accepts true, false, 1, 0, in any case.
3. A value that does not fit is a failure; for exactly those values, TRY_CAST returns NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.decimal_doubles import nearest_doubles
from weir.events.python_lists import python_list
from weir.events.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    is_integer,
    type_name,
)
from weir.events.value_text import (
    YEAR,
    format_dates,
    format_doubles,
    format_timestamps,
    parse_dates,
    parse_timestamps,
)
from weir.kernels.expressions.evaluation import (
    RowFailure,
    fail_where,
    numbers,
    shown_value,
    valid_rows,
)

Convert = Callable[[pa.Array], pa.Array]

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SHAPES = {
    INT: r"^[+-]?[0-9]+$",
    BIGINT: r"^[+-]?[0-9]+$",
    DOUBLE: rf"^({_NUMBER}|[+-]?(?i:nan|inf|infinity))$",
    BOOLEAN: r"^(?i:true|false|1|0)$",
    TIMESTAMP: rf"^{YEAR}-[0-9]{{2}}-[0-9]{{2}}([T ].+)?$",
    DATE: rf"^{YEAR}-[0-9]{{2}}-[0-9]{{2}}$",
}
_DECIMAL_SHAPE = rf"^{_NUMBER}$"
# Every int64 and DECIMAL fits its 76 digits, whatever the scale up to 38.
_WIDE_DIGITS = 76
_EXACT = Context(prec=100)


def build_cast(source: pa.DataType, target: pa.DataType, lenient: bool) -> Convert:
    """Build the converter of a bound cast."""
    convert = _converter(source, target)
    if not lenient:
        return convert
    shape = _shape(target) if source == STRING else None

    def attempt(column: pa.Array) -> pa.Array:
        if shape is not None:
            fits = pc.match_substring_regex(column, shape)
            column = pc.if_else(fits, column, pa.scalar(None, STRING))
        return convert_what_fits(convert, column, target)

    return attempt


def cast_array(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert a column to another type, for functions whose results need a certain one."""
    return column if column.type == target else _converter(column.type, target)(column)


def convert_what_fits(convert: Convert, column: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return convert(column)
    except (pa.ArrowInvalid, RowFailure):
        if len(column) == 1:
            return pa.nulls(1, target)
    middle = len(column) // 2
    halves = (column.slice(0, middle), column.slice(middle))
    return pa.concat_arrays([convert_what_fits(convert, half, target) for half in halves])


def _converter(source: pa.DataType, target: pa.DataType) -> Convert:
    if source == target:
        return lambda column: column
    if pa.types.is_null(source):
        return lambda column: pa.nulls(len(column), target)
    if pa.types.is_list(source) and pa.types.is_list(target):
        return list_converter(_converter(source.value_type, target.value_type), target)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        fields = zip(source, target, strict=True)
        return struct_converter([_converter(a.type, b.type) for a, b in fields], target)
    if source == STRING and target != pa.binary():
        return _from_text(target)
    if target == STRING:
        return _to_text(source)
    if target == BOOLEAN:
        return lambda column: pc.not_equal(column.cast(DOUBLE), 0.0)
    if pa.types.is_decimal(target):
        return _to_decimal(source, target)
    if is_integer(target) and source == DOUBLE:
        return lambda column: _double_to_integer(column, target)
    if is_integer(target) and pa.types.is_decimal(source):
        return lambda column: _decimal_to_integer(column, target)
    if target == DOUBLE and pa.types.is_decimal(source):
        return nearest_doubles
    if target == DOUBLE:
        return lambda column: column.cast(DOUBLE, safe=False)
    return lambda column: column.cast(target)


# --- text ----------------------------------------------------------------------------------


def _shape(target: pa.DataType) -> str | None:
    return _DECIMAL_SHAPE if pa.types.is_decimal(target) else _SHAPES.get(target)


def _from_text(target: pa.DataType) -> Convert:
    shape = _shape(target)
    assert shape is not None, f"no text for {target}"
    parse = _parser(target)

    def convert(column: pa.Array) -> pa.Array:
        fits = pc.match_substring_regex(column, shape)
        if pc.all(fits).as_py() is False:
            row = pc.index(fits, False).as_py()
            raise RowFailure(row, misfit(shown_value(column[row]), target))
        return parse(column)

    return convert


def _parser(target: pa.DataType) -> Convert:
    if target == TIMESTAMP:
        return parse_timestamps
    if target == DATE:
        return parse_dates
    if pa.types.is_decimal(target):
        return lambda column: _decimals(python_list(column), target)
    if is_integer(target):
        # Arrow does not parse a plus sign.
        return lambda column: pc.utf8_ltrim(column, characters="+").cast(target)
    return _doubles if target == DOUBLE else lambda column: column.cast(target)


def _doubles(texts: pa.Array) -> pa.Array:
    column = texts.cast(DOUBLE)
    infinite = pc.is_inf(column)
    if pc.any(infinite).as_py():  # Arrow reads 1e400 as an infinity
        named = pc.match_substring(texts, "inf", ignore_case=True)
        wrong = np.asarray(pc.fill_null(pc.and_not(infinite, named), False))
        fail_where(wrong, None, lambda row: misfit(shown_value(texts[row]), DOUBLE))
    return column


def _to_text(source: pa.DataType) -> Convert:
    if source == TIMESTAMP:
        return format_timestamps
    if source == DATE:
        return format_dates
    if source == DOUBLE:
        return format_doubles
    if pa.types.is_decimal(source):
        return _decimal_texts
    return lambda column: column.cast(STRING)


def _decimal_texts(column: pa.Array) -> pa.Array:
    # Arrow writes 1E-10; a decimal column is easier to read with all its digits.
    return pa.array([None if v is None else format(v, "f") for v in python_list(column)], STRING)


# --- numbers -------------------------------------------------------------------------------


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Convert:
    if source == DOUBLE:
        return lambda column: _decimals(python_list(column.cast(STRING)), target)
    if pa.types.is_decimal(source) and source.scale > target.scale:
        return lambda column: _rescaled(column, target)
    wide = pa.decimal256(_WIDE_DIGITS, target.scale)

    def widen(column: pa.Array) -> pa.Array:
        whole = column if pa.types.is_decimal(source) else column.cast(BIGINT)
        return _fitting(whole.cast(wide), target)

    return widen


def _rescaled(column: pa.Array, target: pa.DataType) -> pa.Array:
    wide = column.cast(pa.decimal256(_WIDE_DIGITS, column.type.scale))
    return _fitting(pc.round(wide, target.scale, "half_towards_infinity"), target)


def _fitting(column: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        limit = Decimal(10) ** (target.precision - target.scale)
        for row, value in enumerate(python_list(column)):
            if value is not None and value.copy_abs() >= limit:
                raise RowFailure(row, misfit(value, target)) from None
        raise


def _decimals(texts: list[str | None], target: pa.DataType) -> pa.Array:
    # Row by row: only Python's decimals round a text of any length exactly.
    quantum = Decimal(1).scaleb(-target.scale)
    limit = Decimal(10) ** (target.precision - target.scale)
    values: list[Decimal | None] = []
    for row, text in enumerate(texts):
        value = None if text is None else _quantized(text, quantum)
        if text is not None and (value is None or value.copy_abs() >= limit):
            raise RowFailure(row, misfit(text, target))
        values.append(value)
    return pa.array(values, target)


def _quantized(text: str, quantum: Decimal) -> Decimal | None:
    try:
        value = Decimal(text).quantize(quantum, rounding=ROUND_HALF_UP, context=_EXACT)
    except InvalidOperation:  # an infinity, or a number beyond every DECIMAL
        return None
    return None if value.is_nan() else value


def _double_to_integer(column: pa.Array, target: pa.DataType) -> pa.Array:
    values = np.trunc(numbers(column).astype(np.float64, copy=False))
    half = 2.0 ** (target.bit_width - 1)
    fits = (values >= -half) & (values < half)  # false for NaN
    fail_where(~fits, valid_rows(column), lambda row: misfit(shown_value(column[row]), target))
    return column.cast(target, safe=False)


def _decimal_to_integer(column: pa.Array, target: pa.DataType) -> pa.Array:
    wide = column.cast(pa.decimal256(_WIDE_DIGITS, column.type.scale))
    whole = pc.trunc(wide).cast(pa.decimal256(_WIDE_DIGITS, 0))
    limit = 1 << (target.bit_width - 1)
    bound = pa.scalar(Decimal(limit), pa.decimal256(_WIDE_DIGITS, 0))
    low = pa.scalar(Decimal(-limit), pa.decimal256(_WIDE_DIGITS, 0))
    bad = pc.or_(pc.less(whole, low), pc.greater_equal(whole, bound))
    if pc.any(bad).as_py():
        row = pc.index(bad, True).as_py()
        raise RowFailure(row, misfit(shown_value(column[row]), target))
    return whole.cast(pa.decimal128(38, 0)).cast(target)


# --- nested values -------------------------------------------------------------------------


def list_converter(convert: Convert, target: pa.DataType) -> Convert:
    """Build a converter of lists from a converter of their elements."""

    def run(column: pa.Array) -> pa.Array:
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
        offsets = np.zeros(len(column) + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        try:
            elements = convert(column.flatten())
        except RowFailure as failure:
            row = int(np.searchsorted(offsets, failure.row, side="right")) - 1
            raise failure.moved_to(row) from None
        mask = pa.array(np.asarray(column.is_null())) if column.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=target, mask=mask)

    return run


def struct_converter(converts: Sequence[Convert], target: pa.DataType) -> Convert:
    """Build a converter of structs from converters of their fields."""

    def run(column: pa.Array) -> pa.Array:
        fields = [convert(f) for convert, f in zip(converts, column.flatten(), strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=column.is_null())

    return run


def misfit(value: object, target: pa.DataType) -> str:
    shown = repr(value) if isinstance(value, str) else str(value)
    return f"cannot CAST {shown} to {type_name(target)}"
