"""Assigns instances of vertices to hosts, and makes the orders that hosts get.

Rules
1. Every vertex has as many instances as its strategy says, each on a host of its own; an instance
   for which there is no host waits.
2. An instance that is lost, or has to begin again, is placed again. So are the instances of
   the vertices that its strategy sets back, and of those that these set back in turn; no other
   instance is touched.
3. Of the instances of a vertex that run, the first writes the segments of its streams and the last
   takes checkpoints.
4. An instance goes to the host with the fewest instances, as a new incarnation. Incarnations only
   grow, also from one manager to the next.
5. What a host has to know changes with its instances, with those that serve their inputs, and with
   what is durable and collected of their streams. Each change is a fact for that host (`facts.py`);
   orders have those that it has not acknowledged. No change costs more than the hosts that it
   concerns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec.structs import replace

from weir.job.facts import Facts
from weir.job.garbage_sweep import EPOCH_BITS
from weir.job.host_registry import HostState
from weir.job.ledger import Ledger, Restarts, watched
from weir.job.messages import (
    KEPT_CHECKPOINTS,
    Checkpoint,
    Figures,
    Orders,
    ServedBy,
    VertexOrder,
    VertexReport,
)
from weir.job.poison import pieces_for
from weir.reliable.log import Segment
from weir.reliable.object_names import ingress_log
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology

OrderKind: TypeAlias = Literal["run", "served", "segments", "collect", "floors"]
OrderKey: TypeAlias = tuple[OrderKind, str]
"""A fact for a host: what has changed of a vertex or a stream. What is so now is looked up when it
is said."""

LONG_WAIT = 5.0
"""Seconds: a source that waits for so long is told of in the story."""
RATE_OVER = 1.0
"""Seconds over which the events of an instance are counted."""


NO_FIGURES = Figures()


@dataclass(slots=True)
class Placement:
    """Says where an instance runs, and what was last reported of it."""

    vertex: str
    copy: int
    """Which of the vertex's instances it is, from 0 on; it stays when the instance is replaced."""
    incarnation: int = 0
    """The number of the instance; each that replaces it has a larger one."""
    session: str | None = None
    """The host that runs it; None: no host does."""
    restart: Checkpoint | None = None
    """The checkpoint that it began from; None: it began at the beginning."""
    report: VertexReport | None = None
    """Its last status, if it has reported one."""
    figures: Figures = NO_FIGURES
    """Its last figures."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """The last checkpoints that it has reported."""
    segments: dict[str, list[Segment]] = field(default_factory=dict)
    """The segments of its streams that it has reported, and that are not collected."""
    flushed: dict[str, int] = field(default_factory=dict)
    """For each of its streams the first row of the last segment that it has reported."""
    fallen_at: float | None = None
    """When its predecessor was lost or given up; None once it runs."""
    rate: float = 0.0
    """Events a second, of late."""
    rated_at: float = 0.0
    rated_events: int = 0
    """When the rate was computed last, and how many events there were then."""
    waits_since: float | None = None
    """Since when a source has reported that it waits (`VertexReport.waits`); None: it does not."""
    wait_is_told: bool = False
    """Whether the story tells of that."""

    def learn(self, report: VertexReport, *, whole: bool = True) -> None:
        """Take in what its instance reports, or what is new of it; figures stay where there are no
        new ones."""
        self.report = replace(report, checkpoints=(), segments={}, flushed={}, figures=None)
        self.figures = report.figures or self.figures
        known = {c.number for c in report.checkpoints}
        kept = (c for c in self.checkpoints if c.number not in known)
        self.checkpoints = (*kept, *report.checkpoints)[-KEPT_CHECKPOINTS:]
        for stream, segments in report.segments.items():
            if not whole:
                self.flushed[stream] = segments[-1].first
            held = self.segments.setdefault(stream, [])
            for segment in segments:
                if not held or segment.end > held[-1].end:
                    held.append(segment)
        self.flushed |= report.flushed

    def forget(self) -> None:
        """Forget what an instance has reported that is replaced."""
        self.report, self.figures = None, NO_FIGURES
        self.checkpoints, self.segments, self.flushed = (), {}, {}

    def rate_until(self, events: int, now: float) -> None:
        """Compute the rate again, if it is old enough."""
        passed = now - self.rated_at
        if events < self.rated_events or self.rated_at == 0.0:
            self.rated_at, self.rated_events = now, events
        elif passed >= RATE_OVER:
            self.rate = (events - self.rated_events) / passed
            self.rated_at, self.rated_events = now, events

    def wait_until(self, waits: str | None, now: float) -> bool:
        """Take in whether its source waits; say whether that is to be told now, once in a wait."""
        if not waits:
            self.waits_since, self.wait_is_told = None, False
            return False
        if self.waits_since is None:
            self.waits_since = now
        if self.wait_is_told or now - self.waits_since < LONG_WAIT:
            return False
        self.wait_is_told = True
        return True


class Placements:
    """Keeps the placements of a job's instances, by the module's rules."""

    def __init__(
        self, topology: Topology, strategies: Mapping[str, Strategy], ledger: Ledger
    ) -> None:
        """`ledger` is watched already."""
        self._topology, self._strategies, self._ledger = topology, strategies, ledger
        self._copies = {
            spec.id: [Placement(spec.id, copy) for copy in range(strategies[spec.id].copies)]
            for spec in topology.order
        }
        self.all = [placement for copies in self._copies.values() for placement in copies]
        """The placements of all instances, writers before readers."""
        self._rank = {(p.vertex, p.copy): rank for rank, p in enumerate(self.all)}
        self._on: dict[str, dict[int, Placement]] = {}
        """The instances that each host runs, by their ranks."""
        self._missing = dict(enumerate(self.all))
        """The instances that no host runs, by their ranks."""
        self._facts: dict[str, Facts[OrderKey, None]] = {}
        """What each host was not heard to know."""
        self._readers: dict[str, tuple[str, ...]] = {}
        """The vertices that read streams of a vertex, once they were asked for."""
        self._changed = (watched(ledger.suspects).watch(), watched(ledger.logs).watch())
        """The vertices whose orders change with these."""
        self.kept: set[str] = set()
        """The vertices of which an instance has done what `Orders.checkpoint` asks for."""

    def on(self, session: str) -> list[Placement]:
        """List the instances that a host runs, writers before readers."""
        return [p for _, p in sorted(self._on.get(session, {}).items())]

    @property
    def missing(self) -> list[Placement]:
        """The instances that no host runs, writers before readers."""
        return [p for _, p in sorted(self._missing.items())]

    @property
    def alive(self) -> dict[int, Placement]:
        """The placement of each incarnation that a host runs."""
        return {p.incarnation: p for p in self.all if p.session is not None}

    def running(self, session: str, report: VertexReport) -> Placement | None:
        """Find the instance that a host reports of; None: it does not run it any more."""
        for placement in self._copies[report.vertex]:
            if placement.incarnation == report.incarnation and placement.session == session:
                return placement
        return None

    def copies(self, vertex: str) -> Sequence[Placement]:
        """The placements of a vertex's instances."""
        return self._copies[vertex]

    # --- placing -----------------------------------------------------------------------------

    def place(
        self, placement: Placement, restart: Checkpoint | None, hosts: Mapping[str, HostState]
    ) -> bool:
        """Give an instance to a host; False if there is no host for it."""
        copies = self._copies[placement.vertex]
        session = host_for(copies, {s: len(self._on.get(s, ())) for s in hosts}, hosts)
        if session is None:
            return False
        ledger = self._ledger
        ledger.incarnations += 1
        placement.session, placement.restart = session, restart
        placement.incarnation = (ledger.epoch << EPOCH_BITS) | ledger.incarnations
        rank = self._rank[placement.vertex, placement.copy]
        del self._missing[rank]
        self._on.setdefault(session, {})[rank] = placement
        self._say_moved(placement.vertex)
        return True

    def unplace(self, fallen: Sequence[Placement], now: float) -> list[tuple[str, str]]:
        """Take instances from their hosts, because they are lost or have to begin again, and with
        them those that this sets back; return a line of the story for each of these, with its
        vertex."""
        for placement in fallen:
            self._take(placement, now)
        lines: list[tuple[str, str]] = []
        for vertex, by in self.set_back_by(p.vertex for p in fallen).items():
            for placement in self._copies[vertex]:
                if placement.session is not None:
                    self._take(placement, now)
                    lines.append((vertex, f"set back by the loss of {by}"))
        return lines

    def set_back_by(self, vertices: Iterable[str]) -> dict[str, str]:
        """Find the vertices that a loss of these sets back, directly or through one another, each
        with the one that does so."""
        set_back: dict[str, str] = {}
        waiting = list(vertices)
        for vertex in waiting:  # which grows meanwhile
            for other in self._strategies[vertex].sets_back(vertex, self._feeding):
                if other not in set_back:
                    set_back[other] = vertex
                    waiting.append(other)
        return set_back

    def _take(self, placement: Placement, now: float) -> None:
        rank = self._rank[placement.vertex, placement.copy]
        if placement.session is not None:
            del self._on[placement.session][rank]
            self._say(placement.session, "run", placement.vertex)
        self._missing[rank] = placement
        placement.session, placement.fallen_at = None, now
        placement.forget()
        if all(p.report is None or not p.report.kept for p in self._copies[placement.vertex]):
            self.kept.discard(placement.vertex)
        counts = self._ledger.recoveries
        counts[placement.vertex] = counts.get(placement.vertex, 0) + 1
        self._say_moved(placement.vertex)

    def _feeding(self, vertex: str) -> Collection[str]:
        inputs = self._topology.vertices[vertex].inputs
        return {self._topology.writer_of(stream).id for stream in inputs}

    def lose(self, session: str) -> None:
        """Forget what a host that is lost was to know."""
        self._facts.pop(session, None)

    # --- what instances report ---------------------------------------------------------------

    def learn(self, placement: Placement, report: VertexReport, *, whole: bool) -> None:
        """Take in what an instance reports; see `Placement.learn`."""
        placement.learn(report, whole=whole)
        if report.kept:
            self.kept.add(placement.vertex)

    # --- what hosts have to know -------------------------------------------------------------

    def _say(self, session: str | None, kind: OrderKind, name: str) -> None:
        if session is not None and session in self._facts:
            self._facts[session].say((kind, name), None)

    def _say_all(self, vertex: str, kind: OrderKind, name: str) -> None:
        """Let all hosts of a vertex know."""
        for placement in self._copies[vertex]:
            self._say(placement.session, kind, name)

    def _say_moved(self, vertex: str) -> None:
        """Let all whom it concerns know that instances of a vertex have come or gone."""
        self._say_all(vertex, "run", vertex)
        for reader in self._readers_of(vertex):
            self._say_all(reader, "served", vertex)

    def _readers_of(self, vertex: str) -> tuple[str, ...]:
        if vertex not in self._readers:
            streams = self._topology.vertices[vertex].outputs
            readers = (r for s in streams for r, _ in self._topology.readers_of.get(s, ()))
            self._readers[vertex] = tuple(dict.fromkeys(readers))
        return self._readers[vertex]

    def grown(self, vertex: str, stream: str) -> None:
        """Take in that a stream of a vertex has more segments: its other instances learn of it."""
        if len(self._copies[vertex]) > 1:
            self._say_all(vertex, "segments", stream)

    def collected(
        self, stream: str, mark: int, restart_of: Mapping[str, Checkpoint | None]
    ) -> None:
        """Take in that nobody will ask for rows of a stream below a number, since readers would
        restart from these checkpoints. Whoever writes it can forget the rows. A reader can have
        fallen behind them only if another instance of its vertex has taken that checkpoint."""
        if stream not in self._topology.streams:
            return  # a log
        writer = self._topology.streams[stream].writer
        self._say_all(writer, "collect", stream)
        for placement in self._copies[writer]:
            held = placement.segments.get(stream)
            if held is not None:
                placement.segments[stream] = [s for s in held if s.end > mark]
        for reader, _ in self._topology.readers_of.get(stream, ()):
            restart = restart_of[reader]
            if restart is None:
                continue
            for placement in self._copies[reader]:
                if placement.incarnation != restart.incarnation:
                    self._say(placement.session, "floors", stream)

    def orders(
        self, of: Orders, hosts: Mapping[str, HostState], collected: Mapping[str, int], since: int
    ) -> Orders:
        """Add to these orders for a host what it does not know, which has all up to `since`.
        `collected` has, for each stream, the number below which nobody will ask for rows."""
        for changed in self._changed:
            for vertex in changed:
                if vertex in self._copies:
                    self._say_all(vertex, "run", vertex)
            changed.clear()
        session = of.session
        facts = self._facts.setdefault(session, Facts())
        facts.acknowledge(since)
        news = facts.since(since) if since else None
        if news is None:
            vertices = tuple(self._order(p, hosts, collected) for p in self.on(session))
            return replace(of, vertices=vertices, upto=facts.number)
        kinds: dict[OrderKind, list[str]] = {}
        for (kind, name), _ in news:
            kinds.setdefault(kind, []).append(name)
        runs = {p.vertex: p for name in kinds.get("run", ()) for p in self._here(name, session)}
        ledger = self._ledger
        return replace(
            of,
            since=since,
            upto=facts.number,
            vertices=tuple(self._order(p, hosts, collected) for p in runs.values()),
            dropped=tuple(name for name in kinds.get("run", ()) if name not in runs),
            served={v: self._served_by(v, hosts) for v in kinds.get("served", ())},
            segments={s: ledger.segments.get(s, ()) for s in kinds.get("segments", ())},
            collect={s: collected.get(s, 0) for s in kinds.get("collect", ())},
            floors={s: collected.get(s, 0) for s in kinds.get("floors", ())},
        )

    def _here(self, vertex: str, session: str) -> list[Placement]:
        return [p for p in self._copies[vertex] if p.session == session]

    def _order(
        self, placement: Placement, hosts: Mapping[str, HostState], collected: Mapping[str, int]
    ) -> VertexOrder:
        spec, ledger = self._topology.vertices[placement.vertex], self._ledger
        copies = [p for p in self._copies[placement.vertex] if p.session]
        streams = self._topology.streams
        served = {v: self._served_by(v, hosts) for v in {streams[s].writer for s in spec.inputs}}
        return VertexOrder(
            placement.vertex,
            placement.incarnation,
            placement.restart,
            writes_log=placement is copies[0],
            takes_checkpoints=placement is copies[-1],
            segments={s: ledger.segments.get(s, ()) for s in spec.outputs},
            collect={s: collected.get(s, 0) for s in spec.outputs},
            inputs={s: served[streams[s].writer] for s in spec.inputs},
            floors={s: collected.get(s, 0) for s in spec.inputs},
            log_end=ledger.logs.get(placement.vertex),
            pieces=pieces_for(ledger.suspects.get(placement.vertex, ())),
        )

    def _served_by(self, writer: str, hosts: Mapping[str, HostState]) -> tuple[ServedBy, ...]:
        return tuple(
            ServedBy(p.session, hosts[p.session].report.address, p.incarnation)
            for p in self._copies[writer]
            if p.session is not None and p.session in hosts
        )


def host_for(
    copies: Iterable[Placement], load: Mapping[str, int], hosts: Mapping[str, HostState]
) -> str | None:
    """Find the host with the fewest instances that runs none of these; None if there is none."""
    in_use = {p.session for p in copies}
    free = [s for s in hosts if s not in in_use]
    return min(free, key=lambda s: (load.get(s, 0), hosts[s].report.slot, s), default=None)


def gap_before(
    vertex: str, restart: Checkpoint | None, topology: Topology, ledger: Ledger
) -> str | None:
    """Say why a vertex cannot restart from this checkpoint; None: it can."""
    for input, stream in enumerate(topology.vertices[vertex].inputs):
        start = restart.needs[input] if restart is not None else 0
        kept = ledger.collected.get(stream, 0)
        if start < kept:
            return (
                f"vertex {vertex} has no checkpoint that can be read: it would need row "
                f"{start} of stream {stream}, of which rows from {kept} on are kept"
            )
    begins = restart.log if restart is not None else 0
    kept = ledger.collected.get(ingress_log(vertex), 0)
    if begins < kept:
        return (
            f"vertex {vertex} has no checkpoint that can be read: it would need record "
            f"{begins} of its log, of which those from {kept} on are kept"
        )
    return None


def first_gap(
    vertices: Iterable[str], restart_of: Restarts, topology: Topology, ledger: Ledger
) -> str | None:
    """Say why one of these vertices cannot restart where it would; None: all can."""
    gaps = (
        gap_before(vertex, restart_of.checkpoint[vertex], topology, ledger) for vertex in vertices
    )
    return next(filter(None, gaps), None)


def log_is_ahead(placement: Placement, ledger: Ledger) -> bool:
    """Say whether records of its log were collected that this instance still needed. If they were
    not collected, and are gone, the store has lost them."""
    began = placement.restart.log if placement.restart is not None else 0
    return ledger.collected.get(ingress_log(placement.vertex), 0) > began
