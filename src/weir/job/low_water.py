"""Keeps low-water marks up to date as the ledger changes, and collects what they leave behind.

Rules
1. The marks are always those that `ledger.restarts` finds from scratch, and what is collected is
   what `ledger.collect` collects; but only what a change can have moved is looked at. A vertex is
   looked at again when its checkpoints, its segments, or what its readers need have changed.
2. Vertices are looked at in the order of `restarts`: readers before their writers. So each is
   looked at once for any number of changes.
3. To collect moves no mark: what goes is before all restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from weir.job.ledger import UNREAD, Ledger, Restarts, collect_all, restarts, watched
from weir.job.messages import Checkpoint
from weir.reliable.log import Segment
from weir.reliable.object_names import ingress_key, ingress_log, is_ephemeral
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology, VertexSpec


class LowWater:
    """Keeps the restarts of a ledger by the module's rules."""

    def __init__(
        self, topology: Topology, strategies: Mapping[str, Strategy], ledger: Ledger
    ) -> None:
        self._topology, self._strategies, self._ledger = topology, strategies, ledger
        self._place_of = {spec.id: place for place, spec in enumerate(topology.order)}
        first = restarts(topology, strategies, ledger)
        self._checkpoint, self._needed = dict(first.checkpoint), dict(first.needed)
        self._checkpoints = watched(ledger.checkpoints).watch()
        self._segments = watched(ledger.segments).watch()
        """The vertices whose checkpoints have changed, and the streams whose segments have, since
        they were looked at."""
        self._vertices = dict.fromkeys(topology.vertices)
        self._streams = dict.fromkeys([*ledger.segments, *self._needed])
        """The vertices and the streams of which there may be something to collect, in the order in
        which they changed."""

    @property
    def restarts(self) -> Restarts:
        """Where each vertex would restart; see `ledger.restarts`."""
        waiting = [-self._place_of[vertex] for vertex in self._changed()]
        heapify(waiting)
        last = 1
        while waiting:
            place = heappop(waiting)
            if place != last:
                last = place
                for writer in self._look_at(self._topology.order[-place]):
                    heappush(waiting, -self._place_of[writer])
        return Restarts(self._checkpoint, self._needed)

    def _changed(self) -> dict[str, None]:
        """Take the vertices that have changed since the last time."""
        vertices = {v: None for v in self._checkpoints if v in self._place_of}
        for stream in self._segments:
            if stream in self._topology.streams:
                vertices[self._topology.streams[stream].writer] = None
        self._vertices |= vertices
        self._streams |= self._segments
        self._checkpoints.clear()
        self._segments.clear()
        return vertices

    def _look_at(self, spec: VertexSpec) -> Iterator[str]:
        """Find where a vertex restarts now; yield the writers of which less is needed, or more."""
        ledger = self._ledger
        durable = [
            _reach(ledger.segments.get(stream, ()), self._asked_of(spec, stream))
            for stream in spec.outputs
        ]
        before = self._checkpoint[spec.id]
        now = self._strategies[spec.id].usable(ledger.checkpoints.get(spec.id, ()), durable)
        if now == before:
            return
        self._checkpoint[spec.id] = now
        self._vertices[spec.id] = None
        for input, stream in enumerate(spec.inputs):
            old, new = _start(before, input), _start(now, input)
            if old == new or not self._moves(stream, old, new):
                continue
            self._streams[stream] = None
            writer = self._topology.streams[stream].writer
            if self._place_of[writer] < self._place_of[spec.id]:
                yield writer

    def _asked_of(self, writer: VertexSpec, stream: str) -> int:
        """Say from which row on readers that stand after a writer would ask for its stream."""
        if not self._topology.streams[stream].back:
            return self._needed.get(stream, UNREAD)
        place = self._place_of[writer.id]
        readers = self._topology.readers_of.get(stream, ())
        starts = (_start(self._checkpoint[v], i) for v, i in readers if self._place_of[v] > place)
        return min(starts, default=UNREAD)

    def _moves(self, stream: str, old: int, new: int) -> bool:
        """Take in that a reader of a stream needs rows from another number on; say whether that
        changes from where on they are needed at all."""
        before = self._needed[stream]
        readers = self._topology.readers_of[stream]
        if len(readers) == 1 or new < before:
            now = new
        elif old == before:
            now = min(_start(self._checkpoint[vertex], input) for vertex, input in readers)
        else:
            return False
        self._needed[stream] = now
        return now != before

    # --- garbage -----------------------------------------------------------------------------

    def collect(self) -> tuple[str, ...]:
        """Remove from the ledger what nobody needs; return the objects to delete once the ledger is
        durable without them."""
        if self._ledger.finished:
            return collect_all(self._ledger)
        _ = self.restarts
        garbage = [
            *(key for vertex in self._vertices for key in self._collect_checkpoints(vertex)),
            *(key for stream in self._streams for key in self._collect_segments(stream)),
            *(key for vertex in self._vertices for key in self._collect_log(vertex)),
        ]
        for changes in (self._vertices, self._streams, self._checkpoints, self._segments):
            changes.clear()
        return tuple(garbage)

    def _collect_checkpoints(self, vertex: str) -> list[str]:
        checkpoints, usable = self._ledger.checkpoints.get(vertex, ()), self._checkpoint.get(vertex)
        start = checkpoints.index(usable) if usable is not None else 0
        if start:
            self._ledger.checkpoints[vertex] = checkpoints[start:]
        return [c.key for c in checkpoints[:start] if is_ephemeral(c.key)]

    def _collect_segments(self, stream: str) -> list[str]:
        ledger = self._ledger
        needed = self._needed.get(stream, UNREAD)
        segments = ledger.segments.get(stream, ())
        count = next((n for n, s in enumerate(segments) if s.end > needed), len(segments))
        if count:
            ledger.segments[stream] = segments[count:]
        if stream in self._needed and needed > ledger.collected.get(stream, -1):
            ledger.collected[stream] = needed
        return [s.key for s in segments[:count]]

    def _collect_log(self, vertex: str) -> list[str]:
        """Collect the records of a source's log that no restart needs, in the order in which they
        must be deleted."""
        log, usable = ingress_log(vertex), self._checkpoint.get(vertex)
        first, needed = self._ledger.collected.get(log, 0), 0 if usable is None else usable.log
        if needed <= first:
            return []
        self._ledger.collected[log] = needed
        return [ingress_key(vertex, number) for number in range(first, needed)]


def _start(checkpoint: Checkpoint | None, input: int) -> int:
    """Say from which row on a vertex that restarts there reads this input."""
    return checkpoint.needs[input] if checkpoint is not None else 0


def _reach(segments: Sequence[Segment], start: int) -> int:
    """Find up to which row the segments reach from row `start` on. They have no gap: the ledger
    takes none that leaves one."""
    if segments and segments[0].first <= start < segments[-1].end:
        return segments[-1].end
    return start
