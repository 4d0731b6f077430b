"""The host: orders, channels, the store; signals in, commands asserted."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn

import msgspec
import pytest

from machine.jobs import (
    Copying,
    checkpoint,
    entry,
    make,
    order,
    rows,
    sealed,
    segment,
    stored,
    topology,
)
from weir.errors import RunError
from weir.events.batch import OPEN, concat_batches
from weir.job.commit_log import Commit, decode_commit
from weir.job.host import Host
from weir.job.messages import Checkpoint, Figures, Orders, ServedBy, VertexOrder
from weir.job.poison import Death, MemoryNotes, Phase, Step
from weir.job.settings import HostSettings
from weir.job.signals import (
    Arrived,
    ChunkRead,
    Connect,
    Deliver,
    Disconnect,
    EndSession,
    EndSubscription,
    Get,
    HostCommand,
    Loaded,
    Lost,
    MakeRoom,
    Misled,
    OrdersArrived,
    Pull,
    Put,
    Refused,
    SourceBehind,
    SourceWaits,
    Subscribed,
    Taken,
    Unloaded,
    Unstored,
)
from weir.reliable.codec import encode_entries, encode_record, encode_snapshot
from weir.reliable.digest import OrderedChecksum
from weir.reliable.object_names import commit_key
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body
from weir.reliable.strategies import CheckpointStrategy, Strategy
from weir.reliable.stream import Entry

SETTINGS = HostSettings(flush_interval=1.0, commit_interval=1.0)
STRATEGIES: Mapping[str, Strategy] = {v: CheckpointStrategy(1.0) for v in ("0.0", "1.0", "sink.0")}


def snapshot_at(of: Checkpoint, at: int) -> Body:
    """The object of a checkpoint whose vertex has read and written so many rows."""
    snapshot = make(topology().vertices["0.0"], {}, None).snapshot()
    return encode_snapshot(of.key, replace(snapshot, inputs=(at,), outputs=(at,)))


def new_host(settings: HostSettings = SETTINGS) -> Host:
    return Host("h1", topology(), STRATEGIES, make, settings)


def obey(
    host: Host, *orders: VertexOrder, number: int = 1, epoch: int = 1, **more: object
) -> list[HostCommand]:
    given = Orders(epoch, number, "h1", orders, upto=number, **more)  # type: ignore[arg-type]
    return host.handle(OrdersArrived(given), 0.0)


def figures(host: Host) -> Figures:
    """How far the first instance is."""
    made = host.report().vertices[0].figures
    assert made is not None
    return made


def work(host: Host, now: float = 0.0) -> list[HostCommand]:
    """Until there is nothing left to do."""
    found: list[HostCommand] = []
    while True:
        progressed, commands = host.work(now)
        found += commands
        if not progressed:
            return found


def puts(commands: list[HostCommand]) -> list[str]:
    return [c.key for c in commands if isinstance(c, Put)]


def elsewhere(stream: str, *addresses: str) -> dict[str, tuple[ServedBy, ...]]:
    return {stream: tuple(ServedBy(a, a, 1) for a in addresses)}


# --- orders ------------------------------------------------------------------------------------


def test_it_begins_what_is_ordered_and_drops_what_is_not() -> None:
    host = new_host()
    obey(host, order("0.0"), order("1.0"))
    assert list(host.running) == ["0.0", "1.0"]
    obey(host, order("1.0", incarnation=2), number=2)
    assert {v: r.order.incarnation for v, r in host.running.items()} == {"1.0": 2}


@pytest.mark.parametrize(("epoch", "number"), [(1, 5), (1, 4), (0, 9)])
def test_old_orders_are_ignored(epoch: int, number: int) -> None:
    host = new_host()
    obey(host, order("0.0"), number=5)
    assert obey(host, number=number, epoch=epoch) == []
    assert list(host.running) == ["0.0"]


def test_orders_for_another_session_are_ignored() -> None:
    host = new_host()
    host.handle(OrdersArrived(Orders(1, 1, "h0", (order("0.0"),))), 0.0)
    assert not host.running


def test_a_stop_ends_the_session() -> None:
    host = new_host()
    obey(host, order("0.0"))
    assert obey(host, number=2, stop=True, over=True) == [EndSession(True)]
    assert not host.running


# --- recovery ----------------------------------------------------------------------------------


def test_a_restart_loads_its_checkpoint_first() -> None:
    host, old = new_host(), checkpoint("1.0", 4, 2, 2)
    body = snapshot_at(old, 2)
    old = sealed(old, body)
    assert obey(host, order("1.0", restart=old)) == [Get(old.key)]
    assert host.report().vertices[0].status == "loading"
    host.handle(Loaded(old.key, body), 0.0)
    report = host.report().vertices[0]
    assert (report.status, figures(host).inputs, figures(host).outputs) == ("running", (2,), (2,))


@pytest.mark.parametrize("body", [None, b"", b"torn, so the checksum is not that of the rest"])
def test_a_checkpoint_that_cannot_be_read_is_reported(body: bytes | None) -> None:
    host, old = new_host(), checkpoint("1.0", 4, 2, 2)
    obey(host, order("1.0", restart=old))
    host.handle(Loaded(old.key, body), 0.0)
    report = host.report().vertices[0]
    assert (report.status, report.corrupt) == ("failed", (old.key,))


def test_a_read_that_fails_is_tried_again() -> None:
    host, old = new_host(), checkpoint("1.0", 4, 2, 2)
    obey(host, order("1.0", restart=old))
    assert host.handle(Unloaded(old.key, "it failed"), 0.0) == []
    assert host.trouble == "it failed"
    assert host.work(0.1)[1] == []
    assert host.work(0.3)[1] == [Get(old.key)]


def test_a_copy_whose_input_is_gone_is_behind() -> None:
    host = new_host()
    obey(host, order("1.0"))
    obey(host, order("1.0", floors={"0.0/0": 3}), number=2)
    assert host.report().vertices[0].status == "behind"


# --- channels ----------------------------------------------------------------------------------


def connected() -> tuple[Host, Connect]:
    host = new_host()
    commands = obey(host, order("1.0", inputs=elsewhere("0.0/0", "h2", "h3")))
    connect = next(c for c in commands if isinstance(c, Connect))
    assert (connect.address, connect.stream, connect.seq) == ("h2", "0.0/0", 0)
    return host, connect


def test_a_gap_breaks_the_connection_and_the_next_place_is_read_from_there() -> None:
    host, first = connected()
    host.handle(Arrived("1.0", 0, first.connection, entry(0, 2), 24), 0.0)
    gap = host.handle(Arrived("1.0", 0, first.connection, entry(3, 1), 24), 0.0)
    assert gap == [Disconnect("1.0", 0, first.connection)]
    again = next(c for c in host.work(0.0)[1] if isinstance(c, Connect))
    assert (again.address, again.seq) == ("h3", 2)
    assert again.connection != first.connection


def test_what_an_older_connection_brings_is_ignored() -> None:
    host, first = connected()
    host.handle(Lost("1.0", 0, first.connection), 0.0)
    work(host)
    host.handle(Arrived("1.0", 0, first.connection, entry(0, 2), 24), 0.0)
    assert host.handle(Lost("1.0", 0, first.connection), 0.0) == []
    work(host)
    assert figures(host).inputs == (0,)


def test_what_cannot_be_rows_ends_the_vertex() -> None:
    host, first = connected()
    assert host.handle(Misled("1.0", 0, first.connection - 1, "old"), 0.0) == []
    assert host.report().vertices[0].error is None
    host.handle(Misled("1.0", 0, first.connection, "no rows"), 0.0)
    (found,) = host.report().vertices
    assert (found.status, found.error) == ("failed", "stream 0.0/0: no rows")


def test_what_the_vertex_has_read_is_given_back_and_no_more() -> None:
    host, first = connected()
    assert first.credit == HostSettings().send_buffer
    host.handle(Arrived("1.0", 0, first.connection, entry(0, 2), 100), 0.0)
    host.handle(Arrived("1.0", 0, first.connection, entry(2, 1), 50), 0.0)
    host.handle(Arrived("1.0", 0, first.connection, entry(2, 1), 50), 0.0)  # it came twice
    rooms = [c for c in work(host) if isinstance(c, MakeRoom)]
    assert rooms == [MakeRoom("1.0", 0, first.connection, 150)]


def test_a_new_connection_gets_the_credit_that_is_left() -> None:
    host, first = connected()
    host.handle(Arrived("1.0", 0, first.connection, entry(0, 2), 100), 0.0)
    host.handle(Lost("1.0", 0, first.connection), 0.0)
    again = next(c for c in host.work(0.0)[1] if isinstance(c, Connect))
    assert (again.seq, again.credit) == (2, HostSettings().send_buffer - 100)
    host.handle(Arrived("1.0", 0, again.connection, entry(2, 2), 100), 0.0)
    commands = obey(host, order("1.0", inputs=elsewhere("0.0/0", "h4")), number=2)
    last = next(c for c in commands if isinstance(c, Connect))
    assert (last.address, last.seq, last.credit) == ("h4", 4, HostSettings().send_buffer - 100)
    rooms = [c for c in host.work(0.0)[1] if isinstance(c, MakeRoom)]
    assert rooms == [MakeRoom("1.0", 0, last.connection, 100)], "it goes to the new one"


def test_what_waits_beyond_the_window_is_no_credit() -> None:
    host = new_host(replace(SETTINGS, send_buffer=100))
    commands = obey(host, order("1.0", inputs=elsewhere("0.0/0", "h2", "h3")))
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    host.handle(Arrived("1.0", 0, connection, entry(0, 1), 50), 0.0)
    host.handle(Arrived("1.0", 0, connection, entry(1, 2), 100), 0.0)  # the last piece
    host.handle(Lost("1.0", 0, connection), 0.0)
    again = next(c for c in host.work(0.0)[1] if isinstance(c, Connect))
    assert again.credit == -50


def test_what_covers_numbers_and_has_no_rows_needs_no_credit() -> None:
    """It comes for each write of which the reader's view has no row."""
    host = new_host(replace(SETTINGS, send_buffer=100))
    commands = obey(host, order("1.0", inputs=elsewhere("0.0/0", "h2")))
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    host.handle(Arrived("1.0", 0, connection, entry(0, 2), 100), 0.0)
    covering = Entry(2, rows(0, 0), 9, None, 40)
    host.handle(Arrived("1.0", 0, connection, covering, 0), 0.0)
    (found,) = host.report().vertices
    assert found.error is None and host.running["1.0"].status == "running"


def test_rows_without_credit_fail_the_vertex() -> None:
    settings = replace(SETTINGS, send_buffer=100)
    host = new_host(settings)
    commands = obey(host, order("1.0", inputs=elsewhere("0.0/0", "h2")))
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    for first in range(3):
        host.handle(Arrived("1.0", 0, connection, entry(first, 1), 60), 0.0)
    (told,) = host.report().vertices
    assert (told.status, told.error) == (
        "failed",
        "stream 0.0/0: more rows came than there was credit for",
    )


def test_a_stream_that_comes_to_the_host_is_read_there() -> None:
    host = new_host()
    reader = order("1.0", inputs=elsewhere("0.0/0", "h2"))
    obey(host, reader)
    obey(host, reader, order("0.0"), number=2)
    instance = host.running["1.0"].instance
    assert isinstance(instance, Copying) and instance.cursors[0].near is not None


def test_a_subscriber_gets_rows_as_soon_as_they_are_loaded() -> None:
    host, old = new_host(), checkpoint("0.0", 4, 2, 2)
    state, log = snapshot_at(old, 2), segment("0.0/0", 0, 2)
    body = bytes(encode_entries(log.key, (entry(0, 2),)))
    log = msgspec.structs.replace(log, ref=ObjectRef.of(log.key, body))
    old = sealed(old, state)
    obey(host, order("0.0", restart=old, segments={"0.0/0": (log,)}))
    host.handle(Loaded(old.key, state), 0.0)
    host.handle(Subscribed("s", "0.0/0", 0, 1 << 20), 0.0)
    assert Get(log.key) in work(host)
    host.handle(Loaded(log.key, body), 0.0)
    assert [c.entry.end for c in work(host) if isinstance(c, Deliver)] == [2]


def test_an_instance_for_which_nothing_came_is_not_looked_at() -> None:
    host = written()
    running = host.running["0.0"]
    assert isinstance(running.instance, Copying)
    running.instance.work = lambda: 1 / 0  # type: ignore[assignment, return-value]
    assert host.work(0.01) == (False, [])


def test_the_only_place_is_tried_again_after_a_while() -> None:
    host = new_host()
    commands = obey(host, order("1.0", inputs=elsewhere("0.0/0", "h2")))
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    host.handle(Lost("1.0", 0, connection), 0.0)
    assert not any(isinstance(c, Connect) for c in host.work(0.1)[1])
    assert any(isinstance(c, Connect) for c in host.work(0.3)[1])


def test_a_stream_of_the_same_host_is_handed_over() -> None:
    host = new_host()
    commands = obey(host, order("0.0"), order("1.0"), order("sink.0"))
    host.handle(Loaded(commit_key("sink.0", 0), None), 0.0)
    assert not any(isinstance(c, Connect) for c in commands)
    assert Pull("0.0", 1, 0) in host.work(0.0)[1]
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    work(host)
    reports = {r.vertex: r.figures for r in host.report().vertices if r.figures is not None}
    assert reports["1.0"].inputs == (3,) and reports["sink.0"].inputs == (3,)


def test_a_source_whose_log_was_collected_has_fallen_behind() -> None:
    host = new_host()
    obey(host, order("0.0"))
    host.handle(SourceBehind("0.0", 2, "of another incarnation"), 0.0)
    assert host.report().vertices[0].status == "running"
    host.handle(SourceBehind("0.0", 1, "record 3 is gone"), 0.0)
    (told,) = host.report().vertices
    assert (told.status, told.error) == ("behind", "record 3 is gone")


def test_what_a_source_waits_for_is_reported_and_it_runs_on() -> None:
    host = new_host()
    obey(host, order("0.0"))
    host.handle(SourceWaits("0.0", 2, "of another incarnation"), 0.0)
    assert host.report().vertices[0].waits is None
    for why in ("nobody listens", None):
        host.handle(SourceWaits("0.0", 1, why), 0.0)
        (told,) = host.report().vertices
        assert (told.status, told.waits) == ("running", why)


def written(settings: HostSettings = SETTINGS) -> Host:
    """A source with three rows."""
    host = new_host(settings)
    obey(host, order("0.0"))
    for first in range(3):
        host.handle(ChunkRead("0.0", 1, entry(first, 1)), 0.0)
        work(host)
    return host


def test_a_subscriber_gets_rows_up_to_its_window() -> None:
    host = written(HostSettings(flush_interval=9.0))
    host.handle(Subscribed("s", "0.0/0", 1, 1), 0.0)
    first = [c for c in work(host) if isinstance(c, Deliver)]
    assert [d.entry.seq for d in first] == [1]
    host.handle(Taken("s", 1000), 0.0)
    assert [c.entry.seq for c in work(host) if isinstance(c, Deliver)] == [2]


def test_a_subscription_that_comes_twice_begins_again() -> None:
    host = written()
    for _ in range(2):
        host.handle(Subscribed("s", "0.0/0", 0, 1 << 20), 0.0)
        assert [c.entry.seq for c in work(host) if isinstance(c, Deliver)] == [0, 1, 2]


def test_what_is_not_served_is_refused() -> None:
    host = written()
    assert host.handle(Subscribed("a", "9.9/0", 0, 1 << 20), 0.0) == [EndSubscription("a")]
    obey(host, order("0.0", collect={"0.0/0": 2}), number=2)
    assert host.handle(Subscribed("b", "0.0/0", 1, 1 << 20), 0.0) == [EndSubscription("b")]
    host.handle(Subscribed("c", "0.0/0", 2, 1 << 20), 0.0)
    assert EndSubscription("c") in obey(host, number=3)


def test_a_reader_below_what_was_collected_meanwhile_is_let_go() -> None:
    host = written(HostSettings(flush_interval=9.0))
    host.handle(Subscribed("s", "0.0/0", 0, 1), 0.0)
    work(host)
    obey(host, order("0.0", collect={"0.0/0": 3}), number=2)
    assert EndSubscription("s") in work(host)


# --- the store ---------------------------------------------------------------------------------


def test_nothing_counts_before_the_store_says_so() -> None:
    host = written()
    (key, saved) = puts(host.work(1.5)[1])
    assert key.startswith("streams/") and saved.startswith("checkpoints/")
    report = host.report().vertices[0]
    assert (report.checkpoints, report.segments["0.0/0"]) == ((), ())
    host.handle(stored(key), 1.5)
    host.handle(stored(saved), 1.5)
    report = host.report().vertices[0]
    assert [c.outputs for c in report.checkpoints] == [(3,)]
    assert [(s.first, s.end) for s in report.segments["0.0/0"]] == [(0, 3)]


def test_one_checkpoint_is_under_way_at_a_time_and_only_if_anything_changed() -> None:
    host = written()
    keys = puts(host.work(1.5)[1])
    assert puts(host.work(9.0)[1]) == []
    for key in keys:
        host.handle(stored(key), 9.0)
    assert puts(host.work(20.0)[1]) == []


def test_a_write_that_failed_is_tried_again() -> None:
    host = written()
    key = puts(host.work(1.5)[1])[0]
    host.handle(Unstored(key, "no space left"), 1.5)
    assert host.report().trouble == "no space left"
    assert puts(host.work(1.6)[1]) == []
    assert puts(host.work(1.8)[1]) == [key]
    host.handle(stored(key), 1.8)
    assert host.trouble is None


def test_a_copy_that_may_not_writes_nothing() -> None:
    host = new_host()
    obey(host, order("0.0", writes_log=False, takes_checkpoints=False))
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    assert puts(work(host)) == [] and puts(host.work(60.0)[1]) == []


def test_a_full_tail_pushes_back_until_it_is_durable() -> None:
    host = new_host(HostSettings(tail_buffer=10, flush_interval=60.0))
    obey(host, order("0.0"))
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    commands = work(host)
    (key,) = puts(commands)
    assert not any(isinstance(c, Pull) for c in commands)
    assert any(isinstance(c, Pull) for c in [*host.handle(stored(key), 0.0), *work(host)])


def test_a_source_waits_while_it_is_ahead_of_all_readers() -> None:
    host = written(HostSettings(ahead_buffer=80, flush_interval=9.0))
    host.handle(ChunkRead("0.0", 1, entry(3, 3)), 0.0)
    commands = work(host)
    assert not any(isinstance(c, Pull) for c in commands), "nobody has read anything"
    host.handle(Subscribed("slow", "0.0/0", 0, 1), 0.0)
    assert not any(isinstance(c, Pull) for c in work(host))
    host.handle(Subscribed("fast", "0.0/0", 5, 1), 0.0)
    assert any(isinstance(c, Pull) for c in work(host))


def test_asked_for_a_checkpoint_it_says_when_it_has_one() -> None:
    host = written()
    obey(host, order("0.0"), number=2, checkpoint=1)
    (key,) = puts(work(host))
    assert host.report().vertices[0].kept == 0
    host.handle(stored(key), 0.0)
    assert host.report().vertices[0].kept == 1


def test_one_under_way_when_asked_does_not_count() -> None:
    host = written()
    early = puts(host.work(1.5)[1])[-1]
    host.handle(ChunkRead("0.0", 1, entry(3, 1)), 1.5)
    work(host, 1.5)
    obey(host, order("0.0"), number=2, checkpoint=1)
    host.handle(stored(early), 1.5)
    assert host.report().vertices[0].kept == 0
    (late,) = [k for k in puts(work(host, 1.5)) if k.startswith("checkpoints/")]
    host.handle(stored(late), 1.5)
    assert host.report().vertices[0].kept == 1


# --- commits -----------------------------------------------------------------------------------


def sink_with_rows(number: int = 3) -> Host:
    host = new_host()
    inputs = elsewhere("1.0/0", "h2")
    assert obey(host, order("sink.0", 7, inputs=inputs)) == [Get(commit_key("sink.0", 0))]
    commands = host.handle(Loaded(commit_key("sink.0", 0), None), 0.0)
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    host.handle(Arrived("sink.0", 0, connection, Entry(0, entry(0, number).rows, OPEN), 24), 0.0)
    return host


def test_a_commit_is_its_rows_and_then_the_commit() -> None:
    host = sink_with_rows()
    (part,) = puts(work(host))
    assert part.startswith("parts/sink.0/")
    (commit,) = host.handle(stored(part), 0.0)
    assert isinstance(commit, Put) and commit.key == commit_key("sink.0", 0) and commit.new
    found = decode_commit(commit.key, commit.encode())
    assert (found.part, found.rows, found.inputs) == (ObjectRef(part), 3, (3,))
    assert host.report().vertices[0].status == "running"
    host.handle(stored(commit.key), 0.0)
    assert host.report().vertices[0].status == "done"


def test_a_sink_that_is_held_neither_steps_nor_commits() -> None:
    host = new_host()
    inputs = elsewhere("1.0/0", "h2")
    obey(host, order("sink.0", 7, inputs=inputs), held=True)
    commands = host.handle(Loaded(commit_key("sink.0", 0), None), 0.0)
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    host.handle(Arrived("sink.0", 0, connection, Entry(0, entry(0, 3).rows, OPEN), 24), 0.0)
    assert puts(work(host, 60.0)) == []
    (told,) = host.report().vertices
    assert (figures(host).inputs, told.status) == ((0,), "running")
    obey(host, order("sink.0", 7, inputs=inputs), number=2, held=False)
    assert len(puts(work(host, 60.0))) == 1
    assert figures(host).inputs == (3,)


def test_one_that_is_held_has_nothing_to_keep_when_the_job_stops() -> None:
    host = new_host()
    obey(host, order("sink.0", 7), held=True, checkpoint=1)
    host.handle(Loaded(commit_key("sink.0", 0), None), 0.0)
    assert puts(work(host, 60.0)) == []
    assert host.report().vertices[0].kept == 1


def test_only_sinks_are_held() -> None:
    host = new_host()
    obey(host, order("0.0"), held=True)
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)  # type: ignore[arg-type]
    work(host)
    assert figures(host).outputs == (3,)


def other_commit(incarnation: int, inputs: int) -> bytes:
    made = Commit(0, incarnation, ObjectRef("parts/x"), inputs, (inputs,), "0" * 32, inputs)
    return encode_record(commit_key("sink.0", 0), made)


def refused(body: bytes | None) -> tuple[Host, list[HostCommand]]:
    host = sink_with_rows()
    (part,) = puts(work(host))
    host.handle(stored(part), 0.0)
    key = commit_key("sink.0", 0)
    assert host.handle(Refused(key), 0.0) == [Get(key)]
    return host, host.handle(Loaded(key, body), 0.0)


def test_the_commit_of_an_older_one_is_taken_over() -> None:
    host, commands = refused(other_commit(incarnation=5, inputs=2))
    assert Get(commit_key("sink.0", 1)) in commands
    commands = host.handle(Loaded(commit_key("sink.0", 1), None), 0.0)
    assert [c.seq for c in commands if isinstance(c, Connect)] == [2]


def test_one_who_meets_a_newer_commit_stops() -> None:
    host, commands = refused(other_commit(incarnation=9, inputs=2))
    assert not any(isinstance(c, Get | Put) for c in commands)
    assert puts(host.work(60.0)[1]) == []


def test_its_own_commit_whose_success_was_not_heard_counts() -> None:
    host = sink_with_rows()
    (part,) = puts(work(host))
    (commit,) = host.handle(stored(part), 0.0)
    assert isinstance(commit, Put)
    host.handle(Unstored(commit.key, "nobody knows"), 0.0)
    assert puts(host.work(1.0)[1]) == [commit.key]
    host.handle(Refused(commit.key), 1.0)
    host.handle(Loaded(commit.key, commit.encode()), 1.0)
    assert host.report().vertices[0].status == "done"


def test_an_answer_to_a_predecessor_is_not_its_successors() -> None:
    """The write of a dropped instance is still under way when its successor writes the same name:
    the first answer is the predecessor's."""
    host = sink_with_rows()
    (part,) = puts(work(host))
    (old,) = host.handle(stored(part), 0.0)
    key = commit_key("sink.0", 0)
    again = obey(host, order("sink.0", 8, inputs=elsewhere("1.0/0", "h2")), number=2)
    assert Get(key) in again
    commands = host.handle(Loaded(key, None), 0.0)
    connection = next(c.connection for c in commands if isinstance(c, Connect))
    host.handle(Arrived("sink.0", 0, connection, Entry(0, entry(0, 2).rows, 2), 24), 0.0)
    (part,) = puts(work(host, 2.0))
    assert host.handle(stored(part), 2.0) == [], "it must wait for the predecessor's write"
    (mine,) = host.handle(stored(key), 2.0)
    assert isinstance(mine, Put) and isinstance(old, Put)
    assert decode_commit(key, mine.encode()).incarnation == 8
    assert host.handle(Refused(key), 2.0) == [Get(key)]


def test_a_commit_that_must_be_there_and_is_not_is_reported() -> None:
    host, old = new_host(), checkpoint("sink.0", 2, 5, 0)
    restart = msgspec.structs.replace(old, ref=ObjectRef(commit_key("sink.0", 2)), outputs=())
    assert obey(host, order("sink.0", 7, restart=restart)) == [Get(restart.key)]
    host.handle(Loaded(restart.key, None), 0.0)
    assert host.report().vertices[0].corrupt == (restart.key,)


def test_a_segment_that_cannot_be_read_fails_its_writer_and_names_it() -> None:
    host, old = new_host(), checkpoint("0.0", 4, 2, 2)
    body, log = snapshot_at(old, 2), segment("0.0/0", 0, 2)
    old = sealed(old, body)
    obey(host, order("0.0", restart=old, segments={"0.0/0": (log,)}))
    host.handle(Loaded(old.key, body), 0.0)
    host.handle(Subscribed("s", "0.0/0", 0, 1 << 20), 0.0)
    assert Get(log.key) in host.work(0.0)[1]
    host.handle(Loaded(log.key, b"torn"), 0.0)
    assert host.report().vertices[0].corrupt == (log.key,)


@pytest.mark.parametrize("readable", [True, False])
def test_other_rows_under_durable_numbers_fail_the_writer_and_the_row_is_named(
    readable: bool,
) -> None:
    host = Host("h1", topology(), STRATEGIES, partial(make, check=True), SETTINGS)
    log = segment("0.0/0", 0, 3)
    body = bytes(encode_entries(log.key, (entry(0, 3),)))
    was = OrderedChecksum()
    was.add(rows(0, 3))
    log = msgspec.structs.replace(log, ref=ObjectRef.of(log.key, body), checksum=str(was))
    obey(host, order("0.0", segments={"0.0/0": (log,)}))
    other = concat_batches([rows(0, 2), rows(7, 1)])
    host.handle(ChunkRead("0.0", 1, Entry(0, other, 3)), 0.0)
    assert Get(log.key) in work(host)
    host.handle(ChunkRead("0.0", 1, entry(3, 3)), 0.0)
    work(host)
    (told,) = host.report().vertices
    assert (told.status, figures(host).outputs) == ("running", (3,))
    assert figures(host).events == 3, "it waits for the store"
    host.handle(Loaded(log.key, body if readable else b"torn"), 0.0)
    (told,) = host.report().vertices
    where = "row 2 was {'vs': 2," if readable else "among the rows from 0 to 3"
    assert told.status == "failed" and told.error.startswith("DeterminismViolation: stream 0.0/0")
    assert where in told.error


# --- notes ---------------------------------------------------------------------------------------


def test_what_it_is_at_is_noted_until_it_is_over() -> None:
    notes = MemoryNotes()
    seen: list[Step | None] = []
    host = Host("h1", topology(), STRATEGIES, make, SETTINGS, notes)
    obey(host, order("0.0", pieces=2))
    instance = host.running["0.0"].instance
    assert isinstance(instance, Copying) and instance.pieces == 2
    whole = instance.work
    instance.work = lambda: (whole(), seen.append(notes.step))[0]  # type: ignore[method-assign]
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    work(host)
    assert seen[0] == Step("0.0", "step", 0, 0, 3, True, 0, 3, 2)
    assert notes.step is None
    obey(host, order("0.0", pieces=1), number=2)
    assert instance.pieces == 1


def test_an_error_of_weir_ends_the_job_any_other_the_host_and_the_note_stays() -> None:
    notes = MemoryNotes()
    host = Host("h1", topology(), STRATEGIES, make, SETTINGS, notes)
    obey(host, order("0.0"))
    instance = host.running["0.0"].instance
    assert isinstance(instance, Copying)

    def fails(error: Exception) -> bool:
        raise error

    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    instance.work = lambda: fails(ValueError("a bug"))  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="a bug"):
        host.work(0.0)
    assert notes.step == Step("0.0")
    instance.work = lambda: fails(RunError("it cannot be"))  # type: ignore[method-assign]
    host.work(0.0)
    assert notes.step is None
    assert host.report().vertices[0].error == "RunError: it cannot be"


def test_an_error_of_weir_outside_a_step_fails_the_vertex_too() -> None:
    """While it is begun, while its state is loaded, and while it is saved."""

    def fails(*_: object) -> NoReturn:
        raise RunError("it cannot be")

    def check(host: Host, notes: MemoryNotes) -> None:
        assert notes.step is None
        report = host.report().vertices[0]
        assert (report.status, report.error) == ("failed", "RunError: it cannot be")

    for vertex in ("0.0", "sink.0"):
        notes = MemoryNotes()
        host = Host("h1", topology(), STRATEGIES, fails, SETTINGS, notes)
        obey(host, order(vertex))
        check(host, notes)
        obey(host, number=2)

    old = checkpoint("1.0", 4, 2, 2)
    body = snapshot_at(old, 2)
    old = sealed(old, body)
    notes = MemoryNotes()
    host = Host("h1", topology(), STRATEGIES, fails, SETTINGS, notes)
    obey(host, order("1.0", restart=old))
    host.handle(Loaded(old.key, body), 0.0)
    check(host, notes)

    notes = MemoryNotes()
    host = Host("h1", topology(), STRATEGIES, make, SETTINGS, notes)
    obey(host, order("0.0"))
    instance = host.running["0.0"].instance
    assert isinstance(instance, Copying)
    instance.snapshot = fails  # type: ignore[method-assign]
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    assert not any("checkpoints/" in key for key in puts(work(host, 5.0)))
    check(host, notes)


def test_loading_and_snapshots_are_noted() -> None:
    class Listed(MemoryNotes):
        def begin(self, vertex: str, phase: Phase, pieces: int) -> None:
            super().begin(vertex, phase, pieces)
            begun.append((vertex, phase))

    begun: list[tuple[str, str]] = []
    host = Host("h1", topology(), STRATEGIES, make, SETTINGS, Listed())
    obey(host, order("0.0"))
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    work(host, 5.0)
    assert begun[0] == ("0.0", "load") and ("0.0", "snapshot") in begun
    old = checkpoint("1.0", 4, 2, 2)
    obey(host, order("0.0"), order("1.0", restart=old), number=2)
    del begun[:]
    host.handle(Loaded(old.key, None), 0.0)
    assert begun == [("1.0", "load")]


def test_deaths_of_those_before_it_are_told_with_every_report() -> None:
    death = Death("h0", None, "exit code 3")
    host = Host("h1", topology(), STRATEGIES, make, SETTINGS, deaths=[death])
    assert [host.report().deaths for _ in range(2)] == [(death,), (death,)]


def test_a_checkpoint_that_is_not_the_one_that_was_written_is_reported() -> None:
    """It is whole and lies under its own name, but it is another."""
    for at, wanted in ((2, 2), (3, 3)):
        host, old = new_host(), checkpoint("1.0", 4, wanted, wanted)
        other = sealed(old, snapshot_at(old, at + 1))
        obey(host, order("1.0", restart=other if at == 3 else sealed(old, b"x" * 40)))
        body = snapshot_at(old, at + 1 if at == 3 else at)
        host.handle(Loaded(old.key, bytes(body)), 0.0)
        report = host.report().vertices[0]
        assert (report.status, report.corrupt) == ("failed", (old.key,))


def test_a_commit_that_does_not_follow_the_one_before_it_is_reported() -> None:
    """The commit before it was lost, and this instance made it anew."""
    host = sink_with_rows()
    (part,) = puts(work(host))
    host.handle(stored(part), 0.0)
    key = commit_key("sink.0", 0)
    host.handle(Refused(key), 0.0)
    behind = Commit(0, 5, None, 0, (2,), "0" * 32, 0, ObjectRef(commit_key("sink.0", 9)))
    assert host.handle(Loaded(key, encode_record(key, behind)), 0.0) == []
    assert host.report().vertices[0].corrupt == (key,)


def test_a_commit_in_whose_place_something_else_lies_is_written_over_it() -> None:
    (commit,) = refused(b"somebody's file")[1]
    assert isinstance(commit, Put) and not commit.new
    (commit,) = refused(None)[1]
    assert isinstance(commit, Put) and commit.new, "it was lost since"
