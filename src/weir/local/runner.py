"""The local runner: a staged plan in one process, one vertex at a time, without threads.

A debugger can step through it: `LocalRun.step` reads one chunk of the source that is furthest
behind and lets every vertex work off what that made available, in order of stages. Which source
goes first, how large chunks are and how many vertices a stage has changes nothing in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from weir.errors import PlanError, RunError
from weir.events.batch import OPEN, Batch, empty_batch
from weir.files.chunks import CHUNK_ROWS, Chunk, Partition
from weir.ingress.ingress import Admitted, Ingress
from weir.plan.operators import Source, schema
from weir.plan.operators.source import SOURCE_ORIGIN_DEPTH
from weir.plan.program import Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import Link, Sink, Stage, StagedPlan, cut_stages, stage_schema
from weir.reliable.chain import Chain
from weir.reliable.digest import Digest, digest
from weir.reliable.stream import MemoryStream
from weir.reliable.vertex import Outlet, Vertex
from weir.runtime.reports import Progress

OutletKey = tuple[int, tuple[str, ...] | None, int]
"""Which stage, split by what (None: not split), into how many."""

Emit = Callable[[int, Batch], None]
"""Takes rows of an output: from which vertex, and the rows."""


class SourceVertex:
    """Ingress of one partition in front of its vertex."""

    def __init__(self, vertex: Vertex, ingress: Ingress, partition: Partition, size: int) -> None:
        self.vertex, self.ingress = vertex, ingress
        self._partition, self._size = partition, size
        self.size, self.read = partition.size, 0
        self._chunks: Iterator[Chunk] | None = None
        self._nothing = empty_batch(schema(ingress.source).types, SOURCE_ORIGIN_DEPTH)
        self.finished = False

    def step(self) -> Admitted | None:
        """Read one chunk; None at the end of the partition."""
        if self._chunks is None:
            self._chunks = self._partition.chunks(self._size, self.ingress.next_offset)
        chunk = next(self._chunks, None)
        if chunk is None:
            self.finished = True
            self.read = self.size
            self.vertex.feed(self._nothing, self.ingress.end())
            return None
        self.read = chunk.read
        admitted = self.ingress.feed(chunk)
        self.vertex.feed(admitted.batch, admitted.cti)
        return admitted

    def rewind(self, vertex: Vertex, state: Mapping[str, int]) -> None:
        """Go on with another instance of the vertex, from this state of the ingress."""
        self.vertex = vertex
        self.ingress.load(state)
        self._chunks = None
        self.finished = False


class Egress:
    """The reader of an output: hands rows on and keeps the digest."""

    def __init__(self, sink: Sink, streams: Sequence[MemoryStream], emit: Emit) -> None:
        self.sink = sink
        self.digest = Digest()
        self._streams = {stream: number for number, stream in enumerate(streams)}
        self._emit = emit
        for stream in streams:
            stream.register(self, 0)

    def execute(self, written: Sequence[MemoryStream]) -> None:
        """Take what was written to the output's streams."""
        for number, stream in sorted(
            ((self._streams[s], s) for s in written if s in self._streams), key=lambda n: n[0]
        ):
            while (entry := stream.read_next(self)) is not None:
                self.take(number, entry.rows)

    def take(self, vertex: int, rows: Batch) -> None:
        if len(rows):
            self.digest += digest(rows)
            self._emit(vertex, rows)


class LocalRun:
    """A run that can be stepped; see the module's docstring."""

    def __init__(
        self,
        program: Program,
        partitions: Mapping[str, Sequence[Partition]],
        emits: Sequence[Emit],
        *,
        cut: int | None = None,
        parallelism: int = 1,
        check: bool = False,
        optimise: bool = True,
        keep: bool = False,
    ) -> None:
        """`partitions` of every source by name, one `emit` for each output. `check` keeps
        ordered checksums of all streams; `keep` never collects what was read."""
        self.plan: StagedPlan = cut_stages(rewrite(program) if optimise else program, parallelism)
        self._partitions = partitions
        self._size = cut or CHUNK_ROWS
        self._check, self._keep = check, keep
        self._counts = self.plan.vertex_counts(self._partition_count)
        self.streams: dict[tuple[OutletKey, int, int], MemoryStream] = {}
        self._outlets = self._outlet_keys()
        # What there is to do: for each stage and vertex the inputs that have something new.
        self._ready: dict[tuple[int, int], set[int]] = {}
        self._written: set[MemoryStream] = set()
        self._ports: dict[int, list[int]] = {}
        self.vertices: list[list[Vertex]] = []
        self.sources: list[SourceVertex] = []
        for stage in self.plan.stages:
            self.vertices.append(
                [self.make_vertex(stage, i) for i in range(self._counts[stage.number])]
            )
            self._attach_sources(stage)
        self.egress = [
            Egress(sink, self._sink_streams(sink), emit)
            for sink, emit in zip(self.plan.sinks, emits, strict=True)
        ]
        self.events = 0

    # --- building ----------------------------------------------------------------------------

    def _partition_count(self, source: Source) -> int:
        if not source.has_origins:
            hint = "weir.run_offline or to_spark"
            raise PlanError(f"{source.name} is a DataFrame, which only Spark reads", hint=hint)
        return len(self._partitions[source.name])

    def _outlet_keys(self) -> dict[int, list[OutletKey]]:
        """The streams that each stage writes: one set for each way in which it is read."""
        found: dict[int, dict[OutletKey, None]] = {s.number: {} for s in self.plan.stages}
        for stage in self.plan.stages:
            for port in stage.ports:
                for link in port.links:
                    found[link.stage][self._outlet_key(link, stage)] = None
        for sink in self.plan.sinks:
            for number in sink.stages:
                found[number][(number, None, 1)] = None
        return {number: list(keys) for number, keys in found.items()}

    @property
    def outlet_keys(self) -> list[OutletKey]:
        """All of them, in order of stages."""
        return [key for keys in self._outlets.values() for key in keys]

    def _outlet_key(self, link: Link, reader: Stage) -> OutletKey:
        if link.channel == "hash":
            return (link.stage, link.keys, self._counts[reader.number])
        return (link.stage, None, 1)

    def _stream(self, key: OutletKey, vertex: int, part: int) -> MemoryStream:
        place = (key, vertex, part)
        if place not in self.streams:
            split = f" by {', '.join(key[1])}[{part}]" if key[1] is not None else ""
            name = f"stage {key[0]} vertex {vertex}{split}"
            stream = MemoryStream(name, check=self._check)
            stream.watch(partial(self._written.add, stream))
            self.streams[place] = stream
        return self.streams[place]

    def make_vertex(self, stage: Stage, index: int) -> Vertex:
        """A fresh instance of a vertex, at the beginning of its inputs."""
        inputs: list[MemoryStream] = []
        ports: list[int] = []
        for number, port in enumerate(stage.ports):
            for link in port.links:
                key = self._outlet_key(link, stage)
                writers = range(self._counts[link.stage])
                of_link = [index] if link.channel == "forward" else list(writers)
                part = index if link.channel == "hash" else 0
                inputs += [self._stream(key, w, part) for w in of_link]
                ports += [number] * len(of_link)
        self._ports[stage.number] = ports  # the same for all its vertices
        for i, stream in enumerate(inputs):
            stream.watch(partial(self._note, (stage.number, index), i))
        chain = self._chain(stage, ports)
        outlets = [self._outlet(stage, key, index) for key in self._outlets[stage.number]]
        return Vertex(f"stage {stage.number} vertex {index}", chain, inputs, outlets)

    def _chain(self, stage: Stage, ports: Sequence[int]) -> Chain:
        return Chain(stage, self.plan.origins, ports or [0])

    def renew(self) -> None:
        """Let every vertex go on with fresh operators, which load what a snapshot has of it."""
        for stage in self.plan.stages:
            for vertex in self.vertices[stage.number]:
                vertex.renew(self._chain(stage, self._ports[stage.number]))

    def _outlet(self, stage: Stage, key: OutletKey, index: int) -> Outlet:
        _, keys, count = key
        streams = tuple(self._stream(key, index, part) for part in range(count))
        if keys is None:
            return Outlet(streams)
        names = stage_schema(stage).names
        return Outlet(streams, tuple(names.index(k) for k in keys))

    def _attach_sources(self, stage: Stage) -> None:
        source = stage.operators[0] if stage.operators else None
        if stage.ports or not isinstance(source, Source):
            return
        for i, partition in enumerate(self._partitions[source.name]):
            ingress = Ingress(source, i, partition.name)
            vertex = self.vertices[stage.number][i]
            self.sources.append(SourceVertex(vertex, ingress, partition, self._size))

    def _sink_streams(self, sink: Sink) -> list[MemoryStream]:
        return [
            self._stream((number, None, 1), vertex, 0)
            for number in sink.stages
            for vertex in range(self._counts[number])
        ]

    # --- running -----------------------------------------------------------------------------

    def run(self, report: Callable[[Progress], None] | None = None) -> None:
        while self.step():
            if report is not None:
                report(self.progress)
        stalled = [v.name for stage in self.vertices for v in stage if v.cti != OPEN]
        if stalled:
            raise RunError(f"all inputs ended, but {', '.join(stalled)} did not: a bug in Weir")

    @property
    def progress(self) -> Progress:
        read, size = sum(s.read for s in self.sources), sum(s.size for s in self.sources)
        return Progress(self.events, self.reached, read, size)

    @property
    def reached(self) -> int:
        """The event time up to which every source is known."""
        return min((s.ingress.now for s in self.sources), default=OPEN)

    def step(self) -> bool:
        """Read one chunk and work it off; False when all sources are at their end."""
        waiting = [s for s in self.sources if not s.finished]
        if not waiting:
            return False
        # The source that is furthest behind holds all merges back: it goes first.
        behind = min(waiting, key=lambda s: s.ingress.now)
        admitted = behind.step()
        if admitted is not None:
            self.events += len(admitted.batch)
            self._hand_out(behind.ingress, admitted)
        self.work_off()
        return True

    def work_off(self) -> None:
        """Let the vertices work until nothing is left to read, in order of stages."""
        while self._ready:
            stage, index = min(self._ready)
            places = sorted(self._ready.pop((stage, index)))
            vertex = self.vertices[stage][index]
            while vertex.execute(places):
                pass
        written = list(self._written)
        self._written.clear()
        for egress in self.egress:
            egress.execute(written)
        if not self._keep:
            for stream in written:
                stream.collect_read()

    def _note(self, vertex: tuple[int, int], place: int) -> None:
        self._ready.setdefault(vertex, set()).add(place)

    def _hand_out(self, ingress: Ingress, admitted: Admitted) -> None:
        for egress in self.egress:
            output = egress.sink.output
            if output.kind == "rows" or output.node != ingress.source:
                continue
            rows = admitted.late if output.kind == "late" else admitted.bad
            egress.take(ingress.partition, rows)

    @property
    def state_rows(self) -> int:
        return sum(v.state_rows for stage in self.vertices for v in stage)

    @property
    def checksums(self) -> dict[str, str]:
        """The ordered checksum of every stream."""
        return {stream.name: stream.ordered_checksum for stream in self.streams.values()}
