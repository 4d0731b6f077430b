"""The rStream of runs in one process: all that was written and not collected is in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable

from weir.errors import RunError
from weir.events.batch import START
from weir.reliable.differences import WrittenBy, other_rows
from weir.reliable.digest import OrderedChecksum
from weir.reliable.stream import Entry, StreamReader
from weir.reliable.traces import Trace
from weir.reliable.views import (
    WHOLE,
    Arrangement,
    CellRange,
    HeldEntry,
    StreamLayout,
    View,
    next_entry,
)


class MemoryStream:
    """An rStream in memory."""

    def __init__(
        self,
        name: str = "",
        layout: StreamLayout = WHOLE,
        *,
        check: bool = False,
        written_by: Callable[[], WrittenBy] = WrittenBy,
        trace: Trace | None = None,
    ) -> None:
        """`layout` says which views readers have; `check` compares rows that are written again and
        keeps the ordered checksum; `written_by` is called when a message must name the writer;
        `trace` is shown all rows."""
        self.name = name
        self._check, self._written_by, self._trace = check, written_by, trace
        self._arrangement = Arrangement(layout)
        self._entries: list[HeldEntry] = []
        """What is held, in order."""
        self._seqs: list[int] = []
        """The first number of each entry, for search."""
        self._end = 0
        self._cti = START
        self._collected = 0
        """Nobody may ask for a row below this number."""
        self._readers: dict[Hashable, tuple[int, int, CellRange | None]] = {}
        """For each reader the number up to which it has read, the last CTI that it was given, and
        what it reads."""
        self._checksum = OrderedChecksum()
        self._watchers: list[Callable[[], None]] = []
        """Called whenever there is something new to read."""

    @property
    def end(self) -> int:
        """The number that the next new row will have."""
        return self._end

    @property
    def cti(self) -> int:
        return self._cti

    @property
    def ordered_checksum(self) -> str:
        """The checksum of all rows so far, in order; kept with `check`."""
        return str(self._checksum)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that are still held, in order, with all rows."""
        return tuple(e.in_order() for e in self._entries)

    def write(self, entry: Entry) -> None:
        """Append the rows of an entry that are new, and its claim; drop rows written again."""
        if entry.seq > self._end:
            raise RunError(f"stream {self.name}: row {entry.seq} written before row {self._end}")
        repeated = min(self._end - entry.seq, len(entry.rows))
        if repeated and self._check:
            self._compare(entry, repeated)
        rows = entry.rows.slice(repeated, len(entry.rows)) if repeated else entry.rows
        if not len(rows) and entry.cti <= self._cti:
            return
        if self._check:
            self._checksum.add(rows)
        if self._trace is not None:
            self._trace.add(rows)
        self._cti = max(self._cti, entry.cti)
        new = Entry(self._end, rows, self._cti)
        self._entries.append(HeldEntry.of(new, self._arrangement))
        self._seqs.append(self._end)
        self._end += len(rows)
        for tell in self._watchers:
            tell()

    def watch(self, tell: Callable[[], None]) -> None:
        """Call `tell` whenever there is something new to read."""
        self._watchers.append(tell)

    def _compare(self, entry: Entry, repeated: int) -> None:
        """Raise an error if rows that are written again differ from those that are still held."""
        for kept in self.entries:
            start, stop = max(kept.seq, entry.seq), min(kept.end, entry.seq + repeated)
            if start >= stop:
                continue
            before = kept.rows.slice(start - kept.seq, stop - kept.seq)
            now = entry.rows.slice(start - entry.seq, stop - entry.seq)
            violation = other_rows(
                stream=self.name, first=start, before=before, now=now, by=self._written_by
            )
            if violation is not None:
                raise violation

    def register(self, reader: Hashable, seq: int, view: View | None = None) -> None:
        """Let a reader read everything, or a view, from this number on."""
        if seq < self._collected:
            kept = self._collected
            raise RunError(
                f"stream {self.name}: row {seq} was collected, rows from {kept} on are kept"
            )
        if seq > self._end:
            raise RunError(f"stream {self.name}: row {seq} is not written yet")
        self._readers[reader] = (seq, START, self._arrangement.reading(view))

    def through(self, view: View | None) -> StreamReader:
        """Return the stream as who reads this view of it sees it."""
        return self if view is None else _ViewOfStream(self, view)

    def read_next(self, reader: Hashable) -> Entry | None:
        """Return the next rows and the claim after them; None when there is nothing new."""
        seq, cti, reading = self._readers[reader]
        at = max(bisect_right(self._seqs, seq) - 1, 0)
        entry = next_entry(self._entries, at, seq=seq, cti=cti, reading=reading)
        if entry is not None:
            self._readers[reader] = (entry.end, entry.cti, reading)
        return entry

    def position(self, reader: Hashable) -> int:
        return self._readers[reader][0]

    def collect(self, seq: int) -> None:
        """Forget the entries that lie wholly below this number."""
        keep = 0
        while keep < len(self._entries) - 1 and self._entries[keep].end <= seq:
            keep += 1
        # The last entry stays: its claim is what a reader at the end still asks for.
        if keep < len(self._entries) and self._entries[keep].end <= seq:
            self._entries[keep] = self._entries[keep].claim()
            self._seqs[keep] = self._entries[keep].seq
        del self._entries[:keep], self._seqs[:keep]
        self._collected = max(self._collected, min(seq, self._end))

    def collect_read(self) -> None:
        """Forget what every registered reader has read."""
        if self._readers:
            self.collect(min(seq for seq, _, _ in self._readers.values()))


class _ViewOfStream:
    """A view of a stream in memory, as its readers see it."""

    def __init__(self, stream: MemoryStream, view: View) -> None:
        self._stream, self._view = stream, view

    def register(self, reader: Hashable, seq: int) -> None:
        self._stream.register(reader, seq, self._view)

    def read_next(self, reader: Hashable) -> Entry | None:
        return self._stream.read_next(reader)
