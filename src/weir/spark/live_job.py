"""What every host of a live job must know; it travels to them with the Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from weir.io.chunks import CHUNK_ROWS, Chunk, Partition
from weir.io.followed import Followed
from weir.io.ingress_log import IngressLog
from weir.job.running import HostSettings
from weir.job.strategy import Strategy
from weir.job.topology import Topology, VertexSpec
from weir.local.instances import EmitRows, InstanceMaker
from weir.plan.nodes import Source
from weir.plan.stages import StagedPlan
from weir.reliable.store import Store
from weir.spark.flight import Security

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
    cut: int | None = None
    report_every: float = REPORT_EVERY

    def maker(self) -> InstanceMaker:
        names = {name: [p.name for p in parts] for name, parts in self.partitions.items()}
        settings = self.host_settings
        return InstanceMaker(
            self.plan,
            names,
            self.emits,
            check=settings.check,
            synchronous=settings.synchronous,
        )

    def chunks(
        self, vertex: str, offset: int, store: Store, stopped: Callable[[], bool]
    ) -> Iterator[Chunk]:
        """The chunks of a source vertex from an offset on; what has no end is followed."""
        spec = self.topology.vertices[vertex]
        partition = self.partitions[source_of(self.plan, spec).name][spec.index]
        size = self.cut or CHUNK_ROWS
        if isinstance(partition, Followed):
            return partition.follow(size, offset, IngressLog(store, vertex), stopped)
        return partition.chunks(size, offset)


def source_of(plan: StagedPlan, spec: VertexSpec) -> Source:
    """The source that a source vertex reads."""
    source = plan.stages[spec.stage].operators[0]
    assert isinstance(source, Source)
    return source
