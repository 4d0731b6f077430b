"""Functions of TIMESTAMP and DATE: date_trunc, extract, date_add, to_timestamp. All in UTC.

In EXTRACT, `millisecond` and `microsecond` count within the second; `epoch` is whole seconds,
rounded down; `week` is the ISO week; `dow` is 0 on Sunday. The first unit of all begins before the
least time; in it, DATE_TRUNC returns the least time. DATE_ADD of months keeps the day of the month,
or uses the month's last day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import Int64s
from weir.events.python_lists import python_list
from weir.events.types import BIGINT, DATE, STRING, TIMESTAMP
from weir.events.value_text import CYCLE_DAYS, CYCLE_YEARS, parse_timestamps
from weir.kernels.expressions.casts import cast_array
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    Mask,
    RowFailure,
    Site,
    fail_where,
    numbers,
    spread,
    valid_rows,
    with_nulls,
)

_NAIVE = pa.timestamp("us")
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_TICKS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": _DAY,
    "week": 7 * _DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MONDAY = -3  # 1969-12-29, in days
_LEAST = np.iinfo(np.int64).min
_MOST_MONTHS = 12 * 600_000  # beyond the range of TIMESTAMP, but within that of the arithmetic
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _naive(column: pa.Array) -> pa.Array:
    # Arrow looks up the zone's rules in every function of a column with a zone; UTC has no rules.
    return column.view(_NAIVE) if column.type == TIMESTAMP else column.cast(_NAIVE)


def _to_ticks(column: pa.Array) -> Int64s:
    return np.asarray(numbers(_naive(column).view(BIGINT)), dtype=np.int64)


def _to_days(column: pa.Array) -> Int64s:
    if column.type == DATE:
        return np.asarray(numbers(column.view(pa.int32())), dtype=np.int64)
    return _to_ticks(column) // _DAY


def _alike(days: Int64s) -> pa.Array:
    """Return the days at the same place of the calendar's cycle, in the years 1970 to 2369.

    Arrow's years wrap around from 32767 to -32768."""
    return pa.array((days % CYCLE_DAYS).astype(np.int32)).view(DATE)


def _from_ticks(ticks: Int64s, valid: Mask | None, dtype: pa.DataType) -> pa.Array:
    return cast_array(with_nulls(ticks, valid).cast(TIMESTAMP), dtype)


# --- truncation and fields -----------------------------------------------------------------


def _date_trunc(site: Site) -> ArrayFunction:
    unit = str(site.constant(0))
    if site.type == DATE:
        floor = _floor(unit, 1)
        return lambda _, column: (
            with_nulls(floor(_to_days(column)), valid_rows(column)).cast(pa.int32()).view(DATE)
        )
    floor = _floor(unit, _DAY)

    def run(_: Datum, column: pa.Array) -> pa.Array:
        ticks = _to_ticks(column)
        floors = floor(ticks)
        wrapped = floors > ticks
        return _from_ticks(np.where(wrapped, _LEAST, floors), valid_rows(column), TIMESTAMP)

    return run


def _floor(unit: str, day: int) -> Callable[[Int64s], Int64s]:
    """Return a function that rounds times down to a unit; `day` of its numbers are one day."""
    if unit in _MONTHS:

        def first(values: Int64s) -> Int64s:
            days = values // day
            floors = pc.floor_temporal(_alike(days), unit=unit).view(pa.int32())
            return (np.asarray(floors) + days // CYCLE_DAYS * CYCLE_DAYS) * day

        return first
    size, origin = _TICKS[unit] * day // _DAY, _MONDAY * day if unit == "week" else 0
    return lambda values: values - (values % size - origin) % size


def _of_ticks(function: Callable[[Int64s], Int64s]) -> ArrayFunction:
    return lambda column: with_nulls(function(_to_ticks(column)), valid_rows(column))


def _of_days(function: Callable[[Int64s], Int64s]) -> ArrayFunction:
    return lambda column: with_nulls(function(_to_days(column)), valid_rows(column))


def _of_calendar(function: ArrayFunction) -> ArrayFunction:
    return _of_days(lambda days: np.asarray(function(_alike(days))))


def _year(days: Int64s) -> Int64s:
    return np.asarray(pc.year(_alike(days))) + days // CYCLE_DAYS * CYCLE_YEARS


_FIELDS: Mapping[str, ArrayFunction] = {
    "year": _of_days(_year),
    "quarter": _of_calendar(pc.quarter),
    "month": _of_calendar(pc.month),
    "week": _of_calendar(pc.iso_week),
    "day": _of_calendar(pc.day),
    "doy": _of_calendar(pc.day_of_year),
    "dow": _of_days(lambda days: (days + 4) % 7),  # 1970-01-01 was a Thursday
    "hour": _of_ticks(lambda t: t // _TICKS["hour"] % 24),
    "minute": _of_ticks(lambda t: t // _TICKS["minute"] % 60),
    "second": _of_ticks(lambda t: t // _SECOND % 60),
    "millisecond": _of_ticks(lambda t: t // 1_000 % 1_000),
    "microsecond": _of_ticks(lambda t: t % _SECOND),
    "epoch": _of_ticks(lambda t: t // _SECOND),
}


def calendar_field(unit: str, column: pa.Array) -> pa.Array:
    """Return a field of each time, as EXTRACT does."""
    return _FIELDS[unit](column)


def _extract(site: Site) -> ArrayFunction:
    field = _FIELDS[str(site.constant(0))]
    return lambda _, column: field(column)


# --- moving --------------------------------------------------------------------------------


def _date_add(site: Site) -> ArrayFunction:
    unit = str(site.constant(2))
    add = _add_months if unit in _MONTHS else _add_ticks
    size = _MONTHS[unit] if unit in _MONTHS else _TICKS[unit]
    return spread(lambda column, count, _: add(column, count, size, site.type))


def _add_ticks(column: pa.Array, count: pa.Array, size: int, dtype: pa.DataType) -> pa.Array:
    ticks = _naive(column).view(BIGINT)
    moved = pc.add_checked(ticks, pc.multiply_checked(count, size))
    return cast_array(moved.cast(TIMESTAMP), dtype)


def _add_months(column: pa.Array, count: pa.Array, size: int, dtype: pa.DataType) -> pa.Array:
    counts, valid = numbers(count), valid_rows(column, count)
    too_far = np.abs(counts.astype(np.float64)) * size > _MOST_MONTHS
    fail_where(too_far, valid, lambda row: f"date_add overflow: {counts[row]} is too far")
    moments = _to_ticks(column).astype("M8[us]")
    months = moments.astype("M8[M]")
    days = moments.astype("M8[D]")
    in_day = moments - days
    target = months + np.where(too_far, 0, counts.astype(np.int64) * size)
    last = (target + 1).astype("M8[D]") - 1
    day = np.minimum(target.astype("M8[D]") + (days - months.astype("M8[D]")), last)
    whole = day.astype(np.int64)
    limit = np.iinfo(np.int64).max // _DAY
    beyond = (whole >= limit) | (whole <= -limit)  # so is the least time, NumPy's missing value
    fail_where(beyond, valid, lambda row: f"date_add overflow: {counts[row]} is too far")
    ticks = np.where(beyond, 0, whole) * _DAY + in_day.astype(np.int64)
    return _from_ticks(ticks, valid, dtype)


# --- parsing -------------------------------------------------------------------------------


def _to_timestamp(site: Site) -> ArrayFunction:
    if len(site.arg_types) == 2:
        form = str(site.constant(1))
        return lambda column, _: _strptime(column, form)
    if site.arg_types[0] == STRING:
        return _iso_times
    return lambda column: cast_array(column, TIMESTAMP)


def _iso_times(column: pa.Array) -> pa.Array:
    try:
        return parse_timestamps(column)
    except pa.ArrowInvalid:  # its text speaks of Arrow's types
        raise pa.ArrowInvalid("not an ISO 8601 time") from None


def _strptime(column: pa.Array, form: str) -> pa.Array:
    # Row by row: Arrow's own strptime does not parse fractions of a second.
    values: list[int | None] = []
    for row, text in enumerate(python_list(column)):
        try:
            values.append(None if text is None else _ticks_of(datetime.strptime(text, form)))
        except ValueError as error:
            raise RowFailure(row, f"to_timestamp: {error}") from None
    return pa.array(values, BIGINT).cast(TIMESTAMP)


def _ticks_of(moment: datetime) -> int:
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(microseconds=1)


FUNCTIONS: Mapping[str, Builder] = {
    "date_trunc": _date_trunc,
    "extract": _extract,
    "date_add": _date_add,
    "to_timestamp": _to_timestamp,
}
