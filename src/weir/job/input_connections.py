"""The inputs of a host's instances: read from the same host, or over connections.

Rules
1. An instance reads an input whose writer runs on the same host by hand-over, else over a
   connection to the first instance that serves the stream. Entries that came over a connection
   still count when the connection is given up.
2. When a connection breaks, a new one is made to the next instance that serves the stream, from
   the next row that is wanted. So the vertex never notices what happens to a channel.
3. An input takes `window` bytes that its vertex has not read. The credit of a new connection is
   that less what waits already (which the last piece may have made more than the window). What the
   vertex reads is given back to the present connection. So credit and what waits are together the
   window, whatever connections break. Rows for which there was no credit fail the instance.
4. Only inputs that are not connected, or that an order or the end of a stream may have changed, are
   looked at (`again`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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


def window_of(inputs: int, send_buffer: int) -> int:
    """Say how many bytes each of so many inputs of a vertex takes before they are read.

    >>> window_of(2, 4 << 20) == 4 << 20, window_of(100, 4 << 20), window_of(1000, 4 << 20)
    (True, 671088, 262144)
    """
    return max(min(send_buffer, VERTEX_BYTES // max(inputs, 1)), min(send_buffer, LEAST_WINDOW))


VERTEX_BYTES, LEAST_WINDOW = 64 << 20, 256 << 10
"""What may wait for one vertex, if its inputs are not so many that each takes the least."""


class InputConnections:
    """Keeps the connections of all inputs, by vertex and input."""

    def __init__(self, send_buffer: int) -> None:
        self._send_buffer = send_buffer
        self._connections: dict[tuple[str, int], _InputConnection] = {}
        self._again: dict[tuple[str, int], None] = {}
        """The inputs to look at, by rule 4."""

    def look_again(self, vertex: str, inputs: Iterable[int]) -> None:
        """Look at these inputs of a vertex with the next `due`."""
        self._again.update(((vertex, input), None) for input in inputs)

    def due(self, now: float) -> list[tuple[str, int]]:
        """Take the inputs to look at now."""
        if not self._again:
            return []
        due = [key for key in self._again if self._may_connect(key, now)]
        for key in due:
            del self._again[key]
        return due

    def _may_connect(self, key: tuple[str, int], now: float) -> bool:
        connection = self._connections.get(key)
        again_at = None if connection is None else connection.again_at
        return again_at is None or now >= again_at

    @property
    def next_due(self) -> float:
        """When there is something to do again, if nothing happens."""
        waiting = (self._connections[key] for key in self._again if key in self._connections)
        return min((c.again_at for c in waiting if c.again_at is not None), default=math.inf)

    def window(self, inputs: int) -> int:
        """Say how many bytes wait at most for each of so many inputs of a vertex."""
        return window_of(inputs, self._send_buffer)

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
        self, vertex: str, input: int, cursor: Cursor, order: VertexOrder, window: int
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
            commands.append(Disconnect(vertex, input, connection.number))
        if connection.address is not None or not addresses:
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
                credit=window - cursor.queued_bytes,
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
        self.look_again(vertex, (input,))
        return [Disconnect(vertex, input, connection.number)]

    def drop(self, vertex: str, input: int) -> list[HostCommand]:
        """Forget the connection of an input, if it has one."""
        connection = self._connections.pop((vertex, input), None)
        if connection is None or connection.address is None:
            return []
        return [Disconnect(vertex, input, connection.number)]
