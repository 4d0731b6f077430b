"""Ingress against a loop over single rows, written from the rules."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import InputError
from weir.events.batch import LATEST, OPEN, START
from weir.events.types import BIGINT, STRING, TIMESTAMP
from weir.files.chunks import BadRow, Chunk
from weir.ingress.ingress import PARTITION_BITS, Ingress, bad_schema, late_schema
from weir.plan.durations import parse_duration
from weir.plan.operators import Source, SourceOptions

DECLARED = (("at", BIGINT), ("until", BIGINT), ("v", BIGINT))


def make(**options):
    return Source("A", DECLARED, "a.jsonl", SourceOptions(vs="at", **options), 3)


def chunk_of(items, first, line=1):
    """Items: ("row", at, until, v), ("cti", t), ("bad",)."""
    rows, offsets, lines, ctis, bad = [], [], [], [], []
    offset = first
    for item in items:
        if item[0] == "cti":
            ctis.append((item[1], len(rows)))
        elif item[0] == "bad":
            bad.append(BadRow(offset, line + offset, "v", "torn", "wanted a row"))
            offset += 1
        else:
            rows.append(item[1:])
            offsets.append(offset)
            lines.append(line + offset)
            offset += 1
    columns = [pa.array([r[i] for r in rows], BIGINT) for i in range(3)]
    return Chunk(
        pa.RecordBatch.from_arrays(columns, names=["at", "until", "v"]),
        np.array(offsets, np.int64),
        offset,
        np.array(lines, np.int64),
        np.array([c[0] for c in ctis], np.int64),
        np.array([c[1] for c in ctis], np.int64),
        tuple(bad),
    )


def feed(ingress, items, cuts=()):
    """Everything that comes out, as plain values."""
    rows, late, bad, ctis = [], [], [], []
    bounds = [0, *sorted(cuts), len(items)]
    for begin, stop in pairwise(bounds):
        out = ingress.feed(chunk_of(items[begin:stop], ingress.next_offset))
        b = out.batch
        values = [c.to_pylist() for c in b.columns]
        rows += zip(
            b.vs.tolist(), b.ve.tolist(), *values, *(o.tolist() for o in b.origin), strict=True
        )
        late += zip(out.late.vs.tolist(), out.late.columns[4].to_pylist(), strict=True)
        bad += out.bad.columns[1].to_pylist()
        ctis.append(out.cti)
    return rows, late, bad, ctis[-1]


def oracle(source, items):
    """The rules of semantics §6, one row at a time."""
    options = source.options
    now, offset = START, 0
    rows, late, bad = [], [], []
    for item in items:
        if item[0] == "cti":
            now = max(now, item[1])
            continue
        here, offset = offset, offset + 1
        if item[0] == "bad":
            if options.bad == "fail":
                return "bad", here
            bad.append(here)
            continue
        at, until, v = item[1:]
        if options.ve:
            end = OPEN if until is None else until
        else:
            end = None if at is None else at + (1 if options.lifetime is None else options.lifetime)
        beyond = at is None or abs(at) > LATEST or bool(options.ve and LATEST < end < OPEN)
        if beyond or end <= at or (not options.ve and end >= OPEN):
            if options.bad == "fail":
                return "bad", here
            bad.append(here)
            continue
        start = at
        if at < now:
            if options.late == "fail":
                return "late", here
            start = now if options.late == "adjust" else None
            if start is None or end <= start:
                late.append((at, here))
                continue
        rows.append((start, end, at, until, v, (3 << PARTITION_BITS) | 2, here))
        now = max(now, at - options.delay)
    return rows, late, bad, now


item = st.one_of(
    st.tuples(
        st.just("row"),
        st.one_of(
            st.none(),
            st.integers(-5, 20),
            st.sampled_from([OPEN, OPEN - 1, START, LATEST, LATEST + 1, -LATEST]),
        ),
        st.one_of(st.none(), st.integers(-5, 25)),
        st.integers(0, 3),
    ),
    st.tuples(st.just("row"), st.integers(0, 20), st.integers(10, 40), st.integers(0, 3)),
    st.tuples(st.just("row"), st.integers(0, 20), st.none(), st.integers(0, 3)),
    st.tuples(st.just("cti"), st.integers(0, 20)),
    st.tuples(st.just("bad")),
)
options = st.fixed_dictionaries(
    {
        "delay": st.sampled_from([0, 0, 3, 10]),
        "late": st.sampled_from(["fail", "drop", "adjust"]),
        "bad": st.sampled_from(["fail", "skip", "skip"]),
    },
    optional={"ve": st.just("until"), "lifetime": st.sampled_from([1, 7])},
)


@settings(max_examples=500, deadline=None)
@given(options, st.lists(item, max_size=15), st.data())
def test_ingress_is_the_rules_at_any_cut(chosen, items, data):
    source = make(**chosen)
    expected = oracle(source, items)
    cuts = data.draw(st.lists(st.integers(0, len(items)), max_size=5))
    ingress = Ingress(source, 2, "a.jsonl")
    if isinstance(expected[0], str):
        kind, offset = expected
        with pytest.raises(InputError) as info:
            feed(ingress, items, cuts)
        assert info.value.line == 1 + offset
        assert info.value.file == "a.jsonl"
        assert ("late" in str(info.value)) == (kind == "late")
        return
    rows, late, bad, now = feed(ingress, items, cuts)
    assert (rows, late, bad, now) == expected
    assert (ingress.late_count, ingress.bad_count) == (len(late), len(bad))
    assert ingress.event_count == len(rows)


@settings(max_examples=100, deadline=None)
@given(st.lists(item, max_size=12), st.data())
def test_a_loaded_ingress_goes_on_where_the_other_stopped(items, data):
    source = make(late="adjust", bad="skip", delay=2, ve="until")
    cut = data.draw(st.integers(0, len(items)))
    first, second, whole = (Ingress(source, 2, "a.jsonl") for _ in range(3))
    head = feed(first, items[:cut])
    second.load(first.snapshot())
    tail = feed(second, items[cut:])
    rows, late, bad, now = feed(whole, items)
    assert (head[0] + tail[0], head[1] + tail[1], head[2] + tail[2]) == (rows, late, bad)
    assert second.snapshot() == whole.snapshot()
    assert now == whole.now


def test_adjusting_drops_what_has_nothing_left():
    ingress = Ingress(make(late="adjust", ve="until"), 2, "a.jsonl")
    items = [("row", 9, None, 1), ("row", 3, 9, 2), ("row", 3, 10, 3)]
    rows, late, _, _ = feed(ingress, items)
    assert [r[:2] for r in rows] == [(9, OPEN), (9, 10)]
    assert late == [(3, 1)]


def test_the_end_is_a_cti_at_infinity():
    ingress = Ingress(make(), 0, "a.jsonl")
    assert feed(ingress, [("row", 5, None, 1)])[3] == 5
    assert ingress.end() == OPEN


def test_late_and_bad_rows_have_their_places():
    source = make(late="drop", bad="skip", ve="until")
    ingress = Ingress(source, 0, "a.jsonl")
    items = [("row", 9, None, 1), ("row", 3, 5, 2), ("row", 9, 9, 3), ("row", 8, None, 4)]
    out = ingress.feed(chunk_of(items, 0))
    late = dict(
        zip(late_schema(source).names, (c.to_pylist() for c in out.late.columns), strict=True)
    )
    assert (out.late.vs.tolist(), out.late.ve.tolist()) == ([3, 8], [5, OPEN])
    assert (late["v"], late["offset"], late["line"]) == ([2, 4], [1, 3], [2, 4])
    assert (late["now"], late["file"]) == ([9, 9], ["a.jsonl"] * 2)
    bad = dict(zip(bad_schema(source).names, (c.to_pylist() for c in out.bad.columns), strict=True))
    assert (bad["offset"], bad["line"], bad["column"]) == ([2], [3], ["until"])
    assert "not after" in bad["reason"][0]
    assert "'v': 3" in bad["row"][0]


def test_a_partition_can_start_with_the_sources_cti():
    ingress = Ingress(make(late="drop"), 0, "a.jsonl", now=7)
    assert [r[0] for r in feed(ingress, [("row", 6, None, 1), ("row", 7, None, 1)])[0]] == [7]


def test_vs_and_ve_columns_are_consumed_and_times_are_ticks():
    declared = (("vs", TIMESTAMP), ("ve", TIMESTAMP), ("k", STRING))
    source = Source("A", declared, "a.csv", SourceOptions(vs="vs", ve="ve"), 0)
    rows = pa.RecordBatch.from_arrays(
        [pa.array([5], TIMESTAMP), pa.array([None], TIMESTAMP), pa.array(["x"])],
        names=["vs", "ve", "k"],
    )
    out = Ingress(source, 1, "a.csv").feed(Chunk(rows, np.array([0]), 1))
    assert (out.batch.vs.tolist(), out.batch.ve.tolist()) == ([5], [OPEN])
    assert [c.to_pylist() for c in out.batch.columns] == [["x"]]
    assert [o.tolist() for o in out.batch.origin] == [[1], [0]]


def test_the_time_reached_looks_like_the_other_times():
    declared = (("at", TIMESTAMP),)
    source = Source("A", declared, "a", SourceOptions(vs="at", late="drop"), 0)
    assert dict(late_schema(source).columns)["now"] == TIMESTAMP
    rows = pa.RecordBatch.from_arrays([pa.array([9, 3], TIMESTAMP)], names=["at"])
    late = Ingress(source, 0, "a").feed(Chunk(rows, np.arange(2), 2)).late
    assert [c.type for c in late.columns] == list(late_schema(source).types)
    assert late.columns[-1].cast(BIGINT).to_pylist() == [9]


@pytest.mark.parametrize(
    ("dtype", "times", "told", "delay"),
    [
        (BIGINT, [10, 30, 7], "start 7 is before 28, ", "23"),
        (
            TIMESTAMP,
            [2_000_000, 1_370_321],
            "start 1970-01-01T00:00:01.370321Z is before 1970-01-01T00:00:01.999998Z, ",
            "630ms",
        ),
    ],
)
def test_a_late_row_is_told_with_the_delay_that_admits_it(
    dtype: pa.DataType, times: list[int], told: str, delay: str
) -> None:
    rows = Chunk(
        pa.record_batch({"at": pa.array(times, BIGINT).cast(dtype)}),
        np.arange(len(times)),
        len(times),
    )
    ingress = Ingress(Source("A", (("at", dtype),), "a", SourceOptions("at", delay=2), 0), 0, "a")
    with pytest.raises(InputError, match=f"{told}.*; delay = {delay} would admit it"):
        ingress.feed(rows)
    options = SourceOptions("at", delay=parse_duration(int(delay) if delay.isdigit() else delay))
    ingress = Ingress(Source("A", (("at", dtype),), "a", options, 0), 0, "a")
    assert len(ingress.feed(rows).batch.vs) == len(times)
