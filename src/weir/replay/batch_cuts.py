"""Cuts logs into batches: one pass over the times finds where each batch begins in each file.

Rules
1. The order of all logs together is (vs, rank, offset); the *rank* numbers the partitions of all
   logs, by event type and then by partition. A cut may lie anywhere in it, between equal times too.
2. A row that is dropped as late by its log's options is not an event: no batch counts it. A row
   that is adjusted has the place of its new start. The ingress itself decides, as in any run.
3. In a log that is not in order (`delay` allows it), a batch's rows are not next to each other. A
   batch reads from its first row to its last, and leaves out the rows of other batches.
4. A batch begins to read at a *mark*: a place between two chunks of this pass, where the byte and
   the time that the partition has reached are known. So it reads nothing before the mark.
5. Memory is limited to a few chunks of each partition, and the rows that `delay` holds back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import numpy as np

from weir.events.batch import OPEN, START, Int64s
from weir.files.chunks import CHUNK_ROWS, NO_TIMES, Chunk, FilePlace, SourcePartition
from weir.ingress.ingress import Ingress
from weir.plan.operators import Source
from weir.runtime.reports import OnProgress, Progress

EventPart: TypeAlias = tuple[Int64s, Int64s]
"""The starts and offsets of some events of one partition."""

BATCH_BYTES = 1 << 30
"""The default size of a batch, in bytes of the logs."""


class LogPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The place of an event in the order of all logs; see rule 1."""

    vs: int
    rank: int
    offset: int


class LogMark(msgspec.Struct, frozen=True, array_like=True):
    """A place where reading can begin: a row, its byte in a text, and the time reached before."""

    offset: int = 0
    position: int = 0
    now: int = START

    @property
    def place(self) -> FilePlace:
        return FilePlace(self.offset, self.position)


class BatchPart(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one partition that a batch may have: from a mark up to an offset."""

    begin: LogMark
    stop: int


class LogBatch(msgspec.Struct, frozen=True):
    """A batch: the events after `after`, up to and including `upto`.

    None means from the first event, or to the last one. `parts` has a part for each rank.
    """

    after: LogPosition | None
    upto: LogPosition | None
    events: int
    reached: int
    """The start of its last event."""
    parts: tuple[BatchPart, ...]


class LogTotal(msgspec.Struct, frozen=True):
    """The counts of one partition's events, late rows and bad rows."""

    name: str
    events: int
    late: int
    bad: int


class LogCuts(msgspec.Struct, frozen=True):
    """The batches of a replay in order, and the counts of each partition by rank."""

    batches: tuple[LogBatch, ...]
    totals: tuple[LogTotal, ...]
    first: int | None
    """The start of the first event; None if there is none."""


@dataclass(frozen=True, slots=True)
class RankedLog:
    """One partition of the logs; `number` is its number within its source."""

    source: Source
    number: int
    partition: SourcePartition


def cut_logs(
    logs: Sequence[RankedLog],
    *,
    events: int | None = None,
    size: int = BATCH_BYTES,
    start: int = START,
    end: int = OPEN,
    progress: OnProgress | None = None,
) -> LogCuts:
    """Cut logs, by rank, into batches of `events` events, or of about `size` bytes.

    Events outside of [start, end) are in no batch. There is always at least one batch.
    """
    rows = CHUNK_ROWS if events is None else min(CHUNK_ROWS, max(1024, events))
    cursors = [_Cursor(rank, log, rows, (start, end)) for rank, log in enumerate(logs)]
    cutter = _LogCutter(cursors, events, size, (start, end))
    while waiting := [c for c in cursors if c.now < OPEN]:
        # The partition that is furthest behind holds back the others, so it is read first.
        min(waiting, key=lambda c: c.now).step()
        cutter.release(min(c.now for c in cursors))
        if progress is not None:
            progress(_standing(cursors, cutter.released))
    return LogCuts(tuple(cutter.batches()), tuple(c.total for c in cursors), cutter.first)


def _standing(cursors: Sequence[_Cursor], events: int) -> Progress:
    read, size = sum(c.read for c in cursors), sum(c.log.partition.size for c in cursors)
    return Progress(events, START, read, size, stage="looking for where to cut")


@dataclass(slots=True)
class _Cursor:
    """Reads the times of one partition."""

    rank: int
    log: RankedLog
    rows: int
    span: tuple[int, int]
    """The first time whose events count, and the first time after them."""
    now: int = START
    """The time that the partition has reached; OPEN at its end."""
    read: int = 0
    events: int = 0
    vs: Int64s = field(default_factory=lambda: NO_TIMES)
    offsets: Int64s = field(default_factory=lambda: NO_TIMES)
    """The events that are not released yet: their starts and offsets."""
    marks: list[LogMark] = field(default_factory=list)
    _ingress: Ingress = field(init=False)
    _chunks: Iterator[Chunk] = field(init=False)

    def __post_init__(self) -> None:
        self._ingress = Ingress(self.log.source, self.log.number, self.log.partition.name)
        self._chunks = iter(self.log.partition.chunks(self.rows))
        self.marks.append(LogMark())

    def step(self) -> None:
        """Read a chunk, or note the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.now = self._ingress.end()
            return
        batch = self._ingress.feed(chunk).batch
        is_in_span = (batch.vs >= self.span[0]) & (batch.vs < self.span[1])
        self.events += int(is_in_span.sum())
        self.vs = np.concatenate((self.vs, batch.vs[is_in_span]))
        self.offsets = np.concatenate((self.offsets, batch.origin[1][is_in_span]))
        self.read = chunk.read
        self.marks.append(LogMark(chunk.stop, chunk.read, self._ingress.now))
        # Nothing is read after the last time of the span.
        self.now = self._ingress.now if self._ingress.now < self.span[1] else OPEN

    @property
    def next_offset(self) -> int:
        return self._ingress.next_offset

    def mark_before(self, offset: int) -> LogMark:
        at = bisect_right(self.marks, offset, key=lambda mark: mark.offset)
        return self.marks[at - 1]

    @property
    def total(self) -> LogTotal:
        ingress = self._ingress
        name = self.log.partition.name
        return LogTotal(name, self.events, ingress.late_count, ingress.bad_count)


@dataclass(slots=True)
class _DraftBatch:
    """The batch that is being filled."""

    after: LogPosition | None
    begins: list[LogMark]
    stops: list[int]
    events: int = 0
    reached: int = START


class _LogCutter:
    """Takes events in the order of all logs, and cuts them into batches."""

    def __init__(
        self, cursors: Sequence[_Cursor], events: int | None, size: int, span: tuple[int, int]
    ) -> None:
        self._cursors, self._events, self._size = cursors, events, size
        self._done: list[LogBatch] = []
        after = None if span[0] == START else LogPosition(span[0], -1, -1)
        self._last = None if span[1] == OPEN else LogPosition(span[1], -1, -1)
        self._draft = _DraftBatch(after, [LogMark() for _ in cursors], [0] * len(cursors))
        self._read_before = 0
        self.released = 0
        self.first: int | None = None

    def release(self, bound: int) -> None:
        """Take all events that start before a time; no more of them can come."""
        parts: list[EventPart] = []
        for cursor in self._cursors:
            mask = cursor.vs < bound
            parts.append((cursor.vs[mask], cursor.offsets[mask]))
            cursor.vs, cursor.offsets = cursor.vs[~mask], cursor.offsets[~mask]
        count = sum(len(vs) for vs, _ in parts)
        if not count:
            return
        if self.first is None:
            self.first = min(int(vs.min()) for vs, _ in parts if len(vs))
            self._draft.begins = self._begins([offsets for _, offsets in parts])
        self.released += count
        if self._events is not None and self._draft.events + count >= self._events:
            self._take_in_order(parts, self._events)
            return
        self._take(parts)
        if self._events is None and self._all_read() - self._read_before >= self._size:
            self._cut(_last_of(parts), [NO_TIMES for _ in parts])

    def batches(self) -> list[LogBatch]:
        """Return all batches; call it after the last release."""
        if self._draft.events or not self._done:
            self._done.append(self._finished(self._last))
        else:
            self._done[-1] = msgspec.structs.replace(self._done[-1], upto=self._last)
        return self._done

    def _all_read(self) -> int:
        return sum(cursor.read for cursor in self._cursors)

    def _take(self, parts: Sequence[EventPart]) -> None:
        """Put all of these events into the current batch."""
        draft = self._draft
        for rank, (vs, offsets) in enumerate(parts):
            if len(vs):
                draft.events += len(vs)
                draft.reached = max(draft.reached, int(vs.max()))
                draft.stops[rank] = max(draft.stops[rank], int(offsets.max()) + 1)

    def _take_in_order(self, parts: Sequence[EventPart], size: int) -> None:
        """Put events into batches of `size` events."""
        vs, offsets = (np.concatenate(column) for column in zip(*parts, strict=True))
        ranks = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        order = np.lexsort((offsets, ranks, vs))
        vs, ranks, offsets = vs[order], ranks[order], offsets[order]
        begin = 0
        while begin < len(vs):
            end = min(len(vs), begin + size - self._draft.events)
            here = slice(begin, end)
            mine = [ranks[here] == rank for rank in range(len(parts))]
            self._take([(vs[here][m], offsets[here][m]) for m in mine])
            if self._draft.events == size:
                last = LogPosition(int(vs[end - 1]), int(ranks[end - 1]), int(offsets[end - 1]))
                rest = [offsets[end:][ranks[end:] == rank] for rank in range(len(parts))]
                self._cut(last, rest)
            begin = end

    def _cut(self, at: LogPosition, rest: Sequence[Int64s]) -> None:
        """End the batch after an event.

        `rest` are the offsets of released events that come after it, by rank.
        """
        self._done.append(self._finished(at))
        self._draft = _DraftBatch(at, self._begins(rest), [0] * len(rest))
        self._read_before = self._all_read()

    def _begins(self, rest: Sequence[Int64s]) -> list[LogMark]:
        """Return where reading begins for all events that are in no batch yet.

        They are those in `rest`, those not released, and those not read.
        """
        begins = []
        for cursor, released in zip(self._cursors, rest, strict=True):
            offsets = (cursor.next_offset, *_least(released), *_least(cursor.offsets))
            begins.append(cursor.mark_before(min(offsets)))
        return begins

    def _finished(self, upto: LogPosition | None) -> LogBatch:
        draft = self._draft
        parts = tuple(map(BatchPart, draft.begins, draft.stops))
        return LogBatch(draft.after, upto, draft.events, draft.reached, parts)


def _least(offsets: Int64s) -> tuple[int, ...]:
    return (int(offsets.min()),) if len(offsets) else ()


def _last_of(parts: Sequence[EventPart]) -> LogPosition:
    """Return the place of the last of some events, in the order of all logs."""
    return max(
        LogPosition(int(vs.max()), rank, int(offsets[vs == vs.max()].max()))
        for rank, (vs, offsets) in enumerate(parts)
        if len(vs)
    )
