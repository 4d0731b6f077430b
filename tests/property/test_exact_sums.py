"""Float SUM, AVG, VARIANCE, STDDEV and quantiles are the exact value, rounded once.

The references here are written apart from the engine and, where they can be, from the oracle:
`math.fsum` for sums, fractions for quotients, an integer square root for the deviation.
Windows slide, so that every kernel that takes values away again must do so without a trace.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from oracle.rows import OPEN, value_key
from property.engine import run
from property.examples import examples

Values = list[float | None]

_STRANGE = (
    0.0,
    -0.0,
    1e300,
    -1e300,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1.0,
    1e16,
    -1e16,
    0.1,
    2.0**53,
    2.0**-60,
)
_finite = st.one_of(
    st.sampled_from(_STRANGE),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10, 10),
)
_any = st.one_of(_finite, st.none(), st.sampled_from((math.nan, math.inf, -math.inf)))
_lists = st.one_of(st.lists(_finite, max_size=12), st.lists(_any, max_size=12))

_SELECT = """
    SUM(f) AS s, AVG(f) AS a, VARIANCE(f) AS v, STDDEV(f) AS d, MIN(f) AS low, MAX(f) AS high,
    MEDIAN(f) AS m, QUANTILE_CONT(f, 0.3) AS q, QUANTILE_DISC(f, 0.3) AS e,
    COUNT(f) AS n, COUNT(DISTINCT f) AS u
"""


# --- references ----------------------------------------------------------------------------


def expected(values: Values) -> tuple[object, ...]:
    """The aggregates of `_SELECT` over one window's values."""
    present = [v for v in values if v is not None]
    ranked = sorted(present, key=lambda v: (math.isnan(v), v))
    return (
        _sum(present),
        _mean(present),
        _variance(present),
        _deviation(present),
        ranked[0] if ranked else None,
        ranked[-1] if ranked else None,
        _interpolated(ranked, Fraction(1, 2)),
        _interpolated(ranked, Fraction(3, 10)),
        ranked[max(math.ceil(Fraction(3, 10) * len(ranked)), 1) - 1] if ranked else None,
        len(present),
        len({"nan" if math.isnan(v) else v for v in present}),
    )


def _special(values: list[float]) -> float | None:
    if any(map(math.isnan, values)) or (math.inf in values and -math.inf in values):
        return math.nan
    return next((v for v in values if math.isinf(v)), None)


def _sum(values: list[float]) -> float | None:
    if not values:
        return None
    special = _special(values)
    if special is not None:
        return special
    try:
        return math.fsum(values)
    except OverflowError:
        # fsum also gives up where only a partial sum is too large.
        return _double(sum(map(Fraction, values)))


def _mean(values: list[float]) -> float | None:
    if not values:
        return None
    special = _special(values)
    return _double(sum(map(Fraction, values)) / len(values)) if special is None else special


def _exact_variance(values: list[float]) -> Fraction | float | None:
    if len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    n, total = len(values), sum(map(Fraction, values))
    return (sum(Fraction(v) ** 2 for v in values) - total**2 / n) / (n - 1)


def _variance(values: list[float]) -> float | None:
    exact = _exact_variance(values)
    return _double(exact) if isinstance(exact, Fraction) else exact


# Every square of a double has fewer digits than this, so only irrational roots are rounded.
_DIGITS = Context(prec=3000, Emax=9999, Emin=-9999)


def _deviation(values: list[float]) -> float | None:
    exact = _exact_variance(values)
    if not isinstance(exact, Fraction):
        return exact
    square = _DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return float(_DIGITS.sqrt(square))


def _interpolated(ranked: list[float], p: Fraction) -> float | None:
    if not ranked:
        return None
    place = p * (len(ranked) - 1)
    index, share = math.floor(place), place - math.floor(place)
    if share == 0:
        return ranked[index]
    pair = ranked[index : index + 2]
    special = _special(pair)
    if special is not None:
        return special
    return _double(Fraction(pair[0]) + share * (Fraction(pair[1]) - Fraction(pair[0])))


def _double(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# --- programs ------------------------------------------------------------------------------


def _rows(query: str, values: Values, lengths: list[int]) -> list[tuple[object, ...]]:
    """(vs, ve, aggregates…) of a query over events at 0, 1, 2, … with these lengths."""
    text = (
        "STREAM A (vs BIGINT, ve BIGINT, f DOUBLE) FROM 'A.jsonl' WITH (vs = vs, ve = ve);\n"
        f"Out = SELECT {_SELECT} FROM A {query};"
    )
    items = [
        {"vs": t, "ve": t + length, "f": value}
        for t, (value, length) in enumerate(zip(values, lengths, strict=True))
    ]
    result = run(text, {"A": [items]})
    assert result.error is None
    return [(r.vs, r.ve, *r.payload.values()) for r in result.rows]


def _same(found: list[tuple[object, ...]], wanted: list[tuple[object, ...]]) -> None:
    assert sorted(map(value_key, found)) == sorted(map(value_key, wanted)), (found, wanted)


_HUGE = [1.7976931348623157e308, 1.7976931348623157e308, -1.7976931348623157e308, 1e300]


@examples(100)
@given(_lists)
@example(_HUGE)
@example([1e300, 1.5, -1e300, 1e-320])
@example([-0.0, -0.0])
@example([math.inf, 1.0, -math.inf, 2.0, math.nan, 3.0])
def test_one_window_of_everything(values: Values) -> None:
    wanted = [(0, 100, *expected(values))] if values else []
    _same(_rows("WITH TUMBLING(100)", values, [1] * len(values)), wanted)


@examples(100)
@given(_lists, st.integers(1, 5), st.integers(1, 3))
@example(_HUGE, 2, 1)
def test_hopping_windows(values: Values, size: int, hop: int) -> None:
    wanted = []
    for start in range(-size * hop, len(values), 1):
        inside = values[max(start, 0) : max(start + size, 0)]
        if start % hop == 0 and inside:
            wanted.append((start, start + size, *expected(inside)))
    _same(_rows(f"WITH HOPPING({size}, {hop})", values, [1] * len(values)), wanted)


@examples(100)
@given(st.lists(st.tuples(_any, st.integers(1, 6)), max_size=12))
@example([(v, 2) for v in _HUGE])
@example([(math.nan, 2), (1.0, 5), (math.inf, 1), (2.0, 1)])
@example([(1e300, 2), (1.0, 4), (-1e300, 1)])
def test_values_come_and_go(events: list[tuple[float | None, int]]) -> None:
    """Snapshots: a value that has gone leaves no trace, not even a NaN."""
    values, lengths = [v for v, _ in events], [n for _, n in events]
    ends = [t + n for t, n in enumerate(lengths)]
    points = sorted({*range(len(events)), *ends})
    wanted = []
    for start, end in pairwise(points):
        live = [v for t, v in enumerate(values) if t < end and start < ends[t]]
        if live:
            wanted.append((start, end, *expected(live)))
    _same(_rows("WITH SNAPSHOT", values, lengths), wanted)


@examples(60)
@given(st.lists(_any, max_size=10), st.integers(1, 4), st.integers(1, 3))
def test_count_windows(values: Values, n: int, step: int) -> None:
    wanted = []
    for first in range(0, len(values) - n + 1, step):
        last = first + n - 1
        wanted.append((last, last + 1, *expected(values[first : first + n])))
    _same(_rows(f"WITH COUNT({n}, {step})", values, [1] * len(values)), wanted)


def test_open_events_are_summed() -> None:
    text = (
        "STREAM A (vs BIGINT, ve BIGINT, f DOUBLE) FROM 'A.jsonl' WITH (vs = vs, ve = ve);\n"
        "Out = SELECT SUM(f) AS s FROM A WITH SNAPSHOT;"
    )
    items = [{"vs": 0, "ve": None, "f": 1e300}, {"vs": 1, "ve": 2, "f": 0.5}]
    rows = run(text, {"A": [items]}).rows
    assert [(r.vs, r.ve, r.payload["s"]) for r in rows] == [
        (0, 1, 1e300),
        (1, 2, 1e300),
        (2, OPEN, 1e300),
    ]
