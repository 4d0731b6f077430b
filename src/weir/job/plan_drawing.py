"""The plan of a job as onlookers draw it: stages with their operators, links, outputs, vertices.

Contract
1. Whoever runs a job writes the object `plan` before its first status. It says nothing that is
   needed to run the job; a store that has none was made by an earlier version of Weir.
2. Vertices and streams have the names of the topology, and a vertex lists its streams in the order
   in which a status lists its positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from weir.errors import SnapshotCorrupt
from weir.events.types import type_name
from weir.plan.holds import longest_holds
from weir.plan.operators import Node, Source
from weir.plan.operators.spans import NONE, Span
from weir.plan.program import StreamKind
from weir.plan.stages import Branch, Channel, Stage, StagedPlan, links_of, stage_schema
from weir.reliable.codec import decode_record
from weir.reliable.object_names import PLAN
from weir.reliable.store import Store
from weir.runtime.topology import Topology


class DrawnOperator(msgspec.Struct, frozen=True):
    """An operator: what it is called, what it does, and how long it can hold rows back."""

    name: str
    detail: str
    hold: str


class DrawnLink(msgspec.Struct, frozen=True):
    """Says which stage is read, and how: see `plan.stages.Link`."""

    stage: int
    channel: Channel
    keys: tuple[str, ...]


class DrawnStage(msgspec.Struct, frozen=True):
    """A stage: its operators in order, what it reads, and how it recovers. `source` is the name of
    the stream that it brings in, if it does; `time` the type of its event times."""

    number: int
    name: str
    source: str
    vertices: int
    operators: tuple[DrawnOperator, ...]
    links: tuple[DrawnLink, ...]
    time: str
    strategy: str
    why_single: str


class DrawnOutput(msgspec.Struct, frozen=True):
    """An output, and the stages whose rows it gets."""

    title: str
    kind: StreamKind
    path: str
    stages: tuple[int, ...]


class DrawnVertex(msgspec.Struct, frozen=True):
    """A vertex of a stage (for a sink: of an output), with the streams that it reads and writes.
    A source has the name of its partition. `shares` are the parts of its inputs' rows that it
    reads, as far as buckets are even; without any, it reads all rows."""

    id: str
    kind: str
    stage: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    partition: str
    shares: tuple[float, ...] = ()

    def share(self, input: int) -> float:
        """Return the part of an input's rows that it reads."""
        return self.shares[input] if input < len(self.shares) else 1.0


class DrawnPlan(msgspec.Struct, frozen=True):
    """All that is drawn of a plan."""

    stages: tuple[DrawnStage, ...]
    outputs: tuple[DrawnOutput, ...]
    vertices: tuple[DrawnVertex, ...]
    plain_ticks: bool = False
    """Whether event times are plain numbers (`unit = 'tick'`), no microseconds."""


def draw_plan(
    plan: StagedPlan,
    topology: Topology,
    strategies: Mapping[str, str],
    partitions: Mapping[str, Sequence[str]],
) -> DrawnPlan:
    """Describe a plan; `strategies` says how each stage recovers, by its number as a text, and
    `partitions` how those of each source are called."""
    running = [n for s in plan.stages for n in s.operators if not isinstance(n, Branch)]
    holds = longest_holds(running)
    counts = [0] * len(plan.stages)
    for spec in topology.order:
        if spec.kind != "sink":
            counts[spec.stage] += 1
    stages = tuple(
        DrawnStage(
            number=stage.number,
            name=stage.uid or "",
            source=_source(stage),
            vertices=counts[stage.number],
            operators=tuple(_operators(stage, holds)),
            links=tuple(
                DrawnLink(link.stage, link.channel, link.keys) for _, link in links_of(stage)
            ),
            time=type_name(stage_schema(stage).time),
            strategy=strategies.get(str(stage.number), ""),
            why_single=stage.why_single,
        )
        for stage in plan.stages
    )
    outputs = tuple(
        DrawnOutput(s.output.title, s.output.kind, s.output.path, plan.stages_of(s))
        for s in plan.sinks
    )
    vertices = []
    for spec in topology.order:
        named = partitions[_source(plan.stages[spec.stage])] if spec.kind == "source" else ()
        partition = named[spec.index] if named else ""
        vertices.append(
            DrawnVertex(
                id=spec.id,
                kind=spec.kind,
                stage=spec.stage,
                inputs=spec.inputs,
                outputs=spec.outputs,
                partition=partition,
                shares=tuple(1.0 if view is None else view.share for view in spec.views),
            )
        )
    first = [stage.operators[0] for stage in plan.stages]
    plain_ticks = any(isinstance(s, Source) and s.options.unit == "tick" for s in first)
    return DrawnPlan(stages, outputs, tuple(vertices), plain_ticks)


def _source(stage: Stage) -> str:
    first = stage.operators[0]
    return first.name if isinstance(first, Source) else ""


def _operators(stage: Stage, holds: Mapping[Node, Span]) -> Iterator[DrawnOperator]:
    for operator in stage.operators:
        if isinstance(operator, Branch):
            yield DrawnOperator("Branch", f"{operator.number} of a union", "")
        else:
            hold = holds[operator]
            held = "" if hold == NONE else str(hold)
            yield DrawnOperator(type(operator).__name__, operator.detail(), held)


_decoder = msgspec.json.Decoder(DrawnPlan)


def read_plan(store: Store) -> DrawnPlan | None:
    """Read the plan of a store's job; None where none is kept. All that it names is in it."""
    body = store.get(PLAN)
    if body is None:
        return None
    plan = decode_record(PLAN, body, _decoder)
    if unknown := next(_unknown(plan), ""):
        raise SnapshotCorrupt(f"{PLAN} does not hold what it should: there is no {unknown}")
    return plan


def _unknown(plan: DrawnPlan) -> Iterator[str]:
    """Find what a plan names and does not have."""
    stages, outputs = range(len(plan.stages)), range(len(plan.outputs))
    for number, stage in enumerate(plan.stages):
        if stage.number != number:
            yield f"stage {number}"
        if not stage.operators:
            yield f"operator in stage {number}"
    links = [link.stage for stage in plan.stages for link in stage.links]
    read = [number for output in plan.outputs for number in output.stages]
    yield from (f"stage {number}" for number in (*links, *read) if number not in stages)
    written = {stream for v in plan.vertices if v.kind != "sink" for stream in v.outputs}
    for v in plan.vertices:
        if v.stage not in (outputs if v.kind == "sink" else stages):
            yield f"place for vertex {v.id}"
        yield from (f"share {share} of {v.id}" for share in v.shares if not 0 <= share <= 1)
        yield from (f"writer of {stream}" for stream in v.inputs if stream not in written)
        yield from (f"stream {stream} out of a sink" for stream in v.outputs if v.kind == "sink")
