"""Instances of vertices: how a host runs a source, an inner vertex and a sink.

Contract
1. `work` takes one step if there is anything to do, and returns whether there was. It never waits.
2. `snapshot` may be called between any two steps; of an instance that rebuilds its state from
   input (`rebuildable_vertex.py`), only once it has caught up. A fresh instance that loads the
   snapshot goes on in the same way.
3. An instance does no I/O: the host's driver reads the chunks of a source (`SourceInstance`), and
   the host commits the rows of a sink (`SinkInstance`).
4. `watch` says who is shown the rows of each step before anything is done with them, and how many
   rows are processed at a time (0: all); see `Vertex`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from weir.events.batch import OPEN, START, Batch
from weir.files.chunks import Chunk
from weir.ingress.ingress import Ingress
from weir.ingress.source_machine import log_record
from weir.reliable.cursor import STEP_ROWS, Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.stream import Entry
from weir.reliable.vertex import RowSpan, See, Snapshot, Vertex, see_nothing
from weir.runtime.source_vertex import SourceVertex
from weir.runtime.topology import VertexSpec

AHEAD_ROWS = 4 * STEP_ROWS
"""So many rows, and those of one step more, may wait in a vertex for inputs that are behind."""


class Instance(Protocol):
    """An instance is one running copy of a vertex, by the module's contract."""

    spec: VertexSpec
    cursors: tuple[Cursor, ...]
    """The reading ends of its inputs, in the order of `spec.inputs`."""
    streams: Mapping[str, LogStream]
    """The streams that it writes, by name."""

    @property
    def cti(self) -> int:
        """The event time up to which it has written (a sink: read) all."""
        ...

    @property
    def events(self) -> int:
        """How many rows it has read; of a source, how many were admitted, by earlier instances
        too."""
        ...

    @property
    def state_rows(self) -> int:
        """How many rows its state has."""
        ...

    @property
    def done(self) -> bool:
        """Whether it has nothing more to do."""
        ...

    @property
    def caught_up(self) -> bool:
        """Whether it has reached the snapshot that it began from; see `Vertex.caught_up`."""
        ...

    @property
    def marker(self) -> tuple[int, ...]:
        """Numbers that change with every step that changes anything: cheaper than a snapshot."""
        ...

    def watch(self, see: See, pieces: int) -> None: ...
    def work(self) -> bool: ...
    def snapshot(self) -> Snapshot: ...
    def load(self, snapshot: Snapshot) -> None: ...


MakeInstance: TypeAlias = Callable[
    [VertexSpec, Mapping[str, Sequence[Segment]], "Snapshot | None"], Instance
]
"""Makes an instance of a vertex whose output streams have these segments in the store; it goes on
from the snapshot, if there is one."""


class SourceInstance(SourceVertex):
    """An instance of a source: a source vertex whose chunks wait here for its next step."""

    def __init__(
        self,
        spec: VertexSpec,
        vertex: Vertex,
        ingress: Ingress,
        streams: Mapping[str, LogStream],
    ) -> None:
        super().__init__(spec, vertex, ingress, streams)
        self.streams = streams
        self.cursors: tuple[Cursor, ...] = ()
        self.caught_up = True
        self._chunks: deque[Chunk | None] = deque()
        """The chunks that the driver brought; None: the end of the partition."""

    @property
    def marker(self) -> tuple[int, ...]:
        return (self.now, self.next_offset)

    @property
    def wants_chunk(self) -> bool:
        """Whether it could take a chunk now."""
        return not self._chunks and not self.done

    @property
    def log_record(self) -> ObjectRef | None:
        """The last record of its log that took effect, and the first that it still needs."""
        return log_record(self.resume)

    def take_chunk(self, chunk: Chunk | None) -> None:
        """Take the next chunk, for a later step; None: the partition has ended."""
        self._chunks.append(chunk)

    def work(self) -> bool:
        if not self._chunks:
            return False
        self.feed(self._chunks.popleft())
        return True

    def load(self, snapshot: Snapshot) -> None:
        super().load(snapshot)
        self._chunks.clear()


class InnerInstance:
    """An instance of a vertex that reads streams and writes streams."""

    def __init__(
        self,
        spec: VertexSpec,
        vertex: Vertex,
        cursors: tuple[Cursor, ...],
        streams: Mapping[str, LogStream],
        *,
        ahead_rows: int = AHEAD_ROWS,
    ) -> None:
        """`vertex` reads the `cursors` and writes the `streams`."""
        self.spec, self.cursors, self.streams = spec, cursors, streams
        self._vertex, self._ahead_rows = vertex, ahead_rows
        self.events = 0

    @property
    def cti(self) -> int:
        return self._vertex.cti

    @property
    def state_rows(self) -> int:
        return self._vertex.state_rows

    @property
    def done(self) -> bool:
        return self._vertex.cti == OPEN and self._vertex.caught_up

    @property
    def caught_up(self) -> bool:
        return self._vertex.caught_up

    @property
    def marker(self) -> tuple[int, ...]:
        return (self.cti, *(c.position for c in self.cursors), *(c.cti for c in self.cursors))

    def watch(self, see: See, pieces: int) -> None:
        self._vertex.see, self._vertex.pieces = see, pieces

    def work(self) -> bool:
        before = sum(c.count for c in self.cursors)
        counts = self._vertex.caught_up
        wanted = self._vertex.wanted(self._ahead_rows)
        progressed = self._vertex.execute([i for i in wanted if self.cursors[i].has_news])
        if counts:
            self.events += sum(c.count for c in self.cursors) - before
        return progressed

    def snapshot(self) -> Snapshot:
        return self._vertex.snapshot()

    def load(self, snapshot: Snapshot) -> None:
        self._vertex.load(snapshot)


class SinkInstance:
    """An instance of a sink: rows wait here until the host commits them, or go to a callback."""

    def __init__(
        self, spec: VertexSpec, emit: Callable[[int, int, Batch], None] | None = None
    ) -> None:
        """`emit` is called at once with (partition, number of the first row, rows); without it,
        rows wait for `take`."""
        self.spec = spec
        self.caught_up = True
        self.streams: Mapping[str, LogStream] = {}
        self.cursors = make_cursors(spec)
        self.events = 0
        self.state_rows = 0
        self.waiting: list[tuple[int, Batch]] = []
        """The rows that are to be committed, with the input that each came from."""
        self._emit = emit
        self._see: See = see_nothing
        self._pieces = 0

    @property
    def commits(self) -> bool:
        """Whether its rows are to be committed to the store."""
        return self._emit is None

    @property
    def cti(self) -> int:
        return min((c.cti for c in self.cursors), default=OPEN)

    @property
    def done(self) -> bool:
        return self.cti == OPEN and not self.waiting

    @property
    def marker(self) -> tuple[int, ...]:
        return tuple(c.position for c in self.cursors)

    def watch(self, see: See, pieces: int) -> None:
        self._see, self._pieces = see, pieces

    def work(self) -> bool:
        progressed = False
        for input, cursor in enumerate(self.cursors):
            entry = cursor.read_next(cursor.reader) if cursor.has_news else None
            if entry is None:
                continue
            progressed = True
            self.events += len(entry.rows)
            if not len(entry.rows):
                continue
            if self._emit is not None:
                self._hand_on(self._emit, input, entry)
            else:
                self.waiting.append((input, entry.rows))
                self.state_rows += len(entry.rows)
        return progressed

    def _hand_on(self, emit: Callable[[int, int, Batch], None], input: int, entry: Entry) -> None:
        size = self._pieces or len(entry.rows)
        for start in range(0, len(entry.rows), size):
            rows = entry.rows.slice(start, start + size)
            first = entry.seq + start
            self._see(
                RowSpan(
                    input=input,
                    first=first,
                    end=first + len(rows),
                    claims=False,
                    since=START,
                    until=START,
                ),
                rows,
            )
            emit(input, first, rows)

    def take(self) -> list[tuple[int, Batch]]:
        """Take all rows that wait; a `snapshot` then has the positions up to which they reach."""
        waiting, self.waiting, self.state_rows = self.waiting, [], 0
        return waiting

    def snapshot(self) -> Snapshot:
        return Snapshot(tuple(c.position for c in self.cursors), (), {})

    def load(self, snapshot: Snapshot) -> None:
        self.waiting, self.state_rows = [], 0
        for cursor, seq in zip(self.cursors, snapshot.inputs, strict=True):
            cursor.register(cursor.reader, seq)


def make_cursors(spec: VertexSpec) -> tuple[Cursor, ...]:
    """Make a cursor for each input of a vertex."""
    return tuple(
        Cursor(stream, (spec.id, input), spec.view(input))
        for input, stream in enumerate(spec.inputs)
    )
