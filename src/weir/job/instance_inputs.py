"""The inputs of a host's instances: read from the same host, or over connections.

Rules
1. An instance reads an input whose writer runs on the same host by hand-over, else over a
   connection to the first instance that serves the stream. Entries that came over a connection
   still count when the connection is given up.
2. When a connection breaks, a new one is made to the next instance that serves the stream, from the
   next row that is wanted. So the vertex never notices what happens to a channel.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.job.messages import VertexOrder
from weir.job.signals import Connect, Disconnect, HostCommand
from weir.job.store_requests import RETRY_AFTER
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream


@dataclass(slots=True)
class _Link:
    """The connection of one input."""

    address: str = ""
    """The address that it leads to; empty: there is no connection."""
    connection: int = -1
    """Its number; see `Cursor.connection`."""
    choice: int = 0
    """Grows with every connection that breaks: it selects the next of the addresses."""
    again_at: float | None = None
    """When to connect again, if that must wait."""


class Links:
    """Keeps the connections of all inputs, by vertex and input."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, int], _Link] = {}

    def attach(
        self, vertex: str, input: int, cursor: Cursor, near: LogStream
    ) -> tuple[bool, list[HostCommand]]:
        """Let an input be read by hand-over; False when rows that it needs are collected."""
        if cursor.near is near:
            return True, []
        commands = self.drop(vertex, input)
        cursor.detach()
        if cursor.position < near.collected:
            return False, commands
        cursor.attach(near)
        return True, commands

    def connect(
        self, vertex: str, input: int, cursor: Cursor, order: VertexOrder, now: float
    ) -> list[HostCommand]:
        """Connect an input to an instance that serves its stream, unless it is connected."""
        commands: list[HostCommand] = []
        link = self._links.setdefault((vertex, input), _Link())
        addresses = [p.address for p in order.inputs.get(cursor.stream, ())]
        rewound = cursor.connection != link.connection
        if link.address and (rewound or link.address not in addresses):
            # Whoever served it is gone.
            link.address = ""
            cursor.reconnect()
            commands.append(Disconnect(vertex, input))
        if link.address or not addresses or (link.again_at is not None and now < link.again_at):
            return commands
        link.address, link.again_at = addresses[link.choice % len(addresses)], None
        link.connection = cursor.reconnect()
        commands.append(
            Connect(vertex, input, link.connection, link.address, cursor.stream, cursor.wanted)
        )
        return commands

    def break_off(
        self, vertex: str, input: int, cursor: Cursor, order: VertexOrder, now: float
    ) -> list[HostCommand]:
        """Give up a connection. `connect` then tries the next instance that serves the stream: at
        once if there are several, else after a while."""
        link = self._links.setdefault((vertex, input), _Link())
        cursor.reconnect()
        others = len(order.inputs.get(cursor.stream, ()))
        link.address, link.choice = "", link.choice + 1
        link.again_at = now + (RETRY_AFTER if others < 2 else 0)
        return [Disconnect(vertex, input)]

    def drop(self, vertex: str, input: int) -> list[HostCommand]:
        """Forget the connection of an input, if it has one."""
        link = self._links.pop((vertex, input), None)
        return [] if link is None else [Disconnect(vertex, input)]
