"""The description of a live job that every host needs; Spark carries it to them with its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import msgspec
import pyarrow as pa

from weir.events.batch import Batch
from weir.files.chunks import CHUNK_ROWS, Chunk
from weir.files.sinks import json_values
from weir.files.writers import OutputForm
from weir.ingress.connectors.registry import source_start
from weir.ingress.ingress_log import first_record
from weir.ingress.source_driver import driven_chunks
from weir.ingress.source_machine import SourceMachine
from weir.job.settings import HostSettings
from weir.job.signals import Pull
from weir.loops.code_cache import Code
from weir.plan.program import Output, Program
from weir.plan.stages import StagedPlan
from weir.reliable.store import Store
from weir.reliable.strategies import Strategy
from weir.runtime.instance_factory import EmitRows, InstanceMaker
from weir.runtime.outputs import output_schema
from weir.runtime.partitions import Partitions
from weir.runtime.topology import Topology
from weir.runtime.vertices import operators_text, source_of, stream_schema
from weir.spark.live.addresses import AddressSettings, Endpoint
from weir.spark.live.flight import Security

REPORT_EVERY = 0.05


@dataclass(frozen=True, slots=True)
class JobDescription:
    """Describes a live job to its hosts: all that they need, and Spark carries."""

    plan: StagedPlan
    topology: Topology
    strategies: Mapping[str, Strategy]
    partitions: Partitions
    store: str
    """The location of the job's store."""
    manager: str
    """The URL of the manager's server."""
    host_at: Endpoint | None
    """Where hosts listen; None: each finds its own address (`own_endpoint`)."""
    addresses: AddressSettings
    security: Security
    host_settings: HostSettings
    emits: Mapping[int, EmitRows]
    console: Mapping[int, Output]
    """The outputs, by number, whose rows are shown where the job was started."""
    cut: int | None = None
    log_token: str = ""
    """The job's token in the first record of each source's log."""
    needed: tuple[tuple[str, str], ...] = ()
    """The modules that machines must have for the user's code; see `Program.needed`."""
    loops: Code | None = None
    """The loops that the job needs, compiled; None: a host compiles as it runs."""
    report_every: float = REPORT_EVERY

    def types_of(self, stream: str) -> Sequence[pa.DataType]:
        """Return the types of a stream's columns."""
        return stream_schema(self.plan, self.topology.writer_of(stream), stream).types

    def maker(self, show: Callable[[bytes], None]) -> InstanceMaker:
        """Make what makes instances; `show` brings a text to where the job was started."""
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
        pull: Pull,
        store: Store,
        stopped: Callable[[], bool],
        waits: Callable[[str | None], None],
    ) -> Iterator[Chunk]:
        """Read the chunks of a source vertex, from the offset that its first `Pull` names;
        `stopped` and `waits` are those of `driven_chunks`."""
        spec = self.topology.vertices[pull.vertex]
        source = source_of(self.plan, spec)
        partition = self.partitions[source.name][spec.index]
        start = source_start(
            partition,
            pull.vertex,
            first=first_record(pull.vertex, self.log_token),
            offset=pull.offset,
            resume=pull.resume,
            log_end=pull.log_end,
            incarnation=pull.incarnation,
            writer=uuid4().hex,
        )
        machine = SourceMachine(
            source,
            partition.name,
            start,
            self.cut or CHUNK_ROWS,
            patience=self.host_settings.store_patience,
        )
        return driven_chunks(
            machine=machine, partition=partition, store=store, stopped=stopped, waits=waits
        )


def _shown(output: Output, show: Callable[[bytes], None]) -> EmitRows:
    """Make a function that shows rows of an output as JSON lines, with partition and number."""
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


def vertex_titles(
    program: Program,
    plan: StagedPlan,
    topology: Topology,
    partitions: Partitions,
) -> dict[str, str]:
    """Describe what each vertex does, for messages."""
    titles: dict[str, str] = {}
    for spec in topology.order:
        if spec.kind == "sink":
            output = program.outputs[spec.stage]
            titles[spec.id] = f"OUTPUT {output.name} TO '{output.path}'"
            continue
        partition = ""
        if spec.kind == "source":
            partition = partitions[source_of(plan, spec).name][spec.index].name
        titles[spec.id] = operators_text(plan, spec, partition)
    return titles
