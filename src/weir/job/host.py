"""The host: runs instances of vertices as ordered, serves their streams, keeps them durable.

Rules
1. Orders are the whole of what to run. An instance with another incarnation than ordered is
   dropped; a new one loads its checkpoint first. Orders of an older epoch or number are ignored.
2. An input is read from the same host by hand-over, else over a connection to the first place
   that serves it; a connection that breaks is made again, to the next place, from the next row
   that is wanted. So nothing that happens to a channel reaches a vertex.
3. What pushes back: a vertex does not step while a volatile tail of it is larger than
   `tail_bytes`, nor while it is `ahead_bytes` ahead of each reader of each of its streams. So it
   never holds up one who has read all: of vertices that wait for one another in a circle one would
   have to (docs/design/0009).
4. Nothing counts before the store says so: segments and checkpoints are reported when stored.
5. What the store answers goes to the instance that asked (`requests.py`), never to its successor.
   What failed is asked again, and until then the host says that it is in trouble.
6. What it is at is noted before it is done (`poison.py`); deaths of those that were here before
   are told with every report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.errors import SnapshotCorrupt
from weir.job.messages import Orders, Report, VertexOrder
from weir.job.poison import Death, MemoryNotes, Notes
from weir.job.requests import RETRY_AFTER, Requests
from weir.job.running import HostSettings, Running
from weir.job.signals import (
    Arrived,
    BeginAnew,
    ChunkRead,
    Connect,
    Consumed,
    Deliver,
    Disconnect,
    EndSubscription,
    Get,
    HostCommand,
    HostSignal,
    Loaded,
    Lost,
    Misled,
    OrdersArrived,
    Put,
    Refused,
    SourceBehind,
    SourceFailed,
    Stored,
    Subscribed,
    Taken,
    Unloaded,
    Unstored,
    Unsubscribed,
)
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream, batch_bytes
from weir.reliable.objects import ObjectRef
from weir.runtime.instance import Instance, MakeInstance
from weir.runtime.strategies import Strategy
from weir.runtime.topology import Topology


@dataclass(slots=True)
class _Subscription:
    stream: str
    under_way: int = 0


@dataclass(slots=True)
class _Link:
    """The connection of one input."""

    address: str = ""
    connection: int = -1
    choice: int = 0
    again_at: float | None = None


class Host:
    """See the module's rules."""

    def __init__(
        self,
        session: str,
        topology: Topology,
        strategies: Mapping[str, Strategy],
        make: MakeInstance,
        settings: HostSettings,
        notes: Notes | None = None,
        deaths: Sequence[Death] = (),
    ) -> None:
        self.session = session
        self._notes, self._deaths = notes or MemoryNotes(), tuple(deaths)
        self._topology, self._strategies = topology, strategies
        self._make, self._settings = make, settings
        self._epoch = self._number = -1
        self._running: dict[str, Running] = {}
        self._streams: dict[str, LogStream] = {}
        self._links: dict[tuple[str, int], _Link] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._requests: Requests[Running | LogStream] = Requests(self._is_there)
        self._out: list[HostCommand] = []
        self._report_number = 0
        self.trouble = ""

    # --- signals -----------------------------------------------------------------------------

    def handle(self, signal: HostSignal, now: float) -> list[HostCommand]:
        """Take in what happened."""
        match signal:
            case OrdersArrived(orders):
                self._obey(orders, now)
            case Arrived(vertex, place, connection, entry):
                cursor = self._cursor(vertex, place, connection)
                if cursor is not None and not cursor.arrive(entry):
                    self._break(vertex, place, now)
            case Lost(vertex, place, connection):
                if self._cursor(vertex, place, connection) is not None:
                    self._break(vertex, place, now)
            case Misled(vertex, place, connection, why):
                cursor = self._cursor(vertex, place, connection)
                if cursor is not None:
                    self._running[vertex].fail(f"stream {cursor.stream}: {why}")
            case Subscribed(subscription, stream, seq):
                self._subscribe(subscription, stream, seq)
            case Unsubscribed(subscription):
                self._unsubscribe(subscription)
            case Taken(subscription, size):
                if subscription in self._subscriptions:
                    self._subscriptions[subscription].under_way -= size
            case ChunkRead(vertex, incarnation, chunk):
                running = self._running.get(vertex)
                if running is not None and running.order.incarnation == incarnation:
                    running.take_chunk(chunk)
            case SourceFailed(vertex, incarnation, why):
                running = self._running.get(vertex)
                if running is not None and running.order.incarnation == incarnation:
                    running.fail(why)
            case SourceBehind(vertex, incarnation, why):
                running = self._running.get(vertex)
                if running is not None and running.order.incarnation == incarnation:
                    running.fall_behind(why)
            case Stored(ref):
                self._stored(ref.key, ref, now)
            case Refused(key):
                self._stored(key, None, now)
            case Loaded(key, body):
                self._loaded(key, body, now)
            case Unstored(key, why):
                self._failed(Put, key, why, now)
            case Unloaded(key, why):
                self._failed(Get, key, why, now)
        return self._drained()

    def _drained(self) -> list[HostCommand]:
        out, self._out = [*self._out, *self._requests.ready], []
        self._requests.ready.clear()
        return out

    # --- orders ------------------------------------------------------------------------------

    def _obey(self, orders: Orders, now: float) -> None:
        if orders.session != self.session or orders.epoch < self._epoch:
            return
        if orders.epoch == self._epoch and orders.number <= self._number:
            return
        if orders.stop:
            self._out.append(BeginAnew(orders.over))
            for vertex in list(self._running):
                self._drop(vertex)
            return
        self._epoch, self._number = orders.epoch, orders.number
        wanted = {order.vertex: order for order in orders.vertices}
        for vertex, running in list(self._running.items()):
            order = wanted.get(vertex)
            if order is None or order.incarnation != running.order.incarnation:
                self._drop(vertex)
        for order in orders.vertices:
            if order.vertex not in self._running:
                self._begin(order, now)
            running = self._running[order.vertex]
            if running.instance is not None and running.order.pieces != order.pieces:
                running.instance.watch(self._notes.see, order.pieces)
            running.order = order
            running.check_floors()
        for order in orders.vertices:
            self._apply(order)
        self._link_inputs(now)
        for running in self._running.values():
            running.asked, running.record = orders.checkpoint, orders.record

    def _begin(self, order: VertexOrder, now: float) -> None:
        running = Running(
            self._topology.vertices[order.vertex],
            order,
            self._strategies[order.vertex],
            self._make,
            self._settings,
            now,
            self._notes,
        )
        self._running[order.vertex] = running
        self._ask(running, running.noted("load", running.begin, ()))
        if running.instance is not None:
            self._started(running)

    def _started(self, running: Running) -> None:
        """The instance is there: its streams can be read, its inputs connected."""
        assert running.instance is not None
        running.instance.watch(self._notes.see, running.order.pieces)
        running.check_floors()
        for name, stream in running.instance.streams.items():
            self._streams[name] = stream
        self._apply(running.order)

    def _apply(self, order: VertexOrder) -> None:
        for name, seq in order.collect.items():
            if name in self._streams:
                self._streams[name].learn(order.segments.get(name, ()))
                self._streams[name].collect(seq)

    def _drop(self, vertex: str) -> None:
        running = self._running.pop(vertex)
        if running.instance is None:
            return
        for place, cursor in enumerate(running.instance.cursors):
            cursor.detach()
            if self._links.pop((vertex, place), None) is not None:
                self._out.append(Disconnect(vertex, place))
        for name in running.instance.streams:
            del self._streams[name]
            for other in self._running.values():
                for cursor in other.instance.cursors if other.instance is not None else ():
                    if cursor.near is not None and cursor.stream == name:
                        cursor.detach()
            for key, subscription in list(self._subscriptions.items()):
                if subscription.stream == name:
                    del self._subscriptions[key]
                    self._out.append(EndSubscription(key))

    # --- inputs ------------------------------------------------------------------------------

    def _link_inputs(self, now: float) -> None:
        """Attach or connect every input that is not."""
        for vertex, running in self._running.items():
            if running.instance is None or running.status != "running":
                continue
            for place, cursor in enumerate(running.instance.cursors):
                self._link_input(vertex, place, cursor, running.order, now)

    def _link_input(
        self, vertex: str, place: int, cursor: Cursor, order: VertexOrder, now: float
    ) -> None:
        near = self._streams.get(cursor.stream)
        if near is not None:
            if cursor.near is not near:
                if self._links.pop((vertex, place), None) is not None:
                    self._out.append(Disconnect(vertex, place))
                cursor.detach()
                if cursor.position < near.collected:
                    self._running[vertex].status = "behind"
                else:
                    cursor.attach(near)
            return
        places = order.inputs.get(cursor.stream, ())
        link = self._links.setdefault((vertex, place), _Link())
        addresses = [p.address for p in places]
        rewound = cursor.connection != link.connection
        if link.address and (rewound or link.address not in addresses):
            # Whoever served it is gone: what came over the connection stays.
            link.address = ""
            cursor.reconnect()
            self._out.append(Disconnect(vertex, place))
        if link.address or not addresses or (link.again_at is not None and now < link.again_at):
            return
        link.address, link.again_at = addresses[link.choice % len(addresses)], None
        link.connection = cursor.reconnect()
        self._out.append(
            Connect(vertex, place, link.connection, link.address, cursor.stream, cursor.wanted)
        )

    def _cursor(self, vertex: str, place: int, connection: int) -> Cursor | None:
        """The cursor, if this is its present connection."""
        running = self._running.get(vertex)
        if running is None or running.instance is None:
            return None
        cursor = running.instance.cursors[place]
        return cursor if cursor.connection == connection and cursor.near is None else None

    def _break(self, vertex: str, place: int, now: float) -> None:
        link = self._links.setdefault((vertex, place), _Link())
        running = self._running[vertex]
        assert running.instance is not None
        running.instance.cursors[place].reconnect()
        self._out.append(Disconnect(vertex, place))
        others = len(running.order.inputs.get(running.instance.cursors[place].stream, ()))
        # Another copy is tried at once; the same one after a while.
        link.address, link.choice = "", link.choice + 1
        link.again_at = now + (RETRY_AFTER if others < 2 else 0)

    # --- subscribers -------------------------------------------------------------------------

    def _subscribe(self, subscription: str, stream: str, seq: int) -> None:
        log = self._streams.get(stream)
        if log is None or seq < log.collected:
            self._out.append(EndSubscription(subscription))
            return
        log.register(subscription, seq)
        self._subscriptions[subscription] = _Subscription(stream)

    def _unsubscribe(self, subscription: str) -> None:
        found = self._subscriptions.pop(subscription, None)
        if found is not None and found.stream in self._streams:
            self._streams[found.stream].unregister(subscription)

    def _serve(self) -> bool:
        served = False
        for key, subscription in list(self._subscriptions.items()):
            log = self._streams[subscription.stream]
            if log.position(key) < log.collected:
                # A copy that fell behind another; the manager tells it so.
                self._unsubscribe(key)
                self._out.append(EndSubscription(key))
                continue
            while subscription.under_way < self._settings.window_bytes:
                entry = log.read_next(key)
                if entry is None:
                    break
                served = True
                subscription.under_way += batch_bytes(entry.rows) + 1
                self._out.append(Deliver(key, entry))
        return served

    # --- work --------------------------------------------------------------------------------

    def work(self, now: float, *, vertex: str | None = None) -> tuple[bool, list[HostCommand]]:
        """Let every vertex (or this one) take a step; whether there was anything to do."""
        self._requests.retry(now)
        self._link_inputs(now)
        progressed = False
        for name, running in list(self._running.items()):
            if vertex is None or name == vertex:
                progressed |= self._step(running)
        progressed |= self._serve()
        self._keep(now)
        return progressed, self._drained()

    def _step(self, running: Running) -> bool:
        instance = running.instance
        if instance is None or running.status != "running" or self._is_full(instance):
            return False
        if any(stream.doubt is not None for stream in instance.streams.values()):
            return False  # it fails as soon as the store tells the row
        before = [c.queued_bytes for c in instance.cursors]
        progressed = running.noted("step", instance.work, None)
        if progressed is None:
            return False
        for place, cursor in enumerate(instance.cursors):
            taken = before[place] - cursor.queued_bytes
            if taken > 0:
                consumed = Consumed(instance.spec.id, place, cursor.connection, taken)
                self._out.append(consumed)
        return progressed

    def _is_full(self, instance: Instance) -> bool:
        limit = self._settings.tail_bytes
        if any(
            s.held_bytes > limit and s.volatile_bytes > limit for s in instance.streams.values()
        ):
            return True
        written = [instance.streams[s] for o in instance.spec.outlets for s in o.streams]
        return bool(written) and all(s.is_ahead(self._settings.ahead_bytes) for s in written)

    def _keep(self, now: float) -> None:
        """Write segments, checkpoints and commits that are due; ask sources for more."""
        for running in self._running.values():
            if running.instance is None or running.status == "failed":
                continue
            if running.order.writes_log:
                self._ask(running, running.flush(now))
            self._ask(running, running.keep(now))
            if not self._is_full(running.instance):
                self._out += running.pull()
        for stream in self._streams.values():
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

    def _failed(self, kind: type[Put] | type[Get], key: str, why: str, now: float) -> None:
        if self._requests.failed(kind, key, now):
            self.trouble = why

    def _stored(self, key: str, ref: ObjectRef | None, now: float) -> None:
        running = self._requests.answered(Put, key)
        self.trouble = ""
        if isinstance(running, Running):
            self._ask(running, running.stored(key, ref, now))

    def _loaded(self, key: str, body: bytes | None, now: float) -> None:
        owner = self._requests.answered(Get, key)
        self.trouble = ""
        if isinstance(owner, LogStream):
            self._load_segment(owner, key, body)
        elif owner is not None:
            self._ask(owner, owner.noted("load", lambda: owner.loaded(key, body, now), ()))
            if owner.instance is not None and owner.status == "running":
                self._started(owner)
            self._link_inputs(now)

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

    def report(self, address: str = "", slot: int = 0, pid: int = 0, machine: str = "") -> Report:
        """The whole state."""
        self._report_number += 1
        vertices = tuple(r.report() for r in self._running.values())
        return Report(
            self.session,
            self._report_number,
            self._epoch,
            address,
            slot,
            pid,
            machine,
            vertices,
            self.trouble,
            deaths=self._deaths,
        )

    @property
    def running(self) -> Mapping[str, Running]:
        return self._running
