"""Serves a host's streams to other hosts: each subscriber gets rows while it has credit.

Rules
1. If a stream is not on this host, or the rows that a subscriber asks for are collected, the host
   ends the subscription, and the reader tries another host.
2. Credit belongs to one subscription. It is counted in bytes of rows, spent when rows are
   delivered, and given back when the vertex that reads them has done so. So a reader that does not
   read holds up no other one, and what it makes a host keep is bounded.
3. Rows are delivered while there is credit, in pieces of about `PIECE_BYTES`: the last piece may
   spend more than there is. So other entries need not wait long for a large one.
4. A claim needs no credit, and is delivered after the rows that were written before it: it waits
   with them. Of several claims at one number, only the last is delivered.
5. Only subscriptions with something new, or with new credit, are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from weir.events.batch import START
from weir.job.signals import Deliver, EndSubscription, HostCommand
from weir.reliable.log import LogStream, batch_bytes
from weir.reliable.stream import Entry

PIECE_BYTES = 256 << 10


@dataclass(slots=True)
class _Subscription:
    """One subscriber: the stream that it reads, and how many more bytes it takes."""

    stream: str
    credit: int
    rest: Entry | None = None
    """What was read from the stream and is not delivered yet."""


class Subscribers:
    """Keeps which stream of this host each subscriber reads."""

    def __init__(self, streams: Mapping[str, LogStream]) -> None:
        """`streams` are those that the host has now, by name."""
        self._streams = streams
        self._subscriptions: dict[str, _Subscription] = {}
        self._readers: dict[str, set[str]] = {}
        """The subscriptions of each stream that has any."""
        self._ready: dict[str, None] = {}
        """The subscriptions to look at, by rule 5, in the order in which they became so."""

    def add(self, subscription: str, stream: str, seq: int, credit: int) -> list[HostCommand]:
        """Serve a stream from this row on, or end the subscription at once."""
        log = self._streams.get(stream)
        if log is None or seq < log.collected:
            return [EndSubscription(subscription)]
        log.register(subscription, seq)
        log.watch(subscription, partial(self._note, subscription))
        self._subscriptions[subscription] = _Subscription(stream, credit)
        self._readers.setdefault(stream, set()).add(subscription)
        self._note(subscription)
        return []

    def _note(self, subscription: str, rows: int = 0) -> None:
        self._ready[subscription] = None

    def remove(self, subscription: str) -> None:
        """Forget a subscriber, which reads no longer."""
        removed = self._subscriptions.pop(subscription, None)
        if removed is None:
            return
        self._readers[removed.stream].discard(subscription)
        if removed.stream in self._streams:
            self._streams[removed.stream].unregister(subscription)

    def taken(self, subscription: str, size: int) -> None:
        """Take in that a subscriber has read so many bytes."""
        if subscription in self._subscriptions:
            self._subscriptions[subscription].credit += size
            self._note(subscription)

    def end(self, stream: str) -> list[HostCommand]:
        """End the subscriptions of a stream that is no longer on this host."""
        ended = sorted(self._readers.pop(stream, ()))
        for key in ended:
            del self._subscriptions[key]
        return [EndSubscription(key) for key in ended]

    def collected(self, stream: str) -> None:
        """Take in that rows of a stream were collected: see whether a subscriber needs them."""
        for subscription in self._readers.get(stream, ()):
            self._note(subscription)

    def serve(self) -> tuple[bool, list[HostCommand]]:
        """Deliver what there is credit for; say whether there was anything to deliver."""
        commands: list[HostCommand] = []
        ready, self._ready = self._ready, {}
        for key in ready:
            subscription = self._subscriptions.get(key)
            if subscription is None:
                continue
            log = self._streams[subscription.stream]
            if log.position(key) < log.collected:
                # The reader fell behind another instance of its vertex; the manager tells it so.
                self.remove(key)
                commands.append(EndSubscription(key))
            else:
                commands += _deliveries(key, subscription, log)
        return bool(commands), commands


def _deliveries(key: str, subscription: _Subscription, log: LogStream) -> Iterable[Deliver]:
    """Take from a stream what a subscriber has credit for."""
    last: Deliver | None = None
    for entry in _unread(key, subscription, log):
        if not len(entry.rows):
            last = _claiming(last, key, entry)
            continue
        if last is not None:
            yield last
        size = batch_bytes(entry.rows)
        subscription.credit -= size
        last = Deliver(key, entry, size)
    if last is not None:
        yield last


def _unread(key: str, subscription: _Subscription, log: LogStream) -> Iterator[Entry]:
    """Give what a subscriber has not got, in pieces, by rules 3 and 4."""
    while True:
        entry, subscription.rest = subscription.rest or log.read_next(key), None
        if entry is None:
            return
        if len(entry.rows) and subscription.credit <= 0:
            subscription.rest = entry
            return
        piece = max(len(entry.rows) * PIECE_BYTES // max(batch_bytes(entry.rows), 1), 1)
        if piece < len(entry.rows):
            subscription.rest = Entry(
                entry.seq + piece, entry.rows.slice(piece, len(entry.rows)), entry.cti
            )
            entry = Entry(entry.seq, entry.rows.slice(0, piece), START)
        yield entry


def _claiming(last: Deliver | None, key: str, claim: Entry) -> Deliver:
    """Let the entry before a claim, which is not delivered yet, carry the claim."""
    if last is None:
        return Deliver(key, claim, 0)
    return Deliver(key, Entry(last.entry.seq, last.entry.rows, claim.cti), last.size)
