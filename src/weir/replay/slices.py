"""Slices: the part of a log's partition that belongs to one batch, as a partition of its own.

Contract of a slice
1. It yields the events after one place in the order of all logs, up to another (`batch_cuts.py`).
   They keep their offsets in the file, so their origins are the same as in a run over the whole
   file.
2. Late rows were determined when the log was cut, and are determined again here, from the same
   starting point. The rows come `judged`, with the starts and ends that an ingress gave them.
3. It is a value: it travels to workers and can be read any number of times.

`BatchReading` opens the slices of each batch, and starts to read the next batch while one runs. In
this process, a thread prefetches the chunks of a large slice, a limited number at a time. An error
of the reader is raised in place of the failed chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from queue import Empty, Full, Queue
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.files.readers import open_partition
from weir.ingress.connectors.registry import open_any
from weir.ingress.ingress import Ingress
from weir.plan.operators import Source
from weir.replay.batch_cuts import BatchPart, LogBatch, LogCuts, LogPosition, RankedLog
from weir.replay.batch_programs import BatchProgram
from weir.replay.batch_runs import RunChoice
from weir.runtime.partitions import Partitions
from weir.runtime.program_plan import columns_read


@dataclass(frozen=True, slots=True)
class LogSlice:
    """The part of a partition that belongs to a batch; see the module's contract."""

    source: Source
    number: int
    """The partition's number within its source."""
    rank: int
    whole: SourcePartition
    part: BatchPart
    after: LogPosition | None
    upto: LogPosition | None

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def size(self) -> int:
        """The number of rows that it reads."""
        return max(0, self.part.stop - self.part.begin.offset)

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        begin = self.part.begin
        if self.size == 0:
            return
        ingress = Ingress(self.source, self.number, self.name, now=begin.now)
        for chunk in self._opened().chunks(size, begin.offset):
            admitted = ingress.feed(chunk)
            offsets = admitted.batch.origin[1]
            is_here = self._is_here(admitted.batch.vs, offsets) & (offsets >= start)
            rows = np.searchsorted(chunk.offsets, offsets[is_here])
            all_rows = len(rows) == len(chunk.offsets)
            yield Chunk(
                chunk.rows if all_rows else chunk.rows.take(pa.array(rows)),
                offsets[is_here],
                chunk.stop,
                cti_times=np.array([ingress.now]),
                cti_indexes=np.array([len(rows)]),
                read=min(chunk.stop - begin.offset, self.size),
                judged=(admitted.batch.vs[is_here], admitted.batch.ve[is_here]),
            )
            if chunk.stop >= self.part.stop:
                return

    def _opened(self) -> SourcePartition:
        if isinstance(self.whole, JsonLines | CsvFile) and self.part.begin.offset:
            return replace(self.whole, since=self.part.begin.place)
        return self.whole

    def _is_here(self, vs: Int64s, offsets: Int64s) -> npt.NDArray[np.bool_]:
        here = np.ones(len(vs), dtype=np.bool_)
        if self.after is not None:
            here &= ~self._up_to(self.after, vs, offsets)
        if self.upto is not None:
            here &= self._up_to(self.upto, vs, offsets)
        return here

    def _up_to(self, position: LogPosition, vs: Int64s, offsets: Int64s) -> npt.NDArray[np.bool_]:
        """Tell which rows are at or before this position."""
        if self.rank == position.rank:
            tied = offsets <= position.offset
        else:
            tied = np.full(len(vs), self.rank < position.rank)
        is_before: npt.NDArray[np.bool_] = (vs < position.vs) | ((vs == position.vs) & tied)
        return is_before


def slices_of(batch: LogBatch, logs: Sequence[RankedLog]) -> list[LogSlice]:
    """Return the slices of a batch, one for each partition of the logs, by rank."""
    parts = zip(logs, batch.parts, strict=True)
    return [
        LogSlice(log.source, log.number, rank, log.partition, part, batch.after, batch.upto)
        for rank, (log, part) in enumerate(parts)
    ]


AHEAD = 2
"""How many chunks of a partition are read ahead."""
_PATIENCE = 0.1
WORTH_A_THREAD = 10_000
"""For a batch with fewer events, starting a thread takes as long as reading."""


class BatchReading:
    """Opens the partitions of batches, one batch after the other.

    In this process they are read ahead; Spark's workers read theirs themselves.
    """

    def __init__(self, logs: Sequence[RankedLog], cuts: LogCuts, choice: RunChoice) -> None:
        self._logs, self._batches = logs, cuts.batches
        self._is_local, self._size = choice.runner == "local", choice.cut or CHUNK_ROWS
        self._next: tuple[int, Partitions] | None = None
        self._now, self._ahead = ExitStack(), ExitStack()
        """The threads that read the current batch, and the next one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._now.close()
        self._ahead.close()

    def partitions(self, number: int) -> Partitions:
        """Return the partitions of a batch, and start to read the next one.

        The rows of the batch before it are dropped.
        """
        self._now.close()
        prefetched = self._next
        partitions = (
            prefetched[1]
            if prefetched is not None and prefetched[0] == number
            else self._sliced(number)
        )
        self._now, self._ahead = self._ahead, ExitStack()
        following = number + 1
        if following < len(self._batches):
            self._next = (following, self._sliced(following))
        return partitions

    def _sliced(self, number: int) -> Partitions:
        batch = self._batches[number]
        partitions: dict[str, list[SourcePartition]] = {}
        for part in slices_of(batch, self._logs):
            partition: SourcePartition = part
            if self._is_local and part.size >= WORTH_A_THREAD:
                partition = ahead = AheadPartition(part, self._size)
                self._ahead.callback(ahead.close)
            partitions.setdefault(part.source.name, []).append(partition)
        return partitions


def batch_partitions(
    program: BatchProgram, tables: Mapping[str, str], logs: Partitions
) -> Partitions:
    """Return the partitions that a batch's program reads.

    They are those of the logs, of the states before the batch (`tables`, by their keys), and of
    other sources of the program's streams.
    """
    partitions: dict[str, Sequence[SourcePartition]] = {}
    others = [s for s in program.program.sources if s.name not in {*program.restored, *logs}]
    columns = columns_read(program.program, others) if others else {}
    for source in program.program.sources:
        if source.name in program.restored:
            partitions[source.name] = [
                open_partition(source, tables[program.restored[source.name][1]])
            ]
        elif source.name in logs:
            partitions[source.name] = logs[source.name]
        elif source.has_origins:  # otherwise it is a DataFrame, which the runner reads
            partitions[source.name] = open_any(source, "", needed=columns[source])
    return partitions


class AheadPartition:
    """A partition that is read ahead, once and from its start.

    Any other reading of it does not read ahead. `close` ends the thread.
    """

    def __init__(self, partition: SourcePartition, size: int = CHUNK_ROWS) -> None:
        self._partition, self._size = partition, size
        self._queue: Queue[Chunk | BaseException | None] = Queue(AHEAD)
        self._closed = threading.Event()
        self._is_read = False
        self._thread = threading.Thread(target=self._read, name="replay-ahead", daemon=True)
        self._thread.start()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the partition without the thread."""
        return copy, (self._partition,)

    @property
    def name(self) -> str:
        return self._partition.name

    @property
    def size(self) -> int:
        return self._partition.size

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        if self._is_read or start or size != self._size:
            return self._partition.chunks(size, start)
        self._is_read = True
        return self._arriving()

    def _arriving(self) -> Iterator[Chunk]:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def close(self) -> None:
        """Stop reading, and wait for the thread."""
        self._closed.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=_PATIENCE)
            except Empty:
                continue

    def _read(self) -> None:
        try:
            for chunk in self._partition.chunks(self._size):
                if not self._put(chunk):
                    return
        except BaseException as error:  # raised when the chunk is requested
            self._put(error)
        else:
            self._put(None)

    def _put(self, item: Chunk | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False
