"""Converts values of the user's code to a declared type: exactly, or not at all.

Contract
1. A table in docs/how-to/user-code.md lists what is accepted: values with only one meaning in the
   declared type. 1.0 is not a BIGINT, True not a number, a naive datetime not a TIMESTAMP. None is
   NULL, for every type and inside LIST and STRUCT.
2. A *plain* value is the Python value that Arrow would return for it. Arrow converts whole columns
   of plain values at once; only other values are converted one by one.
3. A converted value shares no mutable memory with the user's value.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from types import NoneType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from weir.events.python_lists import SLICE, slices
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    type_name,
)
from weir.events.user_copies import StructValue
from weir.kernels.expressions.evaluation import RowFailure
from weir.plan.usercode.functions import describe

ConvertValue = Callable[[object], object]

_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_PLAIN = {
    BIGINT: int,
    INT: int,
    DOUBLE: float,
    BOOLEAN: bool,
    STRING: str,
    BINARY: bytes,
    DATE: date,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_BITS = {BIGINT: 63, INT: 31}
_MOST_BYTES = (1 << 31) - 1
_LARGEST = int(sys.float_info.max)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 200
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 10


class Misfit(Exception):
    """A value is not of the declared type; the text reads "BIGINT, not 1.5 (float)"."""

    def __init__(self, dtype: pa.DataType, value: object, why: str = "") -> None:
        super().__init__(f"{type_name(dtype)}, not {shown(value)}{why}")


def shown(value: object) -> str:
    """Return a user's value as messages show it: shortened, with its type."""
    kind = type(value).__name__
    try:
        return f"{_short.repr(value)} ({kind})"
    except KeyboardInterrupt:
        raise
    except BaseException:  # the user's own __repr__ fails
        return f"a value that cannot be shown ({kind})"


def typed_array(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """Convert the values to an array; raise `RowFailure` for the first that does not fit."""
    if len(values) <= SLICE:
        return _typed(values, dtype)
    parts: list[pa.Array] = []
    for start, end in slices(len(values)):
        try:
            parts.append(_typed(values[start:end], dtype))
        except RowFailure as failure:
            raise RowFailure(start + failure.row, failure.why) from failure.__cause__
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # more bytes than one array can hold
        full = np.cumsum([part.nbytes for part in parts]) > _MOST_BYTES
        raise _too_much(int(np.argmax(full)) * SLICE) from None


def _typed(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    if is_plain(values, dtype):
        try:
            return _whole(pa.array(values, dtype))
        except _MISFITS:
            pass  # one value is too large; the code below finds which
    convert = converter(dtype)
    converted: list[object] = []
    for row, value in enumerate(values):
        try:
            converted.append(convert(value))
        except Misfit as misfit:
            raise RowFailure(row, str(misfit)) from misfit.__cause__
    try:
        return _whole(pa.array(converted, dtype))
    except pa.ArrowException as error:  # one of them alone is more than an array can hold
        row = next((i for i, v in enumerate(converted) if not _holds(v, dtype)), 0)
        raise RowFailure(row, f"{type_name(dtype)}, in less than 2 GiB: {error}") from error


def _holds(value: object, dtype: pa.DataType) -> bool:
    try:
        pa.array([value], dtype)
    except pa.ArrowException:
        return False
    return True


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):  # Arrow's way to hold more than fits one array
        raise _too_much(len(column.chunk(0)))
    return column


def _too_much(row: int) -> RowFailure:
    why = "of this and the rows before it are more than 2 GiB, too much for one batch"
    return RowFailure(row, f"less: values {why}; run with a smaller --cut")


def is_plain(values: Sequence[object], dtype: pa.DataType) -> bool:
    """Tell whether all values other than None are plain; numbers may still be too large."""
    kinds = set(map(type, values))
    kinds.discard(NoneType)
    if dtype in _PLAIN:
        return kinds <= {_PLAIN[dtype]}
    if pa.types.is_decimal(dtype):
        return kinds <= {Decimal}
    if pa.types.is_list(dtype):
        if not kinds <= {list}:
            return False
        lists = (v for v in values if isinstance(v, list))
        return is_plain(list(chain.from_iterable(lists)), dtype.value_type)
    if pa.types.is_struct(dtype):
        names = [field.name for field in dtype]
        dicts = [v for v in values if isinstance(v, dict)]
        if not kinds <= {dict} or any(list(v) != names for v in dicts):
            return False
        return all(is_plain([v[f.name] for v in dicts], f.type) for f in dtype)
    return dtype == TIMESTAMP and kinds <= {datetime} and all(map(_is_utc, values))


def _is_utc(value: object) -> bool:
    if not isinstance(value, datetime):
        return value is None
    # A user's own time zone may run any code.
    return type(value.tzinfo) in (timezone, ZoneInfo) and value.utcoffset() == timedelta()


def plain_value(value: object, dtype: pa.DataType) -> object:
    """Return the value as Arrow would return it: the same object if it is plain.

    Raise `Misfit` if it does not fit the type."""
    kind = type(value)
    if kind is _PLAIN.get(dtype):
        if kind is str:
            return _string(value, dtype)
        if kind is not int or _fits_bits(value, dtype):
            return value
    elif value is None:
        return None
    converted = converter(dtype)(value)
    try:
        plain: object = pa.scalar(converted, dtype).as_py()
    except (ValueError, OverflowError) as error:  # a time beyond the year 9999
        raise Misfit(dtype, value, f", for which Python has no value: {error}") from None
    return plain


@lru_cache(maxsize=1024)
def settler(dtype: pa.DataType) -> ConvertValue:
    """Return a function that converts one value to what a snapshot would restore.

    The result has memory of its own. The function raises `Misfit` if the value does not fit."""
    if pa.types.is_nested(dtype):
        settle = _guarded(_nested(dtype, settler), dtype)
        return (
            _plain_list(dtype, settle) if pa.types.is_list(dtype) else _plain_struct(dtype, settle)
        )
    kind = _PLAIN.get(dtype)
    # This is called for every row, and most values are plain: one or two checks recognise them.
    limit = 1 << _BITS.get(dtype, 0)

    def run(value: object) -> object:
        if type(value) is kind:
            if kind is int:
                if -limit <= value < limit:  # type: ignore[operator]
                    return value
            elif kind is not str or value.isascii():  # type: ignore[attr-defined]
                return value
        return plain_value(value, dtype)

    return run


def _plain_list(dtype: pa.DataType, otherwise: ConvertValue) -> ConvertValue:
    """Return a function that settles a LIST, with a fast path for lists of plain elements."""
    kind, limit = _PLAIN.get(dtype.value_type), 1 << _BITS.get(dtype.value_type, 0)
    if kind not in (int, float, bool, str):
        return otherwise
    plain_types = {kind}

    def run(value: object) -> object:
        if type(value) is list and set(map(type, value)) == plain_types:
            if kind is int:
                if -limit <= min(value) and max(value) < limit:
                    return [*value]
            elif kind is not str or "".join(value).isascii():
                return [*value]
        return otherwise(value)

    return run


def _plain_struct(dtype: pa.DataType, otherwise: ConvertValue) -> ConvertValue:
    """Return a function that settles a STRUCT, with a fast path for structs of plain fields."""
    kinds = [(field.name, _PLAIN.get(field.type)) for field in dtype]
    if any(kind not in (int, float, bool, str) for _, kind in kinds) or not kinds:
        return otherwise
    names = [name for name, _ in kinds]
    looks = ["type(value) in (dict, StructValue)", f"len(value) == {len(names)}"]
    for n, (field, (_, kind)) in enumerate(zip(dtype, kinds, strict=True)):
        looks.append(f"type(x{n} := value.get({field.name!r})) is {kind.__name__}")  # type: ignore[union-attr]
        if kind is int:
            limit = 1 << _BITS[field.type]
            looks.append(f"-{limit} <= x{n} < {limit}")
        elif kind is str:
            looks.append(f"x{n}.isascii()")
    fields = ", ".join(f"{name!r}: x{n}" for n, name in enumerate(names))
    text = f"def run(value):\n    if {' and '.join(looks)}:\n        return {{{fields}}}\n"
    home: dict[str, Any] = {"StructValue": StructValue, "otherwise": otherwise}
    exec(compile(text + "    return otherwise(value)", __file__, "exec"), home)
    run: ConvertValue = home["run"]
    return run


@lru_cache(maxsize=1024)
def converter(dtype: pa.DataType) -> ConvertValue:
    """Return a function that converts one value for Arrow, or raises `Misfit`."""
    return _guarded(_converter(dtype), dtype)


def _guarded(convert: ConvertValue, dtype: pa.DataType) -> ConvertValue:
    """Return a converter that accepts None; failures of the value's own methods become `Misfit`."""

    def run(value: object) -> object:
        if value is None:
            return None
        try:
            return convert(value)
        except (Misfit, KeyboardInterrupt):
            raise
        except BaseException as error:  # the value's own methods failed
            raise Misfit(dtype, value, f": {describe(error)}") from error

    return run


def _converter(dtype: pa.DataType) -> ConvertValue:
    if pa.types.is_nested(dtype):
        return _nested(dtype, converter)
    if pa.types.is_decimal(dtype):
        return lambda value: _decimal(value, dtype)
    simple = _SIMPLE[dtype]
    return lambda value: simple(value, dtype)


def _fits_bits(value: object, dtype: pa.DataType) -> bool:
    limit = 1 << _BITS[dtype]
    return isinstance(value, int) and -limit <= value < limit


def _whole_number(value: object) -> int | None:
    """Return the value if it is an integer of Python or NumPy, but not a bool."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else int.__int__(value)
    if isinstance(value, np.integer) and value.dtype.kind in "iu":  # so is timedelta64
        return int(value)
    return None


def _integer(value: object, dtype: pa.DataType) -> int:
    number = _whole_number(value)
    if number is None:
        raise Misfit(dtype, value)
    if not _fits_bits(number, dtype):
        raise Misfit(dtype, value, f", which has more than {_BITS[dtype] + 1} bits")
    return number


def _double(value: object, dtype: pa.DataType) -> float:
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, np.float16 | np.float32):
        return float(value)
    number = _whole_number(value)
    if number is None:
        raise Misfit(dtype, value)
    if abs(number) > _LARGEST or float(number) != number:
        raise Misfit(dtype, value, ", which no DOUBLE is exactly")
    return float(number)


def _boolean(value: object, dtype: pa.DataType) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise Misfit(dtype, value)


def _string(value: object, dtype: pa.DataType) -> str:
    if not isinstance(value, str):
        raise Misfit(dtype, value)
    text = str.__str__(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Misfit(dtype, value, ", which has half of a surrogate pair") from None
    return text


def _binary(value: object, dtype: pa.DataType) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return b"".join((value,))
    raise Misfit(dtype, value)


def _date(value: object, dtype: pa.DataType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise Misfit(dtype, value)


def _timestamp(value: object, dtype: pa.DataType) -> int:
    """Convert a time to microseconds since 1970, the unit of `event.vs`."""
    number = _whole_number(value)
    if number is not None:
        return _integer(number, BIGINT)
    if not isinstance(value, datetime):
        raise Misfit(dtype, value)
    if value.utcoffset() is None:
        raise Misfit(dtype, value, ", which has no time zone")
    if getattr(value, "nanosecond", 0):
        raise Misfit(dtype, value, ", which has parts of a microsecond")
    return (value - _EPOCH) // _TICK


def _decimal(value: object, dtype: pa.DataType) -> Decimal:
    number = value if isinstance(value, Decimal) else _whole_number(value)
    if number is None:
        raise Misfit(dtype, value)
    try:
        exact: Decimal = pa.scalar(Decimal(number), dtype).as_py()
    except pa.ArrowInvalid:
        raise Misfit(dtype, value, ", which does not fit it exactly") from None
    return exact


_SIMPLE: dict[pa.DataType, Callable[[object, pa.DataType], object]] = {
    BIGINT: _integer,
    INT: _integer,
    DOUBLE: _double,
    BOOLEAN: _boolean,
    STRING: _string,
    BINARY: _binary,
    DATE: _date,
    TIMESTAMP: _timestamp,
}


def _nested(dtype: pa.DataType, of: Callable[[pa.DataType], ConvertValue]) -> ConvertValue:
    """Return the converter of a LIST or STRUCT; `of` returns that of an inner type."""
    if pa.types.is_list(dtype):
        return _list(dtype, of(dtype.value_type))
    return _struct(dtype, [(field.name, of(field.type)) for field in dtype])


def _list(dtype: pa.DataType, convert: ConvertValue) -> ConvertValue:

    def run(value: object) -> list[object]:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            elements: Sequence[object] = value.tolist()
        elif isinstance(value, list | tuple):
            elements = value
        else:
            raise Misfit(dtype, value)
        try:
            return [convert(element) for element in elements]
        except Misfit as inner:
            raise Misfit(dtype, value, f": an element must be {inner}") from None

    return run


def _struct(dtype: pa.DataType, fields: list[tuple[str, ConvertValue]]) -> ConvertValue:
    names = {name for name, _ in fields}

    def run(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise Misfit(dtype, value)
        if set(value) != names:
            raise Misfit(dtype, value, f": its keys must be {', '.join(map(repr, names_of))}")
        result = {}
        name = ""
        try:
            for name, convert in fields:
                result[name] = convert(value[name])
        except Misfit as inner:
            raise Misfit(dtype, value, f": {name!r} must be {inner}") from None
        return result

    names_of = [name for name, _ in fields]
    return run
