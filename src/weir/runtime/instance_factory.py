"""Makes the instances of a program's vertices, for hosts in the simulator and on Spark alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from weir.events.batch import Batch
from weir.ingress.ingress import Ingress
from weir.plan.horizon import horizons
from weir.plan.stages import StagedPlan
from weir.reliable.log import LogStream, Segment
from weir.reliable.strategies import Strategy
from weir.reliable.vertex import Snapshot
from weir.runtime.instance import (
    AHEAD_ROWS,
    InnerInstance,
    Instance,
    SinkInstance,
    SourceInstance,
    make_cursors,
)
from weir.runtime.topology import VertexSpec
from weir.runtime.vertices import make_vertex, source_of, written_by

EmitRows = Callable[[int, int, Batch], None]
"""Is called with (partition, number of the first row, rows) of an output."""


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
        streams = self._make_streams(spec, segments, snapshot)
        instance = (
            self._make_source(spec, streams)
            if spec.kind == "source"
            else self._make_inner(spec, streams)
        )
        if snapshot is not None:
            instance.load(snapshot)
        return instance

    def _make_streams(
        self,
        spec: VertexSpec,
        segments: Mapping[str, Sequence[Segment]],
        snapshot: Snapshot | None,
    ) -> Mapping[str, LogStream]:
        starts = snapshot.outputs if snapshot is not None else (0,) * len(spec.outputs)
        make_stream = self._strategies[spec.id].stream
        return {
            name: make_stream(
                name,
                segments.get(name, ()),
                start,
                spec.layout(name),
                check=self._check,
                written_by=partial(written_by, self._plan, spec, name),
                synchronous=self._synchronous,
            )
            for name, start in zip(spec.outputs, starts, strict=True)
        }

    def _make_source(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> SourceInstance:
        source = source_of(self._plan, spec)
        ingress = Ingress(source, spec.index, self._names[source.name][spec.index])
        return SourceInstance(spec, make_vertex(self._plan, spec, (), streams), ingress, streams)

    def _make_inner(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> InnerInstance:
        cursors = make_cursors(spec)
        vertex = make_vertex(
            self._plan,
            spec,
            cursors,
            streams,
            horizon=self._horizons[spec.stage],
            marks=self._strategies[spec.id].takes_marks,
        )
        return InnerInstance(spec, vertex, cursors, streams, ahead_rows=self._ahead_rows)
