"""Where instances of vertices run, and from where they may restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weir.job.ledger import Ledger
from weir.job.messages import Checkpoint, Report, VertexReport
from weir.job.poison import Step
from weir.reliable.keys import ingress_log
from weir.runtime.topology import Topology

RATE_OVER = 1.0


@dataclass(slots=True)
class HostState:
    """What is known of a host."""

    session: str
    report: Report
    heard: float
    trouble_since: float | None = None
    step: Step | None = None
    """What it is at, as last heard."""


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


def host_for(
    copies: Iterable[Placement], load: Mapping[str | None, int], hosts: Mapping[str, HostState]
) -> str | None:
    """The host with the least to do that has none of these copies, if there is one."""
    taken = {p.session for p in copies}
    free = [s for s in hosts if s not in taken]
    return min(free, key=lambda s: (load.get(s, 0), hosts[s].report.slot, s), default=None)


def gap_before(vertex: str, restart: Checkpoint | None, topology: Topology, ledger: Ledger) -> str:
    """Why this vertex cannot go on from there; empty if it can."""
    for place, stream in enumerate(topology.vertices[vertex].inputs):
        start = restart.needs[place] if restart is not None else 0
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
