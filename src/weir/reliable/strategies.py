"""The recovery strategies of vertices (StreamScope §4.4), one object each.

    checkpoint   whole snapshots go to the store every so many seconds
    replay       marks go there instead, and the state is rebuilt from input
                 (`rebuildable_vertex.py`)
    replicate    several instances run at once; one of them takes whole snapshots

Rules
1. A strategy says how many instances of a vertex run, what kind of stream they write, what a
   snapshot keeps and when one is due, which stored snapshot a vertex restarts from, and which
   other vertices a loss sets back. The ledger, the hosts and the manager ask it and never test its
   name; names are known to `plan/strategy.py` (parsing, the planner's choice), to `make_strategy`
   and to the simulator's draw.
2. A vertex loads every snapshot that its stage can have, whichever strategy took it: it cannot go
   back to before a mark, since what it would read there may be collected. So a job may go on under
   another strategy.
3. These three write streams with a durable log. So a snapshot is usable once every row that its
   vertex wrote before it can be had without the vertex, and a loss sets back no other vertex.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, assert_never

from weir.plan.strategy import DEFAULT_EVERY, NamedStrategy
from weir.reliable.log import LogStream


class StoredSnapshot(Protocol):
    """What is known of a snapshot in the store without reading it."""

    @property
    def outputs(self) -> tuple[int, ...]:
        """How many rows its vertex had written to each of its streams."""
        ...


S = TypeVar("S", bound=StoredSnapshot)
Feeding = Callable[[str], Collection[str]]
"""Says which vertices write what a vertex reads."""


class Strategy(Protocol):
    """A strategy answers the questions of rule 1 for one vertex."""

    @property
    def copies(self) -> int:
        """How many instances of the vertex run at once."""
        ...

    @property
    def stream(self) -> type[LogStream]:
        """The kind of stream that the vertex writes."""
        ...

    @property
    def takes_marks(self) -> bool:
        """Whether its snapshots keep positions alone where that is enough to rebuild the state."""
        ...

    def is_due(self, seconds: float) -> bool:
        """Whether to take a snapshot so long after the last one."""
        ...

    def usable(self, stored: Sequence[S], durable: Sequence[int]) -> S | None:
        """Find the newest snapshot to restart from; None: the vertex starts over. The oldest is
        the first of `stored`; rows up to `durable` of each stream can be had without the vertex."""
        ...

    def sets_back(self, vertex: str, feeding: Feeding) -> Collection[str]:
        """Name the other vertices that must restart too when an instance of this one is lost."""
        ...


@dataclass(frozen=True, slots=True)
class _WithDurableStreams:
    """Answers the questions as rule 3 says, with a snapshot every so many seconds."""

    every: float = DEFAULT_EVERY
    stream: ClassVar[type[LogStream]] = LogStream

    def is_due(self, seconds: float) -> bool:
        return seconds >= self.every

    def usable(self, stored: Sequence[S], durable: Sequence[int]) -> S | None:
        for snapshot in reversed(stored):
            if all(out <= end for out, end in zip(snapshot.outputs, durable, strict=True)):
                return snapshot
        return None

    def sets_back(self, vertex: str, feeding: Feeding) -> Collection[str]:
        return ()


@dataclass(frozen=True, slots=True)
class CheckpointStrategy(_WithDurableStreams):
    """One instance runs, and takes whole snapshots."""

    copies: ClassVar[int] = 1
    takes_marks: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ReplayStrategy(_WithDurableStreams):
    """One instance runs, and takes marks."""

    copies: ClassVar[int] = 1
    takes_marks: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ReplicateStrategy(_WithDurableStreams):
    """Several instances run; one of them takes whole snapshots."""

    copies: int = 2
    takes_marks: ClassVar[bool] = False


def make_strategy(named: NamedStrategy) -> Strategy:
    """Make the strategy that a program names."""
    match named.name:
        case "checkpoint":
            return CheckpointStrategy(named.every)
        case "replay":
            return ReplayStrategy(named.every)
        case "replicate":
            return ReplicateStrategy(named.every, named.copies)
    assert_never(named.name)
