"""One task's vertices: a stage that reads an exchange or a source, and what follows it directly.

Vertices of a group hand rows to each other over streams in memory; to others, through blocks.
A block at time t says for every input that nothing below t follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.events.batch import OPEN, Batch, empty_batch
from weir.plan.operators import Source
from weir.plan.stages import Stage, links_of, stage_schema
from weir.reliable.chain import Chain
from weir.reliable.digest import OrderedChecksum
from weir.reliable.stream import Entry, MemoryStream, StreamWriter
from weir.reliable.vertex import Outlet, Vertex
from weir.spark.offline.blocks import COLLECTED, Blocks
from weir.spark.offline.reports import ChecksumReport, DigestReport, FileReport, report_row
from weir.spark.offline.targets import PartStream, SinkStream
from weir.spark.offline.waves import GroupPlace, Job, group_of


class GroupRun:
    """See the module's docstring. `out` takes what leaves the task."""

    def __init__(self, job: Job, place: GroupPlace, out: Blocks) -> None:
        self._job, self._place, self._out = job, place, out
        self._piece = job.pieces[place.piece]
        self._sinks: list[SinkStream] = []
        self._parts: dict[tuple[int, int], PartStream] = {}
        self._checked: list[_CheckedStream] = []
        stages = group_of(self._piece.plan, place.stage)
        read_inside = {links_of(stage)[0][1].stage for stage in stages[1:]}
        self._between = {number: MemoryStream() for number in read_inside}
        self._inputs = [MemoryStream() for _ in links_of(stages[0])]
        self.root = self._vertex(stages[0], self._inputs)
        self._followers = [
            self._vertex(stage, [self._between[links_of(stage)[0][1].stage]])
            for stage in stages[1:]
        ]

    def take(self, place: int, rows: Batch, first_vs: int) -> None:
        """Rows of a block for one input; no input has anything below `first_vs` to come."""
        self._advance({place: rows}, first_vs)

    def end(self) -> None:
        """All inputs have ended."""
        self._advance({}, OPEN)

    def _advance(self, rows: Mapping[int, Batch], cti: int) -> None:
        nothing = empty_batch(())
        for number, stream in enumerate(self._inputs):
            stream.write(Entry(stream.end, rows.get(number, nothing), cti))
        while self.root.execute():
            pass
        self.work_off()

    def work_off(self) -> None:
        """Let those that follow the root read what it wrote."""
        for vertex in self._followers:
            while vertex.execute():
                pass
        for stream in (*self._inputs, *self._between.values()):
            stream.collect_read()

    def finish(self) -> None:
        """Flush all blocks and report."""
        self._out.flush()
        piece = self._place.piece
        for sink in self._sinks:
            total = f"{sink.digest.total:032x}"
            report = DigestReport(piece, sink.sink, total, sink.digest.count)
            self._out.add(report_row(report))
        for (number, stage), part in self._parts.items():
            vertex = self._place.index
            self._out.add(report_row(FileReport(piece, number, stage, vertex, part.close())))
        for stream in self._checked:
            self._out.add(report_row(ChecksumReport(piece, stream.name, str(stream.checksum))))

    def turned_away(self, source: Source) -> list[tuple[str, StreamWriter]]:
        """The streams of the outputs that ask for this source's late or bad rows."""
        found: list[tuple[str, StreamWriter]] = []
        for number, sink in enumerate(self._piece.plan.sinks):
            if sink.output.kind != "rows" and sink.output.node == source:
                found.append((sink.output.kind, self._sink_stream(number, self._place.stage)))
        return found

    # --- building ----------------------------------------------------------------------------

    def _vertex(self, stage: Stage, inputs: Sequence[MemoryStream]) -> Vertex:
        ports = [port for port, _ in links_of(stage)]
        chain = Chain(stage, self._piece.plan.origins, ports or [0])
        outlets = self._outlets(stage)
        return Vertex(f"stage {stage.number} vertex {self._place.index}", chain, inputs, outlets)

    def _outlets(self, stage: Stage) -> list[Outlet]:
        outlets: list[Outlet] = []
        if stage.number in self._between:
            outlets.append(Outlet((self._between[stage.number],)))
        names = stage_schema(stage).names
        for route in self._job.routes[self._place.piece, stage.number]:
            streams = tuple(
                self._checking(stage, self._out.stream(route.first + i, route.input), route.keys, i)
                for i in range(route.count)
            )
            keys = None if route.keys is None else tuple(names.index(k) for k in route.keys)
            outlets.append(Outlet(streams, keys))
        for number, sink in enumerate(self._piece.plan.sinks):
            if sink.output.kind == "rows" and stage.number in sink.stages:
                stream = self._checking(stage, self._sink_stream(number, stage.number))
                outlets.append(Outlet((stream,)))
        return outlets

    def _sink_stream(self, number: int, stage: int) -> SinkStream:
        target = self._piece.targets[number]
        inner: StreamWriter
        match target.kind:
            case "file":
                route = self._job.sink_routes[self._place.piece, number]
                inner = self._out.stream(route.first, route.input)
            case "folder":
                inner = self._parts[number, stage] = PartStream(target)
            case "rows":
                inner = self._out.stream(COLLECTED, target.number)
        made = SinkStream(number, inner)
        self._sinks.append(made)
        return made

    def _checking(
        self, stage: Stage, inner: StreamWriter, keys: tuple[str, ...] | None = None, part: int = 0
    ) -> StreamWriter:
        # What a vertex of a DataFrame reads is as Spark cut it, which need not be so twice.
        if not self._job.check or not self._piece.counts[stage.number]:
            return inner
        split = f" by {', '.join(keys)}[{part}]" if keys is not None else ""
        name = f"stage {stage.number} vertex {self._place.index}{split}"
        self._checked.append(_CheckedStream(name, inner))
        return self._checked[-1]


class _CheckedStream:
    """Keeps the ordered checksum of what goes by."""

    def __init__(self, name: str, inner: StreamWriter) -> None:
        self.name, self._inner = name, inner
        self.checksum = OrderedChecksum()

    def write(self, entry: Entry) -> None:
        self.checksum.add(entry.rows)
        self._inner.write(entry)
