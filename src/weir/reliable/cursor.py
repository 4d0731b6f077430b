"""The reading end of a stream in a live vertex: near (a hand-over) or far (a connection).

Rules
1. A cursor hands each row on once, in order of number, whatever a connection brings: it drops what
   an entry covers that came before, and refuses an entry after a gap: `arrive` returns False, and
   the stream must be read again from `wanted` on. What an entry covers counts, not which rows it
   has: rows of other views are no gap.
2. A cursor that is attached to a stream of the same host reads that stream directly. Otherwise
   entries arrive over a connection and wait in a queue; whoever sends them is held back by credit,
   of which `queued_bytes` are not given back yet.
3. `register` rewinds: the queue is emptied, and the cursor gets a new `connection` number, by which
   the host refuses what an older connection still brings. No two connections in a process have one
   number, so the cursor of a vertex's next instance cannot take its predecessor's entries.
4. Entries that wait are handed over as one, up to about `STEP_ROWS` rows: cuts change nothing, and
   a vertex that is behind catches up in larger steps.
5. Each entry comes with the bytes of credit that were spent on it. They count as queued until the
   entry is handed on, or dropped because all its rows came before (then they were spent before).
6. `has_news` is set whenever there may be something to read, and cleared only when nothing was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import count
from math import ceil

from weir.events.batch import START
from weir.reliable.log import LogStream, batch_bytes
from weir.reliable.stream import Entry, joined
from weir.reliable.views import View

STEP_ROWS = 65_536
_numbers = count(1)


class Cursor:
    """A cursor reads one input of a live vertex, from the same host or over a connection."""

    def __init__(self, stream: str, reader: Hashable, view: View | None = None) -> None:
        self.stream, self.reader, self.view = stream, reader, view
        self.position = 0
        """The number up to which all was handed on."""
        self.count = 0
        """How many rows were handed on."""
        self.cti = START
        """The last claim that was handed on."""
        self._claimed = START
        """The last claim that arrived over a connection."""
        self.connection = next(_numbers)
        """The number of the present connection; see rule 3."""
        self.queued_bytes = 0
        """The size of what has arrived and was not handed on yet."""
        self.on_read: Callable[[Cursor, Entry], None] | None = None
        """Is shown every entry right before it is handed on; the simulator's witness."""
        self.on_news: Callable[[int], None] | None = None
        """Is told that there may be something to read, and how many rows came."""
        self.has_news = True
        """Whether there may be something to read; see rule 6."""
        self._queue: deque[tuple[Entry, int]] = deque()
        """The entries that have arrived, in order of number, and the credit spent on each."""
        self._next_number = 0
        self._near: LogStream | None = None

    @property
    def wanted(self) -> int:
        """The number up to which all has arrived."""
        return self._next_number

    @property
    def newest(self) -> int:
        """The last claim that can be read, or was read."""
        return max(self.cti, self._claimed if self._near is None else self._near.cti)

    @property
    def near(self) -> LogStream | None:
        """The stream of the same host that it is attached to, if it is."""
        return self._near

    def attach(self, stream: LogStream) -> None:
        """Read from now on directly from this stream of the same host."""
        self._reset()
        self._near = stream
        stream.register(self.reader, self.position, self.view)
        stream.watch(self.reader, self._tell)
        share = 1.0 if self.view is None else self.view.share
        self._tell(ceil(max(stream.end - self.position, 0) * share))

    def detach(self) -> None:
        """Stop reading directly from a stream of the same host."""
        if self._near is not None:
            self._near.unregister(self.reader)
            self._near = None
            self._reset()

    def register(self, reader: Hashable, seq: int) -> None:
        """Rewind to this row; see rule 3."""
        self.position, self.cti = seq, START
        self._reset()
        if self._near is not None:
            self._near.register(self.reader, seq, self.view)
        self._tell(0)

    def _tell(self, rows: int) -> None:
        self.has_news = True
        if self.on_news is not None:
            self.on_news(rows)

    def reconnect(self) -> int:
        """Begin a new connection and return its number; only what comes over it counts now."""
        self.connection = next(_numbers)
        self._next_number = self._queue[-1][0].end if self._queue else self.position
        return self.connection

    def _reset(self) -> None:
        self._queue.clear()
        self.queued_bytes, self._claimed = 0, START
        self.connection = next(_numbers)
        self._next_number = self.position

    def arrive(self, entry: Entry, size: int | None = None) -> bool:
        """Take an entry from the present connection, for which so many bytes of credit were spent
        (None: the bytes of its rows); False when something before it is missing."""
        if entry.seq > self._next_number:
            return False
        new = entry.since(self._next_number)
        if not len(new.rows):
            size = 0
        elif size is None:
            size = batch_bytes(entry.rows)
        self._enqueue(new, size)
        self._next_number = new.end
        self._claimed = max(self._claimed, entry.cti)
        self.queued_bytes += size
        self._tell(len(new.rows))
        return True

    def _enqueue(self, entry: Entry, size: int) -> None:
        """Let an entry wait; a claim waits with what came before it."""
        if not len(entry.rows) and self._queue:
            last, spent = self._queue[-1]
            self._queue[-1] = joined([last, entry]), spent
        else:
            self._queue.append((entry, size))

    def read_next(self, reader: Hashable) -> Entry | None:
        """Hand on what waits, as one entry; None when nothing does."""
        entries: list[Entry] = []
        count = 0
        while count < STEP_ROWS and (entry := self._take()) is not None:
            entries.append(entry)
            count += len(entry.rows)
        if count < STEP_ROWS:
            self.has_news = False
        if not entries:
            return None
        entry = joined(entries)
        self.cti = max(self.cti, entry.cti)
        entry = replace(entry, cti=self.cti)
        if self.on_read is not None:
            self.on_read(self, entry)
        self.position = entry.end
        self.count += len(entry.rows)
        return entry

    def _take(self) -> Entry | None:
        if self._near is not None:
            return self._near.read_next(self.reader)
        if not self._queue:
            return None
        entry, size = self._queue.popleft()
        self.queued_bytes -= size
        return entry
