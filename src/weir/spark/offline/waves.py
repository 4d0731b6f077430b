"""A job cut into waves: which vertices run when, and where their rows go.

Rules (docs/design/0007-offline-on-spark.md)
1. A *group* is a stage and all that read it by `forward` links: one task runs vertex i of each.
2. A group that reads by exchange runs one wave after the last of what it reads. A group that
   reads a source's data runs in the wave before its first reader, or in wave 0.
3. The vertices of waves 1, 2, … are numbered through the whole job, wave by wave: a number is a
   partition of exchanges. An output that one writer writes is such a vertex too.
4. A job may hold several programs; they share waves and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.files.chunks import Partition
from weir.plan.program import Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.rewrites.two_phase import Pays
from weir.plan.stages import Link, Stage, StagedPlan, cut_stages, links_of
from weir.spark.offline.targets import Target


@dataclass(frozen=True, slots=True)
class Piece:
    """One program of a job: its plan, the data of its sources, where its outputs go."""

    plan: StagedPlan
    partitions: Mapping[str, Sequence[Partition]]
    targets: tuple[Target, ...]
    counts: tuple[int, ...]
    """Vertices of each stage; 0 where the partitions of a DataFrame say how many."""


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Vertex `index` of the group that begins with a stage."""

    piece: int
    stage: int
    index: int


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """The one writer of an output."""

    piece: int
    sink: int


Place: TypeAlias = GroupPlace | SinkPlace


@dataclass(frozen=True, slots=True)
class Route:
    """From a stage to one input of a vertex, or of each vertex of a group, split by `keys`."""

    first: int
    count: int
    input: int
    keys: tuple[str, ...] | None = None


Errors: TypeAlias = Literal["raise", "report", "end"]
"""What an error in a task does: fail the task, so that Spark tries it again and then gives up;
or become a report, and the rest goes on; or that, and the driver ends the job at once."""


@dataclass(frozen=True, slots=True)
class Job:
    """All that tasks must know."""

    pieces: tuple[Piece, ...]
    waves: tuple[Mapping[int, Place], ...]
    """Wave w, from 1 on, is `waves[w - 1]`: its vertices by partition."""
    sources: tuple[tuple[GroupPlace, ...], ...]
    """The partitions that are read, by the wave that reads their rows less one."""
    frames: tuple[tuple[GroupPlace, ...], ...]
    """The DataFrames that are read, in the same way; how many tasks do so Spark decides."""
    routes: Mapping[tuple[int, int], tuple[Route, ...]]
    """Of each stage (piece, stage)."""
    sink_routes: Mapping[tuple[int, int], Route]
    """Of each output (piece, sink) that one writer writes."""
    cut: int | None = None
    check: bool = False
    errors: Errors = "raise"
    progress: str | None = None
    """The folder for news of how far tasks are."""


@dataclass(slots=True)
class _Drafted:
    """The waves in the making."""

    places: dict[int, list[Place]] = field(default_factory=dict)
    sources: dict[int, list[GroupPlace]] = field(default_factory=dict)
    frames: dict[int, list[GroupPlace]] = field(default_factory=dict)


def make_piece(
    program: Program,
    partitions: Mapping[str, Sequence[Partition]],
    targets: Sequence[Target],
    parallelism: int,
    pays: Pays | None = None,
) -> Piece:
    """A program rewritten, cut into stages, with its vertices counted."""
    plan = cut_stages(rewrite(program, pays), parallelism)
    counts = plan.vertex_counts(lambda s: len(partitions[s.name]) if s.has_origins else 0)
    return Piece(plan, partitions, tuple(targets), counts)


def make_job(
    pieces: Sequence[Piece],
    *,
    cut: int | None = None,
    check: bool = False,
    errors: Errors = "raise",
    progress: str | None = None,
) -> Job:
    """See the module's rules."""
    drafted = _Drafted()
    for number, piece in enumerate(pieces):
        _draft(number, piece, drafted)
    last = max((*drafted.places, *drafted.sources, *drafted.frames), default=0)
    waves, first = [], 0
    for wave in range(1, last + 1):
        places = drafted.places.get(wave, [])
        waves.append(dict(enumerate(places, first)))
        first += len(places)
    partition_of = {place: n for places in waves for n, place in places.items()}
    routes, sink_routes = {}, {}
    for number, piece in enumerate(pieces):
        for stage in piece.plan.stages:
            routes[number, stage.number] = _routes(number, piece, stage, partition_of)
        for place in range(len(piece.targets)):
            at = partition_of.get(SinkPlace(number, place))
            if at is not None:
                sink_routes[number, place] = Route(at, 1, 0)
    sources, frames = (
        tuple(tuple(read.get(wave, ())) for wave in range(last + 1))
        for read in (drafted.sources, drafted.frames)
    )
    return Job(
        tuple(pieces), tuple(waves), sources, frames, routes, sink_routes,
        cut, check, errors, progress,
    )  # fmt: skip


def group_of(plan: StagedPlan, root: int) -> list[Stage]:
    """The stages that run in one task with this one, itself first."""
    members = {root}
    group = [plan.stages[root]]
    for stage in plan.stages[root + 1 :]:
        link = _forward(stage)
        if link is not None and link.stage in members:
            members.add(stage.number)
            group.append(stage)
    return group


def _forward(stage: Stage) -> Link | None:
    links = links_of(stage)
    return links[0][1] if links and links[0][1].channel == "forward" else None


def _draft(number: int, piece: Piece, drafted: _Drafted) -> None:
    """Put the groups and single-writer outputs of a program into waves."""
    stages = piece.plan.stages
    wave = _waves(stages)
    for stage in stages:
        if _forward(stage) is not None:
            continue
        places = [GroupPlace(number, stage.number, i) for i in range(piece.counts[stage.number])]
        if stage.ports:
            drafted.places.setdefault(wave[stage.number], []).extend(places)
        elif places:
            drafted.sources.setdefault(wave[stage.number], []).extend(places)
        else:
            frame = GroupPlace(number, stage.number, 0)
            drafted.frames.setdefault(wave[stage.number], []).append(frame)
    for place, (sink, target) in enumerate(zip(piece.plan.sinks, piece.targets, strict=True)):
        if target.one_writer:
            after = max((wave[s] for s in piece.plan.stages_of(sink)), default=0) + 1
            drafted.places.setdefault(after, []).append(SinkPlace(number, place))


def _waves(stages: Sequence[Stage]) -> list[int]:
    """The wave of each stage; see rule 2."""
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


def _routes(
    number: int, piece: Piece, stage: Stage, partition_of: Mapping[Place, int]
) -> tuple[Route, ...]:
    routes = []
    for reader in piece.plan.stages:
        if _forward(reader) is not None:
            continue
        for place, (_, link) in enumerate(links_of(reader)):
            if link.stage == stage.number:
                first = partition_of[GroupPlace(number, reader.number, 0)]
                keys = link.keys if link.channel == "hash" else None
                routes.append(Route(first, piece.counts[reader.number], place, keys))
    return tuple(routes)
