"""The connections over which a host reads streams of other hosts, each in a thread of its own.

Rules
1. What comes over a connection becomes signals, at most about `RECEIVE_BYTES` ahead of the vertex
   that reads them. A connection that breaks becomes the signal `Lost`; the machine then asks for
   another.
2. A writer gives signs of life when it has no rows (`flight.py`). A connection over which nothing
   came for a while is given up: the way may be broken without a word, and nothing would ever come.
   An entry that takes longer than that on a slow way must get through in the end: so a while is
   `SILENCE` seconds at first, and twice as long each time, until an entry comes.
3. An address from which nothing came for `UNREACHED` seconds, though rows are wanted from there, is
   reported to the manager as not reached.
4. Time in which the host itself stood still, in a step that holds Python's lock say, counts as
   nobody's silence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from weir.errors import RunError
from weir.job.signals import Arrived, Connect, HostSignal, Lost, Misled
from weir.reliable.log import batch_bytes
from weir.reliable.stream import Entry
from weir.spark.live.flight import ChannelErrors, Client, Security
from weir.spark.live.message_checks import Wanted

RECEIVE_BYTES = 16 << 20
"""So many bytes may have arrived for one input that its vertex has not read yet."""
SILENCE, LONGEST_SILENCE = 4.0, 64.0
"""Seconds; see rule 2."""
UNREACHED = 6.0
"""Seconds; see rule 3."""
WATCH_EVERY = 0.5
STILL_WANTED = 2.0
"""Seconds: so long after its last connection an address counts as wanted."""

GiveSignal: TypeAlias = Callable[[HostSignal], None]
Types: TypeAlias = Sequence[pa.DataType]


@dataclass(slots=True)
class _Way:
    """The way to an address: when something came from there last (or when it was wanted first), and
    when it was last wanted."""

    heard: float
    wanted: float


class Receivers:
    """Keeps the connections of a host's inputs."""

    def __init__(
        self, security: Security, types_of: Callable[[str], Types], give: GiveSignal
    ) -> None:
        """`types_of` returns the types of a stream's columns; `give` takes the signals."""
        self._security, self._types_of, self._give = security, types_of, give
        self._receivers: dict[tuple[str, int], _Receiver] = {}
        """The connections, by vertex and input."""
        self._patience: dict[tuple[str, int], float] = {}
        """How long the next connection of an input may be silent, if that is not `SILENCE`."""
        self._ways: dict[str, _Way] = {}
        """The ways to the addresses that are wanted."""
        self._watched_at = time.monotonic()

    def connect(self, command: Connect) -> None:
        """Connect an input to a host that serves its stream."""
        key, now = (command.vertex, command.input), time.monotonic()
        self.disconnect(*key)
        way = self._ways.setdefault(command.address, _Way(now, now))
        self._receivers[key] = _Receiver(
            connect=command,
            types=self._types_of(command.stream),
            security=self._security,
            give=self._give,
            patience=self._patience.get(key, SILENCE),
            way=way,
        )

    def disconnect(self, vertex: str, input: int) -> None:
        """End the connection of an input, if it has one."""
        receiver = self._receivers.pop((vertex, input), None)
        if receiver is not None:
            receiver.close()

    def consumed(self, vertex: str, input: int, size: int) -> None:
        """Take in that a vertex has read so many bytes of an input."""
        receiver = self._receivers.get((vertex, input))
        if receiver is not None:
            receiver.consumed(size)

    def watch(self, now: float) -> None:
        """Give up the connections over which nothing came; see rule 2."""
        passed = now - self._watched_at
        if passed < WATCH_EVERY:
            return
        self._watched_at = now
        if passed > 2 * WATCH_EVERY:
            self._excuse(passed)
        for key, receiver in list(self._receivers.items()):
            receiver.way.wanted = now
            if receiver.has_entries:
                self._patience.pop(key, None)
            if receiver.is_silent(now):
                self._patience[key] = min(2 * receiver.patience, LONGEST_SILENCE)
                self.disconnect(*key)
                self._give(receiver.lost)
        self._ways = {a: w for a, w in self._ways.items() if now - w.wanted < STILL_WANTED}

    def _excuse(self, seconds: float) -> None:
        """See rule 4."""
        for receiver in self._receivers.values():
            receiver.excuse(seconds)
        for way in self._ways.values():
            way.heard += seconds
            way.wanted += seconds

    def unreached(self, now: float) -> tuple[str, ...]:
        """List the addresses of rule 3."""
        return tuple(a for a, way in self._ways.items() if now - way.heard > UNREACHED)

    def close(self) -> None:
        for receiver in self._receivers.values():
            receiver.close()


class _Receiver:
    """Receives the entries of one connection; see rule 1."""

    def __init__(
        self,
        connect: Connect,
        types: Types,
        security: Security,
        give: GiveSignal,
        patience: float,
        way: _Way,
    ) -> None:
        self._connect, self._types, self._security, self._give = connect, types, security, give
        self.patience, self.way = patience, way
        self.lost = Lost(connect.vertex, connect.input, connect.connection)
        self.has_entries = False
        """Whether an entry came."""
        self._heard: float | None = time.monotonic()
        """When something came last; None while there is no room for more."""
        self._ahead = 0
        """How many bytes have arrived that the vertex has not read yet."""
        self._changed = threading.Condition()
        self._closed = False
        self._client: Client | None = None
        threading.Thread(target=self._run, daemon=True, name="receiver").start()

    def _run(self) -> None:
        c = self._connect
        try:
            self._client = Client(c.address, self._security)
            for entry in self._client.entries(Wanted(c.stream, c.seq, c.view), self._types):
                self.way.heard = time.monotonic()
                if self._closed or (entry is not None and not self._wait_for_room(entry)):
                    return
                self._heard = time.monotonic()
                if entry is not None:
                    self.has_entries = True
                    self._give(Arrived(c.vertex, c.input, c.connection, entry))
            self.way.heard = time.monotonic()  # the stream is not served there, but who says so is
        except ChannelErrors:
            pass  # it does not matter what broke the channel: the machine connects again
        except RunError as error:
            self._give(Misled(c.vertex, c.input, c.connection, str(error)))
            return
        if not self._closed:
            self._give(self.lost)

    def _wait_for_room(self, entry: Entry) -> bool:
        """Wait until an entry may be given; False when the connection was closed."""
        self._heard = None
        with self._changed:
            while self._ahead > RECEIVE_BYTES and not self._closed:
                self._changed.wait(WATCH_EVERY)
                self.way.heard = time.monotonic()  # it is this host that does not listen
            self._ahead += batch_bytes(entry.rows)
            return not self._closed

    def is_silent(self, now: float) -> bool:
        """Say whether nothing came for longer than the patience is."""
        heard = self._heard
        return heard is not None and now - heard > self.patience

    def excuse(self, seconds: float) -> None:
        """Leave out seconds in which nobody here could hear anything."""
        heard = self._heard
        if heard is not None:
            self._heard = heard + seconds

    def consumed(self, size: int) -> None:
        """Take in that the vertex has read so many bytes."""
        with self._changed:
            self._ahead = max(0, self._ahead - size)  # some may have come over an older connection
            self._changed.notify()

    def close(self) -> None:
        """End the connection, and the thread that waits for what comes over it."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._client is not None:
            self._client.cancel()
