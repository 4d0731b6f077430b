"""What flows between the stages of a plan: how much, what waits unread, and who waits for whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from weir.job.plan_drawing import DrawnPlan, DrawnVertex
from weir.job.status import JobStatus, VertexStatus

FAR_BEHIND = 1_000_000
"""Ticks: a vertex is said to wait for an input that is so far behind another of its inputs."""


class EdgeFlow(msgspec.Struct, frozen=True):
    """What flows from a stage to a stage, or to an output: how many rows were written for it and
    read, and how many ticks the stage is behind the others that the same reader reads."""

    source: int
    target: int
    to_output: bool
    written: int
    read: int
    behind: int | None
    held: bool
    """Whether the writer waits until the reader has read more."""


class VertexWait(msgspec.Struct, frozen=True):
    """Says what a vertex waits for: another vertex, or (if that is empty) what the text says."""

    vertex: str
    upon: str
    why: str


def flows_of(plan: DrawnPlan, status: JobStatus) -> list[EdgeFlow]:
    """List what flows along each edge of the plan."""
    known = _first_copies(status.vertices)
    by_place: dict[tuple[int, bool], list[DrawnVertex]] = {}
    for spec in plan.vertices:
        by_place.setdefault((spec.stage, spec.kind == "sink"), []).append(spec)
    writer_of = {stream: v for v in plan.vertices for stream in v.outputs}
    ends = _ends(plan, known)
    found: list[EdgeFlow] = []
    for (place, is_sink), readers in by_place.items():
        totals: dict[int, list[int]] = {}
        reached: dict[int, list[int]] = {}
        for reader in readers:
            told = known.get(reader.id)
            positions = told.inputs if told is not None else ()
            for number, stream in enumerate(reader.inputs):
                writer = writer_of[stream]
                at = positions[number] if number < len(positions) else 0
                total = totals.setdefault(writer.stage, [0, 0])
                total[0] += max(ends.get(stream, at), at)
                total[1] += at
                wrote = known.get(writer.id)
                if wrote is not None and wrote.reached is not None:
                    reached.setdefault(writer.stage, []).append(wrote.reached)
        front = max((min(times) for times in reached.values()), default=None)
        for stage, (written, read) in sorted(totals.items()):
            times = reached.get(stage)
            behind = front - min(times) if times and front is not None and not status.over else None
            held = any(
                known[v.id].held == "readers" for v in by_place[stage, False] if v.id in known
            )
            found.append(
                EdgeFlow(stage, place, is_sink, written, read, behind, held and written > read)
            )
    return found


def waits_of(plan: DrawnPlan, status: JobStatus) -> list[VertexWait]:
    """Say which vertices wait for whom, and why."""
    if status.over:
        return []
    known = _first_copies(status.vertices)
    writer_of = {stream: v.id for v in plan.vertices for stream in v.outputs}
    readers_of: dict[str, list[tuple[str, int]]] = {}
    for v in plan.vertices:
        for input, stream in enumerate(v.inputs):
            readers_of.setdefault(stream, []).append((v.id, input))
    found: list[VertexWait] = []
    for spec in plan.vertices:
        if (told := known.get(spec.id)) is not None:
            found += _own_waits(told)
            found += _unread(spec, told, readers_of, known) if told.held == "readers" else ()
            writers = {writer_of[stream] for stream in spec.inputs}
            found += _behind(spec, writers, known, plain_ticks=plan.plain_ticks)
    return found


def _own_waits(told: VertexStatus) -> Iterator[VertexWait]:
    """Say what a vertex waits for that is no vertex."""
    if told.status in ("waiting for a host", "loading"):
        yield VertexWait(told.id, "", told.status)
    if told.waits:
        yield VertexWait(told.id, "", told.waits)
    if told.step_seconds is not None:
        yield VertexWait(
            told.id, "", f"is at one step for {told.step_seconds:.0f} s, {told.step_rows}"
        )
    if told.held == "store":
        yield VertexWait(
            told.id, "", "has more rows that are not durable than it may: the store is slow"
        )


def _unread(
    spec: DrawnVertex,
    told: VertexStatus,
    readers_of: Mapping[str, Sequence[tuple[str, int]]],
    known: Mapping[str, VertexStatus],
) -> Iterator[VertexWait]:
    """Find the readers that keep a vertex waiting: they have not read what it wrote."""
    left: dict[str, int] = {}
    for stream, end in zip(spec.outputs, told.outputs, strict=False):
        for reader, input in readers_of.get(stream, ()):
            at = known[reader].inputs[input : input + 1] if reader in known else ()
            left[reader] = left.get(reader, 0) + max(0, end - (at[0] if at else 0))
    for reader, rows in left.items():
        if rows:
            yield VertexWait(spec.id, reader, f"which has {rows:,} rows to read")


def _behind(
    spec: DrawnVertex,
    writers: Collection[str],
    known: Mapping[str, VertexStatus],
    *,
    plain_ticks: bool,
) -> Iterator[VertexWait]:
    """Find the input that keeps the rows of others waiting: it is far behind them."""
    reached = {
        id: known[id].reached or 0
        for id in sorted(writers)
        if id in known and known[id].reached is not None
    }
    if len(reached) < 2:
        return
    last, first = min(reached, key=reached.__getitem__), max(reached, key=reached.__getitem__)
    gap = reached[first] - reached[last]
    if FAR_BEHIND <= gap < 2**62:  # else one of them has ended, or not begun
        long = f"{gap:,} ticks" if plain_ticks else f"{gap / 1e6:,.1f} s"
        yield VertexWait(spec.id, last, f"which is {long} behind {first} in event time")


def _ends(plan: DrawnPlan, known: Mapping[str, VertexStatus]) -> dict[str, int]:
    ends: dict[str, int] = {}
    for spec in plan.vertices:
        told = known.get(spec.id)
        if told is not None:
            ends.update(zip(spec.outputs, told.outputs, strict=False))
    return ends


def _first_copies(vertices: Sequence[VertexStatus]) -> dict[str, VertexStatus]:
    """Take the first instance of each vertex; a vertex that is replicated has several."""
    found: dict[str, VertexStatus] = {}
    for v in vertices:
        found.setdefault(v.id, v)
    return found
