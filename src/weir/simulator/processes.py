"""What lives in a simulated world: the job that is run, and its processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.events.batch import Batch
from weir.files.chunks import SourcePartition
from weir.job.host import Host
from weir.job.manager import Manager
from weir.job.poison import MemoryNotes, Step
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.signals import Put
from weir.plan.operators import Source
from weir.reliable.strategies import Strategy
from weir.reliable.vertex import RowSpan
from weir.runtime.instance import MakeInstance
from weir.runtime.topology import Topology
from weir.simulator.faults import Poison
from weir.simulator.timeline import Timeline

When: TypeAlias = Literal["before", "torn", "after"]
"""Where at a durable step its writer dies: before it, half-way, or before it hears of the end."""


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """What is run: the machines' parts, and the data of each source vertex."""

    topology: Topology
    strategies: Mapping[str, Strategy]
    make: MakeInstance
    partitions: Mapping[str, SourcePartition]
    sources: Mapping[str, Source]
    """What each source vertex reads, and how it is declared."""
    cut: int
    pace: float = 0.0
    """Seconds that a source takes for each chunk, on average."""
    hosts: int = 2
    host_settings: HostSettings = field(default_factory=HostSettings)
    manager_settings: ManagerSettings = field(default_factory=ManagerSettings)
    poison: Poison | None = None
    feeds: Sequence[Callable[[Timeline], None]] = ()
    """What begins to bring rows when the job starts."""


class Falls(BaseException):
    """The process dies here and now."""


class FallingNotes(MemoryNotes):
    """Notes of a host that some rows kill."""

    def __init__(self, falls: Callable[[Step, RowSpan], bool]) -> None:
        super().__init__()
        self._falls = falls

    def see(self, span: RowSpan, rows: Batch) -> None:
        super().see(span, rows)
        assert self.step is not None
        is_ingress = len(rows) < span.end - span.first
        if not is_ingress and self._falls(self.step, span):
            raise Falls


@dataclass(slots=True)
class SimulatedHost:
    """A process that hosts vertices; what is meant for a dead one is lost."""

    slot: int
    machine: Host
    notes: MemoryNotes
    writing: dict[str, Put] = field(default_factory=dict)
    frozen_until: float = 0.0
    cut_until: float = 0.0
    ahead: float = 0.0
    jumped: float = 0.0
    """By how much its clock is ahead of the time."""
    turn: int = 0
    """The number of its next step: one that was put off is done by an earlier one."""
    is_idle: bool = False
    dead: bool = False


@dataclass(slots=True)
class SimulatedManager:
    """A process that runs the job manager."""

    machine: Manager
    told: int = 0
    writing: dict[str, Put] = field(default_factory=dict)
    frozen_until: float = 0.0
    ahead: float = 0.0
    dead: bool = False


Process: TypeAlias = SimulatedHost | SimulatedManager
