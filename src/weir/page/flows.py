"""The flows between stages: rows written and read, and which vertices wait for which."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from weir.job.plan_drawing import DrawnPlan, DrawnVertex
from weir.job.status import JobStatus, VertexStatus

FAR_BEHIND = 1_000_000
"""Ticks by which an input must be behind another one for the vertex to be shown as waiting for
it."""


class EdgeFlow(msgspec.Struct, frozen=True):
    """The flow from a stage to another stage or an output: about how many rows were written for it
    and read, and how many ticks the stage is behind the reader's other inputs."""

    source: int
    target: int
    to_output: bool
    written: int
    read: int
    behind: int | None
    held: bool
    """Whether the writer waits for the reader to read more."""


class VertexWait(msgspec.Struct, frozen=True):
    """What a vertex waits for: another vertex or, if that is empty, what the text says."""

    vertex: str
    upon: str
    why: str


def flows_of(plan: DrawnPlan, status: JobStatus) -> list[EdgeFlow]:
    """Return the flow along each edge of the plan."""
    status_of = _first_copies(status.vertices)
    by_place: dict[tuple[int, bool], list[DrawnVertex]] = {}
    for spec in plan.vertices:
        by_place.setdefault((spec.stage, spec.kind == "sink"), []).append(spec)
    writer_of = {stream: v for v in plan.vertices for stream in v.outputs}
    ends = _ends(plan, status_of)
    flows: list[EdgeFlow] = []
    for (place, is_sink), readers in by_place.items():
        totals: dict[int, list[int]] = {}
        reached: dict[int, list[int]] = {}
        for reader in readers:
            reader_status = status_of.get(reader.id)
            positions = reader_status.inputs if reader_status is not None else ()
            for number, stream in enumerate(reader.inputs):
                writer = writer_of[stream]
                at = positions[number] if number < len(positions) else 0
                total = totals.setdefault(writer.stage, [0, 0])
                share = reader.share(number)
                total[0] += round(max(ends.get(stream, at), at) * share)
                total[1] += round(at * share)
                writer_status = status_of.get(writer.id)
                if writer_status is not None and writer_status.reached is not None:
                    reached.setdefault(writer.stage, []).append(writer_status.reached)
        front = max((min(times) for times in reached.values()), default=None)
        for stage, (written, read) in sorted(totals.items()):
            times = reached.get(stage)
            gap = front - min(times) if times and front is not None and not status.over else None
            held = any(
                status_of[v.id].held == "readers"
                for v in by_place[stage, False]
                if v.id in status_of
            )
            flows.append(
                EdgeFlow(
                    source=stage,
                    target=place,
                    to_output=is_sink,
                    written=written,
                    read=read,
                    behind=gap,
                    held=held and written > read,
                )
            )
    return flows


def waits_of(plan: DrawnPlan, status: JobStatus) -> list[VertexWait]:
    """Return which vertices wait, for what, and why."""
    if status.over:
        return []
    status_of = _first_copies(status.vertices)
    writer_of = {stream: v.id for v in plan.vertices for stream in v.outputs}
    readers_of: dict[str, list[tuple[DrawnVertex, int]]] = {}
    for v in plan.vertices:
        for input, stream in enumerate(v.inputs):
            readers_of.setdefault(stream, []).append((v, input))
    waits: list[VertexWait] = []
    for spec in plan.vertices:
        if (vertex := status_of.get(spec.id)) is not None:
            waits += _own_waits(vertex)
            waits += (
                _unread(spec, vertex, readers_of, status_of) if vertex.held == "readers" else ()
            )
            writers = {writer_of[stream] for stream in spec.inputs}
            waits += _behind(spec, writers, status_of, plain_ticks=plan.plain_ticks)
    return waits


def _own_waits(vertex: VertexStatus) -> Iterator[VertexWait]:
    """Yield what a vertex waits for other than vertices."""
    if vertex.status in ("waiting for a host", "loading"):
        yield VertexWait(vertex.id, "", vertex.status)
    if vertex.waits:
        yield VertexWait(vertex.id, "", vertex.waits)
    if vertex.step_seconds is not None:
        yield VertexWait(
            vertex.id, "", f"in one step for {vertex.step_seconds:.0f} s, {vertex.step_rows}"
        )
    if vertex.held == "store":
        yield VertexWait(
            vertex.id, "", "is at its limit of rows that are not durable: the store is slow"
        )


def _unread(
    spec: DrawnVertex,
    vertex: VertexStatus,
    readers_of: Mapping[str, Sequence[tuple[DrawnVertex, int]]],
    status_of: Mapping[str, VertexStatus],
) -> Iterator[VertexWait]:
    """Yield the readers that have not read what a vertex wrote, and so make it wait."""
    left: dict[str, int] = {}
    for stream, end in zip(spec.outputs, vertex.outputs, strict=False):
        for reader, input in readers_of.get(stream, ()):
            status = status_of.get(reader.id)
            at = status.inputs[input : input + 1] if status is not None else ()
            rows = max(0, end - (at[0] if at else 0)) * reader.share(input)
            left[reader.id] = left.get(reader.id, 0) + round(rows)
    for name, count in left.items():
        if count:
            yield VertexWait(spec.id, name, f"which has {count:,} rows to read")


def _behind(
    spec: DrawnVertex,
    writers: Collection[str],
    status_of: Mapping[str, VertexStatus],
    *,
    plain_ticks: bool,
) -> Iterator[VertexWait]:
    """Yield the input that is far behind the others, and so makes their rows wait."""
    reached = {
        id: status_of[id].reached or 0
        for id in sorted(writers)
        if id in status_of and status_of[id].reached is not None
    }
    if len(reached) < 2:
        return
    last, first = min(reached, key=reached.__getitem__), max(reached, key=reached.__getitem__)
    gap = reached[first] - reached[last]
    if FAR_BEHIND <= gap < 2**62:  # a larger gap: one of them has ended, or not begun
        long = f"{gap:,} ticks" if plain_ticks else f"{gap / 1e6:,.1f} s"
        yield VertexWait(spec.id, last, f"which is {long} behind {first} in event time")


def _ends(plan: DrawnPlan, status_of: Mapping[str, VertexStatus]) -> dict[str, int]:
    ends: dict[str, int] = {}
    for spec in plan.vertices:
        vertex = status_of.get(spec.id)
        if vertex is not None:
            ends.update(zip(spec.outputs, vertex.outputs, strict=False))
    return ends


def _first_copies(vertices: Sequence[VertexStatus]) -> dict[str, VertexStatus]:
    """Return the first instance of each vertex; a replicated vertex has several."""
    first: dict[str, VertexStatus] = {}
    for v in vertices:
        first.setdefault(v.id, v)
    return first
