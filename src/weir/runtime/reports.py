"""The reports of every runner: how far a run is, and in the end what it read and wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from weir.files.paths import at_directory
from weir.plan.program import DIRECT, Output, StreamKind, output_title
from weir.reliable.digest import Digest
from weir.runtime.topology import VertexId


@dataclass(frozen=True, slots=True)
class Progress:
    """Says how far a run is: events read, the event time that all sources have reached, and how
    much of the inputs is read, in bytes (rows, if they are in memory; 0 of 0: not known).

    >>> Progress(events=1000, reached=5_000_000, read=20, size=80).events
    1000
    """

    events: int
    reached: int
    read: int = 0
    size: int = 0
    stage: str = ""
    """Which step is being done, if the run has several."""


OnProgress: TypeAlias = Callable[[Progress], None]
"""Is called now and then with how far a run is; every runner takes one as `progress`."""


@dataclass(frozen=True, slots=True)
class InputReport:
    """Says what was read of one source: its partitions, and how many rows were rejected."""

    name: str
    partitions: int
    late: int
    bad: int


@dataclass(frozen=True, slots=True)
class OutputReport:
    """Says what was written of one output."""

    name: str
    kind: StreamKind
    path: str
    rows: int
    digest: str

    @property
    def title(self) -> str:
        return output_title(self.name, self.kind)


@dataclass(frozen=True, slots=True)
class RunReport:
    """Says what a run read and wrote. `events` counts the rows that were admitted.

    >>> RunReport(4, inputs=(), outputs=()).events
    4
    """

    events: int
    inputs: tuple[InputReport, ...]
    outputs: tuple[OutputReport, ...]


@dataclass(frozen=True, slots=True)
class SourceTotal:
    """Counts what one source vertex, or one of several tasks that ran it, has read."""

    vertex: VertexId
    source: str
    events: int
    late: int
    bad: int


@dataclass(frozen=True, slots=True)
class SinkTotal:
    """Counts what reached the sink of one output."""

    output: Output
    digest: Digest


def run_report(
    directory: str | Path, read: Iterable[SourceTotal], written: Iterable[SinkTotal]
) -> RunReport:
    """Make the report of a run whose relative paths start at `directory`."""
    inputs: dict[str, InputReport] = {}
    vertices: set[VertexId] = set()
    events = 0
    for total in read:
        so_far = inputs.get(total.source, InputReport(total.source, 0, 0, 0))
        inputs[total.source] = replace(
            so_far,
            partitions=so_far.partitions + (total.vertex not in vertices),
            late=so_far.late + total.late,
            bad=so_far.bad + total.bad,
        )
        vertices.add(total.vertex)
        events += total.events
    outputs = tuple(
        OutputReport(
            name=o.name,
            kind=o.kind,
            path=o.path if o.path in DIRECT else at_directory(directory, o.path),
            rows=d.count,
            digest=str(d),
        )
        for o, d in ((total.output, total.digest) for total in written)
    )
    return RunReport(events, tuple(inputs.values()), outputs)
