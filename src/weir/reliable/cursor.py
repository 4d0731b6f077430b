"""The reading end of a stream in a live vertex: near (a hand-over) or far (a connection).

Rules
1. A cursor hands each row on once, in order of number, whatever a connection brings: it drops what
   an entry covers that came before, and refuses an entry after a gap: `arrive` returns False, and
   the stream must be read again from `wanted` on. What an entry covers counts, not which rows it
   has: rows of other views are no gap.
2. A cursor that is attached to a stream of the same host reads that stream directly. Otherwise
   entries arrive over a connection and wait in a queue; whoever sends them is held back by
   `queued_bytes`.
3. `register` rewinds: the queue is emptied, and the cursor gets a new `connection` number, by which
   the host refuses what an older connection still brings. No two connections in a process have one
   number, so the cursor of a vertex's next instance cannot take its predecessor's entries.
4. Entries that wait are handed over as one, up to about `STEP_ROWS` rows: cuts change nothing, and
   a vertex that is behind catches up in larger steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from itertools import count

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
        self.connection = next(_numbers)
        """The number of the present connection; see rule 3."""
        self.queued_bytes = 0
        """The size of what has arrived and was not handed on yet."""
        self.on_read: Callable[[Cursor, Entry], None] | None = None
        """Is shown every entry right before it is handed on; the simulator's witness."""
        self._queue: deque[Entry] = deque()
        """The entries that have arrived, in order of number."""
        self._next_number = 0
        self._near: LogStream | None = None

    @property
    def wanted(self) -> int:
        """The number up to which all has arrived."""
        return self._next_number

    @property
    def near(self) -> LogStream | None:
        """The stream of the same host that it is attached to, if it is."""
        return self._near

    def attach(self, stream: LogStream) -> None:
        """Read from now on directly from this stream of the same host."""
        self._reset()
        self._near = stream
        stream.register(self.reader, self.position, self.view)

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

    def reconnect(self) -> int:
        """Begin a new connection and return its number; only what comes over it counts now."""
        self.connection = next(_numbers)
        self._next_number = self._queue[-1].end if self._queue else self.position
        return self.connection

    def _reset(self) -> None:
        self._queue.clear()
        self.queued_bytes = 0
        self.connection = next(_numbers)
        self._next_number = self.position

    def arrive(self, entry: Entry) -> bool:
        """Take an entry from the present connection; False when something before it is missing."""
        if entry.seq > self._next_number:
            return False
        new = entry.since(self._next_number)
        self._queue.append(new)
        self._next_number = new.end
        self.queued_bytes += batch_bytes(new.rows)
        return True

    def read_next(self, reader: Hashable) -> Entry | None:
        """Hand on what waits, as one entry; None when nothing does."""
        entries: list[Entry] = []
        count = 0
        while count < STEP_ROWS and (entry := self._take()) is not None:
            entries.append(entry)
            count += len(entry.rows)
        if not entries:
            return None
        self.cti = max(self.cti, *(e.cti for e in entries))
        entry = joined(entries, self.cti)
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
        entry = self._queue.popleft()
        self.queued_bytes -= batch_bytes(entry.rows)
        return entry
