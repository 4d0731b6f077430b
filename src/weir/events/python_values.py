"""Columns of the values that Python programs and tests have: rows as dicts are made of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weir.errors import InputError
from weir.events.text import parse_dates, parse_timestamps
from weir.events.types import DATE, STRING, TIMESTAMP, is_integer, type_name

_MISFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)
_FROM_TEXTS = {TIMESTAMP: parse_timestamps, DATE: parse_dates}
_AS_IN = {
    TIMESTAMP: ": a time is a datetime, or a text as in '2026-01-31T08:00:00Z'",
    DATE: ": a day is a date, or a text as in '2026-01-31'",
}


def column_of(values: Sequence[object], dtype: pa.DataType, name: str, where: str) -> pa.Array:
    """Make a column of a type of the language; times may be texts, as files have them. InputError
    says which value does not fit; `where` is what the rows are called.

    >>> column_of(["1970-01-01T00:00:01Z", None], TIMESTAMP, "at", "A").cast("int64").to_pylist()
    [1000000, None]
    """
    try:
        return _made(values, dtype)
    except _MISFIT as error:
        for row, value in enumerate(values):
            try:
                _made([value], dtype)
            except _MISFIT:
                shown = repr(value)
                shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
                text = f"row {row}: {shown} is no {type_name(dtype)}{_AS_IN.get(dtype, '')}"
                raise InputError(text, file=where, column=name) from error
        why = f"texts and times in one column: {error}"
        raise InputError(why, file=where, column=name) from error


def _made(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    if is_integer(dtype) and any(isinstance(v, float) and not v.is_integer() for v in values):
        raise ValueError("a fraction in a column of whole numbers")  # Arrow would cut it off
    parse = _FROM_TEXTS.get(dtype)
    if parse is not None and all(v is None or isinstance(v, str) for v in values):
        return parse(pa.array(values, STRING))
    return pa.array(values, dtype)
