"""The history of a job's figures: bounded, and right after any number of merges."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from weir.errors import SnapshotCorrupt
from weir.files.object_store import ObjectStore
from weir.job.delays import bucket_end, bucket_of
from weir.job.history import (
    MOST,
    History,
    HistoryKeeper,
    all_delays,
    read_history,
    unread_rows,
)
from weir.job.plan_drawing import DrawnOutput, DrawnPlan, DrawnStage, DrawnVertex
from weir.job.status import JobStatus, VertexStatus
from weir.reliable.codec import encode_record
from weir.reliable.object_names import HISTORY


def stage(number: int, source: str = "") -> DrawnStage:
    return DrawnStage(number, "", source, 1, (), (), "BIGINT", "", "")


PLAN = DrawnPlan(
    (stage(0, "A"), stage(1)),
    (DrawnOutput("B", "rows", "b.csv", (1,)),),
    (
        DrawnVertex("0.0", "source", 0, (), ("0.0/0",), "a.jsonl"),
        DrawnVertex("1.0", "inner", 1, ("0.0/0",), ("1.0/0",), ""),
        DrawnVertex("sink.0", "sink", 0, ("1.0/0",), (), ""),
    ),
)


def vertex(
    id: str, kind: str, events: int, inputs: tuple[int, ...], outputs: tuple[int, ...]
) -> VertexStatus:
    return VertexStatus(
        id, kind, "h", "running", 1, events, 0.0, None, None, inputs, outputs, 3, 0, None
    )


def status(
    time: float, events: int, unread: int = 0, delays: dict[int, int] | None = None
) -> JobStatus:
    vertices = (
        vertex("0.0", "source", events, (9,), (100 + unread,)),
        vertex("1.0", "inner", 5, (100,), (50,)),
        msgspec.structs.replace(vertex("sink.0", "sink", 2, (48,), ()), delays=delays or {}),
    )
    return JobStatus("running", time, 1, 0, 0, None, vertices, ())


def test_rows_that_wait_are_those_between_writer_and_reader() -> None:
    assert unread_rows(PLAN, status(1.0, 1, unread=7).vertices) == {"1.0": 7, "sink.0": 2}


def test_of_a_stream_that_is_split_a_reader_has_its_share() -> None:
    source, inner, sink = PLAN.vertices
    split = msgspec.structs.replace(
        PLAN, vertices=(source, msgspec.structs.replace(inner, shares=(0.25,)), sink)
    )
    unread = unread_rows(split, status(1.0, 1, unread=8).vertices)
    assert unread == {"1.0": 2, "sink.0": 2}


def test_a_long_job_has_a_bounded_history_with_the_same_totals() -> None:
    keeper = HistoryKeeper(PLAN)
    seconds = 10 * MOST + 17
    for second in range(seconds):
        counts = {bucket_of(0.01): second + 1}
        keeper.take(status(1000.0 + second, 3 * second, second, counts))
    history = keeper.history
    assert len(history.samples) <= MOST
    assert history.every >= seconds / MOST
    assert sum(s.seconds for s in history.samples) == pytest.approx(seconds)
    total = sum(s.events * s.seconds for s in history.samples)
    assert total == pytest.approx(3 * (seconds - 1), rel=0.001)
    assert all_delays(history) == [{bucket_of(0.01): seconds}]
    assert max(s.unread[1] for s in history.samples) == seconds - 1
    times = [s.time for s in history.samples]
    assert times == sorted(times) and times[-1] == 1000.0 + seconds - 1
    assert len(msgspec.json.encode(history)) < 40_000


def test_who_goes_on_keeps_what_was_before_and_counts_no_gap() -> None:
    first = HistoryKeeper(PLAN)
    for time, events in ((1000.0, 70), (1001.0, 74)):
        first.take(status(time, events))
    again = HistoryKeeper(PLAN, first.history)
    for time, events in ((5000.0, 90), (5002.0, 98)):
        again.take(status(time, events))
    assert [(s.time, s.seconds, s.events) for s in again.history.samples] == [
        (1000.0, 1.0, 0.0),
        (1001.0, 1.0, 4.0),
        (5000.0, 1.0, 0.0),
        (5002.0, 2.0, 4.0),
    ]


def test_a_source_that_reads_again_and_a_vertex_that_counts_anew_give_no_negative_rates() -> None:
    keeper = HistoryKeeper(PLAN)
    for time, events in ((1000.0, 70), (1001.0, 50), (1002.0, 60)):
        told = status(time, events)
        inner = msgspec.structs.replace(told.vertices[1], events=events)
        keeper.take(msgspec.structs.replace(told, vertices=(told.vertices[0], inner)))
    assert [s.rates for s in keeper.history.samples] == [(0.0, 0.0), (0.0, 50.0), (10.0, 10.0)]


def test_a_source_without_a_report_counts_nothing() -> None:
    """Neither a loss nor a driver that goes on makes a source's past a burst of new rows."""
    keeper = HistoryKeeper(PLAN)
    for time, events, epoch in (
        (1000.0, None, 1),
        (1001.0, 40, 1),
        (1002.0, None, 1),
        (1003.0, 30, 1),
        (1004.0, 45, 1),
    ):
        keeper.take(unless_told(status(time, events or 0), events, epoch))
    assert [s.events for s in keeper.history.samples] == [0.0, 40.0, 0.0, 0.0, 15.0]
    again = HistoryKeeper(PLAN)
    for time, events in ((1000.0, None), (1001.0, 45), (1002.0, 50)):
        again.take(unless_told(status(time, events or 0), events, 2))
    assert [s.events for s in again.history.samples] == [0.0, 0.0, 5.0]


def unless_told(told: JobStatus, events: int | None, epoch: int) -> JobStatus:
    """Take what the source says away, if it says nothing."""
    source = told.vertices[0]
    if events is None:
        source = msgspec.structs.replace(source, inputs=(), outputs=(), status="loading")
    return msgspec.structs.replace(told, vertices=(source, *told.vertices[1:]), epoch=epoch)


@pytest.mark.parametrize("part", ["rates", "unread", "state", "written", "delays"])
def test_a_history_whose_parts_do_not_fit_is_left_out(part: str, tmp_path: Path) -> None:
    keeper = HistoryKeeper(PLAN)
    keeper.take(status(1000.0, 4))
    (sample,) = keeper.history.samples
    ragged = History(samples=(msgspec.structs.replace(sample, **{part: ()}),) * 3)
    assert HistoryKeeper(PLAN, ragged).history == History()
    store = ObjectStore(str(tmp_path))
    store.put(HISTORY, encode_record(HISTORY, ragged))
    with pytest.raises(SnapshotCorrupt, match="history does not hold what it should"):
        read_history(store)


@pytest.mark.parametrize("wrong", [{"seconds": 0.0}, {"delays": ({10**9: 1},)}])
def test_a_history_that_cannot_be_merged_is_corrupt(
    wrong: dict[str, object], tmp_path: Path
) -> None:
    keeper = HistoryKeeper(PLAN)
    keeper.take(status(1000.0, 4))
    (sample,) = keeper.history.samples
    store = ObjectStore(str(tmp_path))
    history = History(samples=(msgspec.structs.replace(sample, **wrong),) * 2)
    store.put(HISTORY, encode_record(HISTORY, history))
    with pytest.raises(SnapshotCorrupt, match="history does not hold what it should"):
        read_history(store)


def test_a_history_of_another_plan_is_not_mixed_in() -> None:
    wider = msgspec.structs.replace(PLAN, stages=(*PLAN.stages, stage(2)))
    keeper = HistoryKeeper(wider)
    keeper.take(status(1000.0, 4))
    assert HistoryKeeper(PLAN, keeper.history).history == History()


def test_a_clock_that_is_set_back_gives_no_sample_of_negative_length() -> None:
    keeper = HistoryKeeper(PLAN)
    for time in (1000.0, 900.0, 901.0):
        keeper.take(status(time, 1))
    assert [s.seconds for s in keeper.history.samples] == [1.0, 1.0]


@pytest.mark.parametrize("seconds", [0.0001, 0.0007, 0.003, 0.2, 1.0, 59.0])
def test_a_delay_is_at_most_the_end_of_its_bucket_and_not_far_below(seconds: float) -> None:
    end = bucket_end(bucket_of(seconds))
    assert seconds <= end * 1.001 and end <= seconds * 1.13
