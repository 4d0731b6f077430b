"""The live rStream: collected prefix | durable segments | volatile tail.

Rules (StreamScope §4.2), on top of those in `stream.py`
1. Rows can be read from memory as soon as they are written. Rows that are in no segment are the
   volatile tail: they stay in memory until they are durable or collected.
2. A segment is some consecutive rows in the store. Segments touch or overlap; together they reach
   from the collected prefix to `durable`. One is written at a time, in order.
3. The stream drops durable rows from memory when all present readers have read them, or when more
   than `cache` bytes are held. When a reader asks for a row that is no longer in memory, the stream
   puts the segment that holds it into `missing`, and the host loads it.
4. A new instance of the writer begins with the segments of the old one and writes from its
   snapshot's position on. The stream drops the rows that are durable already. With `check` it
   compares them first: the checksum of a segment's rows, written again, must be the segment's. If
   it is not, the stream is in `doubt`: it takes no more rows, and asks for the segment, in which
   it finds the first row that differs.
5. A reader may wait for a number that is not written yet. A reader that asks for a collected number
   gets an error, never a gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil

import msgspec

from weir.errors import DeterminismViolation, RunError, SnapshotCorrupt
from weir.events.batch import START, Batch, concat_batches
from weir.reliable.codec import decode_entries
from weir.reliable.differences import WrittenBy, other_rows, violation_among
from weir.reliable.digest import OrderedChecksum
from weir.reliable.objects import ObjectRef
from weir.reliable.stream import Entry
from weir.reliable.views import (
    WHOLE,
    Arrangement,
    CellRange,
    HeldEntry,
    StoredEntry,
    StreamLayout,
    View,
    next_entry,
    touching,
)

SEGMENT_BYTES = 4 << 20
CACHE_BYTES = 32 << 20


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A segment is an object of the store with rows [first, end) of a stream: the claim after
    them, and their ordered checksum (empty: written without a check)."""

    ref: ObjectRef
    first: int
    end: int
    cti: int
    checksum: str

    @property
    def key(self) -> str:
        return self.ref.key

    def decode(self, body: bytes | None) -> tuple[StoredEntry, ...]:
        """Decode the segment's rows; SnapshotCorrupt when the object is not this segment."""
        entries = decode_entries(self.key, self.ref.check(body))
        reach = (entries[0].seq, entries[-1].end) if entries else None
        if reach != (self.first, self.end) or not touching(entries):
            raise SnapshotCorrupt(
                f"{self.key} does not hold the rows {self.first} to {self.end} that it should"
            )
        return entries


def batch_bytes(rows: Batch) -> int:
    """Count the bytes of some rows in memory."""
    if not len(rows):
        return 0
    payload: int = sum(c.nbytes for c in rows.columns)
    return 8 * len(rows) * (2 + len(rows.origin)) + payload


class _Repeated:
    """The rows of a segment, from its first on, that its writer has written again so far."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.rows: list[Batch] = []
        self.checksum = OrderedChecksum()

    def add(self, rows: Batch) -> None:
        self.rows.append(rows)
        self.checksum.add(rows)


class LogStream:
    """A log stream keeps the rows that a vertex writes: in memory first, then in segments."""

    def __init__(
        self,
        name: str,
        segments: Sequence[Segment] = (),
        start: int = 0,
        layout: StreamLayout = WHOLE,
        *,
        check: bool = False,
        written_by: Callable[[], WrittenBy] = WrittenBy,
        synchronous: bool = False,
        cache: int = CACHE_BYTES,
    ) -> None:
        """`segments` are those that the store holds already; `start` is the number at which the
        writer begins; `layout` says which views readers have; `written_by` is called when a message
        must name the writer; `synchronous` hides rows from readers until they are durable."""
        self.name = name
        self._cache, self._check, self._synchronous = cache, check, synchronous
        durable = segments[-1].end if segments else 0
        self._segments = list(segments) if start <= durable else []
        """The durable segments, in order; each reaches further than the one before."""
        self._collected = segments[0].first if self._segments else start
        """Nobody will ask for a row below this number."""
        self._end = max(start, durable)
        """The number that the next new row will have."""
        self._written = start
        """The number that the writer writes next: less than `_end` while it repeats itself."""
        # Not the last segment's: no entry in memory would carry it. The writer claims it again.
        self._cti = START
        self._arrangement = Arrangement(layout)
        self._entries: list[HeldEntry] = []
        """The rows in memory, in order."""
        self._seqs: list[int] = []
        """The first number of each entry, for search."""
        self._sizes: list[int] = []
        """The bytes of each entry."""
        self._held = 0
        """The bytes of all entries."""
        self._readers: dict[Hashable, tuple[int, int, CellRange | None]] = {}
        """For each reader the number up to which it has read, the last CTI that it was given, and
        what it reads."""
        self._watchers: dict[Hashable, Callable[[int], None]] = {}
        """Whom to tell, by reader, that there may be something to read."""
        self._loaded: dict[str, Sequence[HeldEntry]] = {}
        """The rows of segments that were missing, by key; the last few."""
        self._written_by = written_by
        self._repeated: _Repeated | None = None
        """The durable segment that the writer is writing again, if `check` is on."""
        self.doubt: DeterminismViolation | None = None
        """The error that other rows were written under durable numbers. It names the first such
        row as soon as that is known."""
        self.flushing: Segment | None = None
        """The segment that is being written to the store; the host sets it."""
        self.missing: dict[str, Segment] = {}
        """The segments that must be loaded before a reader can go on, by key."""
        self.on_missing: Callable[[str], None] | None = None
        """Is told the stream's name when a segment is put into `missing`."""

    # --- where it stands ---------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The number that the next new row will have."""
        return self._end

    @property
    def written(self) -> int:
        """The number that the writer writes next."""
        return self._written

    @property
    def cti(self) -> int:
        return self._cti

    @property
    def collected(self) -> int:
        """Nobody will ask for a row below this number."""
        return self._collected

    @property
    def durable(self) -> int:
        """All rows below this number are in the store, or collected."""
        return max(self._collected, self._segments[-1].end if self._segments else 0)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    @property
    def held_bytes(self) -> int:
        """The bytes of all rows in memory."""
        return self._held

    @property
    def volatile_bytes(self) -> int:
        """The bytes of the rows that are in memory only."""
        return self._bytes_from(self.durable)

    def _bytes_from(self, seq: int) -> int:
        total = 0
        for entry, size in zip(reversed(self._entries), reversed(self._sizes), strict=True):
            if entry.end <= seq:
                break
            total += size
        return total

    def is_ahead(self, most: int) -> bool:
        """Say whether even the fastest reader has more than about `most` bytes left to read: of a
        view, more than its share of that."""
        if not self._readers:
            return self._held > most and self._bytes_from(self.durable) > most
        return all(
            self._has_unread(seq, reading, most if reading is None else most * reading.share)
            for seq, _, reading in self._readers.values()
        )

    def _has_unread(self, seq: int, reading: CellRange | None, most: float) -> bool:
        """Say whether a reader that is at this number has more bytes than this left to read."""
        if self._entries and seq < self._entries[0].seq:
            return True  # not even in memory any more
        if self._held <= most or self._bytes_from(seq) <= most:
            return False
        left = 0.0
        at = max(bisect_right(self._seqs, seq) - 1, 0)
        for entry, size in zip(self._entries[at:], self._sizes[at:], strict=True):
            if entry.end > max(seq, entry.seq):
                left += size * entry.count(reading) / (entry.end - entry.seq)
                if left > most:
                    return True
        return False

    # --- writing -----------------------------------------------------------------------------

    def write(self, entry: Entry) -> None:
        """Append the rows of an entry that are new, and its claim; drop rows written again."""
        if entry.seq > self._written:
            raise RunError(f"stream {self.name}: row {entry.seq} written before {self._written}")
        repeated = min(self._end - entry.seq, len(entry.rows))
        if repeated > 0 and self._check and entry.end > self._written:
            self._compare(entry)
        self._written = max(self._written, entry.end)
        if self.doubt is not None:
            return  # what its writer makes now is made of what is wrong
        rows = entry.rows.slice(repeated, len(entry.rows)) if repeated > 0 else entry.rows
        if not len(rows) and entry.cti <= self._cti:
            return
        self._cti = max(self._cti, entry.cti)
        self._append(Entry(self._end, rows, self._cti))
        self._end += len(rows)
        self._tell(len(rows))

    def _append(self, entry: Entry) -> None:
        if self._collected > entry.seq:
            # Readers are ahead of a writer that repeats itself: nobody will ask for these.
            skip = min(self._collected, entry.end) - entry.seq
            entry = entry.since(entry.seq + skip)
        size = batch_bytes(entry.rows)
        self._entries.append(HeldEntry.of(entry, self._arrangement))
        self._seqs.append(entry.seq)
        self._sizes.append(size)
        self._held += size
        if self._held > self._cache:
            self._forget_read()

    def _compare(self, entry: Entry) -> None:
        """Compare the checksums of whole segments that are written again with those of the segments
        in the store; one that differs sets `doubt`."""
        start = max(entry.seq, self._written)
        for segment in self._segments:
            first, stop = max(start, segment.first), min(entry.end, segment.end)
            if first >= stop or not segment.checksum:
                continue
            if first == segment.first:
                self._repeated = _Repeated(segment)
            elif self._repeated is None or self._repeated.segment != segment:
                continue  # it began in the middle of this segment
            self._repeated.add(entry.rows.slice(first - entry.seq, stop - entry.seq))
            if stop == segment.end and str(self._repeated.checksum) != segment.checksum:
                self.doubt = violation_among(self.name, segment.first, stop, self._written_by())
                self._miss(segment)
                return

    def _miss(self, segment: Segment) -> None:
        self.missing[segment.key] = segment
        if self.on_missing is not None:
            self.on_missing(self.name)

    # --- durability --------------------------------------------------------------------------

    def next_segment(self, limit: int = SEGMENT_BYTES) -> tuple[HeldEntry, ...] | None:
        """Select the next rows to make durable, about `limit` bytes at most; None when there are
        none, or while another segment is being written."""
        if self.flushing is not None:
            return None
        durable, size = self.durable, 0
        entries: list[HeldEntry] = []
        at = max(bisect_right(self._seqs, durable) - 1, 0)
        for entry, bytes_ in zip(self._entries[at:], self._sizes[at:], strict=True):
            if entry.end <= durable or entry.end == entry.seq:
                continue
            if entry.seq < durable:
                entry = HeldEntry.of(entry.in_order().since(durable), self._arrangement)
            entries.append(entry)
            size += bytes_
            if size >= limit:
                break
        return tuple(entries) or None

    def flushed(self, segment: Segment) -> None:
        """Take in that the segment under way is in the store."""
        self.flushing = None
        self.learn((segment,))

    def learn(self, segments: Iterable[Segment]) -> None:
        """Take in that these segments are in the store, whichever instance wrote them."""
        for segment in segments:
            if segment.first <= self.durable < segment.end:
                self._segments.append(segment)
        self._forget_read()
        if self._synchronous:
            self._tell(1)

    def collect(self, seq: int) -> None:
        """Forget the rows below this number: nobody will ask for them again."""
        if seq <= self._collected:
            return
        self._collected = seq
        self._segments = [s for s in self._segments if s.end > seq]
        self._drop([i for i, e in enumerate(self._entries) if e.end <= seq])
        for key in [k for k in self._loaded if all(k != s.key for s in self._segments)]:
            del self._loaded[key]

    def _forget_read(self) -> None:
        """Drop from memory what rule 3 allows."""
        durable = self.durable
        read = min((seq for seq, _, _ in self._readers.values()), default=durable)
        over = self._held > self._cache
        drop = []
        for index, entry in enumerate(self._entries):
            if entry.end > durable or (entry.end > read and not over):
                break
            drop.append(index)
        self._drop(drop)

    def _drop(self, indices: Sequence[int]) -> None:
        """Drop the entries at these indices, which are the first ones. The claim of the very last
        entry stays, for readers that are at the end."""
        count = len(indices)
        if not count:
            return
        if count == len(self._entries):
            claim = self._entries[-1].claim()
            self._held -= sum(self._sizes[:count])
            self._entries = [claim]
            self._seqs, self._sizes = [claim.seq], [0]
            return
        self._held -= sum(self._sizes[:count])
        del self._entries[:count], self._seqs[:count], self._sizes[:count]

    # --- reading -----------------------------------------------------------------------------

    def has_view(self, view: View | None) -> bool:
        """Say whether readers may have this view."""
        return self._arrangement.has(view)

    def register(self, reader: Hashable, seq: int, view: View | None = None) -> None:
        """Let a reader read everything, or a view, from this number on."""
        if seq < self._collected:
            raise RunError(
                f"stream {self.name}: row {seq} was collected, rows from {self._collected} on "
                "are kept"
            )
        self._readers[reader] = (seq, START, self._arrangement.reading(view))

    def watch(self, reader: Hashable, tell: Callable[[int], None]) -> None:
        """Tell a reader, until it is unregistered, whenever there may be something to read: how
        many rows about (0: a claim)."""
        self._watchers[reader] = tell

    def _tell(self, rows: int) -> None:
        for reader, tell in self._watchers.items():
            *_, reading = self._readers[reader]
            tell(rows if reading is None else ceil(rows * reading.share))

    def unregister(self, reader: Hashable) -> None:
        self._readers.pop(reader, None)
        self._watchers.pop(reader, None)
        self._forget_read()

    def position(self, reader: Hashable) -> int:
        return self._readers[reader][0]

    def read_next(self, reader: Hashable) -> Entry | None:
        """Return the next rows and the claim after them; None when there is nothing, or when they
        are in a segment that must be loaded first."""
        seq, cti, reading = self._readers[reader]
        held: Sequence[HeldEntry] | None = self._entries
        if seq < (self._entries[0].seq if self._entries else self._end):
            held = self._segment_with(seq)
        if held is None:
            return None
        at = max(bisect_right(self._seqs, seq) - 1, 0) if held is self._entries else 0
        limit = self.durable if self._synchronous else None
        entry = next_entry(held, at, seq=seq, cti=cti, reading=reading, limit=limit)
        if entry is not None:
            self._readers[reader] = (entry.end, entry.cti, reading)
        return entry

    def _segment_with(self, seq: int) -> Sequence[HeldEntry] | None:
        """Find the rows of the segment with this number; None: it must be loaded first."""
        for segment in self._segments:
            if segment.first <= seq < segment.end:
                if segment.key not in self._loaded:
                    self._miss(segment)
                return self._loaded.get(segment.key)
        raise RunError(f"stream {self.name}: row {seq} is neither in memory nor in a segment")

    def load(self, key: str, entries: Sequence[StoredEntry]) -> None:
        """Take in the rows of a segment that was missing. The rows of the last few are kept.
        SnapshotCorrupt when they are not arranged for the readers that the stream has."""
        if not all(map(self._arrangement.fits, entries)):
            raise SnapshotCorrupt(f"{key} does not hold its rows in the cells that it should")
        self.missing.pop(key, None)
        held = [HeldEntry.of(entry, self._arrangement) for entry in entries]
        repeated = self._repeated
        if self.doubt is not None and repeated is not None and repeated.segment.key == key:
            before, now = (
                concat_batches(rows) for rows in ([e.in_order().rows for e in held], repeated.rows)
            )
            violation = other_rows(
                stream=self.name,
                first=repeated.segment.first,
                before=before,
                now=now,
                by=self._written_by,
            )
            self.doubt = violation or self.doubt
        self._loaded[key] = held
        while len(self._loaded) > max(4, 2 * len(self._readers)):
            del self._loaded[next(iter(self._loaded))]
        self._tell(1)
