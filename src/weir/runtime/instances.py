"""Instances of a program's vertices: what hosts run, in the simulator and on Spark alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, empty_batch
from weir.files.chunks import Chunk, LogPlace
from weir.ingress.ingress import Ingress
from weir.plan.horizon import horizons
from weir.plan.nodes import Source, schema
from weir.plan.properties import SOURCE_ORIGIN_DEPTH
from weir.plan.stages import StagedPlan
from weir.reliable.chain import Chain
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.replay import ReplayVertex
from weir.reliable.strategies import CheckpointStrategy, Strategy
from weir.reliable.stream import Entry
from weir.reliable.vertex import Outlet, RowSpan, See, Snapshot, Vertex
from weir.runtime.instance import AHEAD_ROWS, InnerInstance, Instance, SinkInstance
from weir.runtime.topology import VertexSpec

EmitRows = Callable[[int, int, Batch], None]
"""Takes (partition, number of the first row, rows) of an output."""

_INGRESS, _LOG = "$ingress", "$log"


class PartitionInstance:
    """The ingress of one partition and the vertex behind it. Chunks are read outside."""

    def __init__(
        self, spec: VertexSpec, vertex: Vertex, ingress: Ingress, streams: Mapping[str, LogStream]
    ) -> None:
        self.spec, self.streams = spec, streams
        self.cursors: tuple[Cursor, ...] = ()
        self._vertex, self._ingress = vertex, ingress
        self._nothing = empty_batch(schema(ingress.source).types, SOURCE_ORIGIN_DEPTH)
        self._chunks: deque[Chunk | None] = deque()
        self.log_place: LogPlace | None = None
        self.events = 0
        self.caught_up = True

    @property
    def cti(self) -> int:
        return self._vertex.cti

    @property
    def state_rows(self) -> int:
        return self._vertex.state_rows

    @property
    def done(self) -> bool:
        return self._ingress.now == OPEN

    @property
    def marker(self) -> tuple[int, ...]:
        return (self._ingress.now, self._ingress.next_offset)

    @property
    def wants_chunk(self) -> bool:
        return not self._chunks and not self.done

    @property
    def next_offset(self) -> int:
        return self._ingress.next_offset

    @property
    def log_number(self) -> int:
        return 0 if self.log_place is None else self.log_place.number

    @property
    def log_end(self) -> ObjectRef | None:
        return None if self.log_place is None else self.log_place.ref

    @property
    def turned_away(self) -> tuple[int, int]:
        return self._ingress.late_count, self._ingress.bad_count

    def take_chunk(self, chunk: Chunk | None) -> None:
        self._chunks.append(chunk)

    def watch(self, see: See, pieces: int) -> None:
        self._vertex.see, self._vertex.pieces = see, pieces

    def work(self) -> bool:
        if not self._chunks:
            return False
        chunk = self._chunks.popleft()
        if chunk is None:
            self._vertex.feed(self._nothing, self._ingress.end(), self.next_offset)
            self._end_turned_away()
            return True
        span = RowSpan(0, self.next_offset, chunk.stop, False, START, START)
        self._vertex.see(span, self._nothing)
        admitted = self._ingress.feed(chunk)
        self.log_place = chunk.place or self.log_place
        self.events += len(admitted.batch)
        self._vertex.feed(admitted.batch, admitted.cti, chunk.stop)
        for names, rows in ((self.spec.late, admitted.late), (self.spec.bad, admitted.bad)):
            for name in names:
                stream = self.streams[name]
                if len(rows):
                    stream.write(Entry(stream.written, rows, stream.cti))
        return True

    def _end_turned_away(self) -> None:
        for name in (*self.spec.late, *self.spec.bad):
            stream = self.streams[name]
            stream.write(Entry(stream.written, self._nothing, OPEN))

    def snapshot(self) -> Snapshot:
        inner = self._vertex.snapshot()
        state = {n: pa.array([v], pa.int64()) for n, v in self._ingress.snapshot().items()}
        turned_away = tuple(self.streams[n].written for n in (*self.spec.late, *self.spec.bad))
        tables = inner.tables | {_INGRESS: pa.table(state)}
        if self.log_place is not None:
            tables = tables | {_LOG: _place_table(self.log_place)}
        return Snapshot((self.next_offset,), (*inner.outputs, *turned_away), tables)

    def load(self, snapshot: Snapshot) -> None:
        state = snapshot.tables[_INGRESS].to_pylist()[0]
        self._ingress.load(state)
        outputs = snapshot.outputs[: sum(len(o.streams) for o in self.spec.outlets)]
        rest = {n: t for n, t in snapshot.tables.items() if n not in (_INGRESS, _LOG)}
        if _LOG in snapshot.tables:
            self.log_place = _place_of(snapshot.tables[_LOG])
        self._vertex.load(Snapshot((), outputs, rest))
        self._chunks.clear()
        if self.done:
            self._end_turned_away()


def _place_table(place: LogPlace) -> pa.Table:
    ref = place.ref or ObjectRef("")
    return pa.table(
        {
            "key": [ref.key],
            "size": [ref.size],
            "seal": [ref.seal],
            "offset": [place.offset],
            "line": [place.line],
            "files": pa.array([place.files], pa.list_(pa.string())),
            "read": [place.read],
            "digest": [place.digest],
        }
    )


def _place_of(table: pa.Table) -> LogPlace:
    (row,) = table.to_pylist()
    files = row["files"]
    ref = ObjectRef(row["key"], 0, row["size"], row["size"], row["seal"]) if row["key"] else None
    return LogPlace(ref, row["offset"], row["line"], files, len(files), row["read"], row["digest"])


class InstanceMaker:
    """Makes instances of a plan's vertices; see `MakeInstance`."""

    def __init__(
        self,
        plan: StagedPlan,
        partition_names: Mapping[str, Sequence[str]],
        emits: Mapping[int, EmitRows] | None = None,
        *,
        strategies: Mapping[str, Strategy] | None = None,
        check: bool = False,
        synchronous: bool = False,
        ahead_rows: int = AHEAD_ROWS,
    ) -> None:
        """`partition_names` of every source; `emits` for outputs that are handed on at once;
        `strategies` of vertices that take no checkpoints."""
        self._ahead_rows = ahead_rows
        self._plan, self._names = plan, partition_names
        self._strategies = strategies or {}
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
                name, segments.get(name, ()), start,
                check=self._check, synchronous=self._synchronous,
            )
            for name, start in zip(spec.outputs, starts, strict=True)
        }  # fmt: skip
        made = self._source(spec, streams) if spec.kind == "source" else self._inner(spec, streams)
        if snapshot is not None:
            made.load(snapshot)
        return made

    def _inner(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> Instance:
        return InnerInstance(
            spec, lambda cursors, _: self._vertex(spec, cursors, streams), streams, self._ahead_rows
        )

    def _source(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> Instance:
        source = self._plan.stages[spec.stage].operators[0]
        assert isinstance(source, Source)
        ingress = Ingress(source, spec.index, self._names[source.name][spec.index])
        return PartitionInstance(spec, self._vertex(spec, (), streams), ingress, streams)

    def _vertex(
        self, spec: VertexSpec, cursors: Sequence[Cursor], streams: Mapping[str, LogStream]
    ) -> Vertex:
        chain = Chain(self._plan.stages[spec.stage], self._plan.origins, spec.ports or [0])
        outlets = [
            Outlet(tuple(streams[name] for name in outlet.streams), outlet.keys)
            for outlet in spec.outlets
        ]
        horizon, marks = self._horizons[spec.stage], self._strategy(spec).takes_marks
        if spec.kind == "inner" and horizon.known:
            return ReplayVertex(spec.id, chain, cursors, outlets, horizon, marks=marks)
        return Vertex(spec.id, chain, cursors, outlets)

    def _strategy(self, spec: VertexSpec) -> Strategy:
        return self._strategies.get(spec.id, CheckpointStrategy())
