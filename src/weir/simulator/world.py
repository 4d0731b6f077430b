"""The live runtime in one process under a seed: the same machines, a simulated world.

The world has a clock, a network, a store, hosts and a job manager. Everything that happens is an
event in one queue, in an order that the seed decides alone, so a failing seed fails again.

What goes wrong is in `faults.py`. Besides, a writer can be made to die at any durable step: every
write and delete has a number and the name of its kind (`steps`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from weir.errors import RunError, SnapshotCorrupt
from weir.events.batch import Batch, empty_batch
from weir.files.chunks import Chunk, Partition
from weir.job.commits import decode_commit
from weir.job.host import Host
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.poison import Death, MemoryNotes, Step
from weir.job.record_keeper import TAKEN_OVER
from weir.job.records import known_record, last_record, sweep
from weir.job.settings import HostSettings, ManagerSettings
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
    List,
    Listed,
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
    StoreSignal,
    Subscribed,
    Taken,
    Unloaded,
    Unstored,
    Unsubscribed,
)
from weir.reliable.keys import is_ephemeral, step_of
from weir.reliable.log import batch_bytes
from weir.reliable.objects import ObjectRef
from weir.reliable.store import ObjectExists
from weir.reliable.strategies import Strategy
from weir.reliable.stream import Entry
from weir.reliable.vertex import RowSpan
from weir.runtime.instance import MakeInstance
from weir.runtime.topology import Topology
from weir.simulator.faults import Faults, Poison
from weir.simulator.simulated_disk import SimulatedDisk

STEP, IDLE = 0.002, 0.02
"""Seconds between two steps of a host; of one that has nothing to do."""
REPORT_EVERY = 0.05
CLOSING = 30.0
"""Seconds within which all hosts must have heard that the job is over."""


When: TypeAlias = Literal["before", "torn", "after"]
"""Where at a durable step its writer dies: before it, half-way, or before it hears of the end."""


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """What is run: the machines' parts, and the data of each source vertex."""

    topology: Topology
    strategies: Mapping[str, Strategy]
    make: MakeInstance
    partitions: Mapping[str, Partition]
    cut: int
    pace: float = 0.0
    """Seconds that a source takes for each chunk, on average."""
    hosts: int = 2
    host_settings: HostSettings = field(default_factory=HostSettings)
    manager_settings: ManagerSettings = field(default_factory=ManagerSettings)
    poison: Poison | None = None


class _Falls(BaseException):
    """The process dies here and now."""


class _SimNotes(MemoryNotes):
    """Notes of a host that some rows kill."""

    def __init__(self, falls: Callable[[Step, RowSpan], bool]) -> None:
        super().__init__()
        self._falls = falls

    def see(self, span: RowSpan, rows: Batch) -> None:
        super().see(span, rows)
        assert self.step is not None
        is_ingress = len(rows) < span.end - span.first
        if not is_ingress and self._falls(self.step, span):
            raise _Falls


@dataclass(slots=True)
class _SimHost:
    """A process that hosts vertices; what is meant for a dead one is lost."""

    slot: int
    machine: Host
    notes: MemoryNotes
    chunks: dict[tuple[str, int], Iterator[Chunk]] = field(default_factory=dict)
    writing: dict[str, Put] = field(default_factory=dict)
    frozen_until: float = 0.0
    cut_until: float = 0.0
    ahead: float = 0.0
    turn: int = 0
    """The number of its next step: one that was put off is done by an earlier one."""
    is_idle: bool = False
    dead: bool = False


@dataclass(slots=True)
class _SimManager:
    machine: Manager
    told: int = 0
    writing: dict[str, Put] = field(default_factory=dict)
    frozen_until: float = 0.0
    ahead: float = 0.0
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
    last_at: float = 0.0
    """When the last of what was sent arrives: entries do not overtake one another."""


class World:
    """See the module's docstring."""

    def __init__(self, job: SimulatedJob, rng: np.random.Generator, faults: Faults) -> None:
        self.job, self.faults = job, faults
        self._rng = rng
        (self._apart,) = rng.spawn(1)
        """For what came later, so that what else a seed draws stays what it was."""
        self.now = 0.0
        self.disk = SimulatedDisk(rng)
        self.disk.flips = faults.flips
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._sessions = self._names = 0
        self._hosts: list[_SimHost] = []
        self._managers: list[_SimManager] = []
        self._channels: dict[str, _Channel] = {}
        self._deaths: dict[int, Death] = {}
        self._fell: Counter[tuple[str, int, int]] = Counter()
        self.poisoned = 0
        """How often the poison has killed."""
        self.ended: Ended | None = None
        self._over = False
        self.log: list[str] = []
        self.crashes: dict[int, When] = {}
        """Crash points, by the number of the durable step."""
        self.stop_at: float | None = None
        self.resumed_as: SimulatedJob | None = None
        """What is run from a stop on, if it is not the same."""
        self.steps: list[str] = []
        """The names of all durable steps, in order."""
        self.stops = 0
        self.largest = 0
        """The most bytes that were ever in the store of what only a running job needs."""

    # --- running -----------------------------------------------------------------------------

    def run(self, limit: float = 120.0) -> Ended:
        """Until the job has ended and all hosts know; an error when it is stuck for so many
        simulated seconds."""
        self._start_manager()
        for slot in range(self.job.hosts):
            self._after(float(self._rng.random() * 0.1), partial(self._start_host, slot))
        self._after(0.1, self._misfortune)
        if self.stop_at is not None:
            self._after(self.stop_at, self._ask_to_stop)
        self._pass_time(limit, lambda: self.ended is not None)
        assert self.ended is not None
        # Hosts that were cut off or stood still hear of it later; writes under way arrive.
        self._pass_time(self.now + CLOSING, lambda: not self._hosts)
        self._over = True
        # Nothing begins anew from here on; a chunk that some source takes long for may be left.
        self._pass_time(self.now + 100 * CLOSING, lambda: not self._queue)
        return self.ended

    def _pass_time(self, limit: float, reached: Callable[[], bool]) -> None:
        while not reached():
            if not self._queue:
                raise RunError("the job is stuck: nothing is left to happen")
            self.now, _, event = heapq.heappop(self._queue)
            if self.now > limit:
                raise RunError(f"the job is stuck: nothing happened until {limit} s")
            event()

    def _after(self, delay: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, event))

    def _note(self, what: str) -> None:
        self.log.append(f"{self.now:9.3f}  {what}")

    @property
    def calm(self) -> bool:
        """Faults have ceased."""
        return self.now > self.faults.until or self.ended is not None

    def _happens(self, rate: float) -> bool:
        return not self.calm and self._rng.random() < rate

    def _delay(self) -> float:
        scale = self.faults.delay if not self.calm else 0.001
        return float(self._rng.exponential(scale)) + 0.0001

    # --- misfortune --------------------------------------------------------------------------

    def _misfortune(self) -> None:
        """Ten times a second: does anything go wrong?"""
        if self.ended is not None:
            return
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
            self._note("another manager begins")
            self._start_manager()
            if self._rng.random() < 0.5:
                self._start_manager()
        elif self._happens(f.manager_freeze / 10) and self._managers:
            self._managers[-1].frozen_until = self.now + float(self._rng.random() * 4)
        elif self._happens(f.jump / 10) and self._managers:
            self._managers[-1].ahead += float(self._rng.random() * 30)
        if self._happens(f.stop / 10):
            self._ask_to_stop()
        if f.harm and self._happens(f.harm / 10):
            self.harm()
        if self._happens(f.full / 10) and not self.disk.full:
            self.disk.full = True
            self._note("the store is full")
            self._after(float(self._rng.random() * 3), self._empty_disk)
        if self.calm:
            self.disk.flips = 0.0
        self._after(0.1, self._misfortune)

    def harm(self) -> None:
        """The adversary does something to the store."""
        self._note(f"harm: {self.disk.harm(self._rng)}")

    def _empty_disk(self) -> None:
        self.disk.full = False

    def _ask_to_stop(self) -> None:
        for manager in self._managers:
            manager.machine.stop(self.now + manager.ahead)

    def _is_recovering(self, owner: _SimHost | _SimManager) -> bool:
        if isinstance(owner, _SimManager):
            return not owner.machine.established
        return any(running.status == "loading" for running in owner.machine.running.values())

    def _kill(self, host: _SimHost) -> None:
        self._note(f"{host.machine.session} killed, hosting {', '.join(host.machine.running)}")
        # Now and then nobody can tell: the whole machine was lost.
        self._deaths.pop(host.slot, None)
        if host.notes.step is not None or self._apart.random() < 0.5:
            death = Death(host.machine.session, host.notes.step, "killed by the simulator")
            self._deaths[host.slot] = death
        host.dead = True
        self._hosts.remove(host)
        self._die_writing(host.writing)
        self._break_channels(host)
        slot = host.slot
        if self.ended is None:
            self._after(float(self._rng.random() * 2), lambda: self._start_host(slot))

    def _kill_manager(self, manager: _SimManager) -> None:
        self._note(f"the manager of epoch {manager.machine.ledger.epoch} killed")
        manager.dead = True
        if manager in self._managers:
            self._managers.remove(manager)
        self._die_writing(manager.writing)

    def _die_writing(self, writing: dict[str, Put]) -> None:
        for put in writing.values():
            body = put.encode()
            if self._happens(self.faults.late_writes):
                arrive = partial(self.disk.put_late, put.key, body, new=put.new)
                self._after(float(self._rng.random() * 5), arrive)
            else:
                self.disk.put_at_death(put.key, body, new=put.new)
        writing.clear()

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

    def _falls(self, step: Step, span: RowSpan) -> bool:
        """Whether the host dies at this piece of a step, of poison or by chance."""
        poison = self.job.poison
        if poison is not None and self.poisoned < poison.times and poison.kills(step.vertex, span):
            self.poisoned += 1
            return True
        if self.calm or self._apart.random() >= self.faults.fall:
            return False
        if span.claims and step.pieces == 1:
            return False
        row = (step.vertex, span.place, span.first)
        if self._fell[row] >= 2 or sum(n for r, n in self._fell.items() if r[0] == row[0]) >= 10:
            return False
        self._fell[row] += 1
        return True

    def _start_host(self, slot: int) -> None:
        if self.ended is not None or any(h.slot == slot for h in self._hosts):
            return
        self._sessions += 1
        session = f"h{slot}-{self._sessions}"
        notes = _SimNotes(self._falls)
        deaths = [self._deaths[slot]] if slot in self._deaths else []
        machine = Host(
            session, self.job.topology, self.job.strategies, self.job.make, self.job.host_settings,
            notes, deaths,
        )  # fmt: skip
        host = _SimHost(slot, machine, notes, ahead=float(self._rng.random() * 100))
        self._hosts.append(host)
        self._loop(host)
        self._report(host)

    def _loop(self, host: _SimHost, turn: int = 0) -> None:
        if host.dead or turn != host.turn:
            return
        progressed = False
        if host.frozen_until <= self.now:
            running = list(host.machine.running)
            vertex = None
            if running and self._rng.random() < 0.5:
                vertex = running[int(self._rng.integers(len(running)))]
            try:
                progressed, commands = host.machine.work(self.now + host.ahead, vertex=vertex)
            except _Falls:
                self._kill(host)
                return
            progressed = progressed or bool(commands) or vertex is not None
            self._do_host(host, commands)
        host.is_idle = not progressed
        pause = IDLE if not progressed else STEP
        self._next_turn(host, pause if not self._happens(self.faults.slow) else 0.05)

    def _next_turn(self, host: _SimHost, pause: float) -> None:
        host.turn += 1
        self._after(pause, partial(self._loop, host, host.turn))

    def _report(self, host: _SimHost) -> None:
        if host.dead:
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
        if host.is_idle:
            host.is_idle = False
            self._next_turn(host, STEP)

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
                    pause = float(self._rng.exponential(self.job.pace)) if self.job.pace else 0.0
                    self._after(self._delay() + pause, partial(self._pull, host, command))
                case BeginAnew(over):
                    self._begin_anew(host, over)

    def _begin_anew(self, host: _SimHost, over: bool) -> None:
        self._note(f"{host.machine.session} {'ends' if over else 'begins anew'}")
        host.dead = True
        self._hosts.remove(host)
        self._die_writing(host.writing)
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
        if not len(entry.rows):  # as on a real channel: a mere claim has no columns
            entry = Entry(entry.seq, empty_batch(()), entry.cti)

        def arrive() -> None:
            if channel.open:
                arrived = Arrived(channel.vertex, channel.place, channel.connection, entry)
                self._to_host(channel.reader, arrived)

        at = self.now + self._delay()
        if not self._happens(self.faults.reorder):
            at = channel.last_at = max(at, channel.last_at + 1e-9)
        self._after(at - self.now, arrive)
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
        crash = self._step(step_of(put.key))
        if crash in ("before", "torn") or self._relapses(owner):
            self._note(f"crash {crash or 'before'} {put.key}")
            del writing[put.key]
            if crash == "torn" and not put.new:
                self.disk.put_torn(put.key, put.encode())
            self._crash(owner)
            return
        writing.pop(put.key, None)
        done = self._put(put)
        if crash == "after" or self._relapses(owner):
            self._note(f"crash after {put.key}")
            self._crash(owner)
            return
        self._tell(owner, done)

    def _put(self, put: Put) -> Stored | Refused | Unstored:
        fails = self.disk.full or self._happens(self.faults.write_fails)
        if fails and (self.disk.full or self._rng.random() < 0.5):
            return Unstored(put.key, "no space left" if self.disk.full else "it failed")
        done: Stored | Refused
        try:
            body = put.encode()
            self.disk.put(put.key, body, new=put.new)
            self.largest = max(self.largest, self.disk.ephemeral_bytes)
            done = Stored(ObjectRef.of(put.key, body))
        except ObjectExists:
            done = Refused(put.key)
        return Unstored(put.key, "nobody knows whether it succeeded") if fails else done

    def _step(self, name: str) -> When | None:
        """A durable step is due: count it; whether its writer dies there."""
        self.steps.append(name)
        return self.crashes.get(len(self.steps) - 1)

    def _relapses(self, owner: _SimHost | _SimManager) -> bool:
        return self._happens(self.faults.relapse) and self._is_recovering(owner)

    def _crash(self, owner: _SimHost | _SimManager) -> None:
        if isinstance(owner, _SimHost):
            self._kill(owner)
        elif self.ended is None:
            self._kill_manager(owner)
            self._after(0.1, self._start_manager)
        else:
            self._end_processes()

    def _read(self, owner: _SimHost | _SimManager, key: str) -> None:
        if owner.dead:
            return
        if self._relapses(owner):
            self._note(f"crash at reading {key}")
            self._crash(owner)
        elif self._happens(self.faults.read_fails):
            self._tell(owner, Unloaded(key, "it failed"))
        else:
            self._tell(owner, Loaded(key, self.disk.get(key)))

    def _tell(self, owner: _SimHost | _SimManager, signal: StoreSignal) -> None:
        if isinstance(owner, _SimHost):
            self._to_host(owner, signal)
        else:
            self._to_manager(owner, signal)

    def _deleted(self, manager: _SimManager, keys: tuple[str, ...]) -> None:
        if manager.dead and self._rng.random() < 0.5:
            return
        crash = self._step("delete") if not manager.dead else None
        if crash != "before" and not self._happens(self.faults.delete_fails):
            # Half of them, in the order given, if it dies in between.
            self.disk.delete(keys if crash != "torn" else keys[: len(keys) // 2])
        if crash is not None:
            self._note(f"crash {crash} deleting {', '.join(keys)}")
            self._crash(manager)

    def _listing(self, manager: _SimManager, prefix: str) -> None:
        self._to_manager(manager, Listed(tuple(self.disk.list(prefix))))

    # --- the manager -------------------------------------------------------------------------

    def _start_manager(self) -> None:
        if self.ended is not None:
            return
        try:
            ledger = known_record(self.disk, len(self.job.topology.sinks)) or Ledger()
        except SnapshotCorrupt as error:
            self._note(f"the store cannot be read: {error}")
            self._find_finished(str(error))
            return
        lost = sorted(key for key in ledger.names if not self.disk.has(key))
        if lost and not self.disk.harmed:
            raise RunError(f"the last record names {', '.join(lost)}, which was deleted")
        if ledger.finished:
            self._find_finished()
            return
        job = self.job
        self._names += 1
        machine = Manager(
            job.topology, job.strategies, ledger, job.manager_settings, self.now,
            name=f"m{self._names}",
        )  # fmt: skip
        manager = _SimManager(machine)
        self._managers.append(manager)
        self._note(f"manager m{self._names} of epoch {ledger.epoch} begins")
        self._tick(manager)

    def _tick(self, manager: _SimManager) -> None:
        if manager.dead or self._over:
            return
        if manager.frozen_until <= self.now:
            self._do_manager(manager, manager.machine.tick(self.now + manager.ahead))
        self._after(0.02, lambda: self._tick(manager))

    def _to_managers(self, host: _SimHost, signal: ManagerSignal) -> None:
        for manager in list(self._managers):
            self._to_manager(manager, signal)

    def _to_manager(self, manager: _SimManager, signal: ManagerSignal) -> None:
        if manager.dead:
            return
        if manager.frozen_until > self.now:
            later = manager.frozen_until - self.now + 0.001
            self._after(later, partial(self._to_manager, manager, signal))
            return
        self._do_manager(manager, manager.machine.handle(signal, self.now + manager.ahead))

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
                    self._after(self._delay(), partial(self._deleted, manager, keys))
                case List(prefix):
                    self._after(self._delay(), partial(self._listing, manager, prefix))
                case Answer(session, orders):
                    host = next((h for h in self._hosts if h.machine.session == session), None)
                    if host is not None:
                        signal = OrdersArrived(orders)
                        self._control(host, partial(self._to_host, host, signal))
                case Ended() as ended:
                    self._end(manager, ended)

    def _end(self, manager: _SimManager, ended: Ended) -> None:
        self._note(f"the manager of epoch {manager.machine.ledger.epoch} ends: {ended}")
        if ended.error == TAKEN_OVER:
            manager.dead = True
            self._managers.remove(manager)
            if not self._managers:
                self._start_manager()  # the one that took over has died
        elif ended.stopped:
            self.stops += 1
            self._after(float(self._rng.random() * 2), self._resume)
        elif self.ended is None:
            # It stays, to tell the hosts; any other manager has nothing to say any more.
            self.ended = ended
            for other in self._managers:
                other.dead = other is not manager
            self._managers = [manager]
            if manager.machine.resigned:  # it tells nobody anything: its driver ends the hosts
                self._end_processes()

    def _find_finished(self, error: str = "") -> None:
        """There is nothing to do for a manager: the last one died after its last record, or the
        store cannot be read."""
        self.ended = Ended(error)
        self._end_processes()

    def _end_processes(self) -> None:
        for manager in list(self._managers):
            self._kill_manager(manager)
        for host in list(self._hosts):
            self._kill(host)

    def _resume(self) -> None:
        """All processes are gone; the job is begun again with its store."""
        if self.ended is not None:
            return
        self._note("the job is resumed")
        if self.faults.harm and self._happens(0.5):
            self.harm()
        self._end_processes()
        self.job = self.resumed_as or self.job
        self._start_manager()
        for slot in range(self.job.hosts):
            self._after(float(self._rng.random() * 0.1), partial(self._start_host, slot))

    def sweep(self) -> list[str]:
        """What a driver does when all is over; what is then left that only a running job needs,
        and parts that no commit names."""
        ledger = last_record(self.disk)
        assert ledger is not None
        self.disk.settle()
        self.disk.delete(sweep(self.disk, ledger))
        self.disk.settle()
        if self.disk.harmed:
            return []  # what was harmed may have kept others from being collected
        left = [key for key in self.disk.list() if is_ephemeral(key) and key not in ledger.names]
        parts = set(self.disk.list("parts/"))
        commits = [decode_commit(k, self.disk.body(k)) for k in self.disk.list("commits/")]
        if ledger.finished:
            left += sorted(key for key in self.disk.list() if is_ephemeral(key))
            left += sorted(parts - {c.part.key for c in commits if c.part is not None})
        return left
