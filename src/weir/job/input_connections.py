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
class _InputConnection:
    """The connection of one input."""

    address: str | None = None
    """The address that it leads to, if there is a connection."""
    number: int = -1
    """Its number; see `Cursor.connection`."""
    choice: int = 0
    """Grows with every connection that breaks: it selects the next of the addresses."""
    again_at: float | None = None
    """When to connect again, if that must wait."""


class InputConnections:
    """Keeps the connections of all inputs, by vertex and input."""

    def __init__(self) -> None:
        self._connections: dict[tuple[str, int], _InputConnection] = {}

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
        connection = self._connections.setdefault((vertex, input), _InputConnection())
        addresses = [p.address for p in order.inputs.get(cursor.stream, ())]
        rewound = cursor.connection != connection.number
        if connection.address is not None and (rewound or connection.address not in addresses):
            # Whoever served it is gone.
            connection.address = None
            cursor.reconnect()
            commands.append(Disconnect(vertex, input))
        is_early = connection.again_at is not None and now < connection.again_at
        if connection.address is not None or not addresses or is_early:
            return commands
        address = addresses[connection.choice % len(addresses)]
        connection.address, connection.again_at = address, None
        connection.number = cursor.reconnect()
        commands.append(
            Connect(
                vertex=vertex,
                input=input,
                connection=connection.number,
                address=address,
                stream=cursor.stream,
                seq=cursor.wanted,
                view=cursor.view,
            )
        )
        return commands

    def break_off(
        self, vertex: str, input: int, cursor: Cursor, order: VertexOrder, now: float
    ) -> list[HostCommand]:
        """Give up a connection. `connect` then tries the next instance that serves the stream: at
        once if there are several, else after a while."""
        connection = self._connections.setdefault((vertex, input), _InputConnection())
        cursor.reconnect()
        others = len(order.inputs.get(cursor.stream, ()))
        connection.address, connection.choice = None, connection.choice + 1
        connection.again_at = now + (RETRY_AFTER if others < 2 else 0)
        return [Disconnect(vertex, input)]

    def drop(self, vertex: str, input: int) -> list[HostCommand]:
        """Forget the connection of an input, if it has one."""
        connection = self._connections.pop((vertex, input), None)
        return [] if connection is None else [Disconnect(vertex, input)]
