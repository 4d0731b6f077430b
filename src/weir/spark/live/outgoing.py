"""What waits to be sent over a link: streams take turns, so that none waits long for another.

Rules
1. Words are sent before rows. Entries of one subscription are sent in their order, claims too: so a
   claim overtakes no rows.
2. A message has one entry of each subscription in turn, up to about `MESSAGE_BYTES`. Entries are
   small (`PIECE_BYTES`), so a large one keeps the others waiting for one message at most.
3. A claim joins the entry before it, if that waits still: so all that was claimed meanwhile is one.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from weir.reliable.stream import Entry, joined
from weir.spark.live.link_messages import Outgoing, Word

MESSAGE_BYTES = 256 << 10
_LEAST = 64
"""A claim counts for so many bytes."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """What one message is made of."""

    words: list[Word]
    entries: list[Outgoing]


class OutgoingQueue:
    """Holds what the host's loop puts in until a link's thread takes it, by the module's rules."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._words: list[Word] = []
        self._entries: dict[int, deque[Outgoing]] = {}
        """What waits, by subscription, in the order of the turns."""
        self._is_closed = False

    def say(self, word: Word) -> None:
        with self._changed:
            self._words.append(word)
            self._changed.notify()

    def put(self, subscription: int, entry: Entry, size: int) -> None:
        """Add an entry that spends so much credit of a subscription."""
        with self._changed:
            waiting = self._entries.setdefault(subscription, deque())
            if waiting and not len(entry.rows):
                _, last, spent = waiting[-1]
                waiting[-1] = (subscription, joined([last, entry]), spent)
            else:
                waiting.append((subscription, entry, size))
            self._changed.notify()

    def drop(self, subscription: int) -> None:
        """Forget what waits for a subscription that has ended."""
        with self._changed:
            self._entries.pop(subscription, None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def take(self, within: float) -> Outbound | None:
        """Wait for so many seconds at most, and take what the next message is made of, which may be
        nothing; None when the queue is closed and has no more words."""
        with self._changed:
            if not (self._words or self._entries or self._is_closed):
                self._changed.wait(within)
            if self._is_closed:
                self._entries.clear()
                if not self._words:
                    return None
            words, self._words = self._words, []
            entries: list[Outgoing] = []
            room = MESSAGE_BYTES
            while self._entries and room > 0:
                subscription, waiting = next(iter(self._entries.items()))
                entries.append(waiting.popleft())
                room -= max(entries[-1][2], _LEAST)
                del self._entries[subscription]
                if waiting:
                    self._entries[subscription] = waiting  # behind all others
            return Outbound(words, entries)
