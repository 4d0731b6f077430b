"""What every host of a live job must know; it travels to them with the Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from weir.events.batch import Batch
from weir.files.chunks import CHUNK_ROWS, Chunk, LogPlace, Partition
from weir.files.sinks import json_values
from weir.files.writers import OutputForm
from weir.ingress.following import Followed
from weir.ingress.ingress import bad_schema, late_schema
from weir.ingress.ingress_log import IngressLog, first_place
from weir.ingress.unchanged import check_not_shorter, marked_chunks
from weir.job.settings import HostSettings
from weir.plan.explain import operator_text
from weir.plan.nodes import Output, Program, Source
from weir.plan.stages import StagedPlan, stage_schema
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Store
from weir.reliable.strategies import Strategy
from weir.runtime.instances import EmitRows, InstanceMaker
from weir.runtime.outputs import output_schema
from weir.runtime.topology import Topology, VertexSpec
from weir.spark.live.flight import Security

REPORT_EVERY = 0.05


@dataclass(frozen=True, slots=True)
class LiveJob:
    """See the module's docstring."""

    plan: StagedPlan
    topology: Topology
    strategies: Mapping[str, Strategy]
    partitions: Mapping[str, tuple[Partition, ...]]
    store: str
    manager: str
    address: str
    security: Security
    host_settings: HostSettings
    emits: Mapping[int, EmitRows]
    console: Mapping[int, Output]
    """Outputs whose rows are shown where the job was started."""
    cut: int | None = None
    log_token: str = ""
    """Whose the first record of each source's log is."""
    report_every: float = REPORT_EVERY

    def maker(self, show: Callable[[bytes], None]) -> InstanceMaker:
        """Makes instances; `show` brings text to where the job was started."""
        names = {name: [p.name for p in parts] for name, parts in self.partitions.items()}
        settings = self.host_settings
        return InstanceMaker(
            self.plan,
            names,
            {**self.emits, **{n: _shown(o, show) for n, o in self.console.items()}},
            strategies=self.strategies,
            check=settings.check,
            synchronous=settings.synchronous,
        )

    def chunks(
        self,
        vertex: str,
        offset: int,
        place: LogPlace | None,
        log_end: ObjectRef | None,
        store: Store,
        stopped: Callable[[], bool],
    ) -> Iterator[Chunk]:
        """The chunks of a source vertex from an offset on; what has no end is followed."""
        spec = self.topology.vertices[vertex]
        partition = self.partitions[source_of(self.plan, spec).name][spec.index]
        size = self.cut or CHUNK_ROWS
        if isinstance(partition, Followed):
            start = place or first_place(vertex, self.log_token)
            log = IngressLog(store, vertex, start, log_end)
            return partition.follow(size, offset, log, stopped)
        return _checked_chunks(partition, size, offset, place)


def _checked_chunks(
    partition: Partition, size: int, start: int, place: LogPlace | None
) -> Iterator[Chunk]:
    """A file that has become shorter than what was read of it must not look like one at its end,
    nor another file like the one that was read."""
    chunks = iter(marked_chunks(partition, size, start, place))
    first = next(chunks, None)
    if first is None:
        check_not_shorter(partition, start)
        return
    yield first
    yield from chunks


def _shown(output: Output, show: Callable[[bytes], None]) -> EmitRows:
    """Rows of an output as JSON lines with the stream's partition and their numbers."""
    form = OutputForm(".jsonl", output_schema(output), output.kind != "bad")

    def emit(partition: int, seq: int, rows: Batch) -> None:
        record = form.record(rows)
        columns = zip(*(json_values(c) for c in record.columns), strict=True)
        lines = [
            {"output": output.name, "partition": partition, "seq": seq + i}
            | dict(zip(record.schema.names, row, strict=True))
            for i, row in enumerate(columns)
        ]
        show(msgspec.json.Encoder().encode_lines(lines))

    return emit


def source_of(plan: StagedPlan, spec: VertexSpec) -> Source:
    """The source that a source vertex reads."""
    source = plan.stages[spec.stage].operators[0]
    assert isinstance(source, Source)
    return source


def vertex_titles(
    program: Program,
    plan: StagedPlan,
    topology: Topology,
    partitions: Mapping[str, tuple[Partition, ...]],
) -> dict[str, str]:
    """What each vertex does, for messages."""
    titles: dict[str, str] = {}
    for spec in topology.order:
        if spec.kind == "sink":
            output = program.outputs[spec.stage]
            titles[spec.id] = f"OUTPUT {output.name} TO '{output.path}'"
            continue
        texts = [operator_text(operator) for operator in plan.stages[spec.stage].operators]
        if spec.kind == "source":
            source = source_of(plan, spec)
            texts[0] = f"STREAM {source.name} FROM '{partitions[source.name][spec.index].name}'"
        titles[spec.id] = "; ".join(texts)
    return titles


def stream_types(plan: StagedPlan, topology: Topology, stream: str) -> Sequence[pa.DataType]:
    """The types of the columns of a stream's rows."""
    spec = topology.vertices[topology.writer_of[stream]]
    if stream in spec.late:
        return late_schema(source_of(plan, spec)).types
    if stream in spec.bad:
        return bad_schema(source_of(plan, spec)).types
    return stage_schema(plan.stages[spec.stage]).types
