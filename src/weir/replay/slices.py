"""Slices: the part of a log's partition that belongs to one batch, as a partition of its own.

Contract
1. It gives the events after one place in the order of all logs, up to another (`batch_cuts.py`),
   with the offsets that they have in their file, so their origins are the same as in a run over the
   whole file.
2. What is late was judged when the log was cut, and is judged here again from the same beginning:
   the rows come `judged`, with the starts and ends that an ingress gave them.
3. It is a value: it travels to workers and can be read any number of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.ingress.ingress import Ingress
from weir.plan.operators import Source
from weir.replay.batch_cuts import BatchPart, LogBatch, LogPosition, RankedLog


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
        """How many rows it reads."""
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
        """Tell which rows stand at this position or before it."""
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
