"""Where instances of vertices run, from where they may restart, and what hosts are told of them.

Rules
1. Every vertex has as many instances as its strategy says, each on a host of its own; a copy for
   which there is no host waits.
2. An instance whose host is lost is placed anew, and so are those of vertices that its strategy
   says are set back; no other instance is touched.
3. Of the copies that run, the first writes the log and the last takes checkpoints.
4. An instance goes to the host with the least to do, as a new incarnation. Incarnations only grow,
   from one manager to the next too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from weir.job.ledger import Ledger
from weir.job.messages import Checkpoint, ServedBy, VertexOrder, VertexReport
from weir.job.poison import pieces_for
from weir.job.sweeping import EPOCH_BITS
from weir.job.watching import HostState
from weir.reliable.keys import ingress_log
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology

RATE_OVER = 1.0


@dataclass(slots=True)
class Placement:
    """An instance: where, which, and what was last heard of it."""

    vertex: str
    copy: int
    incarnation: int = 0
    session: str | None = None
    restart: Checkpoint | None = None
    report: VertexReport | None = None
    fallen_at: float | None = None
    """When its predecessor was found lost."""
    rate: float = 0.0
    """Events a second, of late."""
    rated_at: float = 0.0
    rated_events: int = 0

    def rate_until(self, events: int, now: float) -> None:
        passed = now - self.rated_at
        if events < self.rated_events or self.rated_at == 0.0:
            self.rated_at, self.rated_events = now, events
        elif passed >= RATE_OVER:
            self.rate = (events - self.rated_events) / passed
            self.rated_at, self.rated_events = now, events


class Placements:
    """The instances of a job, by the module's rules."""

    def __init__(
        self, topology: Topology, strategies: Mapping[str, Strategy], ledger: Ledger
    ) -> None:
        self._topology, self._strategies, self._ledger = topology, strategies, ledger
        self._copies = {
            spec.id: [Placement(spec.id, copy) for copy in range(strategies[spec.id].copies)]
            for spec in topology.order
        }
        self.all = [placement for copies in self._copies.values() for placement in copies]
        """The instances, those that write before those that read."""

    def on(self, session: str) -> list[Placement]:
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
        """The vertices of which an instance reports this."""
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
        """Give an instance to a host, and count it in `load`; whether there is a host for it."""
        session = host_for(self._copies[placement.vertex], load, hosts)
        if session is None:
            return False
        load[session] += 1
        ledger = self._ledger
        ledger.incarnations += 1
        placement.session, placement.restart = session, restart
        placement.incarnation = (ledger.epoch << EPOCH_BITS) | ledger.incarnations
        return True

    def unplace(self, placement: Placement, now: float) -> None:
        """Take an instance from its host: it is lost there, or has to begin again."""
        placement.session, placement.report = None, None
        placement.fallen_at = now
        counts = self._ledger.recoveries
        counts[placement.vertex] = counts.get(placement.vertex, 0) + 1

    def lose(self, session: str, now: float) -> list[tuple[str, str]]:
        """Take all instances from a host that is lost, and from other hosts those that the loss
        sets back; what to tell of which vertex."""
        told: list[tuple[str, str]] = []
        for placement in self.on(session):
            vertex = placement.vertex
            told.append((vertex, f"lost with host {session}"))
            self.unplace(placement, now)
            for other in self._strategies[vertex].sets_back(vertex, self._feeding):
                told += self._set_back(other, f"set back by the loss of {vertex}", now)
        return told

    def _set_back(self, vertex: str, why: str, now: float) -> Iterator[tuple[str, str]]:
        for placement in self._copies[vertex]:
            if placement.session is not None:
                self.unplace(placement, now)
                yield vertex, why

    def _feeding(self, vertex: str) -> Collection[str]:
        inputs = self._topology.vertices[vertex].inputs
        return {self._topology.writer_of(stream).id for stream in inputs}

    def orders(
        self, session: str, hosts: Mapping[str, HostState], collected: Mapping[str, int]
    ) -> tuple[VertexOrder, ...]:
        """Tell a host all that it shall run; rows that are `collected` nobody will ask for."""
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
    """The host with the least to do that has none of these copies, if there is one."""
    taken = {p.session for p in copies}
    free = [s for s in hosts if s not in taken]
    return min(free, key=lambda s: (load.get(s, 0), hosts[s].report.slot, s), default=None)


def gap_before(vertex: str, restart: Checkpoint | None, topology: Topology, ledger: Ledger) -> str:
    """Why this vertex cannot go on from there; empty if it can."""
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
    return ""


def log_is_ahead(placement: Placement, ledger: Ledger) -> bool:
    """Whether records were collected that this instance began from: if not, they are lost."""
    began = placement.restart.log if placement.restart is not None else 0
    return ledger.collected.get(ingress_log(placement.vertex), 0) > began
