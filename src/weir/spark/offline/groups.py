"""Runs the vertices of one task: the first reads an exchange or a source, the others follow it.

The topology says which streams they write, and who reads them. A reader in the same group reads
through a stream in memory, a reader in another task through blocks. A sink without a task of its
own is written here, with a part for each of its streams.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weir.events.batch import OPEN, Batch, empty_batch
from weir.files.buckets import download_object, upload_file
from weir.plan.stages import StagedPlan
from weir.plan.urls import is_object_url
from weir.reliable.differences import RowDifference
from weir.reliable.digest import OrderedChecksum
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.stream import Entry, StreamWriter
from weir.reliable.traces import Trace, Traces
from weir.reliable.views import Arrangement, CellRange, HeldEntry
from weir.runtime.topology import StreamId, VertexId, VertexSpec
from weir.runtime.vertices import make_vertex, stream_schema
from weir.spark.offline.blocks import COLLECTED, Blocks
from weir.spark.offline.reports import (
    ChecksumReport,
    DifferenceReport,
    DigestReport,
    FileReport,
    TaskReport,
    report_row,
)
from weir.spark.offline.targets import PartStream, SinkStream
from weir.spark.offline.waves import Group, Job, group_of


class BucketTraces(Traces):
    """Traces as objects below a URL, for machines without a shared folder.

    A task writes its traces to its own folder, and uploads them when it ends. A task of the second
    run downloads the traces that it compares with.
    """

    def __init__(self, url: str, *, compare: bool = False) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="weir-traces.")
        super().__init__(self._own.name, compare=compare)
        self._url = url
        self._to_put: list[str] = []

    def of(self, stream: str, columns: Sequence[str]) -> Trace:
        if not self._compare:
            self._to_put.append(stream)
        else:
            path = os.path.join(self.folder, stream)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            download_object(f"{self._url}/{stream}", path)
        return super().of(stream, columns)

    def close(self) -> list[RowDifference]:
        with self._own:
            differences = super().close()
            for stream in self._to_put:
                upload_file(os.path.join(self.folder, stream), f"{self._url}/{stream}")
        return differences


def make_traces(place: str, *, compare: bool) -> Traces:
    """Make the traces of a task, in a shared folder or below a URL."""
    kind = BucketTraces if is_object_url(place) else Traces
    return kind(place, compare=compare)


class GroupRun:
    """Holds the streams of a group, and runs the vertices after the first one. `out` receives what
    leaves the task."""

    def __init__(self, job: Job, group: Group, out: Blocks) -> None:
        self._job, self._group, self._out = job, group, out
        self._layout = job.layouts[group.layout]
        self._sinks: list[SinkStream] = []
        self._parts: dict[tuple[int, int], PartStream] = {}
        self._traces = make_traces(f"{job.traces or ''}/{group.layout}", compare=job.compare)
        self._between: dict[StreamId, MemoryStream] = {}
        first, *followers = group_of(self._layout, group.vertex)
        self._inside = {spec.id for spec in followers}
        self.streams = {
            stream: self._carried(stream) for spec in (first, *followers) for stream in spec.outputs
        }
        self._followers = [
            make_vertex(
                self._layout.plan, spec, [self._between[s] for s in spec.inputs], self.streams
            )
            for spec in followers
        ]

    def work_off(self) -> None:
        """Let the vertices after the first read what it wrote."""
        for vertex in self._followers:
            while vertex.execute():
                pass
        for stream in self._between.values():
            stream.collect_read()

    def finish(self) -> None:
        """Flush all blocks and report."""
        self._out.flush()
        for report in self._reports(self._group.layout):
            self._out.add(report_row(report))

    def _reports(self, layout: int) -> Iterator[TaskReport]:
        for stream in self._sinks:
            total = f"{stream.digest.total:032x}"
            yield DigestReport(layout, stream.sink, total, stream.digest.count)
        for (sink, number), part in self._parts.items():
            yield FileReport(
                layout=layout, sink=sink, part=number, task=self._group.task, path=part.close()
            )
        for name, carried in self.streams.items():
            if carried.checksum is not None:
                yield ChecksumReport(layout, name, str(carried.checksum))
        for difference in self._traces.close():
            yield DifferenceReport(layout, difference)

    # --- streams -----------------------------------------------------------------------------

    def _carried(self, name: StreamId) -> CarriedStream:
        topology = self._layout.topology
        writer = topology.writer_of(name)
        arrangement = Arrangement(writer.layout(name))
        carriers = [
            Carrier(
                self._carrier(name, reader, input),
                arrangement.reading(topology.vertices[reader].view(input)),
            )
            for reader, input in topology.readers_of.get(name, ())
        ]
        # Spark may cut a DataFrame differently in the second run.
        if writer.stage in self._layout.open_stages:
            return CarriedStream(carriers, arrangement)
        trace = None
        if self._job.traces is not None:
            trace = self._traces.of(name, stream_schema(self._layout.plan, writer, name).names)
        checksum = OrderedChecksum() if self._job.check else None
        return CarriedStream(carriers, arrangement, checksum, trace)

    def _carrier(self, name: StreamId, reader: VertexId, number: int) -> StreamWriter:
        """Return the writer that carries a stream's rows to one of its readers' inputs."""
        spec = self._layout.topology.vertices[reader]
        if spec.kind == "sink":
            self._sinks.append(SinkStream(spec.stage, self._to_sink(spec, number)))
            return self._sinks[-1]
        if reader in self._inside:
            return self._between.setdefault(name, MemoryStream(name))
        partition = self._job.partition_of[Group(self._group.layout, reader)]
        return self._out.stream(partition, spec.ports[number])

    def _to_sink(self, sink: VertexSpec, part: int) -> StreamWriter:
        target = self._layout.targets[sink.stage]
        match target.kind:
            case "file":
                return self._out.stream(
                    self._job.partition_of[Group(self._group.layout, sink.id)], 0
                )
            case "folder":
                self._parts[sink.stage, part] = PartStream(target)
                return self._parts[sink.stage, part]
            case "rows":
                return self._out.stream(COLLECTED, target.number)


@dataclass(frozen=True, slots=True)
class Carrier:
    """A writer to one reader of a stream, and the cells that it reads (None: all rows)."""

    to: StreamWriter
    reading: CellRange | None


class CarriedStream:
    """The writing end of a stream; passes rows to a carrier for each of its readers."""

    def __init__(
        self,
        carriers: Sequence[Carrier],
        arrangement: Arrangement,
        checksum: OrderedChecksum | None = None,
        trace: Trace | None = None,
    ) -> None:
        self._carriers, self._arrangement = carriers, arrangement
        self.checksum, self._trace = checksum, trace

    def write(self, entry: Entry) -> None:
        if self.checksum is not None:
            self.checksum.add(entry.rows)
        if self._trace is not None:
            self._trace.add(entry.rows)
        held = HeldEntry.of(entry, self._arrangement)
        for carrier in self._carriers:
            carrier.to.write(held.read(carrier.reading))


class ExchangeReader:
    """Feeds the first vertex of a group from an exchange.

    Spark delivers the rows of all streams of a port by time, so each port is one input. A block at
    time t means that no port gets anything below t after it.
    """

    def __init__(
        self, plan: StagedPlan, spec: VertexSpec, writers: Mapping[StreamId, StreamWriter]
    ) -> None:
        self._arrived = [MemoryStream() for _ in plan.stages[spec.stage].ports]
        by_port = replace(spec, ports=tuple(range(len(self._arrived))))
        self._vertex = make_vertex(plan, by_port, self._arrived, writers)

    def take(self, port: int, rows: Batch, first_vs: int) -> None:
        """Write rows of a block to one port; no port will get anything below `first_vs`."""
        self._advance({port: rows}, first_vs)

    def end(self) -> None:
        """Note the end of the exchange."""
        self._advance({}, OPEN)

    def _advance(self, rows: Mapping[int, Batch], cti: int) -> None:
        nothing = empty_batch(())
        for port, stream in enumerate(self._arrived):
            stream.write(Entry(stream.end, rows.get(port, nothing), cti))
        while self._vertex.execute():
            pass
        for stream in self._arrived:
            stream.collect_read()
