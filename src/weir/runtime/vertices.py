"""Builds the vertices of a topology for every runner, and describes them for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weir.ingress.ingress import Ingress, bad_schema, late_schema
from weir.plan.explain.explanation import operator_text
from weir.plan.horizon import Horizon
from weir.plan.operators import Source
from weir.plan.schema import Schema
from weir.plan.stages import StagedPlan, stage_schema
from weir.plan.strategy import NamedStrategy, choose_strategies
from weir.reliable.chain import Chain
from weir.reliable.differences import RowDifference, WrittenBy, violation
from weir.reliable.rebuildable_vertex import RebuildableVertex
from weir.reliable.strategies import CheckpointStrategy, Strategy, make_strategy
from weir.reliable.stream import StreamReader, StreamWriter
from weir.reliable.vertex import Vertex
from weir.runtime.source_vertex import SourceVertex
from weir.runtime.topology import StreamId, Topology, VertexId, VertexSpec


def make_chain(plan: StagedPlan, spec: VertexSpec) -> Chain:
    """Make the chain of a vertex, with the state that it has at the beginning."""
    return Chain(plan.stages[spec.stage], plan.origins, spec.ports or [0])


def make_vertex(
    plan: StagedPlan,
    spec: VertexSpec,
    inputs: Sequence[StreamReader],
    writers: Mapping[StreamId, StreamWriter],
    horizon: Horizon | None = None,
    *,
    marks: bool = False,
) -> Vertex:
    """Make a vertex at the beginning of its inputs. One with a known horizon loads marks too, and
    takes them if it is asked for `marks` (`rebuildable_vertex.py`)."""
    is_bounded = spec.kind == "inner" and horizon is not None and horizon.known
    assert is_bounded or not marks, f"{spec.id} cannot be rebuilt from marks"
    outlets = [writers[outlet.stream] for outlet in spec.outlets]
    chain = make_chain(plan, spec)
    if spec.kind == "inner" and horizon is not None and horizon.known:
        return RebuildableVertex(
            name=spec.id, chain=chain, inputs=inputs, outlets=outlets, horizon=horizon, marks=marks
        )
    return Vertex(spec.id, chain, inputs, outlets)


def make_source_vertex(
    plan: StagedPlan,
    spec: VertexSpec,
    partition: str,
    writers: Mapping[StreamId, StreamWriter],
) -> SourceVertex:
    """Make a source vertex at the beginning of the partition of this name."""
    ingress = Ingress(source_of(plan, spec), spec.index, partition)
    return SourceVertex(spec, make_vertex(plan, spec, (), writers), ingress, writers)


def source_of(plan: StagedPlan, spec: VertexSpec) -> Source:
    """Find the source that a source vertex reads."""
    source = plan.stages[spec.stage].operators[0]
    assert isinstance(source, Source)
    return source


def vertex_strategies(
    plan: StagedPlan, topology: Topology, default: NamedStrategy | None = None
) -> Mapping[VertexId, Strategy]:
    """Say how each vertex is recovered: as its stage is (`weir.plan.strategy`). `default` is what
    the program says for all stages (None: the planner chooses); sinks commit, whatever it says."""
    chosen = [make_strategy(choice.strategy) for choice in choose_strategies(plan, default)]
    return {
        v.id: CheckpointStrategy() if v.kind == "sink" else chosen[v.stage] for v in topology.order
    }


def stream_schema(plan: StagedPlan, writer: VertexSpec, stream: StreamId) -> Schema:
    """Find the columns of a stream that this vertex writes."""
    if stream in writer.late:
        return late_schema(source_of(plan, writer))
    if stream in writer.bad:
        return bad_schema(source_of(plan, writer))
    return stage_schema(plan.stages[writer.stage])


def operators_text(plan: StagedPlan, spec: VertexSpec, partition: str = "") -> str:
    """Describe in a line what a source or an inner vertex does; a source, from which partition."""
    texts = [operator_text(operator) for operator in plan.stages[spec.stage].operators]
    if partition:
        texts[0] = f"STREAM {source_of(plan, spec).name} FROM '{partition}'"
    return "; ".join(texts)


def written_by(plan: StagedPlan, writer: VertexSpec, stream: StreamId) -> WrittenBy:
    """Describe who writes a stream, for messages."""
    columns = stream_schema(plan, writer, stream).names
    return WrittenBy(writer.id, operators_text(plan, writer), tuple(columns))


def check_same(plan: StagedPlan, topology: Topology, differences: Iterable[RowDifference]) -> None:
    """Raise a DeterminismViolation if a second run gave other rows. It names the stream that comes
    first in the topology's order: streams after it may differ just because that one does."""
    by_stream = {difference.stream: difference for difference in differences}
    for stream in topology.streams:
        if stream in by_stream:
            by = written_by(plan, topology.writer_of(stream), stream)
            raise violation(by_stream[stream], by, when="in a second run")
