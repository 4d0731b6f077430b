"""The code of tasks in Spark's Python workers: reads a source, runs vertices, writes a file.

A task is a function from record batches to record batches. Both contain rows of an exchange
(`blocks.py`); a source's task instead gets rows that only say which partitions to read. A task
keeps nothing between calls: if it runs twice, it returns the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
from pyspark import TaskContext

from weir.errors import EventFailed, WeirError
from weir.events.batch import Batch
from weir.files.chunks import CHUNK_ROWS, SourcePartition
from weir.files.columnar import ArrivingBatches
from weir.plan.stages import stage_schema
from weir.runtime.failed_rows import complete
from weir.runtime.source_vertex import PartitionReader
from weir.runtime.vertices import make_source_vertex, source_of
from weir.spark.offline.blocks import BlockRow, Blocks, decode, read_block, row_record, rows_of
from weir.spark.offline.groups import ExchangeReader, GroupRun
from weir.spark.offline.progress import TaskProgress, tell_failure
from weir.spark.offline.reports import ErrorReport, FileReport, SourceReport, packed, report_row
from weir.spark.offline.targets import sorted_slices
from weir.spark.offline.waves import Group, Job
from weir.spark.worker import settle_worker

Records = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class SourceTask:
    """Reads partitions of sources. `shares` are, for each task, indexes into `job.sources[wave]`;
    Spark passes the number of the task."""

    job: Job
    wave: int
    shares: tuple[tuple[int, ...], ...]

    def __call__(self, records: Records) -> Records:
        settle_worker(self.job.progress, self.wave)
        for record in records:
            for number in (n for task in record.column(0).to_pylist() for n in self.shares[task]):
                group = self.job.sources[self.wave][number]
                partition = partition_of(self.job, group)
                progress = TaskProgress(self.job.progress, self.wave, f"s{number}", group)
                read = _read(self.job, group, partition, progress)
                yield from _guarded(self.job, self.wave, group.layout, read)


@dataclass(frozen=True, slots=True)
class FrameTask:
    """Reads one task's part of a DataFrame, in the order of time."""

    job: Job
    wave: int
    group: Group

    def __call__(self, records: Records) -> Records:
        settle_worker(self.job.progress, self.wave)
        context = TaskContext.get()
        assert context is not None
        group = replace(self.group, task=context.partitionId())
        arriving = partition_of(self.job, group)
        assert isinstance(arriving, ArrivingBatches)
        names = [name for name, _ in arriving.columns]
        named = (record.rename_columns(names) for record in records)
        partition = replace(arriving, batches=named)
        name = f"s{self.job.spec(group).stage}f{group.task}"
        progress = TaskProgress(self.job.progress, self.wave, name, group)
        read = _read(self.job, group, partition, progress)
        yield from _guarded(self.job, self.wave, group.layout, read)


def frame_path(job: Job, group: Group) -> str:
    """Return the path of the source whose DataFrame a group reads."""
    return source_of(job.layouts[group.layout].plan, job.spec(group)).path


def partition_of(job: Job, group: Group) -> SourcePartition:
    """Return the partition that a group reads."""
    layout, spec = job.layouts[group.layout], job.spec(group)
    return layout.partitions[source_of(layout.plan, spec).name][spec.index]


def _read(job: Job, group: Group, partition: SourcePartition, progress: TaskProgress) -> Records:
    """Read a whole partition through the vertices that it feeds."""
    out = Blocks(job.blocks)
    run, plan = GroupRun(job, group, out), job.layouts[group.layout].plan
    vertex = make_source_vertex(plan, job.spec(group), partition.name, run.streams)
    reader = PartitionReader(vertex, partition, job.cut or CHUNK_ROWS)
    while not reader.finished:
        reader.step()
        run.work_off()
        yield from out.drain()
        progress.tell(vertex.events, vertex.now, reader.read)
    run.finish()
    out.add(report_row(SourceReport(group.layout, vertex.total)))
    yield from out.drain()
    progress.end(vertex.events)


@dataclass(frozen=True, slots=True)
class WaveTask:
    """Runs those groups of a wave that this task gets blocks for; passes on blocks for later
    waves."""

    job: Job
    wave: int

    def __call__(self, records: Records) -> Records:
        settle_worker(self.job.progress, self.wave)
        groups = self.job.waves[self.wave - 1]
        rows = (row for record in records for row in rows_of(record))
        for partition, blocks in groupby(rows, key=lambda row: row.partition):
            group = groups.get(partition)
            if group is None:
                yield from map(row_record, blocks)
                continue
            progress = TaskProgress(self.job.progress, self.wave, str(partition), group)
            is_sink = self.job.spec(group).kind == "sink"
            run = (self._write if is_sink else self._run_vertices)(group, blocks, progress)
            yield from _guarded(self.job, self.wave, group.layout, run)

    def _run_vertices(
        self, group: Group, blocks: Iterable[BlockRow], progress: TaskProgress
    ) -> Records:
        plan, spec = self.job.layouts[group.layout].plan, self.job.spec(group)
        feeding = [port.links[0].stage for port in plan.stages[spec.stage].ports]
        widths = [len(stage_schema(plan.stages[stage]).columns) for stage in feeding]
        out = Blocks(self.job.blocks)
        run = GroupRun(self.job, group, out)
        reader = ExchangeReader(plan, spec, run.streams)
        events = 0
        for row in blocks:
            batch = decode(self._block(row), widths[row.input])
            for rows in _cut(batch, self.job.cut):
                reader.take(row.input, rows, row.first_vs)
                run.work_off()
                yield from out.drain()
            events += len(batch)
            progress.tell(events, row.first_vs)
        reader.end()
        run.work_off()
        run.finish()
        yield from out.drain()
        progress.end(events)

    def _block(self, row: BlockRow) -> bytes | pa.Buffer:
        folder = self.job.blocks
        return row.block if folder is None else read_block(folder, row.block)

    def _write(self, group: Group, blocks: Iterable[BlockRow], progress: TaskProgress) -> Records:
        sink = self.job.spec(group).stage
        target = self.job.layouts[group.layout].targets[sink]
        width = len(target.form.schema.columns)

        def decoded() -> Iterator[tuple[Batch, int]]:
            events = 0
            for row in blocks:
                batch = decode(self._block(row), width)
                events += len(batch)
                progress.tell(events, row.first_vs)
                yield batch, row.first_vs
            progress.end(events)

        path = target.write(sorted_slices(decoded(), target.form))
        yield row_record(
            report_row(FileReport(layout=group.layout, sink=sink, part=0, task=0, path=path))
        )


def _cut(batch: Batch, size: int | None) -> Iterator[Batch]:
    if size is None:
        yield batch
        return
    for start in range(0, len(batch), size):
        yield batch.slice(start, start + size)


def _guarded(job: Job, wave: int, layout: int, records: Records) -> Records:
    """Yield the records. If an error of Weir is raised, which would happen again on a retry, act as
    `job.errors` says."""
    try:
        yield from records
    except WeirError as error:
        if isinstance(error, EventFailed):
            complete(error, job.layouts[layout].partitions)
        if job.errors == "raise":
            # Makes Spark's text begin with our message. This worker ends with the error.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise
        if job.errors == "end":
            tell_failure(job.progress, wave, error)
        yield row_record(report_row(ErrorReport(layout, wave, packed(error))))
