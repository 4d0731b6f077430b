"""rStream: a numbered sequence of rows that writers write and readers read at their own speed.

Rules (StreamScope §3.1)
1. Rows are numbered from 0 without gaps. An entry is some rows under consecutive numbers and a
   claim, the CTI: no row after the entry has vs < cti.
2. Unique: the first write of a number wins. Rows written again are dropped; with `check`, other
   rows under the same numbers raise `DeterminismViolation`.
3. The claim of an entry counts even if its rows are dropped: it holds from any later position too.
4. Valid: a reader gets just the rows that were written, each once, in order of number.
5. Reliable: what was written stays readable until `collect(seq)` says that nobody will ask for
   a number below seq again. Registering again at an earlier number rewinds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from weir.errors import RunError
from weir.events.batch import START, Batch, concat_batches
from weir.reliable.differences import WrittenBy, other_rows
from weir.reliable.digest import OrderedChecksum
from weir.reliable.traces import Trace


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows from number `seq` on, then the claim `cti`."""

    seq: int
    rows: Batch
    cti: int

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self.seq + len(self.rows)


def joined(entries: Sequence[Entry]) -> Entry:
    """Make one entry of consecutive ones, with the largest of their claims."""
    filled = [e.rows for e in entries if len(e.rows)] or [entries[-1].rows]
    return Entry(entries[0].seq, concat_batches(filled), max(e.cti for e in entries))


class StreamWriter(Protocol):
    """A stream, as the vertex that writes it sees it."""

    def write(self, entry: Entry) -> None: ...


class StreamReader(Protocol):
    """A stream, as the vertices that read it see it."""

    def register(self, reader: Hashable, seq: int) -> None: ...
    def read_next(self, reader: Hashable) -> Entry | None: ...


class MemoryStream:
    """An rStream in memory."""

    def __init__(
        self,
        name: str = "",
        *,
        check: bool = False,
        written_by: Callable[[], WrittenBy] = WrittenBy,
        trace: Trace | None = None,
    ) -> None:
        """`check` compares rows that are written again and keeps the ordered checksum;
        `written_by` is called when a message must name the writer; `trace` is shown all rows."""
        self.name = name
        self._check, self._written_by, self._trace = check, written_by, trace
        self._entries: list[Entry] = []
        """What is held, in order."""
        self._seqs: list[int] = []
        """The first number of each entry, for search."""
        self._end = 0
        self._cti = START
        self._collected = 0
        """Nobody may ask for a row below this number."""
        self._readers: dict[Hashable, tuple[int, int]] = {}
        """For each reader the number of its next row, and the last CTI that it was given."""
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
        """The entries that are still held, in order."""
        return tuple(self._entries)

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
        self._entries.append(Entry(self._end, rows, self._cti))
        self._seqs.append(self._end)
        self._end += len(rows)
        for tell in self._watchers:
            tell()

    def watch(self, tell: Callable[[], None]) -> None:
        """Call `tell` whenever there is something new to read."""
        self._watchers.append(tell)

    def _compare(self, entry: Entry, repeated: int) -> None:
        """Raise an error if rows that are written again differ from those that are still held."""
        for kept in self._entries:
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

    def register(self, reader: Hashable, seq: int) -> None:
        if seq < self._collected:
            kept = self._collected
            raise RunError(
                f"stream {self.name}: row {seq} was collected, rows from {kept} on are kept"
            )
        if seq > self._end:
            raise RunError(f"stream {self.name}: row {seq} is not written yet")
        self._readers[reader] = (seq, START)

    def read_next(self, reader: Hashable) -> Entry | None:
        """Return the next rows and the claim after them; None when there is nothing new."""
        seq, cti = self._readers[reader]
        at = max(bisect_right(self._seqs, seq) - 1, 0)
        for entry in self._entries[at:]:
            if entry.end > seq:
                self._readers[reader] = (entry.end, entry.cti)
                if seq == entry.seq:
                    return entry
                rest = entry.rows.slice(seq - entry.seq, len(entry.rows))
                return Entry(seq, rest, entry.cti)
            if entry.end == seq and entry.cti > cti:
                self._readers[reader] = (seq, entry.cti)
                return Entry(seq, entry.rows.slice(0, 0), entry.cti)
        return None

    def position(self, reader: Hashable) -> int:
        return self._readers[reader][0]

    def collect(self, seq: int) -> None:
        """Forget the entries that lie wholly below this number."""
        keep = 0
        while keep < len(self._entries) - 1 and self._entries[keep].end <= seq:
            keep += 1
        # The last entry stays: its claim is what a reader at the end still asks for.
        if keep < len(self._entries) and self._entries[keep].end <= seq:
            last = self._entries[keep]
            self._entries[keep] = Entry(last.end, last.rows.slice(0, 0), last.cti)
            self._seqs[keep] = last.end
        del self._entries[:keep], self._seqs[:keep]
        self._collected = max(self._collected, min(seq, self._end))

    def collect_read(self) -> None:
        """Forget what every registered reader has read."""
        if self._readers:
            self.collect(min(seq for seq, _ in self._readers.values()))
