"""Serves a host's streams to other hosts: a subscriber gets entries while it has credit.

Rules
1. If a stream is not on this host, or the rows that a subscriber asks for are collected, or no
   reader of the stream has the view that it asks for, the host ends the subscription, and the
   reader tries another host.
2. At most about `send_buffer` bytes are under way to one subscriber; what has been sent makes room
   for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir.job.signals import Deliver, EndSubscription, HostCommand
from weir.reliable.log import LogStream, batch_bytes
from weir.reliable.views import View


@dataclass(slots=True)
class _Subscription:
    """One subscriber: the stream that it reads, and the bytes that are under way to it."""

    stream: str
    under_way: int = 0


class Subscribers:
    """Keeps which stream of this host each subscriber reads."""

    def __init__(self, streams: Mapping[str, LogStream], send_buffer: int) -> None:
        """`streams` are those that the host has now, by name."""
        self._streams, self._send_buffer = streams, send_buffer
        self._subscriptions: dict[str, _Subscription] = {}

    def add(
        self, subscription: str, stream: str, seq: int, view: View | None = None
    ) -> list[HostCommand]:
        """Serve a stream, or a view of it, from this number on, or end the subscription at once."""
        log = self._streams.get(stream)
        if log is None or seq < log.collected or not log.has_view(view):
            return [EndSubscription(subscription)]
        log.register(subscription, seq, view)
        self._subscriptions[subscription] = _Subscription(stream)
        return []

    def remove(self, subscription: str) -> None:
        """Forget a subscriber, which reads no longer."""
        removed = self._subscriptions.pop(subscription, None)
        if removed is not None and removed.stream in self._streams:
            self._streams[removed.stream].unregister(subscription)

    def taken(self, subscription: str, size: int) -> None:
        """Take in that so many bytes were sent to a subscriber."""
        if subscription in self._subscriptions:
            self._subscriptions[subscription].under_way -= size

    def end(self, stream: str) -> list[HostCommand]:
        """End the subscriptions of a stream that is no longer on this host."""
        ended = [key for key, served in self._subscriptions.items() if served.stream == stream]
        for key in ended:
            del self._subscriptions[key]
        return [EndSubscription(key) for key in ended]

    def serve(self) -> tuple[bool, list[HostCommand]]:
        """Deliver what there is credit for; say whether there was anything to deliver."""
        commands: list[HostCommand] = []
        served = False
        for key, subscription in list(self._subscriptions.items()):
            log = self._streams[subscription.stream]
            if log.position(key) < log.collected:
                # The reader fell behind another instance of its vertex; the manager tells it so.
                self.remove(key)
                commands.append(EndSubscription(key))
                continue
            while subscription.under_way < self._send_buffer:
                entry = log.read_next(key)
                if entry is None:
                    break
                served = True
                subscription.under_way += batch_bytes(entry.rows) + 1
                commands.append(Deliver(key, entry))
        return served, commands
