"""The live runtime in one process under a seed: the same machines, a simulated world.

The world has a clock, a network, a store, hosts and a job manager. Everything that happens is an
event in one queue, in an order that the seed decides alone, so a failing seed fails again.

Faults (each with a rate that the seed draws): control messages delayed, lost, doubled, out of
order; channels that double and reorder entries or break; hosts that crash and come back, are cut
off, or stand still and wake up as zombies; managers that crash, or run on beside their successor;
writes that fail, tear, or succeed unheard; a full store; flipped bits; slow vertices; clocks that
jump ahead.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from weir.errors import RunError
from weir.io.chunks import Chunk, Partition
from weir.job.host import Host
from weir.job.instance import MakeInstance
from weir.job.keys import EPHEMERAL
from weir.job.ledger import Ledger
from weir.job.manager import TAKEN_OVER, Manager, ManagerSettings
from weir.job.records import last_record, sweep
from weir.job.running import HostSettings
from weir.job.signals import (
    Answer,
    Arrived,
    BeginAnew,
    ChunkRead,
    Connect,
    Delete,
    Deliver,
    Disconnect,
    Ended,
    EndSubscription,
    Get,
    HostCommand,
    HostSignal,
    Loaded,
    Lost,
    ManagerCommand,
    ManagerSignal,
    OrdersArrived,
    Pull,
    Put,
    Refused,
    Reported,
    Stored,
    Subscribed,
    Taken,
    Unstored,
    Unsubscribed,
)
from weir.job.strategy import Strategy
from weir.job.topology import Topology
from weir.local.simulated_disk import SimulatedDisk
from weir.reliable.log import batch_bytes
from weir.reliable.store import ObjectExists
from weir.reliable.stream import Entry

STEP = 0.002
REPORT_EVERY = 0.05
SETTLE = 60.0
"""Seconds of simulated time after which faults cease, so that every run can end."""


@dataclass(slots=True)
class Faults:
    """Rates: of messages (per message), of others (per second of simulated time)."""

    lose: float = 0.0
    double: float = 0.0
    delay: float = 0.01
    crash: float = 0.0
    freeze: float = 0.0
    cut: float = 0.0
    manager_crash: float = 0.0
    second_manager: float = 0.0
    write_fails: float = 0.0
    full: float = 0.0
    flips: float = 0.0
    slow: float = 0.0
    jump: float = 0.0
    until: float = SETTLE


def drawn_faults(rng: np.random.Generator) -> Faults:
    """What goes wrong in a world: some kinds of faults, not always all."""

    def rate(most: float, often: float = 0.5) -> float:
        return float(rng.random() * most) if rng.random() < often else 0.0

    return Faults(
        lose=rate(0.3), double=rate(0.3), delay=float(rng.choice([0.001, 0.01, 0.1])),
        crash=rate(1.5, 0.8), freeze=rate(0.5), cut=rate(0.3),
        manager_crash=rate(0.5), second_manager=rate(0.2, 0.3),
        write_fails=rate(0.2), full=rate(0.2, 0.2), flips=rate(0.3, 0.15),
        slow=rate(0.5), jump=rate(0.2, 0.3), until=float(rng.choice([3.0, 8.0, 20.0])),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """What is run: the machines' parts, and the data of each source vertex."""

    topology: Topology
    strategies: Mapping[str, Strategy]
    make: MakeInstance
    partitions: Mapping[str, Partition]
    cut: int
    hosts: int = 2
    host_settings: HostSettings = field(default_factory=HostSettings)
    manager_settings: ManagerSettings = field(default_factory=ManagerSettings)


@dataclass(slots=True)
class _SimHost:
    """A process that hosts vertices; what is meant for a dead one is lost."""

    slot: int
    machine: Host
    chunks: dict[tuple[str, int], Iterator[Chunk]] = field(default_factory=dict)
    writing: dict[str, Put] = field(default_factory=dict)
    frozen_until: float = 0.0
    cut_until: float = 0.0
    ahead: float = 0.0
    dead: bool = False


@dataclass(slots=True)
class _SimManager:
    machine: Manager
    told: int = 0
    writing: dict[str, Put] = field(default_factory=dict)
    dead: bool = False


@dataclass(slots=True)
class _Channel:
    """A connection: from a reader's input to a host that serves the stream."""

    reader: _SimHost
    vertex: str
    place: int
    connection: int
    server: _SimHost
    open: bool = True


class World:
    """See the module's docstring."""

    def __init__(self, job: SimulatedJob, rng: np.random.Generator, faults: Faults) -> None:
        self.job, self.faults = job, faults
        self._rng = rng
        self.now = 0.0
        self.disk = SimulatedDisk(rng)
        self.disk.flips = faults.flips
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._sessions = 0
        self._hosts: list[_SimHost] = []
        self._managers: list[_SimManager] = []
        self._channels: dict[str, _Channel] = {}
        self.ended: Ended | None = None
        self.log: list[str] = []
        self.crash_before: int | None = None
        """A crash point: the number of the durable step before (or right after) which its writer
        dies."""
        self.crash_after: int | None = None
        self._steps = 0

    # --- running -----------------------------------------------------------------------------

    def run(self, limit: float = 120.0) -> Ended:
        """Until the job has ended, or is stuck for so many simulated seconds."""
        self._start_manager()
        for slot in range(self.job.hosts):
            self._after(float(self._rng.random() * 0.1), partial(self._start_host, slot))
        self._after(0.1, self._misfortune)
        while self._queue and self.ended is None:
            self.now, _, event = heapq.heappop(self._queue)
            if self.now > limit:
                raise RunError(f"the job is stuck: nothing ended it in {limit} s")
            event()
        if self.ended is None:
            raise RunError("the job is stuck: nothing is left to happen")
        return self.ended

    def _after(self, delay: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, event))

    def _note(self, what: str) -> None:
        self.log.append(f"{self.now:9.3f}  {what}")

    @property
    def calm(self) -> bool:
        """Faults have ceased."""
        return self.now > self.faults.until

    def _happens(self, rate: float) -> bool:
        return not self.calm and self._rng.random() < rate

    def _delay(self) -> float:
        scale = self.faults.delay if not self.calm else 0.001
        return float(self._rng.exponential(scale)) + 0.0001

    # --- misfortune --------------------------------------------------------------------------

    def _misfortune(self) -> None:
        """Ten times a second: does anything go wrong?"""
        f = self.faults
        for host in list(self._hosts):
            if self._happens(f.crash / 10):
                self._kill(host)
            elif self._happens(f.freeze / 10):
                host.frozen_until = self.now + float(self._rng.random() * 4)
                self._note(f"{host.machine.session} stands still until {host.frozen_until:.3f}")
            elif self._happens(f.cut / 10):
                host.cut_until = self.now + float(self._rng.random() * 4)
                self._note(f"{host.machine.session} cut off until {host.cut_until:.3f}")
                self._break_channels(host)
            elif self._happens(f.jump / 10):
                host.ahead += float(self._rng.random() * 30)
        if self._happens(f.manager_crash / 10) and self._managers:
            self._kill_manager(self._managers[-1])
            self._after(float(self._rng.random()), self._start_manager)
        elif self._happens(f.second_manager / 10):
            self._note("a second manager begins")
            self._start_manager()
        if self._happens(f.full / 10) and not self.disk.full:
            self.disk.full = True
            self._note("the store is full")
            self._after(float(self._rng.random() * 3), self._empty_disk)
        if self.calm:
            self.disk.flips = 0.0
        self._after(0.1, self._misfortune)

    def _empty_disk(self) -> None:
        self.disk.full = False

    def _kill(self, host: _SimHost) -> None:
        self._note(f"{host.machine.session} killed, hosting {', '.join(host.machine.running)}")
        host.dead = True
        self._hosts.remove(host)
        self._die_writing(host.writing)
        self._break_channels(host)
        slot = host.slot
        self._after(float(self._rng.random() * 2), lambda: self._start_host(slot))

    def _kill_manager(self, manager: _SimManager) -> None:
        self._note(f"the manager of epoch {manager.machine.ledger.epoch} killed")
        manager.dead = True
        self._managers.remove(manager)
        self._die_writing(manager.writing)

    def _die_writing(self, writing: Mapping[str, Put]) -> None:
        for put in writing.values():
            self.disk.put_at_death(put.key, put.encode(), new=put.new)

    def _break_channels(self, host: _SimHost) -> None:
        for key, channel in list(self._channels.items()):
            if channel.reader is host or channel.server is host:
                self._break(key)

    def _break(self, key: str) -> None:
        channel = self._channels.pop(key, None)
        if channel is None:
            return
        channel.open = False
        lost = Lost(channel.vertex, channel.place, channel.connection)
        self._after(self._delay(), lambda: self._to_host(channel.reader, lost))
        self._after(self._delay(), lambda: self._to_host(channel.server, Unsubscribed(key)))

    # --- hosts -------------------------------------------------------------------------------

    def _start_host(self, slot: int) -> None:
        self._sessions += 1
        session = f"h{slot}-{self._sessions}"
        machine = Host(
            session, self.job.topology, self.job.strategies, self.job.make, self.job.host_settings
        )
        host = _SimHost(slot, machine, ahead=float(self._rng.random() * 100))
        self._hosts.append(host)
        self._loop(host)
        self._report(host)

    def _loop(self, host: _SimHost) -> None:
        if host.dead or self.ended is not None:
            return
        if host.frozen_until <= self.now:
            running = list(host.machine.running)
            vertex = None
            if running and self._rng.random() < 0.5:
                vertex = running[int(self._rng.integers(len(running)))]
            _, commands = host.machine.work(self.now + host.ahead, vertex=vertex)
            self._do_host(host, commands)
        pause = STEP if not self._happens(self.faults.slow) else 0.05
        self._after(pause, lambda: self._loop(host))

    def _report(self, host: _SimHost) -> None:
        if host.dead or self.ended is not None:
            return
        if host.frozen_until <= self.now:
            report = host.machine.report(address=host.machine.session, slot=host.slot)
            self._control(host, lambda: self._to_managers(host, Reported(report)))
        self._after(REPORT_EVERY, lambda: self._report(host))

    def _control(self, host: _SimHost, deliver: Callable[[], None]) -> None:
        """A control message: late, lost, doubled."""
        if host.cut_until > self.now or self._happens(self.faults.lose):
            return
        self._after(self._delay(), deliver)
        if self._happens(self.faults.double):
            self._after(self._delay(), deliver)

    def _to_host(self, host: _SimHost, signal: HostSignal) -> None:
        if host.dead:
            return
        if host.frozen_until > self.now:
            self._after(host.frozen_until - self.now + 0.001, lambda: self._to_host(host, signal))
            return
        self._do_host(host, host.machine.handle(signal, self.now + host.ahead))

    def _do_host(self, host: _SimHost, commands: Sequence[HostCommand]) -> None:
        for command in commands:
            if host.dead:
                return
            match command:
                case Put():
                    self._write(host, host.writing, command)
                case Get(key):
                    self._after(self._delay(), partial(self._read, host, key))
                case Connect():
                    self._after(self._delay(), partial(self._connect, host, command))
                case Disconnect(vertex, place):
                    self._disconnect(host, vertex, place)
                case Deliver(subscription, entry):
                    self._deliver(subscription, entry)
                case EndSubscription(subscription):
                    self._break(subscription)
                case Pull():
                    self._after(self._delay(), partial(self._pull, host, command))
                case BeginAnew(over):
                    self._begin_anew(host, over)

    def _begin_anew(self, host: _SimHost, over: bool) -> None:
        self._note(f"{host.machine.session} begins anew")
        host.dead = True
        self._hosts.remove(host)
        self._break_channels(host)
        if not over:
            slot = host.slot
            self._after(float(self._rng.random() * 0.2), lambda: self._start_host(slot))

    def _pull(self, host: _SimHost, pull: Pull) -> None:
        key = (pull.vertex, pull.incarnation)
        if key not in host.chunks:
            partition = self.job.partitions[pull.vertex]
            host.chunks[key] = iter(partition.chunks(self.job.cut, pull.offset))
        chunk = next(host.chunks[key], None)
        self._to_host(host, ChunkRead(pull.vertex, pull.incarnation, chunk))

    # --- channels ----------------------------------------------------------------------------

    def _connect(self, reader: _SimHost, command: Connect) -> None:
        if reader.dead:
            return
        server = next((h for h in self._hosts if h.machine.session == command.address), None)
        cut = reader.cut_until > self.now or (server is not None and server.cut_until > self.now)
        if server is None or cut:
            lost = Lost(command.vertex, command.place, command.connection)
            self._after(self._delay(), lambda: self._to_host(reader, lost))
            return
        key = f"{reader.machine.session}/{command.vertex}/{command.place}/{command.connection}"
        self._disconnect(reader, command.vertex, command.place)
        self._channels[key] = _Channel(
            reader, command.vertex, command.place, command.connection, server
        )
        self._to_host(server, Subscribed(key, command.stream, command.seq))

    def _disconnect(self, reader: _SimHost, vertex: str, place: int) -> None:
        for key, channel in list(self._channels.items()):
            if channel.reader is reader and (channel.vertex, channel.place) == (vertex, place):
                self._break(key)

    def _deliver(self, key: str, entry: Entry) -> None:
        channel = self._channels.get(key)
        if channel is None:
            return
        if self._happens(self.faults.lose / 10):
            self._break(key)
            return

        def arrive() -> None:
            if channel.open:
                arrived = Arrived(channel.vertex, channel.place, channel.connection, entry)
                self._to_host(channel.reader, arrived)

        # In a calm world a channel keeps its order, so that every reader gets on.
        self._after(0.001 if self.calm else self._delay(), arrive)
        if self._happens(self.faults.double):
            self._after(self._delay(), arrive)
        size = batch_bytes(entry.rows) + 1
        self._after(self._delay(), lambda: self._to_host(channel.server, Taken(key, size)))

    # --- the store ---------------------------------------------------------------------------

    def _write(self, owner: _SimHost | _SimManager, writing: dict[str, Put], put: Put) -> None:
        writing[put.key] = put
        self._after(self._delay(), lambda: self._written(owner, writing, put))

    def _written(self, owner: _SimHost | _SimManager, writing: dict[str, Put], put: Put) -> None:
        if owner.dead:
            return
        number, self._steps = self._steps, self._steps + 1
        if number == self.crash_before:
            self._note(f"crash before {put.key}")
            self._crash(owner)
            return
        writing.pop(put.key, None)
        fails = self.disk.full or self._happens(self.faults.write_fails)
        done: Stored | Refused | Unstored
        if fails and (self.disk.full or self._rng.random() < 0.5):
            done = Unstored(put.key, "no space left" if self.disk.full else "it failed")
        else:
            try:
                self.disk.put(put.key, put.encode(), new=put.new)
                done = Stored(put.key)
            except ObjectExists:
                done = Refused(put.key)
            if fails:
                done = Unstored(put.key, "nobody knows whether it succeeded")
        if number == self.crash_after:
            self._note(f"crash after {put.key}")
            self._crash(owner)
            return
        self._tell(owner, done)

    def _crash(self, owner: _SimHost | _SimManager) -> None:
        if isinstance(owner, _SimHost):
            self._kill(owner)
        else:
            self._kill_manager(owner)
            self._after(0.1, self._start_manager)

    def _read(self, owner: _SimHost | _SimManager, key: str) -> None:
        if not owner.dead:
            self._tell(owner, Loaded(key, self.disk.get(key)))

    def _tell(
        self, owner: _SimHost | _SimManager, signal: Stored | Refused | Unstored | Loaded
    ) -> None:
        if isinstance(owner, _SimHost):
            self._to_host(owner, signal)
        else:
            self._to_manager(owner, signal)

    # --- the manager -------------------------------------------------------------------------

    def _start_manager(self) -> None:
        ledger = last_record(self.disk) or Ledger()
        if ledger.finished:
            self.ended = Ended()
            return
        job = self.job
        machine = Manager(job.topology, job.strategies, ledger, job.manager_settings, self.now)
        manager = _SimManager(machine)
        self._managers.append(manager)
        self._note(f"the manager of epoch {ledger.epoch} begins")
        self.disk.delete(sweep(self.disk, ledger, ()) if not self._managers[:-1] else ())
        self._tick(manager)

    def _tick(self, manager: _SimManager) -> None:
        if manager.dead or self.ended is not None:
            return
        self._do_manager(manager, manager.machine.tick(self.now))
        self._after(0.02, lambda: self._tick(manager))

    def _to_managers(self, host: _SimHost, signal: ManagerSignal) -> None:
        for manager in list(self._managers):
            self._to_manager(manager, signal)

    def _to_manager(self, manager: _SimManager, signal: ManagerSignal) -> None:
        if not manager.dead:
            self._do_manager(manager, manager.machine.handle(signal, self.now))

    def _do_manager(self, manager: _SimManager, commands: Sequence[ManagerCommand]) -> None:
        epoch = manager.machine.ledger.epoch
        for line in manager.machine.story[manager.told :]:
            self._note(f"  epoch {epoch}: {line.vertex} {line.what}")
        manager.told = len(manager.machine.story)
        for command in commands:
            if manager.dead:
                return
            match command:
                case Put():
                    self._write(manager, manager.writing, command)
                case Get(key):
                    self._after(self._delay(), partial(self._read, manager, key))
                case Delete(keys):
                    self.disk.delete(keys)
                case Answer(session, orders):
                    host = next((h for h in self._hosts if h.machine.session == session), None)
                    if host is not None:
                        signal = OrdersArrived(orders)
                        self._control(host, partial(self._to_host, host, signal))
                case Ended() as ended:
                    self._end(manager, ended)

    def _end(self, manager: _SimManager, ended: Ended) -> None:
        self._note(f"the manager of epoch {manager.machine.ledger.epoch} ends: {ended}")
        manager.dead = True
        self._managers.remove(manager)
        if ended.error != TAKEN_OVER:
            self.ended = ended
        elif not self._managers:
            self._start_manager()  # the one that took over has died

    @property
    def left_over(self) -> list[str]:
        """What is still in the store that only a running job needs, after the last sweep."""
        ledger = last_record(self.disk)
        assert ledger is not None
        self.disk.settle()
        self.disk.delete(sweep(self.disk, ledger, ()))
        self.disk.settle()
        return [key for prefix in EPHEMERAL for key in self.disk.list(prefix)]
