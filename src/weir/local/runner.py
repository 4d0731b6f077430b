"""The local runner runs a staged plan in one process, one vertex at a time, without threads.

A debugger can step through it: `LocalRun.step` reads one chunk of the source that is furthest
behind and lets every vertex work off what that made available, in the topology's order. If stages
have several vertices, it reads several chunks first (as many as vertices, up to `ROUND_CHUNKS` and
about `ROUND_BYTES`), and a vertex takes all that waits in one step: otherwise each would step with
a fraction of a chunk. Which source goes first, how large chunks and steps are and how many vertices
a stage has changes nothing in the answer. The topology says which vertices and streams there are;
streams are in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from weir.errors import RunError
from weir.events.batch import OPEN, Batch
from weir.files.chunks import CHUNK_ROWS, SourcePartition
from weir.loops.interrupts import plain_interrupts
from weir.plan.program import Output, Program
from weir.plan.stages import StagedPlan
from weir.reliable.cursor import STEP_ROWS
from weir.reliable.digest import Digest, digest
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.stream import Entry, StreamReader, joined
from weir.reliable.traces import Traces
from weir.reliable.vertex import Vertex
from weir.runtime.failed_rows import completing
from weir.runtime.partitions import Partitions
from weir.runtime.program_plan import plan_program
from weir.runtime.reports import OnProgress, Progress, SinkTotal, SourceTotal
from weir.runtime.source_vertex import PartitionReader, SourceVertex
from weir.runtime.topology import StreamId, VertexId, VertexSpec
from weir.runtime.vertices import (
    make_chain,
    make_source_vertex,
    make_vertex,
    source_of,
    stream_schema,
    written_by,
)

ROUND_CHUNKS, ROUND_BYTES = 16, 64 << 20
Emit = Callable[[int, Batch], None]
"""Takes rows of an output: of which of its streams, and the rows."""


class _LargeReads:
    """Reads a stream in entries of up to about `STEP_ROWS` rows, however it was written."""

    def __init__(self, stream: StreamReader) -> None:
        self._stream = stream

    def register(self, reader: Hashable, seq: int) -> None:
        self._stream.register(reader, seq)

    def read_next(self, reader: Hashable) -> Entry | None:
        entries: list[Entry] = []
        count = 0
        while count < STEP_ROWS and (entry := self._stream.read_next(reader)) is not None:
            entries.append(entry)
            count += len(entry.rows)
        return joined(entries) if entries else None


class Egress:
    """Reads the streams of an output: hands rows on and keeps the digest."""

    def __init__(self, output: Output, streams: Sequence[MemoryStream], emit: Emit) -> None:
        self.output = output
        self.digest = Digest()
        self._numbers = {stream: number for number, stream in enumerate(streams)}
        self._emit = emit
        self._reader = object()
        for stream in streams:
            stream.register(self._reader, 0)

    def execute(self, written: Sequence[MemoryStream]) -> None:
        """Take what was written to the output's streams."""
        mine = ((self._numbers[s], s) for s in written if s in self._numbers)
        for number, stream in sorted(mine, key=lambda numbered: numbered[0]):
            while (entry := stream.read_next(self._reader)) is not None:
                if len(entry.rows):
                    self.digest += digest(entry.rows)
                    self._emit(number, entry.rows)


class LocalRun:
    """Runs a program step by step, as the module says."""

    def __init__(
        self,
        program: Program,
        partitions: Partitions,
        emits: Sequence[Emit],
        *,
        cut: int | None = None,
        parallelism: int = 1,
        check: bool = False,
        traces: Traces | None = None,
        optimise: bool = True,
        keep: bool = False,
    ) -> None:
        """Make the vertices and streams. `partitions` has those of every source by name, `emits`
        one function for each output. `check` keeps ordered checksums of all streams, and compares
        rows that are written again; `traces` see all rows; `keep` never collects what was read."""
        planned = plan_program(program, parallelism, optimise=optimise)
        self.plan: StagedPlan = planned.stages
        self._partitions = partitions
        self._size = cut or CHUNK_ROWS
        self._keep = keep
        self.topology = planned.topology(partitions)
        widths = Counter(v.stage for v in self.topology.order if v.kind == "inner")
        widest = max(widths.values(), default=1)
        self._chunks = 1 if cut is not None else min(widest, ROUND_CHUNKS)
        """How many chunks are read before vertices work; of a size that was asked for, one."""
        # What there is to do: the inputs of each vertex, by its index in the order, that have
        # something new, and the streams that were written. Streams know these two, and neither the
        # run nor its vertices: so the state is gone as soon as the run is, and need not wait for
        # the garbage collector, which does not know how large it is.
        self._ready: dict[int, set[int]] = {}
        self._written: set[StreamId] = set()
        self.streams = {name: self._stream(name, check, traces) for name in self.topology.streams}
        self._watch_streams()
        self.vertices: dict[VertexId, Vertex | SourceVertex] = {
            spec.id: self.make(spec) for spec in self.topology.order if spec.kind != "sink"
        }
        self.sources = [
            PartitionReader(vertex, self._partition(vertex.spec), self._size)
            for vertex in self.vertices.values()
            if isinstance(vertex, SourceVertex)
        ]
        self.egress = [
            Egress(sink.output, [self.streams[name] for name in spec.inputs], emit)
            for sink, spec, emit in zip(self.plan.sinks, self.topology.sinks, emits, strict=True)
        ]

    # --- building ----------------------------------------------------------------------------

    def _partition(self, spec: VertexSpec) -> SourcePartition:
        return self._partitions[source_of(self.plan, spec).name][spec.index]

    def _stream(self, name: StreamId, check: bool, traces: Traces | None) -> MemoryStream:
        writer = self.topology.writer_of(name)
        by = partial(written_by, self.plan, writer, name)
        trace = None
        if traces is not None:
            trace = traces.of(name, stream_schema(self.plan, writer, name).names)
        layout = writer.layout(name)
        return MemoryStream(name, layout, check=check, written_by=by, trace=trace)

    def _watch_streams(self) -> None:
        for name, stream in self.streams.items():
            stream.watch(partial(self._written.add, name))
        for index, spec in enumerate(self.topology.order):
            if spec.kind != "sink":
                for number, name in enumerate(spec.inputs):
                    self.streams[name].watch(partial(_note, self._ready, index, number))

    def make(self, spec: VertexSpec) -> Vertex | SourceVertex:
        """Make a fresh instance of a vertex, at the beginning of its inputs."""
        if spec.kind == "source":
            name = self._partition(spec).name
            return make_source_vertex(self.plan, spec, name, self.streams)
        inputs = [
            _LargeReads(self.streams[name].through(spec.view(input)))
            for input, name in enumerate(spec.inputs)
        ]
        return make_vertex(self.plan, spec, inputs, self.streams)

    def restart(self, vertex: VertexId) -> None:
        """Replace a vertex by a fresh instance that loads its snapshot."""
        old = self.vertices[vertex]
        fresh = self.make(self.topology.vertices[vertex])
        fresh.load(old.snapshot())
        self.vertices[vertex] = fresh
        for reader in self.sources:
            if reader.vertex is old:
                assert isinstance(fresh, SourceVertex)
                reader.go_on_with(fresh)

    def renew(self) -> None:
        """Let every vertex go on with fresh operators, which load what a snapshot has of it."""
        for name, vertex in self.vertices.items():
            vertex.renew(make_chain(self.plan, self.topology.vertices[name]))

    # --- running -----------------------------------------------------------------------------

    def run(self, progress: OnProgress | None = None) -> None:
        """Step until all inputs have ended; tell `progress` after each step."""
        while self.step():
            if progress is not None:
                progress(self.progress)
        stalled = [name for name, vertex in self.vertices.items() if vertex.cti != OPEN]
        if stalled:
            raise RunError(f"all inputs ended, but {', '.join(stalled)} did not: a bug in Weir")

    @property
    def events(self) -> int:
        return sum(reader.vertex.events for reader in self.sources)

    @property
    def progress(self) -> Progress:
        read, size = sum(s.read for s in self.sources), sum(s.size for s in self.sources)
        return Progress(self.events, self.reached, read, size)

    @property
    def reached(self) -> int:
        """The event time up to which every source is known."""
        return min((reader.vertex.now for reader in self.sources), default=OPEN)

    def step(self) -> bool:
        """Read one chunk, or several, and work them off; False when all sources are at their
        end."""
        if all(reader.finished for reader in self.sources):
            return False
        with plain_interrupts(), completing(self._partitions):
            size = 0
            for _ in range(self._chunks):
                waiting = [reader for reader in self.sources if not reader.finished]
                if not waiting or size >= ROUND_BYTES:
                    break
                # The source that is furthest behind holds all merges back: it goes first.
                size += min(waiting, key=lambda reader: reader.vertex.now).step()
            self.work_off()
        return True

    def work_off(self) -> None:
        """Let the vertices work until nothing is left to read, in order."""
        while self._ready:
            index = min(self._ready)
            numbers = sorted(self._ready.pop(index))
            vertex = self.vertices[self.topology.order[index].id]
            assert isinstance(vertex, Vertex)
            while vertex.execute(numbers):
                pass
        written = [self.streams[name] for name in self._written]
        self._written.clear()
        for egress in self.egress:
            egress.execute(written)
        if not self._keep:
            for stream in written:
                stream.collect_read()

    @property
    def state_rows(self) -> int:
        return sum(vertex.state_rows for vertex in self.vertices.values())

    @property
    def checksums(self) -> dict[StreamId, str]:
        """The ordered checksums of all streams, by name."""
        return {stream.name: stream.ordered_checksum for stream in self.streams.values()}

    @property
    def read(self) -> list[SourceTotal]:
        """What each source vertex has read so far."""
        return [reader.vertex.total for reader in self.sources]

    @property
    def written(self) -> list[SinkTotal]:
        """What has reached each output so far."""
        return [SinkTotal(egress.output, egress.digest) for egress in self.egress]


def _note(ready: dict[int, set[int]], index: int, number: int) -> None:
    ready.setdefault(index, set()).add(number)
