"""Reports rows that differ between two runs: who writes the stream, and the first such row."""

from __future__ import annotations

from collections.abc import Iterable

from weir.plan.stages import StagedPlan
from weir.reliable.differences import RowDifference, WrittenBy, violation
from weir.runtime.topology import StreamId, Topology, VertexSpec
from weir.runtime.vertices import operators_text, stream_schema


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
