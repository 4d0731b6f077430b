"""The history of a job's figures: bounded, and right after any number of merges."""

from __future__ import annotations

import msgspec
import pytest

from weir.job.drawn_plan import DrawnOutput, DrawnPlan, DrawnStage, DrawnVertex
from weir.job.history import (
    MOST,
    History,
    HistoryKeeper,
    all_delays,
    bucket_end,
    bucket_of,
    counted_delays,
    unread_rows,
)
from weir.job.status import JobStatus, VertexStatus


def stage(number: int, source: str = "") -> DrawnStage:
    return DrawnStage(number, "", source, 1, (), (), "BIGINT", "", "")


PLAN = DrawnPlan(
    (stage(0, "A"), stage(1)),
    (DrawnOutput("B", "rows", "b.csv", (1,)),),
    (
        DrawnVertex("0.0", "source", 0, (), ("0.0/0.0",), "a.jsonl"),
        DrawnVertex("1.0", "inner", 1, ("0.0/0.0",), ("1.0/0.0",), ""),
        DrawnVertex("sink.0", "sink", 0, ("1.0/0.0",), (), ""),
    ),
)


def vertex(
    id: str, kind: str, rate: float, inputs: tuple[int, ...], outputs: tuple[int, ...]
) -> VertexStatus:
    return VertexStatus(
        id, kind, "h", "running", 1, 0, rate, None, None, inputs, outputs, 3, 0, None
    )


def status(time: float, rate: float, unread: int = 0) -> JobStatus:
    vertices = (
        vertex("0.0", "source", rate, (9,), (100 + unread,)),
        vertex("1.0", "inner", 5.0, (100,), (50,)),
        vertex("sink.0", "sink", 2.0, (48,), ()),
    )
    return JobStatus("running", time, 1, 0, 0, None, vertices, ())


def test_rows_that_wait_are_those_between_writer_and_reader() -> None:
    assert unread_rows(PLAN, status(1.0, 1.0, unread=7).vertices) == {"1.0": 7, "sink.0": 2}


def test_a_long_job_has_a_bounded_history_with_the_same_totals() -> None:
    keeper = HistoryKeeper(PLAN)
    seconds = 10 * MOST + 17
    for second in range(seconds):
        delays = {"sink.0": counted_delays([0.01])}
        keeper.take(status(1000.0 + second, float(second % 3), unread=second), delays)
    history = keeper.history
    assert len(history.samples) <= MOST
    assert history.every >= seconds / MOST
    assert sum(s.seconds for s in history.samples) == pytest.approx(seconds)
    total = sum(s.events * s.seconds for s in history.samples)
    assert total == pytest.approx(sum(n % 3 for n in range(seconds)), rel=0.05)
    assert all_delays(history) == [{bucket_of(0.01): seconds}]
    assert max(s.unread[1] for s in history.samples) == seconds - 1
    times = [s.time for s in history.samples]
    assert times == sorted(times) and times[-1] == 1000.0 + seconds - 1
    assert len(msgspec.json.encode(history)) < 40_000


def test_who_goes_on_keeps_what_was_before_and_counts_no_gap() -> None:
    first = HistoryKeeper(PLAN)
    first.take(status(1000.0, 4.0), {})
    again = HistoryKeeper(PLAN, first.history)
    again.take(status(5000.0, 8.0), {})
    assert [(s.time, s.seconds, s.events) for s in again.history.samples] == [
        (1000.0, 1.0, 4.0),
        (5000.0, 1.0, 8.0),
    ]


def test_a_history_of_another_plan_is_not_mixed_in() -> None:
    wider = msgspec.structs.replace(PLAN, stages=(*PLAN.stages, stage(2)))
    keeper = HistoryKeeper(wider)
    keeper.take(status(1000.0, 4.0), {})
    assert HistoryKeeper(PLAN, keeper.history).history == History()


def test_a_clock_that_is_set_back_gives_no_sample_of_negative_length() -> None:
    keeper = HistoryKeeper(PLAN)
    for time in (1000.0, 900.0, 901.0):
        keeper.take(status(time, 1.0), {})
    assert [s.seconds for s in keeper.history.samples] == [1.0, 1.0]


@pytest.mark.parametrize("seconds", [0.0001, 0.0007, 0.003, 0.2, 1.0, 59.0])
def test_a_delay_is_at_most_the_end_of_its_bucket_and_not_far_below(seconds: float) -> None:
    end = bucket_end(bucket_of(seconds))
    assert seconds <= end * 1.001 and end <= seconds * 1.13
