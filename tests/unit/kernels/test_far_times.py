"""Functions of the calendar over the whole range of TIMESTAMP and DATE, against a calendar that is
written out here: Arrow's years end at 32767, Python's at 9999."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.errors import RunError
from weir.events.batch import Batch
from weir.events.types import BIGINT, DATE, TIMESTAMP
from weir.kernels.expressions.evaluator import compile_expression
from weir.plan.binding.binder import bind, schema_scope
from weir.plan.expressions import Call, Cast, Column, Literal
from weir.plan.schema import Schema

DAY = 86_400 * 1_000_000
LEAST = -(2**63)
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


x = Column("x")


def call(name: str, *args: object) -> Call:
    return Call(name, tuple(a if isinstance(a, Column) else Literal(a) for a in args))


def run(expr: Call, times: pa.Array) -> pa.Array:
    schema = Schema((("x", times.type),), BIGINT)
    vs = np.arange(len(times), dtype=np.int64)
    bound = bind(expr, schema_scope(schema))
    result = compile_expression(bound, schema)(Batch(vs, vs + 1, (times,)))
    assert result.type == bound.type
    return result


def values(expr: Call, times: pa.Array) -> list[object]:
    return run(expr, times).to_pylist()


def leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def new_year(year: int) -> int:
    """The days from 1970-01-01 to the year's first."""
    before = year - 1
    return 365 * (year - 1970) + before // 4 - before // 100 + before // 400 - 477


@dataclass
class Day:
    year: int
    month: int
    day: int
    of_year: int
    weekday: int  # 1 is Monday
    week: int


def first_monday(year: int) -> int:
    """The day on which the year's first ISO week begins: that of January 4."""
    fourth = new_year(year) + 3
    return fourth - (fourth + 3) % 7


def day_of(days: int) -> Day:
    year = 1970 + days // 366
    while new_year(year + 1) <= days:
        year += max(1, (days - new_year(year)) // 366)
    while new_year(year) > days:
        year -= max(1, (new_year(year) - days) // 366)
    rest, month = days - new_year(year), 1
    of_year = rest + 1
    for length in MONTHS:
        length += length == 28 and leap(year)
        if rest < length:
            break
        rest, month = rest - length, month + 1
    iso_year = max(y for y in (year - 1, year, year + 1) if first_monday(y) <= days)
    week = (days - first_monday(iso_year)) // 7 + 1
    return Day(year, month, rest + 1, of_year, (days + 3) % 7 + 1, week)


def test_the_calendar_of_this_test():
    assert day_of(0) == Day(1970, 1, 1, 1, 4, 1)
    assert day_of(-719_528) == Day(0, 1, 1, 1, 6, 52)
    assert day_of(19_782) == Day(2024, 2, 29, 60, 4, 9)
    assert day_of(18_628) == Day(2021, 1, 1, 1, 5, 53)


def fields_of(day: Day) -> dict[str, int]:
    return {
        "year": day.year,
        "quarter": (day.month + 2) // 3,
        "month": day.month,
        "week": day.week,
        "day": day.day,
        "doy": day.of_year,
        "dow": day.weekday % 7,
    }


def floors_of(days: int, day: Day) -> dict[str, int]:
    first = days - day.day + 1
    in_quarter = (day.month - 1) // 3 * 3
    year = new_year(day.year)
    leaped = leap(day.year) and in_quarter >= 3
    return {
        "year": year,
        "quarter": year + sum(MONTHS[:in_quarter]) + leaped,
        "month": first,
        "week": days - day.weekday + 1,
        "day": days,
    }


def written(year: int, digits: int = 4) -> str:
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):0{digits}}"


@given(st.lists(st.integers(LEAST, 2**63 - 1), min_size=1, max_size=20))
@example([971_890_963_199_999_999, 971_890_963_200_000_000])  # the end of 32767
@example([-1_096_225_401_600_000_001, -1_096_225_401_600_000_000])  # the start of -32768
@example([1_200_000_000_000_000_000, 1_767_225_600_000_000_000])  # milliseconds as microseconds
@example([2**62, -(2**62), LEAST, LEAST + 1, 2**63 - 1, 0, -1])
@settings(max_examples=60, deadline=None)
def test_times(ticks):
    column = pa.array(ticks, BIGINT).cast(TIMESTAMP)
    days = [day_of(t // DAY) for t in ticks]
    for unit in fields_of(days[0]):
        expected = [fields_of(day)[unit] for day in days]
        assert values(call("extract", unit, x), column) == expected, unit
    for unit in floors_of(0, days[0]):
        floors = [floors_of(t // DAY, d)[unit] * DAY for t, d in zip(ticks, days, strict=True)]
        got = run(call("date_trunc", unit, x), column).cast(BIGINT).to_pylist()
        assert got == [max(f, LEAST) for f in floors], unit
    for unit, size in (("hour", 3_600_000_000), ("second", 1_000_000), ("microsecond", 1)):
        got = run(call("date_trunc", unit, x), column).cast(BIGINT).to_pylist()
        assert got == [max(t - t % size, LEAST) for t in ticks], unit
    letters = call("formatted_time", x, "yyyy-MM-dd yy D Q", "letters")
    assert values(letters, column) == [
        f"{written(d.year)}-{d.month:02}-{d.day:02} {d.year % 100:02} "
        f"{d.of_year} {(d.month + 2) // 3}"
        for d in days
    ]
    codes = call("formatted_time", x, "%Y-%m-%d %j", "codes")
    assert values(codes, column) == [
        f"{written(d.year)}-{d.month:02}-{d.day:02} {d.of_year:03}" for d in days
    ]


@given(st.lists(st.integers(-(2**31) + 366, 2**31 - 1), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_dates(days):
    column = pa.array(days, pa.int32()).view(DATE)
    for unit in fields_of(day_of(0)):
        expected = [fields_of(day_of(day))[unit] for day in days]
        assert values(call("extract", unit, x), column) == expected, unit
    for unit in floors_of(0, day_of(0)):
        got = run(call("date_trunc", unit, x), column).view(pa.int32()).to_pylist()
        assert got == [floors_of(day, day_of(day))[unit] for day in days], unit


def test_months_are_not_added_to_the_least_time():
    with pytest.raises(RunError, match="overflow"):
        values(call("date_add", x, 1, "month"), pa.array([LEAST], BIGINT).cast(TIMESTAMP))


def test_a_month_whose_start_is_before_all_dates():
    with pytest.raises(RunError, match="-2147483"):
        values(call("date_trunc", "month", x), pa.array([-(2**31)], pa.int32()).view(DATE))


@pytest.mark.parametrize(("dtype", "number"), [(TIMESTAMP, pa.int64()), (DATE, pa.int32())])
def test_in_takes_times_after_the_last_one_of_python(dtype, number):
    far = [Cast(arg=Literal(text), type=dtype) for text in ("+11103-08-29", "2020-01-01")]
    days = pa.array([3_335_999, 0, None], pa.int64())
    times = pc.multiply(days, DAY) if dtype == TIMESTAMP else days.cast(number)
    assert values(Call("in", (x, *far)), times.view(dtype)) == [True, False, None]
