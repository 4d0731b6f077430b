"""The source's machine: answers in, commands asserted; no store, no file, no clock."""

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import InputError, RunError
from weir.files.chunks import Chunk
from weir.ingress.ingress_log import IngressLog, LogCollected, first_record
from weir.ingress.source_driver import store_answer
from weir.ingress.source_machine import (
    PATIENCE,
    RETRY,
    SourceMachine,
    SourceStart,
    log_record,
)
from weir.ingress.source_signals import (
    Accept,
    Accepted,
    AppendRecord,
    Finished,
    Give,
    IngressRecord,
    ListRecords,
    Offer,
    Open,
    Opened,
    Poll,
    Quiet,
    ReadRecord,
    Rows,
    SourceCommand,
    SourceSignal,
    StoreFailed,
    Wait,
)
from weir.plan.operators import Source
from weir.reliable.codec import encode_record
from weir.reliable.object_names import ingress_key, number_of
from weir.reliable.objects import ObjectRef
from weir.script.program import parse_program
from weir.simulator.simulated_disk import SimulatedDisk

FIRST = first_record("0.0", "job")


def source(idle: str = "") -> Source:
    text = f"STREAM A (t BIGINT, v BIGINT) FROM 'tail://a.jsonl' WITH (vs = t{idle});"
    return parse_program(text).sources[0]


def rows(first: int, stop: int) -> Chunk:
    numbers = np.arange(first, stop)
    batch = pa.RecordBatch.from_pydict({"t": numbers, "v": numbers})
    return Chunk(batch, numbers, stop, resume=b"behind %d" % stop)


class Driven:
    """A machine with its log in a store of its own; what it asks of the connector is asserted."""

    def __init__(
        self,
        of: Source,
        *,
        disk: SimulatedDisk | None = None,
        writer: str = "w",
        offset: int = 0,
        resume: bytes | None = None,
        incarnation: int | None = None,
    ) -> None:
        self.disk = disk or SimulatedDisk(np.random.default_rng(0))
        if disk is None:
            self.disk.put(FIRST.key, encode_record(FIRST.key, IngressRecord(0, writer="job")))
        log = IngressLog("0.0", log_record(resume) or FIRST, writer=writer)
        owns = incarnation is not None
        start = SourceStart(offset, resume, log, incarnation or 0, owns)
        self.machine = SourceMachine(of, "a.jsonl", start, 10)
        self.now = 0.0

    def next(self, signal: SourceSignal | None = None, *, passes: float = 0.0) -> SourceCommand:
        """The next command that is not for the store."""
        self.now += passes
        command = self.machine.next(signal, self.now, int(self.now * 1e6))
        while isinstance(command, ReadRecord | AppendRecord | ListRecords):
            command = self.machine.next(
                store_answer(command, self.disk), self.now, int(self.now * 1e6)
            )
        return command

    def opened(self, offset: int = 0) -> SourceCommand:
        assert isinstance(self.next(), Open)
        return self.next(Opened(offset))

    def records(self) -> list[IngressRecord]:
        log, found = IngressLog("0.0", FIRST, writer="onlooker"), []
        for talk in (log.begin(), *(log.read() for _ in range(20))):
            try:
                command = next(talk)
                while True:
                    command = talk.send(store_answer(command, self.disk))
            except StopIteration as done:
                if done.value is not None:
                    found.append(done.value.record)
        return found


def given(command: SourceCommand) -> Chunk:
    assert isinstance(command, Give) and command.chunk is not None
    return command.chunk


def test_rows_that_can_be_read_again_are_given_at_once() -> None:
    driven = Driven(source())
    assert driven.opened() == Poll(10)
    chunk = given(driven.next(Rows(rows(0, 3))))
    assert chunk.stop == 3 and driven.records() == []
    assert driven.next() == Poll(10)
    assert driven.next(Quiet(3, 0.5)) == Wait(0.5)
    assert driven.next() == Poll(10)
    assert driven.next(Quiet(3, 0.5, why="nobody listens")) == Wait(0.5, "nobody listens")
    assert driven.next() == Poll(10)
    assert driven.next(Finished()) == Give(None)


def test_what_is_offered_counts_when_it_is_durable() -> None:
    driven = Driven(source())
    assert driven.opened() == Poll(10)
    offered = IngressRecord(0, b"rows")
    command = driven.machine.next(Offer(offered), 0.0, 0)
    assert isinstance(command, AppendRecord)
    assert driven.next(store_answer(command, driven.disk)) == Accept(offered, own=True)
    assert [r.lines for r in driven.records()] == [b"rows"]
    assert driven.next(Accepted(0, b"before them")) == Poll(10)
    chunk = given(driven.next(Rows(rows(0, 2))))
    record = log_record(chunk.resume)
    assert record is not None and number_of(record.key) == 1


def test_a_silent_partition_claims_and_says_it_again_where_it_stood() -> None:
    of = source(", idle = 2s")
    driven = Driven(of)
    driven.opened()
    given(driven.next(Rows(rows(0, 3))))
    assert driven.next(passes=1.9) == Poll(10)
    assert driven.next(Quiet(3, 0.5)) == Wait(0.5)
    assert driven.next(passes=0.5) == Poll(10)
    accept = driven.next(Quiet(3, 0.5))
    assert isinstance(accept, Accept) and (accept.record.offset, accept.own) == (3, True)
    claim = given(driven.next(Accepted(3, b"s")))
    assert claim.cti_times.tolist() == [400_000] and claim.stop == 3
    assert driven.next() == Poll(10)
    given(driven.next(Rows(rows(3, 5))))
    again = Driven(of, disk=driven.disk, writer="another")
    assert again.opened() == Poll(10, until=3)
    given(again.next(Rows(rows(0, 2))))
    assert again.next() == Poll(10, until=3)
    given(again.next(Rows(rows(2, 3))))
    assert isinstance(again.next(), Accept)
    same = given(again.next(Accepted(3, b"s")))
    assert same.cti_times.tolist() == claim.cti_times.tolist() and same.resume == claim.resume
    assert again.next() == Poll(10), "it is at the end of the log"


def test_a_process_that_stood_still_looks_again_before_it_claims() -> None:
    """Rows may have come after the last poll: a claim at the clock's time would make them late."""
    driven = Driven(source(", idle = 2s"))
    assert driven.opened() == Poll(10)
    assert driven.next(Quiet(0, 0.5), passes=3600.0) == Wait(0.5)
    assert driven.next() == Poll(10)
    given(driven.next(Rows(rows(0, 3))))
    assert driven.records() == []


def test_a_partition_is_silent_from_when_the_log_was_read() -> None:
    driven = Driven(source(", idle = 2s"))
    assert isinstance(driven.next(), Open)
    assert driven.next(Opened(0), passes=30.0) == Poll(10)
    assert driven.next(Quiet(0, 0.5)) == Wait(0.5), "it has not been looked for rows for long"
    assert driven.next(passes=2.0) == Poll(10)
    assert isinstance(driven.next(Quiet(0, 0.5)), Accept)


def test_one_who_comes_second_takes_over_the_others_record_and_offers_its_own_again() -> None:
    first = Driven(source())
    second = Driven(source(), disk=first.disk, writer="another")
    assert first.opened() == second.opened() == Poll(10)
    first.next(Offer(IngressRecord(0, b"first")))
    taken = second.next(Offer(IngressRecord(0, b"second")))
    assert isinstance(taken, Accept) and (taken.record.lines, taken.own) == (b"first", False)
    assert second.next(Accepted(0, b"")) == Poll(10)
    given(second.next(Rows(rows(0, 2))))
    assert second.next() == Poll(10)
    own = second.next(Offer(IngressRecord(2, b"second")))
    assert isinstance(own, Accept) and own.own
    assert [r.lines for r in second.records()] == [b"first", b"second"]


def test_a_claim_before_rows_that_were_given_means_that_others_are_ahead() -> None:
    of = source(", idle = 1s")
    zombie, driven = Driven(of), Driven(of)
    driven.disk = zombie.disk
    zombie.opened(), driven.opened()
    given(driven.next(Rows(rows(0, 5))))
    assert driven.next(passes=2.0) == Poll(10)
    assert zombie.next(Quiet(0, 0.1)) == Wait(0.1)
    assert zombie.next(passes=3.0) == Poll(10)
    assert isinstance(zombie.next(Quiet(0, 0.1)), Accept)
    assert isinstance(driven.next(Quiet(5, 0.1)), Accept)
    with pytest.raises(LogCollected, match="is before its rows"):
        driven.next(Accepted(5, b""))


def test_a_record_behind_the_end_means_that_rows_are_gone() -> None:
    of = source(", idle = 1s")
    driven = Driven(of)
    driven.opened()
    given(driven.next(Rows(rows(0, 5))))
    driven.next(passes=3.0)
    driven.next(Quiet(5, 0.1))
    again = Driven(of, disk=driven.disk, writer="another")
    assert again.opened() == Poll(10, until=5)
    with pytest.raises(InputError, match=r"a\.jsonl: it was truncated, and 5 rows"):
        again.next(Finished())


def test_a_claim_before_the_start_was_said_before() -> None:
    of = source(", idle = 1s")
    driven = Driven(of)
    driven.opened()
    given(driven.next(Rows(rows(0, 2))))
    driven.next(passes=3.0)
    driven.next(Quiet(2, 0.1))
    again = Driven(of, disk=driven.disk, writer="another", offset=4)
    assert again.opened() == Poll(10, until=2)
    assert isinstance(again.next(Quiet(2, 0.1)), Accept)
    assert again.next(Accepted(2, b"")) == Poll(10)


def test_offsets_may_have_gaps() -> None:
    of = source(", idle = 1s")
    driven = Driven(of)
    driven.opened(7)
    given(driven.next(Rows(rows(20, 22))))
    driven.next(passes=3.0)
    accept = driven.next(Quiet(30, 0.1))
    assert isinstance(accept, Accept) and accept.record.offset == 30
    again = Driven(of, disk=driven.disk, writer="another")
    assert again.opened(7) == Poll(10, until=30)
    given(again.next(Rows(rows(20, 22))))
    assert again.next() == Poll(10, until=30)
    assert isinstance(again.next(Quiet(30, 0.1)), Accept), "no row is left before it"


def test_a_store_that_fails_is_asked_again_and_not_for_ever() -> None:
    driven = Driven(source())
    machine = driven.machine
    command = machine.next(None, 0.0, 0)
    assert isinstance(command, ReadRecord)
    assert machine.next(StoreFailed("no"), 0.0, 0) == Wait(RETRY, "no")
    assert machine.next(None, PATIENCE, 0) == command
    with pytest.raises(RunError, match="it is full"):
        machine.next(StoreFailed("it is full"), PATIENCE + 1, 0)


def test_what_a_store_will_never_do_is_not_asked_again() -> None:
    machine = Driven(source()).machine
    assert isinstance(machine.next(None, 0.0, 0), ReadRecord)
    with pytest.raises(RunError, match="there is no bucket"):
        machine.next(StoreFailed("there is no bucket", lasts=True), 0.0, 0)


def test_a_record_that_was_written_though_the_store_said_no_is_its_own() -> None:
    driven = Driven(source())
    driven.opened()
    command = driven.machine.next(Offer(IngressRecord(0, b"rows")), 0.0, 0)
    assert isinstance(command, AppendRecord)
    store_answer(command, driven.disk)
    assert driven.machine.next(StoreFailed("nobody knows"), 0.0, 0) == Wait(RETRY, "nobody knows")
    accept = driven.next()
    assert isinstance(accept, Accept) and accept.own
    assert [r.lines for r in driven.records()] == [b"rows"]


def test_a_source_goes_on_from_what_a_chunk_carries() -> None:
    driven = Driven(source())
    driven.opened()
    for number, text in enumerate((b"one", b"two")):
        driven.next(Offer(IngressRecord(number, text)))
        driven.next(Accepted(number, b"state %d" % number))
        chunk = given(driven.next(Rows(rows(number, number + 1))))
        driven.next()
    driven.disk.delete([ingress_key("0.0", number) for number in range(2)])
    again = Driven(source(), disk=driven.disk, writer="x", offset=2, resume=chunk.resume)
    assert again.next() == Open(b"behind 2", 2)
    accept = again.next(Opened(1))
    assert isinstance(accept, Accept) and (accept.record.lines, accept.own) == (b"two", False)


def test_a_log_whose_records_are_gone_is_behind() -> None:
    lost = Driven(source())
    lost.disk.delete([FIRST.key])
    with pytest.raises(LogCollected, match="record 0 "):
        lost.next()


def test_the_resume_state_of_a_source_without_a_log_is_its_connectors() -> None:
    machine = SourceMachine(source(", idle = 1s"), "a", SourceStart(), 10)
    assert machine.next(None, 0.0, 0) == Open(None, 0)
    assert machine.next(Opened(0), 0.0, 0) == Poll(10)
    assert machine.next(Quiet(0, 1.0), 9.0, 9) == Wait(1.0), "it makes no claims"
    assert machine.next(None, 9.0, 9) == Poll(10)
    chunk = given(machine.next(Rows(rows(0, 2)), 9.0, 9))
    assert chunk.resume is not None and log_record(chunk.resume) is None
    again = SourceMachine(source(), "a", SourceStart(2, chunk.resume), 10)
    assert again.next(None, 0.0, 0) == Open(b"behind 2", 2)


def test_a_reference_is_needed_to_find_the_record_again() -> None:
    """The resume state names the record by its seal: another under its number is not it."""
    driven = Driven(source())
    driven.opened()
    driven.next(Offer(IngressRecord(0, b"rows")))
    driven.next(Accepted(0, b""))
    chunk = given(driven.next(Rows(rows(0, 1))))
    key = ingress_key("0.0", 1)
    other = encode_record(key, IngressRecord(0, b"others", before=FIRST.seal))
    assert log_record(chunk.resume) != ObjectRef.of(key, other)
    driven.disk.put(key, other)
    with pytest.raises(LogCollected, match="record 1 "):
        Driven(source(), disk=driven.disk, writer="x", offset=1, resume=chunk.resume).next()


# --- owners ------------------------------------------------------------------------------------


def owner(incarnation: int, disk: SimulatedDisk | None = None) -> Driven:
    """A source whose rows come without records, with the log taken over."""
    of = source(", idle = 2s")
    driven = Driven(of, disk=disk, writer=f"of {incarnation}", incarnation=incarnation)
    command = driven.opened()
    while isinstance(command, Accept):
        command = driven.next(Accepted(0, b""))
    assert command == Poll(10)
    return driven


def test_an_instance_takes_the_log_over_before_it_polls() -> None:
    first = owner(7)
    assert [r.owner for r in first.records()] == [7]
    owner(8, first.disk)
    assert [r.owner for r in first.records()] == [7, 8]
    with pytest.raises(LogCollected, match="incarnation 7 has taken over"):
        owner(5, first.disk)


def test_one_who_was_overtaken_cannot_claim() -> None:
    zombie = owner(7)
    owner(8, zombie.disk)
    assert zombie.next(Quiet(0, 0.1)) == Wait(0.1)
    assert zombie.next(passes=3.0) == Poll(10)
    with pytest.raises(LogCollected, match="incarnation 8 has taken over"):
        zombie.next(Quiet(0, 0.1))


def test_one_who_was_overtaken_gives_no_rows_that_came_after() -> None:
    """A later owner claims two seconds after it took over; the first must have stopped by then."""
    zombie = owner(7)
    given(zombie.next(Rows(rows(0, 2)), passes=0.9))
    assert zombie.next() == Poll(10)
    owner(8, zombie.disk)
    with pytest.raises(LogCollected, match="incarnation 8 has taken over"):
        zombie.next(Rows(rows(2, 3)), passes=0.2)


def test_an_owner_claims_no_sooner_than_idle_after_it_took_over() -> None:
    driven = owner(7)
    assert driven.next(Quiet(0, 0.1)) == Wait(0.1)
    assert driven.next(passes=1.9) == Poll(10)
    assert driven.next(Quiet(0, 0.1)) == Wait(0.1)
    assert driven.next(passes=0.2) == Poll(10)
    assert isinstance(driven.next(Quiet(0, 0.1)), Accept)
