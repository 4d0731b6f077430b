"""Splits a job into waves: which vertices run when, and in which partition of the exchanges.

The topology of each program defines its vertices and streams; this module assigns the vertices to
tasks.

Rules (docs/design/0007-offline-on-spark.md)
1. A *group* is a vertex and all vertices that follow it through `forward` links. One task runs it.
2. A group that reads an exchange runs one wave after the last of its writers. A group that reads a
   source's data runs in the wave before its first reader, or in wave 0.
3. The groups of waves 1, 2, … are numbered through the whole job, wave by wave; a group's number is
   its partition in the exchanges. The sink of an output with a single writer is such a group too.
   Other sinks are run by the groups that write to them.
4. A job may contain several programs, which share nothing but the waves.
5. A stage that reads a DataFrame has one vertex in the topology, but one task for each partition of
   the DataFrame (`open_stages`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.plan.operators import Source
from weir.plan.program import Program
from weir.plan.rewrites.two_phase import Pays
from weir.plan.stages import Link, Stage, StagedPlan, links_of
from weir.runtime.partitions import Partitions
from weir.runtime.program_plan import plan_program
from weir.runtime.topology import Topology, VertexId, VertexSpec
from weir.spark.offline.targets import Target


@dataclass(frozen=True, slots=True)
class Layout:
    """One program of a job, laid out in vertices: its plan and topology, the data of its sources,
    and the targets of its outputs."""

    plan: StagedPlan
    topology: Topology
    partitions: Partitions
    targets: tuple[Target, ...]
    open_stages: frozenset[int]
    """The stages whose only vertex is run by several tasks (rule 5)."""


@dataclass(frozen=True, slots=True)
class Group:
    """The vertices that one task runs, named by the first of them (rule 1)."""

    layout: int
    vertex: VertexId
    task: int = 0
    """The number of the task, for a vertex of an open stage."""


Errors: TypeAlias = Literal["raise", "report", "end"]
"""The effect of an error in a task. "raise" fails the task, which Spark retries before it gives up.
"report" turns the error into a report, and the rest goes on. "end" also makes the driver end the
job at once."""


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that tasks need to know."""

    layouts: tuple[Layout, ...]
    waves: tuple[Mapping[int, Group], ...]
    """The groups of each wave, by partition: those of wave w (from 1) are in `waves[w - 1]`."""
    sources: tuple[tuple[Group, ...], ...]
    """The source partitions to read: those whose rows wave w reads are in `sources[w - 1]`."""
    frames: tuple[tuple[Group, ...], ...]
    """The DataFrames to read, in the same way; Spark decides how many tasks read each."""
    partition_of: Mapping[Group, int]
    """The partition in exchanges of every group that has one."""
    cut: int | None = None
    check: bool = False
    """Whether tasks report the ordered checksums of their streams."""
    errors: Errors = "raise"
    progress: str | None = None
    """The folder for the tasks' news of progress."""
    traces: str | None = None
    """The folder for traces of all streams (`reliable/traces.py`), or a bucket's URL for them."""
    compare: bool = False
    """Whether the traces exist already, and are compared with."""
    blocks: str | None = None
    """The folder for blocks, if all tasks run on this machine."""

    def spec(self, group: Group) -> VertexSpec:
        """Return the first vertex of a group."""
        return self.layouts[group.layout].topology.vertices[group.vertex]


@dataclass(slots=True)
class _Drafted:
    """Waves under construction."""

    exchanged: dict[int, list[Group]] = field(default_factory=dict)
    sources: dict[int, list[Group]] = field(default_factory=dict)
    frames: dict[int, list[Group]] = field(default_factory=dict)


def make_layout(
    program: Program,
    partitions: Partitions,
    targets: Sequence[Target],
    parallelism: int,
    pays: Pays | None = None,
) -> Layout:
    """Rewrite a program, split it into stages, and lay it out in vertices."""
    planned = plan_program(program, parallelism, pays=pays)
    plan, topology = planned.stages, planned.topology(partitions)
    return Layout(
        plan=plan,
        topology=topology,
        partitions=partitions,
        targets=tuple(targets),
        open_stages=_open_stages(plan),
    )


def make_job(
    layouts: Sequence[Layout],
    *,
    cut: int | None = None,
    check: bool = False,
    errors: Errors = "raise",
    progress: str | None = None,
    traces: str | None = None,
    compare: bool = False,
    blocks: str | None = None,
) -> Job:
    """Assign the vertices of all layouts to waves and partitions, by the module's rules."""
    drafted = _Drafted()
    for number, layout in enumerate(layouts):
        _draft(number, layout, drafted)
    last = max((*drafted.exchanged, *drafted.sources, *drafted.frames), default=0)
    waves, first = [], 0
    for wave in range(1, last + 1):
        groups = drafted.exchanged.get(wave, [])
        waves.append(dict(enumerate(groups, first)))
        first += len(groups)
    partition_of = {group: n for groups in waves for n, group in groups.items()}
    sources, frames = (
        tuple(tuple(read.get(wave, ())) for wave in range(last + 1))
        for read in (drafted.sources, drafted.frames)
    )
    return Job(
        layouts=tuple(layouts),
        waves=tuple(waves),
        sources=sources,
        frames=frames,
        partition_of=partition_of,
        cut=cut,
        check=check,
        errors=errors,
        progress=progress,
        traces=traces,
        compare=compare,
        blocks=blocks,
    )


def group_of(layout: Layout, vertex: VertexId) -> list[VertexSpec]:
    """Return the vertices that run in one task with this one: itself first, writers before
    readers."""
    topology = layout.topology
    group = {vertex: topology.vertices[vertex]}
    waiting = [vertex]
    while waiting:
        for stream in group[waiting.pop(0)].outputs:
            for name, _ in topology.readers_of.get(stream, ()):
                reader = topology.vertices[name]
                if name not in group and _follows(layout.plan, reader):
                    group[name] = reader
                    waiting.append(name)
    return list(group.values())


def _follows(plan: StagedPlan, spec: VertexSpec) -> bool:
    """Tell whether a vertex runs in the task of the vertex that it reads."""
    return spec.kind == "inner" and _forward(plan.stages[spec.stage]) is not None


def _forward(stage: Stage) -> Link | None:
    links = links_of(stage)
    return links[0][1] if links and links[0][1].channel == "forward" else None


def _open_stages(plan: StagedPlan) -> frozenset[int]:
    open_stages: set[int] = set()
    for stage in plan.stages:
        forward, first = _forward(stage), stage.operators[0]
        reads_frame = isinstance(first, Source) and not first.has_origins
        if reads_frame or (forward is not None and forward.stage in open_stages):
            open_stages.add(stage.number)
    return frozenset(open_stages)


def _draft(number: int, layout: Layout, drafted: _Drafted) -> None:
    """Assign the groups of a program to waves."""
    stages, topology = layout.plan.stages, layout.topology
    wave = _waves(stages)
    for spec in topology.order:
        group = Group(number, spec.id)
        if spec.kind == "sink":
            if layout.targets[spec.stage].one_writer:
                fed = max((wave[topology.writer_of(s).stage] for s in spec.inputs), default=0)
                drafted.exchanged.setdefault(fed + 1, []).append(group)
        elif spec.kind == "inner":
            if not _follows(layout.plan, spec):
                drafted.exchanged.setdefault(wave[spec.stage], []).append(group)
        else:
            read = drafted.frames if spec.stage in layout.open_stages else drafted.sources
            read.setdefault(wave[spec.stage], []).append(group)


def _waves(stages: Sequence[Stage]) -> list[int]:
    """Return the wave of each stage (rule 2)."""
    wave = [0] * len(stages)
    readers: dict[int, list[int]] = {}
    root = list(range(len(stages)))
    for stage in stages:
        forward = _forward(stage)
        if forward is not None:
            root[stage.number] = root[forward.stage]
            wave[stage.number] = wave[forward.stage]
            continue
        for _, link in links_of(stage):
            readers.setdefault(root[link.stage], []).append(stage.number)
            wave[stage.number] = max(wave[stage.number], wave[link.stage] + 1)
    for stage in stages:
        source = root[stage.number]
        if not stages[source].ports:
            first = min((wave[r] for r in readers.get(source, ())), default=1)
            wave[stage.number] = first - 1
    return wave
