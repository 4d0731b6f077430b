"""The vertices of a job and the streams between them, from a staged plan.

Rules
1. A vertex is named `stage.index`, the reader of output n `sink.n`; a stream `vertex/outlet.part`.
   Names depend on the plan and its parallelism alone, so they mean the same after a restart.
2. Every stream has one writer and any number of readers. Inputs of a vertex stand in the order of
   its stage's ports, links and writers.
3. `order` lists writers before their readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weir.plan.operators import Source
from weir.plan.stages import Link, Stage, StagedPlan, links_of, stage_schema

VertexId: TypeAlias = str
StreamId: TypeAlias = str
OutletKey: TypeAlias = tuple[tuple[str, ...] | None, int]
"""Split by what (None: not split), into how many."""


@dataclass(frozen=True, slots=True)
class OutletSpec:
    """Streams that a vertex writes: one, or one for each part of a split by these columns."""

    streams: tuple[StreamId, ...]
    keys: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class VertexSpec:
    """One vertex: what it runs, reads and writes."""

    id: VertexId
    kind: Literal["source", "inner", "sink"]
    stage: int
    """Number of the stage; of a sink, number of the output."""
    index: int
    inputs: tuple[StreamId, ...] = ()
    ports: tuple[int, ...] = ()
    outlets: tuple[OutletSpec, ...] = ()
    late: tuple[StreamId, ...] = ()
    bad: tuple[StreamId, ...] = ()

    @property
    def outputs(self) -> tuple[StreamId, ...]:
        """All streams that it writes, in the order of a snapshot's positions."""
        split = tuple(stream for outlet in self.outlets for stream in outlet.streams)
        return (*split, *self.late, *self.bad)


@dataclass(frozen=True, slots=True)
class Topology:
    """All vertices; see the module's rules."""

    order: tuple[VertexSpec, ...]
    vertices: Mapping[VertexId, VertexSpec]
    writer_of: Mapping[StreamId, VertexId]
    readers_of: Mapping[StreamId, tuple[VertexId, ...]]

    @property
    def sinks(self) -> tuple[VertexSpec, ...]:
        return tuple(v for v in self.order if v.kind == "sink")


def make_topology(plan: StagedPlan, counts: Sequence[int]) -> Topology:
    """The vertices of a plan with `counts` vertices in each stage."""
    order = tuple(_Layout(plan, counts).vertices())
    readers: dict[StreamId, list[VertexId]] = {}
    for vertex in order:
        for stream in vertex.inputs:
            readers.setdefault(stream, []).append(vertex.id)
    return Topology(
        order,
        {v.id: v for v in order},
        {stream: v.id for v in order for stream in v.outputs},
        {stream: tuple(who) for stream, who in readers.items()},
    )


class _Layout:
    def __init__(self, plan: StagedPlan, counts: Sequence[int]) -> None:
        self._plan, self._counts = plan, counts
        self._outlets: dict[int, dict[OutletKey, int]] = {s.number: {} for s in plan.stages}
        for stage in plan.stages:
            for _, link in links_of(stage):
                self._outlet(link.stage, self._key(link, stage))
        for sink in plan.sinks:
            for number in sink.stages:
                self._outlet(number, (None, 1))

    def vertices(self) -> Iterator[VertexSpec]:
        for stage in self._plan.stages:
            for index in range(self._counts[stage.number]):
                yield self._vertex(stage, index)
        for number in range(len(self._plan.sinks)):
            yield self._sink(number)

    def _outlet(self, stage: int, key: OutletKey) -> int:
        known = self._outlets[stage]
        return known.setdefault(key, len(known))

    def _key(self, link: Link, reader: Stage) -> OutletKey:
        return (link.keys, self._counts[reader.number]) if link.channel == "hash" else (None, 1)

    def _vertex(self, stage: Stage, index: int) -> VertexSpec:
        inputs: list[StreamId] = []
        ports: list[int] = []
        for port, link in links_of(stage):
            outlet = self._outlet(link.stage, self._key(link, stage))
            writers = [index] if link.channel == "forward" else range(self._counts[link.stage])
            part = index if link.channel == "hash" else 0
            inputs += [_stream(f"{link.stage}.{w}", outlet, part) for w in writers]
            ports += [port] * len(writers)
        name = f"{stage.number}.{index}"
        is_source = not stage.ports and isinstance(stage.operators[0], Source)
        return VertexSpec(
            name, "source" if is_source else "inner", stage.number, index, tuple(inputs),
            tuple(ports), tuple(self._specs(stage, name)),
            self._turned_away(stage, name, "late"), self._turned_away(stage, name, "bad"),
        )  # fmt: skip

    def _specs(self, stage: Stage, name: VertexId) -> Iterator[OutletSpec]:
        columns = stage_schema(stage).names
        for (keys, count), number in self._outlets[stage.number].items():
            streams = tuple(_stream(name, number, part) for part in range(count))
            places = None if keys is None else tuple(columns.index(k) for k in keys)
            yield OutletSpec(streams, places)

    def _turned_away(self, stage: Stage, name: VertexId, kind: str) -> tuple[StreamId, ...]:
        """The stream of a source's late or bad rows, where an output asks for it."""
        asked = any(
            s.output.kind == kind and stage.number in self._plan.stages_of(s)
            for s in self._plan.sinks
        )
        return (f"{name}/{kind}",) if asked else ()

    def _sink(self, number: int) -> VertexSpec:
        sink = self._plan.sinks[number]
        kind = sink.output.kind
        writers = [
            f"{stage}.{index}"
            for stage in self._plan.stages_of(sink)
            for index in range(self._counts[stage])
        ]
        inputs = tuple(
            _stream(w, self._outlet(int(w.split(".")[0]), (None, 1)), 0)
            if kind == "rows"
            else f"{w}/{kind}"
            for w in writers
        )
        return VertexSpec(f"sink.{number}", "sink", number, 0, inputs, tuple(range(len(inputs))))


def _stream(vertex: VertexId, outlet: int, part: int) -> StreamId:
    return f"{vertex}/{outlet}.{part}"
