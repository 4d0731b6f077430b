"""Writes values as text and reads them back, in casts and in text files alike.

    TIMESTAMP   ISO 8601, `2024-05-01T12:00:00.000000Z`; UTC unless an offset is given
    DATE        ISO 8601, `2024-05-01`
    DOUBLE      shortest digits that read back; NaN, Infinity, -Infinity

Years before 0000 and after 9999 have a sign, as in ISO 8601's expanded form: `+10000-01-01`,
`-0044-03-15` (the year before 0000 is -0001). Every value has a text that reads back.

Parsing raises `pa.ArrowInvalid` for a text that is not such a value; the caller finds the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.types import DATE, TIMESTAMP

YEAR = r"([0-9]{4}|[+-][0-9]{4,7})"
"""What a year looks like, as a regular expression."""

CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
"""The calendar repeats after this many years, which are this many days: whole weeks."""

_NAIVE = pa.timestamp("us")
_ZONED = r"[0-9](Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_DATE_ONLY_LENGTH = len("2024-05-01")
_SIGNED_YEAR = re.compile(r"([+-][0-9]{4,7})(-.*)", re.DOTALL)
_DAY_TICKS = 86_400 * 1_000_000
_DOUBLE_NAMES = (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity"))


def parse_timestamps(texts: pa.Array) -> pa.Array:
    """Parse ISO 8601 texts as TIMESTAMP; NULL stays NULL.

    >>> times = parse_timestamps(pa.array(["1970-01-01T01:00+01:00", "1970-01-01"]))
    >>> times.cast(pa.int64()).to_pylist()
    [0, 0]
    """
    for dtype in (TIMESTAMP, _NAIVE):
        # Arrow expects offsets in all texts or in none; nearly all columns are so.
        with suppress(pa.ArrowInvalid):
            return _as_utc(texts.cast(dtype))
    if _has_signs(texts):
        return _parse_signed(texts, parse_timestamps, _TICKS)
    zoned = pc.match_substring_regex(texts, _ZONED)
    # The end of a plain date looks like an offset: 2024-05-01 ends in -01.
    zoned = pc.and_(zoned, pc.greater(pc.binary_length(texts), _DATE_ONLY_LENGTH))
    nothing = pa.scalar(None, texts.type)
    with_zone = pc.if_else(zoned, texts, nothing).cast(TIMESTAMP)
    without = pc.if_else(zoned, nothing, texts).cast(_NAIVE)
    return pc.coalesce(with_zone, _as_utc(without))


def format_timestamps(times: pa.Array) -> pa.Array:
    """Write TIMESTAMPs as ISO 8601 in UTC with six decimals.

    >>> format_timestamps(pa.array([1, 1 << 62], TIMESTAMP)).to_pylist()
    ['1970-01-01T00:00:00.000001Z', '+148108-07-06T14:00:27.387904Z']
    """
    # Without a zone: for times with one, Arrow looks up the rules of UTC for every value.
    texts = _format(times.view(_NAIVE), _TICKS)
    return pc.binary_join_element_wise(
        pc.replace_substring(texts, " ", "T", max_replacements=1), "Z", ""
    )


def parse_dates(texts: pa.Array) -> pa.Array:
    """Parse ISO 8601 texts as DATE; NULL stays NULL.

    >>> parse_dates(pa.array(["1970-01-02", "+10000-01-01"])).cast(pa.int32()).to_pylist()
    [1, 2932897]
    """
    if _has_signs(texts):
        return _parse_signed(texts, parse_dates, _DAYS)
    return texts.cast(DATE)


def format_dates(dates: pa.Array) -> pa.Array:
    """Write DATEs as ISO 8601.

    >>> format_dates(pa.array([0, -719_529], pa.int32()).cast(DATE)).to_pylist()
    ['1970-01-01', '-0001-12-31']
    """
    return _format(dates, _DAYS)


def format_doubles(values: pa.Array) -> pa.Array:
    """Write DOUBLEs as text, and NaN and infinities as JSON files have them.

    >>> format_doubles(pa.array([0.5, float("inf")])).to_pylist()
    ['0.5', 'Infinity']
    """
    texts = values.cast(pa.string())
    if pc.all(pc.is_finite(values)).as_py() is not False:
        return texts
    for arrow_name, name in _DOUBLE_NAMES:
        texts = pc.if_else(pc.equal(texts, arrow_name), name, texts)
    return texts


def _as_utc(times: pa.Array) -> pa.Array:
    return times.cast(pa.int64()).cast(TIMESTAMP)


# --- years of more or fewer than four digits -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Calendar:
    """How a type counts time.

    The fields are its type of numbers, the length of the 400 years after which the calendar
    repeats, and the first values of the years 0000 and 10000."""

    number: pa.DataType
    cycle: int
    first: int
    stop: int


_DAYS = _Calendar(pa.int32(), CYCLE_DAYS, -719_528, 2_932_897)
_TICKS = _Calendar(
    pa.int64(), CYCLE_DAYS * _DAY_TICKS, -719_528 * _DAY_TICKS, 2_932_897 * _DAY_TICKS
)


def _format(column: pa.Array, calendar: _Calendar) -> pa.Array:
    """Write values as Arrow does; give years that do not fit four digits a sign."""
    numbers = column.view(calendar.number)
    ends = pc.min_max(numbers)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is None or (least >= calendar.first and most < calendar.stop):
        return column.cast(pa.string())
    values = np.asarray(pc.fill_null(numbers, 0))
    plain = (values >= calendar.first) & (values < calendar.stop)
    cycles = np.where(plain, 0, values // calendar.cycle)
    inner = np.where(plain, values, values % calendar.cycle).astype(values.dtype)
    texts = pa.array(inner).view(column.type).cast(pa.string()).to_pylist()
    for row in np.flatnonzero(~plain):
        year = int(texts[row][:4]) + int(cycles[row]) * CYCLE_YEARS
        texts[row] = f"{year:+05d}{texts[row][4:]}"
    return pa.array(texts, pa.string(), mask=np.asarray(column.is_null()))


def _has_signs(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, "^[+-]")).as_py())


def _parse_signed(
    texts: pa.Array, parse: Callable[[pa.Array], pa.Array], calendar: _Calendar
) -> pa.Array:
    """Parse texts, some of which have a sign before the year.

    Such a text is parsed in a year of four digits with the same days, then shifted by whole cycles
    of the calendar."""
    matches = [None if t is None else _SIGNED_YEAR.fullmatch(t) for t in texts.to_pylist()]
    years = [0 if m is None else int(m[1]) for m in matches]
    plain = [
        text if m is None else f"{year % CYCLE_YEARS:04}{m[2]}"
        for text, m, year in zip(texts.to_pylist(), matches, years, strict=True)
    ]
    if any(t is not None and t[:1] in ("+", "-") for t in plain):
        raise pa.ArrowInvalid("a sign without a year after it")
    inner = parse(pa.array(plain, pa.string()))
    values = [
        None if v is None else v + year // CYCLE_YEARS * calendar.cycle
        for v, year in zip(inner.view(calendar.number).to_pylist(), years, strict=True)
    ]
    most = 2 ** (calendar.number.bit_width - 1)
    if not all(v is None or -most <= v < most for v in values):
        raise pa.ArrowInvalid("a year that is too far")
    return pa.array(values, calendar.number).view(inner.type)
