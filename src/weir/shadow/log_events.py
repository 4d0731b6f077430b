"""Reads the events of logs in log order, for the serial loop, and holds the first of them.

Rules
1. Log order is (vs, rank, offset); the *rank* numbers the partitions of all logs, by event type and
   then by partition. As in any run, an ingress leaves out late and bad rows.
2. An event is released when no partition can have an earlier one. Memory is limited to a few chunks
   of each partition, and the rows that `delay` holds back.
3. `FirstEvents` are held in memory, so the engine can run over any number of them, as partitions
   that end there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import OPEN, START, Batch, concat_batches, empty_batch
from weir.files.chunks import CHUNK_ROWS, Chunk, PartitionSlice, SourcePartition
from weir.ingress.ingress import Ingress
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import python_values
from weir.plan.operators import Source, schema
from weir.runtime.failed_rows import row_place
from weir.runtime.partitions import Partitions
from weir.shadow.serial_loop import LogEvent


class LogPartition(Protocol):
    """One partition of a log; `number` is its number within the source."""

    @property
    def source(self) -> Source: ...

    @property
    def number(self) -> int: ...

    @property
    def partition(self) -> SourcePartition: ...


class UnknownToPython(PlanError):
    """An event has a value that Python cannot represent, such as a time beyond the year 9999."""


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event with the rank of its partition, and its offset in the partition."""

    event: LogEvent
    rank: int
    offset: int


def ordered_events(logs: Sequence[LogPartition], size: int = CHUNK_ROWS) -> Iterator[PlacedEvent]:
    """Yield all events of logs in log order, reading chunks of `size` rows.

    UnknownToPython for an event with a value that Python cannot represent.
    """
    for group in _groups([_PartCursor(log, size) for log in logs]):
        yield from _sorted_events(logs, group)


def _groups(cursors: Sequence[_PartCursor]) -> Iterator[list[Batch]]:
    """Yield groups of events, by rank; all events of a group come before those of later groups."""
    while waiting := [cursor for cursor in cursors if cursor.now < OPEN]:
        # The partition that is furthest behind holds back the others, so it is read first.
        min(waiting, key=lambda cursor: cursor.now).step()
        bound = min(cursor.now for cursor in cursors)
        group = [cursor.released(bound) for cursor in cursors]
        if any(len(batch) for batch in group):
            yield group


class _PartCursor:
    """Reads one partition, and keeps events that wait for other partitions."""

    def __init__(self, log: LogPartition, size: int) -> None:
        self.now = START
        """The time that the partition has reached; OPEN at its end."""
        self._ingress = Ingress(log.source, log.number, log.partition.name)
        self._chunks = iter(log.partition.chunks(size))
        self._held = self._none = empty_batch(schema(log.source).types, origins=2)

    def step(self) -> None:
        """Read a chunk, or note the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.now = OPEN
            return
        admitted = self._ingress.feed(chunk)
        self.now = admitted.cti
        self._held = concat_batches([self._held, admitted.batch])

    def released(self, bound: int) -> Batch:
        """Release the events before a time."""
        before = self._held.vs < bound
        if not before.any():
            return self._none
        released, self._held = self._held.take(before), self._held.take(~before)
        return released


def _sorted_events(logs: Sequence[LogPartition], group: Sequence[Batch]) -> Iterator[PlacedEvent]:
    vs = np.concatenate([batch.vs for batch in group])
    offsets = np.concatenate([batch.origin[1] for batch in group])
    ranks = np.repeat(np.arange(len(group)), [len(batch) for batch in group])
    rows = np.concatenate([np.arange(len(batch)) for batch in group])
    values = [_values(batch) for batch in group]
    for at in np.lexsort((offsets, ranks, vs)).tolist():
        rank, row, offset = int(ranks[at]), int(rows[at]), int(offsets[at])
        row_values, ve = values[rank][row], int(group[rank].ve[row])
        if isinstance(row_values, str):
            where = f"row {offset + 1} of {logs[rank].partition.name}"
            raise UnknownToPython(f"the serial loop cannot take {where}: {row_values}")
        end = None if ve == OPEN else ve
        event = LogEvent(logs[rank].source.name, int(vs[at]), end, row_values)
        yield PlacedEvent(event, rank, offset)


def _values(batch: Batch) -> list[tuple[object, ...] | str]:
    """Return the values of each row, or the reason if Python cannot represent one of them."""
    try:
        columns = [python_values(column) for column in batch.columns]
    except RowFailure as failure:
        if len(batch) == 1:
            return [failure.why]
        return [value for row in range(len(batch)) for value in _values(batch.slice(row, row + 1))]
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


# --- the first events ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FirstEvents:
    """The first events of logs, in log order, with all columns that the engine reads."""

    logs: Sequence[LogPartition]
    placed: Sequence[PlacedEvent]
    are_all: bool
    """Whether the logs have no more events."""
    can_be_cut = True

    @property
    def events(self) -> list[LogEvent]:
        return [placed.event for placed in self.placed]

    def place(self, number: int) -> str:
        """Return the place of an event: its file and line."""
        placed = self.placed[number]
        return row_place(self.logs[placed.rank].partition, placed.offset)

    def partitions(self, count: int) -> Partitions:
        """Return partitions with exactly the first `count` events."""
        partitions: dict[str, list[SourcePartition]] = {}
        for rank, log in enumerate(self.logs):
            mine = [p for p in self.placed[:count] if p.rank == rank]
            mine.sort(key=lambda placed: placed.offset)
            partitions.setdefault(log.source.name, []).append(HeldRows(log, mine))
        return partitions


def first_events(logs: Sequence[LogPartition], most: int) -> FirstEvents:
    """Read the first events of logs, at most `most`.

    It stops before an event with a value that Python cannot represent.
    """
    placed: list[PlacedEvent] = []
    with suppress(UnknownToPython):
        for event in ordered_events(logs, max(1, min(CHUNK_ROWS, most))):
            if len(placed) == most:
                break
            placed.append(event)
        else:
            return FirstEvents(logs, placed, are_all=True)
    return FirstEvents(logs, placed, are_all=False)


class HeldRows:
    """A partition of events that an ingress has already admitted; see `FirstEvents.partitions`."""

    def __init__(self, log: LogPartition, placed: Iterable[PlacedEvent]) -> None:
        self._log, self._placed = log, list(placed)

    @property
    def name(self) -> str:
        return self._log.partition.name

    @property
    def size(self) -> int:
        return len(self._placed)

    @property
    def whole(self) -> SourcePartition:
        partition = self._log.partition
        return partition.whole if isinstance(partition, PartitionSlice) else partition

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        placed = [p for p in self._placed if p.offset >= start]
        if not placed:
            return
        offsets = np.array([p.offset for p in placed], dtype=np.int64)
        arrays = {"$offset": pa.array(offsets)}  # there may be no other column
        for i, (name, dtype) in enumerate(schema(self._log.source).columns):
            arrays[name] = pa.array([p.event.values[i] for p in placed], dtype)
        vs = np.array([p.event.vs for p in placed], dtype=np.int64)
        ends = [OPEN if p.event.ve is None else p.event.ve for p in placed]
        yield Chunk(
            pa.RecordBatch.from_pydict(arrays),
            offsets,
            int(offsets[-1]) + 1,
            read=len(placed),
            judged=(vs, np.array(ends, dtype=np.int64)),
        )
