"""Serves a host's streams to other hosts: each subscriber gets rows while it has credit.

Rules
1. If a stream is not on this host, or the rows that a subscriber asks for are collected, or no
   reader of the stream has the view that it asks for, the host ends the subscription, and the
   reader tries another host.
2. Credit belongs to one subscription. It is counted in bytes of rows, spent when rows are
   delivered, and given back when the vertex that reads them has done so. So a reader that does not
   read holds up no other one, and what it makes a host keep is bounded.
3. Rows are delivered while there is credit, in pieces of about `PIECE_BYTES`: the last piece may
   spend more than there is. So other entries need not wait long for a large one.
4. A claim needs no credit, and is delivered after the rows that were written before it: it waits
   with them. Of several claims at one number, only the last is delivered.
5. Only subscriptions with something new, or with new credit, are looked at.
6. A claim without rows may wait for rows, or for a later claim: the more subscribers there are to
   tell, the longer (`CLAIM_COST` seconds for each, from the host's `step_wait` to `MOST_WAIT`). So
   claims take a bounded part of a host, however many streams there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from weir.events.batch import START
from weir.job.signals import Deliver, EndSubscription, HostCommand
from weir.reliable.log import LogStream, batch_bytes
from weir.reliable.stream import Entry, joined
from weir.reliable.views import View

PIECE_BYTES = 256 << 10
CLAIM_COST, MOST_WAIT = 50e-6, 0.1
"""Seconds; see rule 6."""


@dataclass(slots=True)
class _Subscription:
    """One subscriber: the stream that it reads, and how many more bytes it takes."""

    stream: str
    credit: int
    rest: Entry | None = None
    """What was read from the stream and is not delivered yet."""


class Subscribers:
    """Keeps which stream of this host each subscriber reads."""

    def __init__(self, streams: Mapping[str, LogStream], wait: float) -> None:
        """`streams` are those that the host has now, by name; a claim waits so many seconds at
        least for something to go with."""
        self._streams, self._wait = streams, wait
        self._subscriptions: dict[str, _Subscription] = {}
        self._readers: dict[str, set[str]] = {}
        """The subscriptions of each stream that has any."""
        self._ready: dict[str, None] = {}
        """The subscriptions to look at, by rule 5, in the order in which they became so."""
        self._claimed: dict[str, None] = {}
        """Those for which there is at most a new claim."""
        self._claims_due: float | None = None
        """When these are to be told, if there are any, and that was decided."""

    def add(
        self, subscription: str, stream: str, seq: int, credit: int, view: View | None = None
    ) -> list[HostCommand]:
        """Serve a stream, or a view of it, from this number on, or end the subscription at once."""
        log = self._streams.get(stream)
        if log is None or seq < log.collected or not log.has_view(view):
            return [EndSubscription(subscription)]
        log.register(subscription, seq, view)
        log.watch(subscription, partial(self._note, subscription))
        self._subscriptions[subscription] = _Subscription(stream, credit)
        self._readers.setdefault(stream, set()).add(subscription)
        self._note(subscription)
        return []

    def _note(self, subscription: str, rows: int = 1) -> None:
        if rows:
            self._ready[subscription] = None
            self._claimed.pop(subscription, None)
        elif subscription not in self._ready:
            self._claimed[subscription] = None

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

    @property
    def next_due(self) -> float:
        """When to serve again, if nothing comes before."""
        return math.inf if self._claims_due is None else self._claims_due

    def _note_claims(self, now: float) -> None:
        """Look at the subscriptions with claims when it is time to, by rule 6."""
        if not self._claimed:
            self._claims_due = None
        elif self._claims_due is None:
            self._claims_due = now + max(
                self._wait, min(len(self._claimed) * CLAIM_COST, MOST_WAIT)
            )
        elif now >= self._claims_due:
            self._ready |= self._claimed
            self._claimed, self._claims_due = {}, None

    def serve(self, now: float) -> tuple[bool, list[HostCommand]]:
        """Deliver what there is credit for; say whether there was anything to deliver."""
        self._note_claims(now)
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
            number = entry.number_of(piece)
            subscription.rest = entry.since(number)
            entry = replace(entry.before(number), cti=START)
        yield entry


def _claiming(last: Deliver | None, key: str, claim: Entry) -> Deliver:
    """Let the entry before a claim, which is not delivered yet, carry the claim, and cover what it
    covers."""
    if last is None:
        return Deliver(key, claim, 0)
    return Deliver(key, joined([last.entry, claim]), last.size)
