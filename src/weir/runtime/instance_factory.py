"""Makes the instances of a program's vertices, for hosts in the simulator and on Spark alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from weir.events.batch import Batch
from weir.files.chunks import Chunk
from weir.ingress.source_machine import log_record
from weir.plan.horizon import horizons
from weir.plan.stages import StagedPlan
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import Strategy
from weir.reliable.vertex import See, Snapshot, Vertex
from weir.runtime.instance import AHEAD_ROWS, InnerInstance, Instance, SinkInstance
from weir.runtime.row_differences import written_by
from weir.runtime.source_vertex import SourceVertex
from weir.runtime.topology import VertexSpec
from weir.runtime.vertices import make_source_vertex, make_vertex, source_of

EmitRows = Callable[[int, int, Batch], None]
"""Is called with (partition, number of the first row, rows) of an output."""


class PartitionInstance:
    """An instance of a source vertex; the host's driver reads its chunks."""

    def __init__(self, vertex: SourceVertex, streams: Mapping[str, LogStream]) -> None:
        self.spec, self.streams = vertex.spec, streams
        self.cursors: tuple[Cursor, ...] = ()
        self._vertex = vertex
        self._chunks: deque[Chunk | None] = deque()
        """The chunks that were taken and wait for a step; None: the end of the partition."""
        self.caught_up = True

    @property
    def cti(self) -> int:
        return self._vertex.cti

    @property
    def events(self) -> int:
        return self._vertex.events

    @property
    def state_rows(self) -> int:
        return self._vertex.state_rows

    @property
    def done(self) -> bool:
        return self._vertex.done

    @property
    def marker(self) -> tuple[int, ...]:
        return (self._vertex.now, self._vertex.next_offset)

    @property
    def wants_chunk(self) -> bool:
        return not self._chunks and not self.done

    @property
    def next_offset(self) -> int:
        return self._vertex.next_offset

    @property
    def resume(self) -> bytes | None:
        return self._vertex.resume

    @property
    def log_record(self) -> ObjectRef | None:
        return log_record(self.resume)

    @property
    def turned_away(self) -> tuple[int, int]:
        return self._vertex.turned_away

    def take_chunk(self, chunk: Chunk | None) -> None:
        self._chunks.append(chunk)

    def watch(self, see: See, pieces: int) -> None:
        self._vertex.watch(see, pieces)

    def work(self) -> bool:
        if not self._chunks:
            return False
        self._vertex.feed(self._chunks.popleft())
        return True

    def snapshot(self) -> Snapshot:
        return self._vertex.snapshot()

    def load(self, snapshot: Snapshot) -> None:
        self._vertex.load(snapshot)
        self._chunks.clear()


class InstanceMaker:
    """Makes instances of a plan's vertices: a `MakeInstance`."""

    def __init__(
        self,
        plan: StagedPlan,
        partition_names: Mapping[str, Sequence[str]],
        emits: Mapping[int, EmitRows] | None = None,
        *,
        strategies: Mapping[str, Strategy],
        check: bool = False,
        synchronous: bool = False,
        ahead_rows: int = AHEAD_ROWS,
    ) -> None:
        """`partition_names` has those of every source; `emits` has a function for each output whose
        rows are handed on at once; `strategies` has that of every source and inner vertex."""
        self._ahead_rows = ahead_rows
        self._plan, self._names = plan, partition_names
        self._strategies = strategies
        self._horizons = horizons(plan)
        self._emits = emits or {}
        self._check, self._synchronous = check, synchronous

    def __call__(
        self,
        spec: VertexSpec,
        segments: Mapping[str, Sequence[Segment]],
        snapshot: Snapshot | None,
    ) -> Instance:
        if spec.kind == "sink":
            return SinkInstance(spec, self._emits.get(spec.stage))
        starts = snapshot.outputs if snapshot is not None else (0,) * len(spec.outputs)
        make_stream = self._strategy(spec).stream
        streams = {
            name: make_stream(
                name, segments.get(name, ()), start, check=self._check,
                written_by=partial(written_by, self._plan, spec, name),
                synchronous=self._synchronous,
            )
            for name, start in zip(spec.outputs, starts, strict=True)
        }  # fmt: skip
        instance = (
            self._source(spec, streams) if spec.kind == "source" else self._inner(spec, streams)
        )
        if snapshot is not None:
            instance.load(snapshot)
        return instance

    def _inner(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> Instance:
        return InnerInstance(
            spec, lambda cursors: self._vertex(spec, cursors, streams), streams, self._ahead_rows
        )

    def _source(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> Instance:
        partition = self._names[source_of(self._plan, spec).name][spec.index]
        return PartitionInstance(make_source_vertex(self._plan, spec, partition, streams), streams)

    def _vertex(
        self, spec: VertexSpec, cursors: Sequence[Cursor], streams: Mapping[str, LogStream]
    ) -> Vertex:
        return make_vertex(
            self._plan, spec, cursors, streams, self._horizons[spec.stage],
            marks=self._strategy(spec).takes_marks,
        )  # fmt: skip

    def _strategy(self, spec: VertexSpec) -> Strategy:
        return self._strategies[spec.id]
