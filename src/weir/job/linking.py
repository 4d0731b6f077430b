"""The inputs of a host's instances: by hand-over from the same host, or over connections.

Rules
1. An input is read from the same host by hand-over, else over a connection to the first address
   that serves it. What came over a connection stays when it is given up.
2. A connection that breaks is made again, to the next address, from the next row that is wanted. So
   nothing that happens to a channel reaches a vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.job.messages import VertexOrder
from weir.job.requests import RETRY_AFTER
from weir.job.signals import Connect, Disconnect, HostCommand
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream


@dataclass(slots=True)
class _Link:
    """The connection of one input."""

    address: str = ""
    connection: int = -1
    choice: int = 0
    again_at: float | None = None


class Links:
    """The connections of all inputs, by vertex and input."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, int], _Link] = {}

    def attach(
        self, vertex: str, input: int, cursor: Cursor, near: LogStream
    ) -> tuple[bool, list[HostCommand]]:
        """Read an input by hand-over; False: rows that it needs are collected."""
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
        """See that an input has a connection to somebody who serves it."""
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
        """Give a connection up, and try the next address: another copy at once, the same one after
        a while."""
        link = self._links.setdefault((vertex, input), _Link())
        cursor.reconnect()
        others = len(order.inputs.get(cursor.stream, ()))
        link.address, link.choice = "", link.choice + 1
        link.again_at = now + (RETRY_AFTER if others < 2 else 0)
        return [Disconnect(vertex, input)]

    def drop(self, vertex: str, input: int) -> list[HostCommand]:
        """The input is read over a connection no longer."""
        known = self._links.pop((vertex, input), None)
        return [] if known is None else [Disconnect(vertex, input)]
