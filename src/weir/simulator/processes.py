"""The job that a simulated world runs, and its processes: hosts and managers."""

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
"""When a writer dies at a durable step: before it, half-way, or before it hears that it is done."""


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """The job that is run: the parts of its machines, and the data of each source vertex."""

    topology: Topology
    strategies: Mapping[str, Strategy]
    make: MakeInstance
    partitions: Mapping[str, SourcePartition]
    sources: Mapping[str, Source]
    """The declared source that each source vertex reads."""
    cut: int
    """How many rows a chunk has at most."""
    pace: float = 0.0
    """Seconds that a source takes for each chunk, on average."""
    hosts: int = 2
    host_settings: HostSettings = field(default_factory=HostSettings)
    manager_settings: ManagerSettings = field(default_factory=ManagerSettings)
    poison: Poison | None = None
    feeds: Sequence[Callable[[Timeline], None]] = ()
    """Functions that begin to bring rows when the job starts."""


class Falls(BaseException):
    """Ends the process of a host in the middle of a step."""


class FallingNotes(MemoryNotes):
    """The notes of a host, which raise `Falls` at rows that kill it."""

    def __init__(self, falls: Callable[[Step, RowSpan], bool]) -> None:
        super().__init__()
        self._falls = falls

    def see(self, span: RowSpan, rows: Batch) -> None:
        super().see(span, rows)
        assert self.step is not None
        is_ingress = len(rows) + span.left_out < span.end - span.first
        if not is_ingress and self._falls(self.step, span):
            raise Falls


@dataclass(slots=True)
class SimulatedHost:
    """A process that runs a host; what is sent to a dead one is lost."""

    slot: int
    machine: Host
    notes: MemoryNotes
    writing: dict[str, Put] = field(default_factory=dict)
    """The writes that are under way, by key."""
    frozen_until: float = 0.0
    """It stands still until then."""
    is_busy: bool = False
    """Whether it stands still because it is busy: its companion gives signs of life for it."""
    cut_until: float = 0.0
    """It is cut off from the network until then."""
    apart_until: float = 0.0
    """It cannot use the store until then."""
    ahead: float = 0.0
    """How many seconds the clock of its machine is ahead of simulated time."""
    jumped: float = 0.0
    """How many of them it has jumped; the clock of its sources is ahead by these."""
    turn: int = 0
    """The number of its next step; a step that was scheduled with another number is dropped."""
    is_idle: bool = False
    """Whether its last step had nothing to do."""
    dead: bool = False


@dataclass(slots=True)
class SimulatedManager:
    """A process that runs a job manager; its fields are those of a `SimulatedHost`."""

    machine: Manager
    lines_noted: int = 0
    """How many lines of the manager's story the world's story has."""
    writing: dict[str, Put] = field(default_factory=dict)
    frozen_until: float = 0.0
    ahead: float = 0.0
    dead: bool = False


Process: TypeAlias = SimulatedHost | SimulatedManager
