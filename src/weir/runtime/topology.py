"""The topology of a job, its vertices and the streams between them: one value for every runner.

Rules
1. A vertex is named `stage.index`, the reader of output n `sink.n`; a stream `vertex/outlet`: the
   outlet of a vertex's rows is 0, those of rows that a source turns away are `late` and `bad`.
   Names depend on the plan, its counts and the generation alone, so they mean the same in every
   runner and after a restart.
2. The names of generation g begin with it, `g3-1.0` and `g3-1.0/0`; those of generation 0 do not.
   Keys of objects are made of these names, which have no character that a store treats specially.
3. Every stream has one writer and any number of readers. A reader reads everything or a view
   (`reliable/views.py`): a vertex of a stage that is split by keys reads the buckets of its part,
   and the outlet knows all views that readers have. Inputs of a vertex stand in the order of its
   stage's ports, links and writers.
4. `order` lists the writer of every stream before its readers, except for streams that are marked
   as back edges: those close cycles. So a walk along streams need not end; walk `order` instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal, TypeAlias

import msgspec

from weir.errors import PlanError
from weir.plan.program import StreamKind
from weir.plan.stages import Link, Split, Stage, StagedPlan, links_of, split_of, stage_schema
from weir.reliable.views import WHOLE, StreamLayout, View, layout_of, view_of_part

VertexId: TypeAlias = str
StreamId: TypeAlias = str


class StreamSpec(msgspec.Struct, frozen=True):
    """Describes a stream: which vertex writes it, as which outlet, and what it carries. `late` and
    `bad` streams are the last outlets of their vertex."""

    id: StreamId
    writer: VertexId
    outlet: int
    kind: StreamKind = "rows"
    back: bool = False
    """Whether it closes a cycle: its readers may stand before its writer."""


@dataclass(frozen=True, slots=True)
class OutletSpec:
    """Describes an outlet of a vertex: its stream, and how that is read."""

    stream: StreamId
    layout: StreamLayout = WHOLE


@dataclass(frozen=True, slots=True)
class VertexSpec:
    """Describes a vertex: what it runs, reads and writes."""

    id: VertexId
    kind: Literal["source", "inner", "sink"]
    stage: int
    """The number of its stage; for a sink, the number of its output."""
    index: int
    """Which of the stage's vertices it is, from 0 on."""
    inputs: tuple[StreamId, ...] = ()
    ports: tuple[int, ...] = ()
    """The port of the stage that each input belongs to."""
    outlets: tuple[OutletSpec, ...] = ()
    late: tuple[StreamId, ...] = ()
    bad: tuple[StreamId, ...] = ()
    views: tuple[View | None, ...] = ()
    """What it reads of each input; None: everything. Without any, it reads everything of all."""

    @property
    def outputs(self) -> tuple[StreamId, ...]:
        """All streams that the vertex writes, in the order of a snapshot's positions."""
        return (*(outlet.stream for outlet in self.outlets), *self.late, *self.bad)

    def view(self, input: int) -> View | None:
        """Return what it reads of an input; None: everything."""
        return self.views[input] if self.views else None

    def layout(self, stream: StreamId) -> StreamLayout:
        """Find how a stream that the vertex writes is read."""
        return next((o.layout for o in self.outlets if o.stream == stream), WHOLE)


@dataclass(frozen=True, slots=True)
class Topology:
    """Has all vertices and streams of one generation of a job; `wire` makes it of the vertices."""

    generation: int
    order: tuple[VertexSpec, ...]
    """The vertices, by rule 4."""
    vertices: Mapping[VertexId, VertexSpec]
    """The vertices by name."""
    streams: Mapping[StreamId, StreamSpec]
    """The streams by name, in the order of their writers."""
    readers_of: Mapping[StreamId, tuple[tuple[VertexId, int], ...]]
    """The vertices that read each stream, and as which input each; one may read a stream twice."""

    def __reduce__(self) -> tuple[object, ...]:
        # Other processes wire it again: there are far more streams than vertices.
        back = tuple(s.id for s in self.streams.values() if s.back)
        return wire, (self.order, self.generation, back)

    def writer_of(self, stream: StreamId) -> VertexSpec:
        """Find the vertex that writes a stream."""
        return self.vertices[self.streams[stream].writer]

    @property
    def sources(self) -> tuple[VertexSpec, ...]:
        return tuple(v for v in self.order if v.kind == "source")

    @property
    def sinks(self) -> tuple[VertexSpec, ...]:
        """The sinks, in the order of the outputs."""
        return tuple(v for v in self.order if v.kind == "sink")


def vertex_name(stage: int | Literal["sink"], index: int, generation: int = 0) -> VertexId:
    """Name a vertex of a stage, or the sink of an output.

    >>> vertex_name(1, 0), vertex_name("sink", 2), vertex_name(1, 0, generation=3)
    ('1.0', 'sink.2', 'g3-1.0')
    """
    return f"g{generation}-{stage}.{index}" if generation else f"{stage}.{index}"


def stream_name(vertex: VertexId, outlet: int | Literal["late", "bad"] = 0) -> StreamId:
    """Name a stream that a vertex writes.

    >>> stream_name(vertex_name(1, 0)), stream_name(vertex_name(0, 2), "late")
    ('1.0/0', '0.2/late')
    """
    return f"{vertex}/{outlet}"


def make_topology(plan: StagedPlan, counts: Sequence[int], generation: int = 0) -> Topology:
    """Make the topology of a plan with `counts` vertices in each stage."""
    return wire(tuple(_Layout(plan, counts, generation).vertices()), generation)


def wire(
    vertices: Sequence[VertexSpec], generation: int = 0, back: Collection[StreamId] = ()
) -> Topology:
    """Make the topology of these vertices; `back` names the streams that are back edges."""
    streams = {s.id: s for v in vertices for s in _streams(v, back)}
    order = _writers_first(vertices, streams)
    readers: dict[StreamId, list[tuple[VertexId, int]]] = {}
    for vertex in order:
        for input, stream in enumerate(vertex.inputs):
            readers.setdefault(stream, []).append((vertex.id, input))
    return Topology(
        generation=generation,
        order=order,
        vertices={v.id: v for v in order},
        streams={stream: streams[stream] for v in order for stream in v.outputs},
        readers_of={stream: tuple(who) for stream, who in readers.items()},
    )


def _streams(vertex: VertexSpec, back: Collection[StreamId]) -> Iterator[StreamSpec]:
    for number, outlet in enumerate(vertex.outlets):
        stream = outlet.stream
        yield StreamSpec(stream, vertex.id, number, back=stream in back)
    turned_away: list[tuple[StreamKind, StreamId]] = [
        *(("late", stream) for stream in vertex.late),
        *(("bad", stream) for stream in vertex.bad),
    ]
    for number, (kind, stream) in enumerate(turned_away, len(vertex.outlets)):
        yield StreamSpec(id=stream, writer=vertex.id, outlet=number, kind=kind)


def _writers_first(
    vertices: Sequence[VertexSpec], streams: Mapping[StreamId, StreamSpec]
) -> tuple[VertexSpec, ...]:
    """Put the vertices in the order of rule 4; of several that could come next, the first one given
    comes first."""
    number_of = {v.id: number for number, v in enumerate(vertices)}
    readers: list[list[int]] = [[] for _ in vertices]
    missing = [0] * len(vertices)
    for number, vertex in enumerate(vertices):
        for stream in (streams[name] for name in vertex.inputs):
            if not stream.back:
                readers[number_of[stream.writer]].append(number)
                missing[number] += 1
    ready = [number for number, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[VertexSpec] = []
    while ready:
        number = heappop(ready)
        order.append(vertices[number])
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    if len(order) < len(vertices):
        stuck = ", ".join(v.id for v, count in zip(vertices, missing, strict=True) if count)
        raise PlanError(f"the cycle of {stuck} has no back edge")
    return tuple(order)


class _Layout:
    """Lays the stages of a plan out in vertices."""

    def __init__(self, plan: StagedPlan, counts: Sequence[int], generation: int) -> None:
        self._plan, self._counts, self._generation = plan, counts, generation
        self._layouts = [
            _layout(stage, splits)
            for stage, splits in zip(plan.stages, plan.outlets(), strict=True)
        ]
        """How the rows of each stage are read; None: not at all."""

    def vertices(self) -> Iterator[VertexSpec]:
        for stage in self._plan.stages:
            for index in range(self._counts[stage.number]):
                yield self._vertex(stage, index)
        for number in range(len(self._plan.sinks)):
            yield self._sink(number)

    def _name(self, stage: int, index: int) -> VertexId:
        return vertex_name(stage, index, self._generation)

    def _vertex(self, stage: Stage, index: int) -> VertexSpec:
        inputs: list[StreamId] = []
        ports: list[int] = []
        views: list[View | None] = []
        for port, link in links_of(stage):
            read = self._read(link, index)
            inputs += read
            ports += [port] * len(read)
            views += [self._view(link, stage, index)] * len(read)
        name = self._name(stage.number, index)
        return VertexSpec(
            id=name,
            kind="inner" if stage.ports else "source",
            stage=stage.number,
            index=index,
            inputs=tuple(inputs),
            ports=tuple(ports),
            outlets=self._written(stage, name),
            late=self._turned_away(stage, name, "late"),
            bad=self._turned_away(stage, name, "bad"),
            views=tuple(views),
        )

    def _read(self, link: Link, index: int) -> list[StreamId]:
        """Name the streams that a vertex of a stage reads by a link."""
        writers = [index] if link.channel == "forward" else range(self._counts[link.stage])
        return [stream_name(self._name(link.stage, writer)) for writer in writers]

    def _view(self, link: Link, stage: Stage, index: int) -> View | None:
        """Say what a vertex of a stage reads of the streams of a link."""
        split = split_of(link, stage)
        if split.keys is None:
            return None
        return view_of_part(_indices(self._plan.stages[link.stage], split.keys), index, split.parts)

    def _written(self, stage: Stage, name: VertexId) -> tuple[OutletSpec, ...]:
        layout = self._layouts[stage.number]
        return () if layout is None else (OutletSpec(stream_name(name), layout),)

    def _turned_away(
        self, stage: Stage, name: VertexId, kind: Literal["late", "bad"]
    ) -> tuple[StreamId, ...]:
        """Name the stream of a source's late or bad rows, if an output asks for it."""
        asked = any(
            s.output.kind == kind and stage.number in self._plan.stages_of(s)
            for s in self._plan.sinks
        )
        return (stream_name(name, kind),) if asked else ()

    def _sink(self, number: int) -> VertexSpec:
        sink = self._plan.sinks[number]
        kind = sink.output.kind
        inputs = tuple(
            stream_name(self._name(stage, index), 0 if kind == "rows" else kind)
            for stage in self._plan.stages_of(sink)
            for index in range(self._counts[stage])
        )
        name = vertex_name("sink", number, self._generation)
        return VertexSpec(
            id=name, kind="sink", stage=number, index=0, inputs=inputs, ports=(0,) * len(inputs)
        )


def _indices(stage: Stage, columns: Sequence[str]) -> tuple[int, ...]:
    names = stage_schema(stage).names
    return tuple(names.index(column) for column in columns)


def _layout(stage: Stage, splits: Sequence[Split]) -> StreamLayout | None:
    """Lay out the stream of a stage's vertex, which is read in these ways; None: not at all."""
    if not splits:
        return None
    ways = ((None if s.keys is None else _indices(stage, s.keys), s.parts) for s in splits)
    return layout_of(list(ways))
