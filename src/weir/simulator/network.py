"""The network of a simulated world: control messages, and channels between hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weir.events.batch import empty_batch
from weir.job.signals import (
    Arrived,
    Connect,
    Deliver,
    Lost,
    MakeRoom,
    Subscribed,
    Taken,
    Unsubscribed,
)
from weir.simulator.processes import SimulatedHost

if TYPE_CHECKING:
    from weir.simulator.world import World


@dataclass(slots=True)
class SimulatedChannel:
    """A connection from the input of a vertex to a host that serves its stream."""

    reader: SimulatedHost
    vertex: str
    input: int
    connection: int
    server: SimulatedHost
    open: bool = True
    last_at: float = 0.0
    """When the last entry that was sent arrives: entries do not overtake one another."""


class Network:
    """Carries control messages, and the entries of channels between hosts."""

    def __init__(self, world: World) -> None:
        self._world, self._time = world, world.time
        self._channels: dict[str, SimulatedChannel] = {}

    def send(self, host: SimulatedHost, deliver: Callable[[], None]) -> None:
        """Send a control message to or from a host: it comes late, never, or twice."""
        if host.cut_until > self._time.now or self._time.happens(self._time.faults.lose):
            return
        self._time.after(self._time.delay(), deliver)
        if self._time.happens(self._time.faults.double):
            self._time.after(self._time.delay(), deliver)

    def connect(self, reader: SimulatedHost, command: Connect) -> None:
        if reader.dead:
            return
        server = self._world.hosts.of_session(command.address)
        now, time = self._time.now, self._time
        if server is None or reader.cut_until > now or server.cut_until > now:
            lost = Lost(command.vertex, command.input, command.connection)
            time.after(time.delay(), lambda: self._world.hosts.tell(reader, lost))
            return
        key = f"{reader.machine.session}/{command.connection}"
        self._channels[key] = SimulatedChannel(
            reader=reader,
            vertex=command.vertex,
            input=command.input,
            connection=command.connection,
            server=server,
        )
        subscribed = Subscribed(
            key,
            stream=command.stream,
            seq=command.seq,
            credit=command.credit,
            view=command.view,
        )
        self._world.hosts.tell(server, subscribed)

    def disconnect(self, reader: SimulatedHost, connection: int) -> None:
        self.cut(f"{reader.machine.session}/{connection}")

    def make_room(self, reader: SimulatedHost, room: MakeRoom) -> None:
        """Bring credit back to the writer, unless the connection is gone."""
        key = f"{reader.machine.session}/{room.connection}"
        channel = self._channels.get(key)
        if channel is None:
            return

        def arrive() -> None:
            if channel.open:
                self._world.hosts.tell(channel.server, Taken(key, room.size))

        self._time.after(self._time.delay(), arrive)

    def _break(self, channel: SimulatedChannel) -> None:
        """Break the connection of two hosts, and so all channels from the one to the other."""
        ends = {channel.reader.machine.session, channel.server.machine.session}
        for key, other in list(self._channels.items()):
            if {other.reader.machine.session, other.server.machine.session} == ends:
                self.cut(key)

    def cut_off(self, host: SimulatedHost) -> None:
        for key, channel in list(self._channels.items()):
            if channel.reader is host or channel.server is host:
                self.cut(key)

    def cut(self, key: str) -> None:
        channel = self._channels.pop(key, None)
        if channel is None:
            return
        channel.open = False
        hosts, time = self._world.hosts, self._time
        lost = Lost(channel.vertex, channel.input, channel.connection)
        time.after(time.delay(), lambda: hosts.tell(channel.reader, lost))
        time.after(time.delay(), lambda: hosts.tell(channel.server, Unsubscribed(key)))

    def deliver(self, delivery: Deliver) -> None:
        key, entry, time = delivery.subscription, delivery.entry, self._time
        channel = self._channels.get(key)
        if channel is None:
            return
        if time.happens(time.faults.lose / 10):
            self._break(channel)
            return
        if not len(entry.rows):  # as on a real channel: a mere claim has no columns
            entry = replace(entry, rows=empty_batch(()))

        def arrive() -> None:
            if channel.open:
                arrived = Arrived(
                    vertex=channel.vertex,
                    input=channel.input,
                    connection=channel.connection,
                    entry=entry,
                    size=delivery.size,
                )
                self._world.hosts.tell(channel.reader, arrived)

        at = time.now + time.delay()
        if not time.happens(time.faults.reorder):
            at = channel.last_at = max(at, channel.last_at + 1e-9)
        time.after(at - time.now, arrive)
        if time.happens(time.faults.double):
            time.after(time.delay(), arrive)
