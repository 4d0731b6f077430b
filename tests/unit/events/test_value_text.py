"""Values as text: every time and every date reads back, whatever its year."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weir.events.batch import LATEST
from weir.events.types import BIGINT, DATE, INT, STRING, TIMESTAMP
from weir.events.value_text import format_dates, format_timestamps, parse_dates, parse_timestamps
from weir.files.text_chunks import cast_texts
from weir.kernels.expressions.casts import build_cast
from weir.script.constants import moment

YEAR_0000, YEAR_10000 = -62_167_219_200_000_000, 253_402_300_800_000_000
DAY = 86_400_000_000
NEAR_EDGES = st.sampled_from([0, YEAR_0000, YEAR_10000, -LATEST, LATEST]).flatmap(
    lambda edge: st.integers(edge - 2 * DAY, edge + 2 * DAY)
)
TIMES = st.integers(-(2**63), 2**63 - 1) | NEAR_EDGES
DATES = TIMES.map(lambda time: time // DAY) | st.integers(-(2**31), 2**31 - 1)


@given(st.lists(TIMES | st.none(), min_size=1))
@example([-(2**63), 2**63 - 1, None, YEAR_0000 - 1, YEAR_0000, YEAR_10000 - 1, YEAR_10000])
def test_every_time_reads_back(ticks: list[int | None]) -> None:
    times = pa.array(ticks, BIGINT).view(TIMESTAMP)
    texts = format_timestamps(times)
    assert parse_timestamps(texts).view(BIGINT).to_pylist() == ticks
    assert cast_texts(texts, TIMESTAMP) == (times, {})
    assert build_cast(STRING, TIMESTAMP, lenient=False)(texts).equals(times)
    for text, tick in zip(texts.to_pylist(), ticks, strict=True):
        assert tick is None or moment(text, TIMESTAMP) == tick
        assert tick is None or text.startswith(_year_by_numpy(tick))


def _year_by_numpy(tick: int) -> str:
    moment_of = np.datetime64(max(tick, 1 - 2**63), "us")  # numpy has no smaller one
    year = int(moment_of.astype("M8[Y]").astype(np.int64)) + 1970
    return f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"


@given(st.lists(DATES | st.none(), min_size=1))
@example([-(2**31), 2**31 - 1, None, -719_529, -719_528, 2_932_896, 2_932_897])
def test_every_date_reads_back(days: list[int | None]) -> None:
    dates = pa.array(days, INT).view(DATE)
    texts = format_dates(dates)
    assert parse_dates(texts).view(INT).to_pylist() == days
    assert cast_texts(texts, DATE) == (dates, {})
    for text, day in zip(texts.to_pylist(), days, strict=True):
        assert day is None or moment(text, DATE) == day


@pytest.mark.parametrize(
    ("ticks", "text"),
    [
        (YEAR_10000 - 1, "9999-12-31T23:59:59.999999Z"),
        (YEAR_10000, "+10000-01-01T00:00:00.000000Z"),
        (YEAR_0000, "0000-01-01T00:00:00.000000Z"),
        (YEAR_0000 - 1, "-0001-12-31T23:59:59.999999Z"),
        (951_782_400_000_000 + 25 * 146_097 * DAY, "+12000-02-29T00:00:00.000000Z"),
        (-LATEST, "-144169-06-28T09:59:32.612096Z"),
    ],
)
def test_a_year_without_four_digits_has_a_sign(ticks: int, text: str) -> None:
    assert format_timestamps(pa.array([ticks], TIMESTAMP)).to_pylist() == [text]


def test_a_sign_goes_with_every_other_form() -> None:
    texts = ["+10000-01-01", "+010000-01-01 01:00:00+01:00", None, "1970-01-01T00:00:00.000001"]
    parsed = parse_timestamps(pa.array(texts)).view(BIGINT).to_pylist()
    assert parsed == [YEAR_10000, YEAR_10000, None, 1]


@pytest.mark.parametrize(
    "text",
    ["+300000-01-01", "-300000-01-01T00:00Z", "+10001-02-29", "10000-01-01", "+1-01-01", "+"],
)
def test_what_is_no_time_with_a_sign_is_a_misfit(text: str) -> None:
    column, misfits = cast_texts(pa.array(["1970-01-01", text]), TIMESTAMP)
    assert list(misfits) == [1] and column[0].is_valid
    with pytest.raises(ValueError):
        moment(text, TIMESTAMP)
