"""The sources of a simulated world: the machine that live hosts run, driven under the seed.

A source is part of its host's process: it stands still and dies with it, and goes on as long as the
process does, even if the manager counts the host as lost. Connectors answer at once; the store
takes its time, and fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from weir.errors import WeirError
from weir.files.chunks import Chunk, SourcePartition
from weir.ingress.connectors.connector import Reading
from weir.ingress.connectors.registry import has_log, open_reading, source_start
from weir.ingress.ingress_log import LogCollected, begin_log, first_record
from weir.ingress.source_machine import SourceMachine, log_record
from weir.ingress.source_signals import (
    Accept,
    Appended,
    AppendRecord,
    Give,
    ListRecords,
    LogCommand,
    Open,
    Opened,
    Poll,
    ReadRecord,
    RecordRead,
    RecordsListed,
    SourceSignal,
    StoreFailed,
    Wait,
)
from weir.job.signals import (
    ChunkRead,
    HostSignal,
    Listed,
    Loaded,
    Pull,
    Put,
    Refused,
    SourceBehind,
    SourceFailed,
    Stored,
    StoreSignal,
    Unloaded,
    Unstored,
)
from weir.reliable.objects import ObjectRef
from weir.simulator.processes import SimulatedHost

if TYPE_CHECKING:
    from weir.simulator.world import World

TOKEN = "simulated"
"""The job's token in the first record of each source's log."""
LEAST_WAIT = 0.005
"""The least seconds that a source waits: shorter waits would only make the queue longer."""


@dataclass(slots=True)
class SimulatedSource:
    """A source in the process of its host."""

    host: SimulatedHost
    vertex: str
    incarnation: int
    machine: SourceMachine
    partition: SourcePartition
    record: ObjectRef | None
    """The record of its log that the last chunk was in."""
    reading: Reading | None = None
    """The reading that its connector has open."""
    asked: int = 0
    """How many chunks the host has asked for and not got."""
    held: Give | None = None
    """A chunk that waits until the host asks for it."""


class Sources:
    """Drives all sources of a simulated world."""

    def __init__(self, world: World) -> None:
        self._world, self._time = world, world.time
        self._sources: dict[tuple[str, str, int], SimulatedSource] = {}
        self.ends: dict[str, tuple[int, ObjectRef | None]] = {}
        """For each source that came to its end, its incarnation and the last record of its log."""

    def begin_logs(self) -> None:
        """Begin the logs of the sources, as a driver does before a job starts."""
        for vertex, partition in self._world.job.partitions.items():
            if has_log(partition):
                begin_log(self._world.disk, vertex, TOKEN)

    def pull(self, host: SimulatedHost, pull: Pull) -> None:
        """Read the next chunk of a source, which a host asks for."""
        if host.dead:
            return
        key = (host.machine.session, pull.vertex, pull.incarnation)
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = self._make(host, pull)
            source.asked = 1
            self._go_on(source, None)
            return
        source.asked += 1
        if source.held is not None:
            give, source.held = source.held, None
            self._give(source, give)

    def leave(self, host: SimulatedHost) -> None:
        """Close the sources of a host that is gone."""
        for source in self._sources.values():
            if source.host is host and source.reading is not None:
                source.reading.close()

    def _make(self, host: SimulatedHost, pull: Pull) -> SimulatedSource:
        job = self._world.job
        partition, declared = job.partitions[pull.vertex], job.sources[pull.vertex]
        start = source_start(
            partition,
            pull.vertex,
            first=first_record(pull.vertex, TOKEN),
            offset=pull.offset,
            resume=pull.resume,
            log_end=pull.log_end,
            incarnation=pull.incarnation,
            writer=f"{host.machine.session} {pull.incarnation}",
        )
        record = log_record(pull.resume)
        machine = SourceMachine(declared, partition.name, start, job.cut)
        return SimulatedSource(
            host=host,
            vertex=pull.vertex,
            incarnation=pull.incarnation,
            machine=machine,
            partition=partition,
            record=record,
        )

    def _go_on(self, source: SimulatedSource, signal: SourceSignal | None) -> None:
        """Answer the machine, and carry out what it asks for, as far as that takes no time."""
        host, time = source.host, self._time
        if host.dead:
            return
        if host.frozen_until > time.now:
            later = host.frozen_until - time.now + 0.001
            time.after(later, partial(self._go_on, source, signal))
            return
        try:
            self._step(source, signal)
        except LogCollected as error:
            self._tell(source, SourceBehind(source.vertex, source.incarnation, str(error)))
        except WeirError as error:
            why = f"{type(error).__name__}: {error}"
            self._tell(source, SourceFailed(source.vertex, source.incarnation, why))

    def _step(self, source: SimulatedSource, signal: SourceSignal | None) -> None:
        # The clock that tells the time may jump, the one that measures durations does not.
        now, clock = self._time.now, int((self._time.now + source.host.jumped) * 1e6)
        while True:
            command = source.machine.next(signal, now, clock)
            signal, reading = None, source.reading
            match command:
                case Open(state, start):
                    source.reading = open_reading(source.partition, state, start)
                    signal = Opened(source.reading.offset)
                case Poll(most, until):
                    assert reading is not None
                    signal = reading.poll(most, until, now)
                case Accept():
                    assert reading is not None
                    signal = reading.accept(command)
                case Give():
                    if source.asked:
                        self._give(source, command)
                    else:
                        source.held = command
                    return
                case Wait(seconds):
                    wait = max(seconds, LEAST_WAIT)
                    self._time.after(wait, partial(self._go_on, source, None))
                    return
                case _:
                    self._ask_store(source, command)
                    return

    def _give(self, source: SimulatedSource, give: Give) -> None:
        """Hand a chunk to the host; the next one is read at once, and waits."""
        chunk: Chunk | None = give.chunk
        source.asked -= 1
        if chunk is not None:
            source.record = log_record(chunk.resume)
        elif self.ends.get(source.vertex, (0,))[0] <= source.incarnation:
            self.ends[source.vertex] = (source.incarnation, source.record)
        self._tell(source, ChunkRead(source.vertex, source.incarnation, chunk))
        if chunk is not None:
            self._go_on(source, None)

    def _tell(self, source: SimulatedSource, signal: HostSignal) -> None:
        self._world.hosts.tell(source.host, signal)

    def _ask_store(self, source: SimulatedSource, command: LogCommand) -> None:
        store, host = self._world.store, source.host
        answer: Callable[[StoreSignal], None] = lambda s: self._go_on(source, _answer(s))  # noqa: E731
        match command:
            case ReadRecord(key):
                store.read(host, key, answer)
            case AppendRecord(key, body):
                store.write(host, Put(key, lambda: body, new=True), answer)
            case ListRecords(prefix):
                store.list(prefix, answer)


def _answer(signal: StoreSignal) -> SourceSignal:
    match signal:
        case Loaded(_, body):
            return RecordRead(body)
        case Stored() | Refused():
            return Appended(isinstance(signal, Stored))
        case Listed(keys):
            return RecordsListed(keys)
        case Unstored(_, why) | Unloaded(_, why):
            return StoreFailed(why)
