"""One source vertex: an ingress in front of its vertex, in every runner.

Rules
1. A source vertex takes chunks of its partition. The rows that the ingress admits go through the
   vertex; the rows that it turns away go to the late and bad streams, if an output asks for them.
2. Late and bad streams carry no claim before the end, since their rows may start at any time.
3. A snapshot holds the state of the ingress, that of the vertex, and the resume state of the
   source (`Resume`). A fresh source vertex that loads it goes on with the next row of the
   partition, and writes the same rows under the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, empty_batch
from weir.files.chunks import Chunk, SourcePartition
from weir.ingress.ingress import Ingress
from weir.plan.operators import schema
from weir.plan.operators.source import SOURCE_ORIGIN_DEPTH
from weir.reliable.chain import Chain
from weir.reliable.stream import Entry, StreamWriter
from weir.reliable.vertex import RowSpan, See, Snapshot, Vertex
from weir.runtime.reports import SourceTotal
from weir.runtime.topology import StreamId, VertexSpec

_INGRESS, _RESUME = "$ingress", "$resume"


class SourceVertex:
    """The ingress of one partition and the vertex after it; see the module's rules."""

    def __init__(
        self,
        spec: VertexSpec,
        vertex: Vertex,
        ingress: Ingress,
        writers: Mapping[StreamId, StreamWriter],
    ) -> None:
        self.spec = spec
        self._vertex, self._ingress = vertex, ingress
        self._late = [_AsideWriter(writers[stream]) for stream in spec.late]
        self._bad = [_AsideWriter(writers[stream]) for stream in spec.bad]
        self._nothing = empty_batch(schema(ingress.source).types, SOURCE_ORIGIN_DEPTH)
        self.resume: bytes | None = None
        """What the source needs to go on after the last chunk, if it needs anything."""

    @property
    def cti(self) -> int:
        return self._vertex.cti

    @property
    def now(self) -> int:
        """The event time that the partition has reached."""
        return self._ingress.now

    @property
    def next_offset(self) -> int:
        return self._ingress.next_offset

    @property
    def state_rows(self) -> int:
        return self._vertex.state_rows

    @property
    def done(self) -> bool:
        return self._ingress.now == OPEN

    @property
    def events(self) -> int:
        """How many rows were admitted, before the snapshot that was loaded too."""
        return self._ingress.event_count

    @property
    def turned_away(self) -> tuple[int, int]:
        """How many rows were late, and how many bad."""
        return self._ingress.late_count, self._ingress.bad_count

    @property
    def total(self) -> SourceTotal:
        """How much the vertex has read, for the run's report."""
        late, bad = self.turned_away
        return SourceTotal(
            vertex=self.spec.id,
            source=self._ingress.source.name,
            events=self.events,
            late=late,
            bad=bad,
        )

    def watch(self, see: See, pieces: int) -> None:
        self._vertex.see, self._vertex.pieces = see, pieces

    def feed(self, chunk: Chunk | None) -> None:
        """Take the next rows of the partition; None means that it has ended."""
        if chunk is None:
            self._vertex.feed(self._nothing, self._ingress.end(), self.next_offset)
            self._end_asides()
            return
        span = RowSpan(
            input=0, first=self.next_offset, end=chunk.stop, claims=False, since=START, until=START
        )
        self._vertex.see(span, self._nothing)
        admitted = self._ingress.feed(chunk)
        self.resume = chunk.resume or self.resume
        self._vertex.feed(admitted.batch, admitted.cti, chunk.stop)
        for writers, rows in ((self._late, admitted.late), (self._bad, admitted.bad)):
            for writer in writers:
                writer.write(rows, START)

    def _end_asides(self) -> None:
        for writer in (*self._late, *self._bad):
            writer.write(self._nothing, OPEN)

    def renew(self, chain: Chain) -> None:
        """Go on with a fresh chain; see `Vertex.renew`."""
        self._vertex.renew(chain)

    def snapshot(self) -> Snapshot:
        inner = self._vertex.snapshot()
        state = {n: pa.array([v], pa.int64()) for n, v in self._ingress.snapshot().items()}
        tables = inner.tables | {_INGRESS: pa.table(state)}
        if self.resume is not None:
            tables = tables | {_RESUME: pa.table({"state": [self.resume]})}
        asides = tuple(writer.written for writer in (*self._late, *self._bad))
        return Snapshot((self.next_offset,), (*inner.outputs, *asides), tables)

    def load(self, snapshot: Snapshot) -> None:
        state = snapshot.tables[_INGRESS].to_pylist()[0]
        self._ingress.load(state)
        rest = {n: t for n, t in snapshot.tables.items() if n not in (_INGRESS, _RESUME)}
        if _RESUME in snapshot.tables:
            self.resume = snapshot.tables[_RESUME].column("state")[0].as_py()
        asides = (*self._late, *self._bad)
        at = len(snapshot.outputs) - len(asides)
        self._vertex.load(Snapshot((), snapshot.outputs[:at], rest))
        for writer, written in zip(asides, snapshot.outputs[at:], strict=True):
            writer.written = written
        if self.done:
            self._end_asides()


class _AsideWriter:
    """Numbers the rows of a late or a bad stream."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer
        self.written = 0

    def write(self, rows: Batch, cti: int) -> None:
        if len(rows) or cti > START:
            self._writer.write(Entry(self.written, rows, cti))
            self.written += len(rows)


class PartitionReader:
    """Reads a partition that has an end, chunk by chunk, into its source vertex."""

    def __init__(self, vertex: SourceVertex, partition: SourcePartition, size: int) -> None:
        """`size` is how many rows a chunk has at most."""
        self.vertex = vertex
        self._partition, self._size = partition, size
        self._chunks: Iterator[Chunk] | None = None
        self.size, self.read = partition.size, 0
        self.finished = False

    def step(self) -> int:
        """Feed one chunk, or the end; return how many bytes its rows had."""
        if self._chunks is None:
            self._chunks = self._partition.chunks(self._size, self.vertex.next_offset)
        chunk = next(self._chunks, None)
        self.finished = chunk is None
        self.vertex.feed(chunk)
        self.read = self.size if chunk is None else chunk.read
        return 0 if chunk is None else int(chunk.rows.nbytes)

    def go_on_with(self, vertex: SourceVertex) -> None:
        """Read for another instance of the vertex, from where that one stands."""
        self.vertex, self._chunks = vertex, None
