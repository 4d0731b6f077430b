"""Makes columns from the values of Python programs and tests.

A value is kept exactly, or rejected. Arrow alone would cut off a fraction or a time of day, store a
set in the order of its hashes, and turn texts into bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InputError
from weir.events.types import BINARY, DATE, STRING, TIMESTAMP, is_integer, type_name
from weir.events.value_text import parse_dates, parse_timestamps
from weir.files.time_units import from_nanoseconds, without_nanoseconds
from weir.plan.advice.plan_warnings import warn

_MISFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)
_NO_VALUE = ("NaTType", "NAType")
"""The types of Pandas' missing values."""
_AS_IN = {
    TIMESTAMP: ": a time is a datetime, or a text as in '2026-01-31T08:00:00Z'",
    DATE: ": a day is a date, or a text as in '2026-01-31'",
}


def column_of(
    values: Sequence[object], dtype: pa.DataType | None, name: str, where: str
) -> pa.Array:
    """Make a column of Python values, with a type of the language or the type inferred from them.
    Times may be texts, as in files. InputError names the value that does not fit; `where` is the
    name of the rows in messages.

    >>> column_of(["1970-01-01T00:00:01Z", None], TIMESTAMP, "at", "A").cast("int64").to_pylist()
    [1000000, None]
    """
    kinds = set(map(type, values))
    if any(kind.__name__ in _NO_VALUE for kind in kinds):
        values = [None if type(v).__name__ in _NO_VALUE else v for v in values]
    is_finer = any(hasattr(kind, "nanosecond") for kind in kinds)  # a Timestamp of Pandas
    if is_finer and any(getattr(v, "nanosecond", 0) for v in values):
        warn_of_nanoseconds(name, where)
    try:
        return _array_of(values, dtype, name, where)
    except _MISFIT as error:
        for row, value in enumerate(values):
            try:
                _array_of([value], dtype, name, where)
            except _MISFIT as reason:
                raise _misfit(row, value, dtype, name, where, reason) from error
        raise InputError(str(error), file=where, column=name) from error


def _misfit(
    row: int, value: object, dtype: pa.DataType | None, name: str, where: str, reason: Exception
) -> InputError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    why = "fits no type" if dtype is None else f"is not a valid {type_name(dtype)}"
    # The language's type is clearer than a foreign error.
    why += f": {reason}" if type(reason) is ValueError else _AS_IN.get(dtype, "")
    return InputError(f"row {row}: {shown} {why}", file=where, column=name)


def whole_microseconds(column: pa.Array, name: str, where: str) -> pa.Array:
    """Convert times to TIMESTAMP; cut nanoseconds with a warning, as for files."""
    if column.type.unit != "ns":
        return column.cast(TIMESTAMP)
    if pc.any(pc.not_equal(pc.nanosecond(column), 0)).as_py():
        warn_of_nanoseconds(name, where)
    return from_nanoseconds(column)


def warn_of_nanoseconds(name: str, where: str) -> None:
    """Warn that times are cut to microseconds."""
    warn(
        f"`{name}` of {where} has nanoseconds, which are cut to microseconds; a BIGINT column "
        "keeps them as numbers"
    )


def _array_of(
    values: Sequence[object], dtype: pa.DataType | None, name: str, where: str
) -> pa.Array:
    reason = _refusal(values, dtype) or _nested_refusal(values)
    if reason:
        raise ValueError(reason)
    kinds = set(map(type, values)) - {type(None)}
    if dtype in (TIMESTAMP, DATE) and kinds <= {str}:
        return _parsed(values, dtype, name, where)
    if dtype in (TIMESTAMP, DATE) and str in kinds:
        # Results mix texts with times: Python has no value for some times.
        texts = [v if isinstance(v, str) else None for v in values]
        others = [None if isinstance(v, str) else v for v in values]
        times = _array_of(others, dtype, name, where)
        return pc.coalesce(_parsed(texts, dtype, name, where), times)
    if np.datetime64 in kinds and dtype == TIMESTAMP:
        return whole_microseconds(pa.array(values), name, where)
    return pa.array(values, dtype)


def _parsed(texts: Sequence[object], dtype: pa.DataType, name: str, where: str) -> pa.Array:
    written = pa.array(texts, STRING)
    cut = without_nanoseconds(written)
    if not cut.equals(written):
        warn_of_nanoseconds(name, where)
    return (parse_timestamps if dtype == TIMESTAMP else parse_dates)(cut)


def _refusal(values: Sequence[object], dtype: pa.DataType | None) -> str | None:
    """Explain why Arrow would change these values; None if it would not."""
    kinds = set(map(type, values))
    times = any(issubclass(kind, datetime) for kind in kinds)
    days = any(issubclass(kind, date) and not issubclass(kind, datetime) for kind in kinds)
    if times and days and dtype is None:
        return "days and times are in one column: make all of them datetimes"
    if dtype == DATE and any(isinstance(v, datetime) and v.time() != time() for v in values):
        return "a DATE has no time of day: call .date() on it"
    if str in kinds and (bytes in kinds or dtype == BINARY):
        return "text is not bytes: call .encode() on it"
    if bytes in kinds and dtype == STRING:
        return "bytes are not text: call .decode() on them"
    whole = dtype is not None and is_integer(dtype)
    if whole and any(isinstance(v, float) and not v.is_integer() for v in values):
        return "it has a fraction"
    return None


def _nested_refusal(values: Sequence[object]) -> str | None:
    kinds = set(map(type, values))
    if kinds & {set, frozenset}:
        return "a set has no order: write sorted(…)"
    if Decimal in kinds and any(isinstance(v, Decimal) and not v.is_finite() for v in values):
        return "a DECIMAL has no NaN and no infinity"
    inner: list[object] = []
    if kinds & {list, tuple, dict}:
        for value in values:
            if isinstance(value, Mapping):
                inner.extend(value.values())
            elif isinstance(value, list | tuple):
                inner.extend(value)
    return _nested_refusal(inner) if inner else None
