"""What runs inside Spark's Python workers: reading a source, running a vertex, writing a file.

A task is a function from the record batches that Spark hands over to those it takes back; both
are rows of an exchange (`blocks.py`), or, at a source, rows that only say which partitions to
read. A task keeps nothing between calls: run twice, it gives the same rows.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

import pyarrow as pa
from pyspark import TaskContext

from weir.errors import WeirError
from weir.events.batch import Batch
from weir.files.chunks import CHUNK_ROWS, Partition
from weir.files.columnar import Records
from weir.ingress.ingress import Ingress
from weir.local.runner import SourceVertex
from weir.plan.operators import Source
from weir.plan.stages import links_of, stage_schema
from weir.reliable.stream import Entry
from weir.runtime.process import keep_freed_memory
from weir.spark.offline.blocks import BlockRow, Blocks, decode, record_of, rows_of
from weir.spark.offline.groups import GroupRun
from weir.spark.offline.progress import TaskProgress, tell_failure
from weir.spark.offline.reports import (
    ErrorReport,
    FileReport,
    SourceReport,
    packed,
    report_row,
)
from weir.spark.offline.targets import sorted_slices
from weir.spark.offline.waves import GroupPlace, Job, SinkPlace

Rows = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class SourceTask:
    """Reads partitions of sources: those whose places in `job.sources[wave]` Spark names."""

    job: Job
    wave: int

    def __call__(self, records: Rows) -> Rows:
        settle_worker(self.job.progress, self.wave)
        for record in records:
            for number in record.column(0).to_pylist():
                place = self.job.sources[self.wave][number]
                partition = partition_of(self.job, place)
                progress = TaskProgress(self.job.progress, self.wave, f"s{number}")
                read = _read(self.job, place, partition, progress)
                yield from _guarded(self.job, self.wave, place.piece, read)


@dataclass(frozen=True, slots=True)
class FrameTask:
    """Reads what a task of Spark has of a DataFrame, by time."""

    job: Job
    wave: int
    place: GroupPlace

    def __call__(self, records: Rows) -> Rows:
        settle_worker(self.job.progress, self.wave)
        context = TaskContext.get()
        assert context is not None
        number = context.partitionId()
        place = replace(self.place, index=number)
        (known,) = self.job.pieces[place.piece].partitions[source_of(self.job, place).name]
        assert isinstance(known, Records)
        names = [name for name, _ in known.columns]
        named = (record.rename_columns(names) for record in records)
        partition = replace(known, batches=named)
        progress = TaskProgress(self.job.progress, self.wave, f"s{place.stage}f{number}")
        read = _read(self.job, place, partition, progress)
        yield from _guarded(self.job, self.wave, place.piece, read)


def source_of(job: Job, place: GroupPlace) -> Source:
    source = job.pieces[place.piece].plan.stages[place.stage].operators[0]
    assert isinstance(source, Source)
    return source


def partition_of(job: Job, place: GroupPlace) -> Partition:
    return job.pieces[place.piece].partitions[source_of(job, place).name][place.index]


def _read(job: Job, place: GroupPlace, partition: Partition, progress: TaskProgress) -> Rows:
    """A partition from its beginning to its end, through the vertices that it feeds."""
    out = Blocks()
    group = GroupRun(job, place, out)
    source = source_of(job, place)
    ingress = Ingress(source, place.index, partition.name)
    reader = SourceVertex(group.root, ingress, partition, job.cut or CHUNK_ROWS)
    aside = group.turned_away(source)
    events = 0
    while not reader.finished:
        admitted = reader.step()
        group.work_off()
        if admitted is not None:
            events += len(admitted.batch)
            for kind, stream in aside:
                rows = admitted.late if kind == "late" else admitted.bad
                stream.write(Entry(0, rows, admitted.cti))
        yield from out.drain()
        progress.tell(events, ingress.now, reader.read)
    group.finish()
    away = ingress.late_count, ingress.bad_count
    out.add(report_row(SourceReport(place.piece, source.name, events, *away)))
    yield from out.drain()
    progress.end(events)


@dataclass(frozen=True, slots=True)
class WaveTask:
    """Runs the vertices of a wave whose blocks come; what is for others passes through."""

    job: Job
    wave: int

    def __call__(self, records: Rows) -> Rows:
        settle_worker(self.job.progress, self.wave)
        places = self.job.waves[self.wave - 1]
        rows = (row for record in records for row in rows_of(record))
        for partition, blocks in groupby(rows, key=lambda row: row.partition):
            place = places.get(partition)
            progress = TaskProgress(self.job.progress, self.wave, str(partition))
            match place:
                case None:
                    yield from map(record_of, blocks)
                case GroupPlace():
                    run = self._run_vertex(place, blocks, progress)
                    yield from _guarded(self.job, self.wave, place.piece, run)
                case SinkPlace():
                    written = self._write(place, blocks, progress)
                    yield from _guarded(self.job, self.wave, place.piece, written)

    def _run_vertex(
        self, place: GroupPlace, blocks: Iterable[BlockRow], progress: TaskProgress
    ) -> Rows:
        plan = self.job.pieces[place.piece].plan
        links = links_of(plan.stages[place.stage])
        widths = [len(stage_schema(plan.stages[link.stage]).columns) for _, link in links]
        out = Blocks()
        group = GroupRun(self.job, place, out)
        events = 0
        for row in blocks:
            batch = decode(row.block, widths[row.input])
            for rows in _cut(batch, self.job.cut):
                group.take(row.input, rows, row.first_vs)
                yield from out.drain()
            events += len(batch)
            progress.tell(events, row.first_vs)
        group.end()
        group.finish()
        yield from out.drain()
        progress.end(events)

    def _write(self, place: SinkPlace, blocks: Iterable[BlockRow], progress: TaskProgress) -> Rows:
        target = self.job.pieces[place.piece].targets[place.sink]
        width = len(target.form.schema.columns)
        path = target.new_path()

        def decoded() -> Iterator[tuple[Batch, int]]:
            events = 0
            for row in blocks:
                batch = decode(row.block, width)
                events += len(batch)
                progress.tell(events, row.first_vs)
                yield batch, row.first_vs
            progress.end(events)

        target.form.write(path, sorted_slices(decoded(), target.form))
        yield record_of(report_row(FileReport(place.piece, place.sink, 0, 0, path)))


def _cut(batch: Batch, size: int | None) -> Iterator[Batch]:
    if size is None:
        yield batch
        return
    for start in range(0, len(batch), size):
        yield batch.slice(start, start + size)


def _guarded(job: Job, wave: int, piece: int, records: Rows) -> Rows:
    """The records; an error of Weir, which would come again, does what the job says."""
    try:
        yield from records
    except WeirError as error:
        if job.errors == "raise":
            # Spark's text then begins with our message. This worker ends with the error.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise
        if job.errors == "end":
            tell_failure(job.progress, wave, error)
        yield record_of(report_row(ErrorReport(piece, wave, packed(error))))


@lru_cache(maxsize=1)
def settle_worker(job: str | None, wave: int) -> None:
    """What a worker does before its first task of a wave of a job.

    Kernels have one thread: parallelism is vertices. What is loaded by now is not garbage: Spark
    looks for garbage behind every task, while the next one waits, and would go through all of it.
    """
    pa.set_cpu_count(1)
    keep_freed_memory()
    gc.freeze()
