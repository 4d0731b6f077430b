"""The host: it runs instances of vertices as ordered, serves their streams, makes them durable.

Rules
1. Orders say which instances the host is to run, or what of that has changed (`messages.py`). The
   host drops an instance whose incarnation is not the ordered one; a new instance loads its
   checkpoint first. Orders of an older epoch or number are ignored, and so are changes since what
   the host does not have.
2. Instances get their inputs by hand-over or over connections (`input_connections.py`); the host
   serves their streams to other hosts (`stream_server.py`).
3. Back pressure: an instance does not step while the volatile tail of one of its streams is larger
   than `tail_buffer`, nor while each of its streams is `ahead_buffer` ahead of its fastest reader.
   So an instance always steps for a reader that has read all it wrote. That prevents deadlock: in a
   circle of vertices that wait for one another, one would have such a reader and not step
   (docs/design/0009).
4. Nothing counts before the store says so: the host reports segments and checkpoints when they are
   stored.
5. An answer of the store goes to the instance that asked (`store_requests.py`), never to its
   successor. A request that failed is repeated; until it succeeds the host reports that it is in
   trouble.
6. While orders say so (`Orders.held`), sinks neither step nor commit: nothing leaves the job yet.
7. The host notes what it is about to do before it does it (`poison.py`). With every report it tells
   of the deaths of hosts that ran in this slot before.
8. A report is due when the host has facts that the manager has not acknowledged, while it waits for
   orders or has lost a connection of late, and else as a sign of life.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from weir.errors import SnapshotCorrupt
from weir.events.batch import OPEN
from weir.job.facts import Facts
from weir.job.hosted_instance import Fact, FactKey, Running
from weir.job.input_connections import InputConnections
from weir.job.messages import (
    KEPT_CHECKPOINTS,
    Checkpoint,
    HeldBy,
    Orders,
    Report,
    VertexOrder,
    VertexReport,
)
from weir.job.poison import Death, MemoryNotes, Notes
from weir.job.segment_flush import StreamSegment
from weir.job.settings import HostSettings
from weir.job.signals import (
    Arrived,
    ChunkRead,
    EndSession,
    Get,
    HostCommand,
    HostSignal,
    Loaded,
    Lost,
    MakeRoom,
    Misled,
    OrdersArrived,
    Put,
    Refused,
    SourceBehind,
    SourceFailed,
    SourceWaits,
    Stored,
    Subscribed,
    Taken,
    Unloaded,
    Unstored,
    Unsubscribed,
)
from weir.job.step_choice import StepChoice
from weir.job.store_requests import Requests
from weir.job.stream_server import Subscribers
from weir.reliable.cursor import STEP_ROWS, Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import Strategy
from weir.runtime.instance import Instance, MakeInstance
from weir.runtime.topology import Topology

SIGN_EVERY = 0.2
"""Seconds between two reports of a host that has nothing to say."""
FIGURES_EVERY = 1.0
"""Seconds between two reports with figures."""
RESTLESS = 2.0
"""Seconds for which a host reports often after it has lost a connection; see rule 8."""


class Host:
    """A machine that takes orders, entries, chunks and answers of the store, and gives commands."""

    def __init__(
        self,
        session: str,
        topology: Topology,
        strategies: Mapping[str, Strategy],
        make: MakeInstance,
        settings: HostSettings,
        notes: Notes | None = None,
        deaths: Sequence[Death] = (),
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`session` names this host, as no other host is ever named; `make` makes instances;
        `deaths` are those of hosts that ran in this slot before; `clock`, if there is one, tells
        the time of marks (`delays.py`): that of a step, finer than the time of a signal."""
        self.session, self._clock = session, clock
        self._notes, self._deaths = notes or MemoryNotes(), tuple(deaths)
        self._topology, self._strategies = topology, strategies
        self._make, self._settings = make, settings
        self._epoch = self._number = -1
        """The epoch and the number of the last orders that were obeyed."""
        self._manager = ""
        """The name of the manager that gave them."""
        self._running: dict[str, Running] = {}
        """The instances that are run, by vertex."""
        self._streams: dict[str, LogStream] = {}
        """The streams that these instances write, by name."""
        self._connections = InputConnections(settings.send_buffer)
        """How the inputs of the instances are connected to other hosts."""
        self._subscribers = Subscribers(self._streams, settings.step_wait)
        """Who on other hosts reads the streams."""
        self._now = 0.0
        """The time of the last signal, or of the last work."""
        self._steps = StepChoice(settings.step_wait, self._is_able, self._lets_go_on)
        """Which instances have something to do."""
        self._touched: set[str] = set()
        """The instances that may have something to store, or want a chunk."""
        self._lacking: set[str] = set()
        """The streams that may miss segments."""
        self._requests: Requests[Running | LogStream] = Requests(self._is_there)
        """What was asked of the store, by instances and by streams that miss a segment."""
        self._out: list[HostCommand] = []
        """Commands that the driver has not been given yet."""
        self._report_number = 0
        """The number of the last report."""
        self._reported_at = self._figures_at = -math.inf
        """When the last report was made, and the last with figures."""
        self._marked = (0, 0.0)
        """The number of that, and what the clock of marks showed then."""
        self._restless_until = -math.inf
        self._facts: Facts[FactKey, Fact] = Facts()
        """What the manager was not heard to have."""
        self._taken_by_manager = 0
        """Up to which of the facts the manager has all, by its last orders."""
        self._taken = 0
        """Up to which of the manager's facts, of the present epoch, this host has all."""
        self._said: dict[str, VertexReport] = {}
        """The status of each instance that was last made a fact."""
        self._said_trouble: str | None = None
        self._held = False
        """Whether sinks wait, so that figures are waited for: they go with every report."""
        self.trouble: str | None = None
        """Why the store cannot be used at the moment, if it cannot."""
        self.trouble_lasts = False
        """Whether that will stay so."""

    # --- signals -----------------------------------------------------------------------------

    def handle(self, signal: HostSignal, now: float) -> list[HostCommand]:
        """Take in what happened; return what is to be done."""
        self._now = now
        match signal:
            case OrdersArrived(orders):
                self._obey(orders, now)
            case Arrived():
                self._arrived(signal, now)
            case Lost(vertex, input, connection):
                if self._cursor(vertex, input, connection) is not None:
                    self._break(vertex, input, now)
            case Misled(vertex, input, connection, why):
                cursor = self._cursor(vertex, input, connection)
                if cursor is not None:
                    self._running[vertex].fail(f"stream {cursor.stream}: {why}")
            case Subscribed(subscription, stream, seq, credit, view):
                self._out += self._subscribers.add(
                    subscription, stream=stream, seq=seq, credit=credit, view=view
                )
            case Unsubscribed(subscription):
                self._subscribers.remove(subscription)
            case Taken(subscription, size):
                self._subscribers.taken(subscription, size)
            case ChunkRead(vertex, incarnation, chunk):
                if running := self._present(vertex, incarnation):
                    running.take_chunk(chunk)
                    self.note(vertex, STEP_ROWS)
            case SourceFailed(vertex, incarnation, why):
                if running := self._present(vertex, incarnation):
                    running.fail(why)
            case SourceWaits(vertex, incarnation, why):
                if running := self._present(vertex, incarnation):
                    running.waits = why
            case SourceBehind(vertex, incarnation, why):
                if running := self._present(vertex, incarnation):
                    running.fall_behind(why)
            case Stored(ref):
                self._stored(ref.key, ref)
            case Refused(key):
                self._stored(key, None)
            case Loaded(key, body):
                self._loaded(key, body, now)
            case Unstored():
                self._failed(Put, signal, now)
            case Unloaded():
                self._failed(Get, signal, now)
        return self._drained()

    def _drained(self) -> list[HostCommand]:
        out, self._out = [*self._out, *self._requests.ready], []
        self._requests.ready.clear()
        return out

    def _present(self, vertex: str, incarnation: int) -> Running | None:
        """Find the instance of a vertex, if it is of this incarnation."""
        running = self._running.get(vertex)
        is_same = running is not None and running.order.incarnation == incarnation
        return running if is_same else None

    # --- orders ------------------------------------------------------------------------------

    def _obey(self, orders: Orders, now: float) -> None:
        """Drop and begin instances until just those run that are ordered; see rule 1."""
        if orders.session != self.session or orders.epoch < self._epoch:
            return
        is_same = (orders.epoch, orders.manager) == (self._epoch, self._manager)
        if is_same and orders.number <= self._number:
            return
        if orders.stop:
            self._out.append(EndSession(orders.over))
            for vertex in list(self._running):
                self._drop(vertex)
            return
        if not is_same:
            self._taken = 0
        self._epoch, self._manager, self._number = orders.epoch, orders.manager, orders.number
        self._taken_by_manager = orders.taken
        self._facts.acknowledge(orders.taken)
        if orders.heard >= self._marked[0]:
            for running in self._running.values():
                running.marks.hear(self._marked[1])
        self._held = orders.held
        if orders.since <= self._taken:
            self._taken = orders.upto
            self._take_in(orders, now)
        for running in self._running.values():
            if running.asked != orders.checkpoint:
                self._touched.add(running.spec.id)
            running.asked, running.record = orders.checkpoint, orders.record
            running.held = orders.held and running.spec.kind == "sink"

    def _take_in(self, orders: Orders, now: float) -> None:
        """Run what is ordered, and let the instances know what has changed."""
        order_of = {order.vertex: order for order in orders.vertices}
        for vertex in list(self._running) if orders.since == 0 else orders.dropped:
            if vertex in self._running and vertex not in order_of:
                self._drop(vertex)
        for vertex, order in order_of.items():
            running = self._running.get(vertex)
            if running is not None and running.order.incarnation != order.incarnation:
                self._drop(vertex)
        for order in orders.vertices:
            if order.vertex not in self._running:
                self._begin(order, now)
            running = self._running[order.vertex]
            if running.instance is not None and running.order.pieces != order.pieces:
                running.instance.watch(self._notes.see, order.pieces)
            if running.order.inputs != order.inputs:
                self._connections.look_again(order.vertex, range(len(running.spec.inputs)))
            running.order = order
            running.check_floors()
        for order in orders.vertices:
            self._apply(order)
            self._touched.add(order.vertex)
        for stream in {*orders.segments, *orders.collect}:
            self._change_output(
                stream, orders.segments.get(stream, ()), orders.collect.get(stream, 0)
            )
        self._change_inputs(orders)
        self._connect_inputs(now)

    def _change_output(self, stream: str, segments: tuple[Segment, ...], collected: int) -> None:
        """Let an instance know which rows of its stream are durable, and which nobody will ask for,
        where that has changed."""
        if stream in self._streams:
            self._streams[stream].learn(segments)
            self._streams[stream].collect(collected)
            self._subscribers.collected(stream)
        elif (running := self._running.get(self._topology.streams[stream].writer)) is not None:
            order = running.order
            running.order = msgspec.structs.replace(
                order,
                segments={**order.segments, stream: segments or order.segments.get(stream, ())},
                collect={**order.collect, stream: max(collected, order.collect.get(stream, 0))},
            )

    def _change_inputs(self, orders: Orders) -> None:
        """Let instances know who serves their inputs, and from where on, if that has changed."""
        served = {
            s: by for v, by in orders.served.items() for s in self._topology.vertices[v].outputs
        }
        if not served and not orders.floors:
            return
        for running in self._running.values():
            order, inputs = running.order, running.spec.inputs
            changed = {stream: served[stream] for stream in inputs if stream in served}
            floors = {s: orders.floors[s] for s in inputs if s in orders.floors}
            if changed:
                changed_inputs = (i for i, s in enumerate(inputs) if s in changed)
                self._connections.look_again(running.spec.id, changed_inputs)
            if changed or floors:
                running.order = msgspec.structs.replace(
                    order, inputs={**order.inputs, **changed}, floors={**order.floors, **floors}
                )
                running.check_floors()

    def _begin(self, order: VertexOrder, now: float) -> None:
        """Begin a new instance, which may have to load its checkpoint first."""
        spec = self._topology.vertices[order.vertex]
        running = Running(
            spec,
            order,
            strategy=self._strategies[order.vertex],
            make=self._make,
            settings=self._settings,
            now=now,
            notes=self._notes,
            say=self._facts.say,
        )
        self._running[order.vertex] = running
        self._ask(running, running.noted("load", running.begin, ()))
        if running.instance is not None:
            self._started(running)

    def _started(self, running: Running) -> None:
        """Take in that an instance is loaded: from now on its streams can be read."""
        assert running.instance is not None
        running.instance.watch(self._notes.see, running.order.pieces)
        running.check_floors()
        for name, stream in running.instance.streams.items():
            self._streams[name] = stream
            stream.on_missing = self._lacking.add
            self._look_for(name)
        self._connections.look_again(running.spec.id, range(len(running.spec.inputs)))
        for cursor in running.instance.cursors:
            cursor.on_news = partial(self.note, running.spec.id)
        self.note(running.spec.id)
        self._touched.add(running.spec.id)
        self._apply(running.order)

    def note(self, vertex: str, rows: int = 0) -> None:
        """Take in that so many rows came for an instance (0: something else)."""
        self._steps.note(vertex, rows, self._now)

    def _apply(self, order: VertexOrder) -> None:
        """Let the streams of an instance forget the rows that nobody will ask for."""
        for name, seq in order.collect.items():
            if name in self._streams:
                self._streams[name].learn(order.segments.get(name, ()))
                self._streams[name].collect(seq)
                self._subscribers.collected(name)

    def _drop(self, vertex: str) -> None:
        """Stop running an instance: its inputs are disconnected, and its readers look elsewhere."""
        running = self._running.pop(vertex)
        self._steps.forget(vertex)
        self._said.pop(vertex, None)
        if running.instance is None:
            return
        for input, cursor in enumerate(running.instance.cursors):
            cursor.detach()
            self._out += self._connections.drop(vertex, input)
        for name in running.instance.streams:
            del self._streams[name]
            for reader, input in self._topology.readers_of.get(name, ()):
                other = self._running.get(reader)
                if other is not None and other.instance is not None:
                    cursor = other.instance.cursors[input]
                    if cursor.near is not None:
                        cursor.detach()
            self._look_for(name)
            self._out += self._subscribers.end(name)

    # --- inputs ------------------------------------------------------------------------------

    def _connect_inputs(self, now: float) -> None:
        """Attach or connect the inputs that are neither, or may no longer be."""
        for vertex, input in self._connections.due(now):
            running = self._running.get(vertex)
            if running is None or running.instance is None or running.status != "running":
                continue  # it is looked at when it starts
            cursor = running.instance.cursors[input]
            near = self._streams.get(cursor.stream)
            if near is None:
                self._out += self._connections.connect(
                    vertex=vertex,
                    input=input,
                    cursor=cursor,
                    order=running.order,
                    window=self._window(running),
                )
                continue
            attached, commands = self._connections.attach(vertex, input, cursor, near)
            self._out += commands
            if not attached:
                running.status = "behind"

    def _look_for(self, stream: str) -> None:
        """Look again at the inputs here that read a stream which has come or gone."""
        for vertex, input in self._topology.readers_of.get(stream, ()):
            if vertex in self._running:
                self._connections.look_again(vertex, (input,))

    def _arrived(self, arrived: Arrived, now: float) -> None:
        cursor = self._cursor(arrived.vertex, arrived.input, arrived.connection)
        if cursor is None:
            return
        running = self._running[arrived.vertex]
        entry = arrived.entry  # what covers numbers and has no rows needs no credit
        is_new = len(entry.rows) > 0 and entry.number_of(-1) >= cursor.wanted
        if is_new and cursor.queued_bytes >= self._window(running):
            running.fail(f"stream {cursor.stream}: more rows came than there was credit for")
        elif not cursor.arrive(arrived.entry, arrived.size):
            self._break(arrived.vertex, arrived.input, now)

    def _window(self, running: Running) -> int:
        return self._connections.window(len(running.spec.inputs))

    def _cursor(self, vertex: str, input: int, connection: int) -> Cursor | None:
        """Find the cursor of an input, if this is its present connection."""
        running = self._running.get(vertex)
        if running is None or running.instance is None:
            return None
        cursor = running.instance.cursors[input]
        return cursor if cursor.connection == connection and cursor.near is None else None

    def _break(self, vertex: str, input: int, now: float) -> None:
        """Give up the connection of an input; another one is made later."""
        self._restless_until = now + RESTLESS
        running = self._running[vertex]
        assert running.instance is not None
        cursor = running.instance.cursors[input]
        self._out += self._connections.break_off(
            vertex=vertex, input=input, cursor=cursor, order=running.order, now=now
        )

    # --- work --------------------------------------------------------------------------------

    def work(self, now: float, *, vertex: str | None = None) -> tuple[bool, list[HostCommand]]:
        """Let the instances step whose turn it is (or that of this vertex, if something came for
        it); say whether there was anything to do, and what is to be done now."""
        self._now = now
        self._requests.retry(now)
        self._connect_inputs(now)
        progressed = False
        for name in self._steps.choose(now) if vertex is None else self._steps.forced(vertex):
            progressed |= self._step(self._running[name])
        served, commands = self._subscribers.serve(now)
        self._out += commands
        self._keep(now)
        return progressed or served, self._drained()

    @property
    def next_due(self) -> float:
        """When there is something to do again, if no signal comes before; work that could be done
        at once is not counted."""
        kept = (running.keep_at for running in self._running.values())
        parts = (self._steps, self._subscribers, self._requests, self._connections)
        return min((*kept, *(part.next_due for part in parts)))

    def _is_able(self, vertex: str) -> bool:
        """Say whether an instance may step."""
        running = self._running[vertex]
        instance = running.instance
        if instance is None or running.status != "running" or running.held:
            return False
        if any(stream.doubt is not None for stream in instance.streams.values()):
            return False  # it fails as soon as the store tells the row
        return self._held_by(instance) is None

    def _lets_go_on(self, vertex: str) -> bool:
        """Say whether more is known of all inputs of a port than the instance has read."""
        running = self._running[vertex]
        assert running.instance is not None
        known, read = dict[int, int](), dict[int, int]()
        for port, cursor in zip(running.spec.ports, running.instance.cursors, strict=True):
            known[port] = min(known.get(port, OPEN), cursor.newest)
            read[port] = min(read.get(port, OPEN), cursor.cti)
        return not running.instance.caught_up or known != read

    def _step(self, running: Running) -> bool:
        instance, name = running.instance, running.spec.id
        assert instance is not None
        began = 0.0 if self._clock is None else self._clock()
        before = [c.queued_bytes for c in instance.cursors]
        progressed = running.noted("step", instance.work, None)
        seconds = 0.0 if self._clock is None else self._clock() - began
        has_more = bool(progressed) and any(c.has_news for c in instance.cursors)
        self._steps.stepped(name, seconds, has_more=has_more, now=self._now)
        self._touched.add(name)
        if progressed is None:
            return False
        if self._clock is not None and instance.spec.kind != "inner":
            begins = instance.spec.kind == "source" and not running.marks.recent
            if progressed or begins:
                running.marks.note(instance.cti, self._clock())
        for input, cursor in enumerate(instance.cursors):
            freed = before[input] - cursor.queued_bytes
            if freed > 0:
                room = MakeRoom(name, input, cursor.connection, freed)
                self._out.append(room)
        return progressed

    def _held_by(self, instance: Instance) -> HeldBy | None:
        """Say what back pressure keeps an instance from stepping, if any does; see rule 3."""
        limit = self._settings.tail_buffer
        if any(
            s.held_bytes > limit and s.volatile_bytes > limit for s in instance.streams.values()
        ):
            return "store"
        written = [instance.streams[outlet.stream] for outlet in instance.spec.outlets]
        ahead = bool(written) and all(s.is_ahead(self._settings.ahead_buffer) for s in written)
        return "readers" if ahead else None

    def _keep(self, now: float) -> None:
        """Write the segments, checkpoints and commits that are due; ask for the next chunks of
        sources, and for segments that readers miss."""
        touched, self._touched = self._touched, set()
        for name, running in self._running.items():
            if name not in touched and now < running.keep_at:
                continue
            if running.instance is None or running.status == "failed":
                running.keep_at = math.inf
                continue
            if running.order.writes_log:
                self._ask(running, running.flush(now))
            self._ask(running, running.keep(now))
            if running.wants_chunk and self._held_by(running.instance):
                self._touched.add(name)  # until it may go on
            else:
                self._out += running.pull()
        for name in sorted(self._lacking):
            self._load_missing(name)

    def _load_missing(self, name: str) -> None:
        stream = self._streams.get(name)
        if stream is None or not stream.missing:
            self._lacking.discard(name)
            return
        for key in stream.missing:
            get = Get(key)
            if not self._requests.waits(get, stream):
                self._requests.ask(get, stream)

    # --- the store ---------------------------------------------------------------------------

    def _ask(self, running: Running, commands: Sequence[Put | Get]) -> None:
        for command in commands:
            self._requests.ask(command, running)

    def _is_there(self, owner: Running | LogStream) -> bool:
        if isinstance(owner, LogStream):
            return self._streams.get(owner.name) is owner
        return self._running.get(owner.spec.id) is owner

    def _failed(self, kind: type[Put | Get], answer: Unstored | Unloaded, now: float) -> None:
        if self._requests.failed(kind, answer.key, now):
            self.trouble, self.trouble_lasts = answer.why, answer.lasts

    def _stored(self, key: str, ref: ObjectRef | None) -> None:
        running = self._requests.answered(Put, key)
        self.trouble, self.trouble_lasts = None, False
        if isinstance(running, Running):
            self._ask(running, running.stored(key, ref))
            self._touched.add(running.spec.id)

    def _loaded(self, key: str, body: bytes | None, now: float) -> None:
        owner = self._requests.answered(Get, key)
        self.trouble, self.trouble_lasts = None, False
        if isinstance(owner, LogStream):
            self._load_segment(owner, key, body)
        elif owner is not None:
            self._ask(owner, owner.noted("load", lambda: owner.loaded(key, body), ()))
            if owner.instance is not None and owner.status == "running":
                self._started(owner)
            self._connect_inputs(now)

    def _load_segment(self, stream: LogStream, key: str, body: bytes | None) -> None:
        segment = stream.missing.get(key)
        if segment is None:
            return
        writer = self._running[self._topology.streams[stream.name].writer]
        try:
            stream.load(key, segment.decode(body))
        except SnapshotCorrupt as error:
            del stream.missing[key]
            writer.spoil(key, error)
        if stream.doubt is not None:
            writer.fail(f"{type(stream.doubt).__name__}: {stream.doubt}")

    # --- reports -----------------------------------------------------------------------------

    def is_report_due(self, now: float) -> bool:
        """Say whether there is something to report, by rule 8."""
        self._say_statuses()
        return (
            self._facts.number > self._taken_by_manager
            or self.trouble != self._said_trouble
            or not self._running
            or now < self._restless_until
            or now - self._reported_at >= SIGN_EVERY
        )

    def _say_statuses(self) -> None:
        """Make facts of the statuses that have changed."""
        for vertex, running in self._running.items():
            status = running.report()
            if self._said.get(vertex) != status:
                self._said[vertex] = status
                self._facts.say((vertex, status.incarnation, ""), None)

    def report(
        self, now: float = 0.0, address: str = "", slot: int = 0, pid: int = 0, machine: str = ""
    ) -> Report:
        """Make a report of what the manager does not have, as far as this host has heard."""
        self._say_statuses()
        self._report_number += 1
        self._reported_at, self._said_trouble = now, self.trouble
        since = self._taken_by_manager
        facts = self._facts.since(since) if since else None
        is_late = now - self._figures_at >= FIGURES_EVERY
        with_figures = facts is None or self._held or is_late
        if facts is None:
            since = 0
            reports = {vertex: r.whole_report() for vertex, r in self._running.items()}
        else:
            reports = self._changed(facts, every=with_figures)
        if with_figures:
            self._figures_at = now
            self._marked = (self._report_number, self._clock() if self._clock is not None else 0.0)
        changed = {vertex for (vertex, _, key), _ in facts or () if not key}
        return Report(
            session=self.session,
            number=self._report_number,
            epoch=self._epoch,
            address=address,
            slot=slot,
            pid=pid,
            machine=machine,
            vertices=tuple(
                self._with_figures(report) if with_figures or vertex in changed else report
                for vertex, report in reports.items()
            ),
            trouble=self.trouble,
            deaths=self._deaths,
            trouble_lasts=self.trouble_lasts,
            since=since,
            upto=self._facts.number,
            taken=self._taken,
            manager=self._manager,
        )

    def _with_figures(self, report: VertexReport) -> VertexReport:
        running = self._running[report.vertex]
        held = None if running.instance is None else self._held_by(running.instance)
        return msgspec.structs.replace(report, figures=running.figures(held))

    def _changed(
        self, facts: Sequence[tuple[FactKey, Fact]], *, every: bool
    ) -> dict[str, VertexReport]:
        """Report the instances of which there are facts (or `every` one) with these facts."""
        checkpoints: dict[str, list[Checkpoint]] = {}
        segments: dict[str, dict[str, list[Segment]]] = {}
        vertices = dict.fromkeys(self._running) if every else {}
        for (vertex, incarnation, _), fact in facts:
            if self._present(vertex, incarnation) is None:
                continue
            vertices[vertex] = None
            match fact:
                case Checkpoint():
                    checkpoints.setdefault(vertex, []).append(fact)
                case StreamSegment(stream, segment):
                    segments.setdefault(vertex, {}).setdefault(stream, []).append(segment)
        reports = {}
        for vertex in vertices:
            stored = segments.get(vertex, {})
            reports[vertex] = msgspec.structs.replace(
                self._said[vertex],
                checkpoints=tuple(checkpoints.get(vertex, ())[-KEPT_CHECKPOINTS:]),
                segments={stream: tuple(some) for stream, some in stored.items()},
            )
        return reports

    @property
    def running(self) -> Mapping[str, Running]:
        """The instances that are run, by vertex."""
        return self._running
