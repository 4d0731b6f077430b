"""The order of values and rows, against plain Python comparison."""

import math
from decimal import Decimal
from functools import cmp_to_key

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.events.batch import Batch
from weir.events.order import dense_codes, order_codes, sort_batch, sort_rows


def compare(a: object, b: object) -> int:
    """The value order of architecture §3.1, written apart."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) - math.isnan(b)
        return (a > b) - (a < b)
    if isinstance(a, str):
        return compare(a.encode(), b.encode())
    if isinstance(a, list):
        for x, y in zip(a, b, strict=False):
            if (c := compare(x, y)) != 0:
                return c
        return (len(a) > len(b)) - (len(a) < len(b))
    if isinstance(a, dict):
        return compare([a["a"], a["b"]], [b["a"], b["b"]])
    return (a > b) - (a < b)


int64s = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.just(-(2**63)))
floats = st.one_of(
    st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf]), st.floats()
)
strings = st.text(alphabet="ab\x00é\U0001f600z", max_size=4)
decimals = st.integers(-(10**20), 10**20).map(lambda i: Decimal(i) / 100)
small_decimals = st.integers(-300, 300).map(lambda i: Decimal(i) / 100)
cases = st.sampled_from(
    [
        (pa.int64(), int64s),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        (pa.float64(), floats),
        (pa.string(), strings),
        (pa.binary(), st.binary(max_size=3)),
        (pa.bool_(), st.booleans()),
        (pa.decimal128(38, 2), decimals),
        (pa.decimal128(10, 2), small_decimals),
        (pa.date32(), st.integers(-5, 5)),
        (pa.timestamp("us", tz="UTC"), st.integers(-5, 5)),
        (pa.list_(pa.float64()), st.lists(st.one_of(st.none(), floats), max_size=3)),
        (pa.list_(pa.string()), st.lists(strings, max_size=3)),
        (
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
            st.fixed_dictionaries({"a": st.one_of(st.none(), int64s), "b": strings}),
        ),
    ]
)


@settings(max_examples=400, deadline=None)
@given(cases.flatmap(lambda c: st.tuples(st.just(c[0]), st.lists(st.one_of(st.none(), c[1])))))
def test_codes_compare_as_values(case):
    dtype, values = case
    # A slice: offsets into buffers are where order code goes wrong.
    column = pa.array([None, *values], dtype).slice(1)
    codes = order_codes(column).tolist()
    for a, x in zip(values, codes, strict=True):
        for b, y in zip(values, codes, strict=True):
            assert (x > y) - (x < y) == compare(a, b), (a, b)


def test_null_type_and_empty_arrays_have_codes():
    assert order_codes(pa.nulls(3)).tolist() == [0, 0, 0]
    for dtype in (pa.int64(), pa.string(), pa.decimal128(5, 1), pa.list_(pa.int64())):
        assert order_codes(pa.array([], dtype)).tolist() == []


keys = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 2)] * width), max_size=40)
)


@settings(max_examples=200, deadline=None)
@given(keys)
def test_sort_rows_is_a_stable_lexicographic_sort(rows):
    columns = [np.array(c, dtype=np.int64) for c in zip(*rows, strict=True)] or [
        np.zeros(0, np.int64)
    ]
    assert sort_rows(columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    ranks = {row: i for i, row in enumerate(sorted(set(rows)))}
    assert dense_codes(columns).tolist() == [ranks[row] for row in rows]


BIG = 2**63
LONG_RUNS = {
    "close": lambda rng: rng.integers(-50, 150, 400),
    "one value": lambda rng: np.full(400, -7),
    "far apart": lambda rng: rng.integers(-BIG, BIG, 400),
    "the ends": lambda rng: rng.choice(np.array([-BIG, BIG - 1, 0]), 400),
    "close to the end": lambda rng: rng.integers(BIG - 300, BIG, 400),
}


@pytest.mark.parametrize("kind", LONG_RUNS)
def test_long_runs_of_ties_are_sorted(kind):
    rng = np.random.default_rng(5)
    first = np.repeat([1, 0, 2], [350, 40, 10])
    second = LONG_RUNS[kind](rng).astype(np.int64)
    rows = list(zip(first.tolist(), second.tolist(), strict=True))
    assert sort_rows([first, second]).tolist() == sorted(range(400), key=rows.__getitem__)


events = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(5, 6),
        st.one_of(st.none(), floats),
        st.one_of(st.none(), strings),
    ),
    max_size=30,
)


def batch_of(rows):
    vs, origin, ve, x, s = ([row[i] for row in rows] for i in range(5))
    return Batch(
        np.array(vs, np.int64),
        np.array(ve, np.int64),
        (pa.array(x, pa.float64()), pa.array(s, pa.string())),
        (np.array(origin, np.int64),),
    )


@settings(max_examples=200, deadline=None)
@given(events, st.booleans())
def test_sort_batch_is_vs_origin_ve_payload(rows, by_origin):
    def order(i: int, j: int) -> int:
        a, b = rows[i], rows[j]
        pairs = [(a[0], b[0])] + [(a[1], b[1])] * by_origin + list(zip(a[2:], b[2:], strict=True))
        return next((c for x, y in pairs if (c := compare(x, y))), 0)

    expected = sorted(range(len(rows)), key=cmp_to_key(order))
    assert sort_batch(batch_of(rows), by_origin).tolist() == expected


@pytest.mark.parametrize(
    ("times", "origins"),
    [
        ([1, 1, 2], [0, 1, 0]),
        ([1, 1, 2], [0, 0, 0]),
        ([1, 1, 2], [1, 0, 0]),
        ([2, 1, 1], [0, 0, 1]),
    ],
)
def test_rows_that_may_be_in_order_already(times, origins):
    rows = [
        (vs, origin, 9 - i, None, None)
        for i, (vs, origin) in enumerate(zip(times, origins, strict=True))
    ]
    expected = sorted(range(len(rows)), key=lambda i: rows[i][:3])
    assert sort_batch(batch_of(rows), by_origin=True).tolist() == expected


def test_exact_order_does_not_depend_on_arrival():
    rows = [(1, 0, 5, -0.0, "b"), (1, 1, 5, 0.0, "b"), (1, 2, 5, 0.0, "a")]
    for arrival in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        batch = batch_of([rows[i] for i in arrival])
        got = batch.take(sort_batch(batch, False, exact=True))
        assert got.columns[1].to_pylist() == ["a", "b", "b"]
        assert [math.copysign(1, x) for x in got.columns[0].to_pylist()] == [1, -1, 1]


def test_payload_is_only_read_where_earlier_keys_tie(monkeypatch):
    from weir.events import order

    seen = []
    original = order.order_codes
    monkeypatch.setattr(
        order, "order_codes", lambda c, **kw: (seen.append(len(c)), original(c, **kw))[1]
    )
    rows = [(i, 0, 99, float(i), "x") for i in range(100)] + [(3, 0, 99, 2.0, "x")]
    assert order.sort_batch(batch_of(rows), False).tolist()[3:5] == [100, 3]
    assert seen == [2]


@pytest.mark.parametrize("value", [-(2**63), 0])
def test_null_is_below_the_smallest_integer(value):
    null, low = order_codes(pa.array([None, value])).tolist()
    assert null < low


SPREADS = {
    "few": (0, 5),
    "near the top": (2**63 - 3_000, 2**63 - 1),
    "three digits": (-(10**9), 10**9),
    "anything": (-(2**63), 2**63 - 1),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("in_order", [False, True])
def test_long_ties_are_sorted_as_short_ones(spread, in_order):
    chance = np.random.default_rng(5)
    groups = np.repeat(np.arange(9), [1, 2, 31, 33, 255, 256, 300, 3_000, 5])
    values = chance.integers(*SPREADS[spread], len(groups), endpoint=True)
    if in_order:
        values.sort()
    assert sort_rows([groups, values]).tolist() == np.lexsort((values, groups)).tolist()
