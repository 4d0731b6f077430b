"""Delays of sinks: from when the last source has reached an event time until the sink has."""

from __future__ import annotations

from itertools import pairwise

from machine.jobs import INNER, SOURCE, topology
from weir.events.batch import OPEN, START
from weir.job.delays import MARK_EVERY, MOST_MARKS, Delays, ReachedMarks, bucket_of
from weir.runtime.topology import OutletSpec, VertexSpec, wire

SECOND = VertexSpec("5.0", "source", 5, 0, outlets=(OutletSpec("5.0/0"),))
JOIN = VertexSpec("6.0", "inner", 6, 0, ("1.0/0", "5.0/0"), (0, 1), (OutletSpec("6.0/0"),))
SINKS = (
    VertexSpec("sink.0", "sink", 0, 0, ("6.0/0",), (0,)),
    VertexSpec("sink.1", "sink", 1, 0, ("1.0/0",), (0,)),
)


def test_the_last_source_counts_and_only_those_that_a_sink_reads() -> None:
    delays = Delays(wire((SOURCE, INNER, SECOND, JOIN, *SINKS)), {})
    delays.take("0.0", [(5, 1.0), (10, 2.0)], 100.0)
    delays.take("5.0", [(5, 4.0), (12, 7.0)], 100.0)
    delays.take("sink.0", [(10, 107.5)], 0.0)
    delays.take("sink.1", [(10, 102.5)], 0.0)
    assert delays.counts == {"sink.0": {bucket_of(0.5): 1}, "sink.1": {bucket_of(0.5): 1}}


def test_a_source_that_ended_at_once_hides_no_delay() -> None:
    """A small finite input beside an endless one has one mark, its end."""
    delays = Delays(wire((SOURCE, INNER, SECOND, JOIN, *SINKS)), {})
    delays.take("5.0", [(OPEN, 2.0)], 0.0)
    delays.take("0.0", [(5, 1.0), (10, 3.0), (20, 4.0)], 0.0)
    delays.take("sink.0", [(10, 3.5), (20, 4.5)], 0.0)
    assert delays.counts["sink.0"] == {bucket_of(0.5): 2}


def test_a_source_may_have_come_before_its_first_mark() -> None:
    delays = Delays(wire((SOURCE, INNER, SECOND, JOIN, *SINKS)), {})
    delays.take("5.0", [(OPEN, 9.0)], 0.0)  # it may have reached 10 at any time before
    delays.take("0.0", [(5, 1.0), (10, 3.0), (20, 10.0)], 0.0)
    delays.take("sink.0", [(10, 9.5), (20, 10.5)], 0.0)
    assert delays.counts["sink.0"] == {bucket_of(0.5): 1}


def test_a_sink_that_is_heard_of_before_its_source_waits_for_it() -> None:
    delays = Delays(topology(), {})
    delays.take("sink.0", [(10, 3.0)], 0.0)
    assert delays.counts == {"sink.0": {}}
    delays.take("0.0", [(5, 1.0), (10, 2.0)], 0.0)
    assert delays.counts == {"sink.0": {bucket_of(1.0): 1}}


def test_what_is_computed_again_is_no_news() -> None:
    delays = Delays(topology(), {})
    delays.take("0.0", [(5, 1.0), (10, 2.0)], 0.0)
    delays.take("sink.0", [(5, 1.1)], 0.0)  # before it no mark is known: it may have come earlier
    # The source is lost, and reads again from 7 on; then the sink gets the rows.
    delays.take("0.0", [(7, 8.0), (10, 8.5), (11, 8.6)], 0.0)
    delays.take("sink.0", [(5, 8.8), (10, 9.0)], 0.0)
    assert delays.counts == {"sink.0": {bucket_of(7.0): 1}}


def test_a_report_that_comes_again_counts_once() -> None:
    delays = Delays(topology(), {})
    for _ in range(3):
        delays.take("0.0", [(5, 1.0), (10, 2.0)], 0.0)
        delays.take("sink.0", [(10, 2.5)], 0.0)
    assert delays.counts == {"sink.0": {bucket_of(0.5): 1}}


def test_marks_are_few_and_far_enough_apart() -> None:
    marks = ReachedMarks()
    marks.note(START, 0.0)
    assert not marks.recent
    for step in range(10_000):
        marks.note(step, step * MARK_EVERY / 4)
    assert len(marks.recent) == MOST_MARKS
    times = [at for _, at in marks.recent]
    assert all(b - a >= MARK_EVERY * 0.99 for a, b in pairwise(times))
    marks.note(5, 1e6)  # an earlier event time, much later
    assert marks.recent[-1][0] > 5


def test_the_end_of_a_source_is_marked_however_soon_it_comes() -> None:
    marks = ReachedMarks()
    marks.note(7, 1.0)
    marks.note(8, 1.0 + MARK_EVERY / 2)
    marks.note(OPEN, 1.0 + MARK_EVERY / 2)
    marks.note(OPEN, 2.0)
    assert list(marks.recent) == [(7, 1.0), (OPEN, 1.0 + MARK_EVERY / 2)]


def test_a_manager_of_a_long_job_keeps_a_bounded_number() -> None:
    delays = Delays(topology(), {})
    for step in range(60_000):
        delays.take("0.0", [(step, float(step))], 0.0)
        if step:
            delays.take("sink.0", [(step, step + 0.5)], 0.0)
    assert sum(delays.counts["sink.0"].values()) == 59_999
    assert len(delays._reached["0.0"][0]) <= 20_000 and not delays._waiting["sink.0"]


def test_windows_that_overlap_are_no_delay() -> None:
    delays = Delays(topology(), {1: 4})  # of five ticks, each tick
    for tick in range(20):
        delays.take("0.0", [(tick, float(tick))], 0.0)
    delays.take("sink.0", [(7, 11.5)], 0.0)  # the window of 6 ends at 11
    assert delays.counts == {"sink.0": {bucket_of(0.5): 1}}
