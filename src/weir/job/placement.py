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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir.job.garbage_sweep import EPOCH_BITS
from weir.job.host_registry import HostState
from weir.job.ledger import Ledger, Restarts
from weir.job.messages import Checkpoint, ServedBy, VertexOrder, VertexReport
from weir.job.poison import pieces_for
from weir.reliable.object_names import ingress_log
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology

LONG_WAIT = 5.0
"""Seconds: a source that waits for so long is told of in the story."""
RATE_OVER = 1.0
"""Seconds over which the events of an instance are counted."""


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
    """Its last report, if there was one."""
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
        self._topology, self._strategies, self._ledger = topology, strategies, ledger
        self._copies = {
            spec.id: [Placement(spec.id, copy) for copy in range(strategies[spec.id].copies)]
            for spec in topology.order
        }
        self.all = [placement for copies in self._copies.values() for placement in copies]
        """The placements of all instances, writers before readers."""

    def on(self, session: str) -> list[Placement]:
        """List the instances that a host runs."""
        return [p for p in self.all if p.session == session]

    @property
    def missing(self) -> list[Placement]:
        """The instances that no host runs."""
        return [p for p in self.all if p.session is None]

    @property
    def alive(self) -> dict[int, VertexReport | None]:
        """The last report of each incarnation that a host runs."""
        return {p.incarnation: p.report for p in self.all if p.session is not None}

    def vertices_that(self, is_so: Callable[[VertexReport], bool]) -> set[str]:
        """Find the vertices of which an instance has reported this."""
        return {p.vertex for p in self.all if p.report is not None and is_so(p.report)}

    @property
    def load(self) -> Counter[str | None]:
        """How many instances each host runs."""
        return Counter(p.session for p in self.all)

    def place(
        self,
        placement: Placement,
        restart: Checkpoint | None,
        hosts: Mapping[str, HostState],
        load: Counter[str | None],
    ) -> bool:
        """Give an instance to a host, and count it in `load`; False if there is no host for it."""
        session = host_for(self._copies[placement.vertex], load, hosts)
        if session is None:
            return False
        load[session] += 1
        ledger = self._ledger
        ledger.incarnations += 1
        placement.session, placement.restart = session, restart
        placement.incarnation = (ledger.epoch << EPOCH_BITS) | ledger.incarnations
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
        placement.session, placement.report = None, None
        placement.fallen_at = now
        counts = self._ledger.recoveries
        counts[placement.vertex] = counts.get(placement.vertex, 0) + 1

    def _feeding(self, vertex: str) -> Collection[str]:
        inputs = self._topology.vertices[vertex].inputs
        return {self._topology.writer_of(stream).id for stream in inputs}

    def orders(
        self, session: str, hosts: Mapping[str, HostState], collected: Mapping[str, int]
    ) -> tuple[VertexOrder, ...]:
        """Make the orders of a host: all instances that it is to run. `collected` has, for each
        stream, the number below which nobody will ask for rows."""
        return tuple(self._order(p, hosts, collected) for p in self.on(session))

    def _order(
        self, placement: Placement, hosts: Mapping[str, HostState], collected: Mapping[str, int]
    ) -> VertexOrder:
        spec, ledger = self._topology.vertices[placement.vertex], self._ledger
        copies = [p for p in self._copies[placement.vertex] if p.session]
        return VertexOrder(
            placement.vertex,
            placement.incarnation,
            placement.restart,
            writes_log=placement is copies[0],
            takes_checkpoints=placement is copies[-1],
            segments={s: ledger.segments.get(s, ()) for s in spec.outputs},
            collect={s: collected.get(s, 0) for s in spec.outputs},
            inputs={s: self._served_by(s, hosts) for s in spec.inputs},
            floors={s: collected.get(s, 0) for s in spec.inputs},
            log_end=ledger.logs.get(placement.vertex),
            pieces=pieces_for(ledger.suspects.get(placement.vertex, ())),
        )

    def _served_by(self, stream: str, hosts: Mapping[str, HostState]) -> tuple[ServedBy, ...]:
        return tuple(
            ServedBy(p.session, hosts[p.session].report.address, p.incarnation)
            for p in self._copies[self._topology.writer_of(stream).id]
            if p.session is not None and p.session in hosts
        )


def host_for(
    copies: Iterable[Placement], load: Mapping[str | None, int], hosts: Mapping[str, HostState]
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
