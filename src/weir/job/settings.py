"""Limits and times of a live job's machines; none of them changes an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from weir.plan.program import Program
from weir.plan.settings import HOST_LIMITS


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Limits of a host; times in seconds, sizes in bytes."""

    flush_interval: float = 0.5
    """Rows that are in memory only for so long are written to the store."""
    segment_size: int = 4 << 20
    """They are written earlier when there are so many."""
    commit_interval: float = 1.0
    """How often a sink commits the rows that it has."""
    tail_buffer: int = 64 << 20
    """A vertex waits while a stream of it has more rows than this that are not durable."""
    send_buffer: int = 4 << 20
    """What may be under way to one reader on another host."""
    ahead_buffer: int = 4 << 20
    """What a vertex may have written that none of its readers has read."""
    synchronous: bool = False
    """Rows are readable only when durable."""
    check: bool = False
    """Rows that are written again are compared with those that were there."""


def host_settings(program: Program, otherwise: HostSettings) -> HostSettings:
    """The limits that a program sets; `otherwise` has those of which it says nothing."""
    said = dict(program.settings)
    limits: dict[str, Any] = {n: read(str(said[n])) for n, read in HOST_LIMITS.items() if n in said}
    return replace(otherwise, **limits)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Limits of the job manager; times in seconds."""

    hosts: int = 1
    """So many are waited for before vertices are placed, for at most `patience` after the first:
    what is placed is not moved when more come."""
    patience: float = 10.0
    silence: float = 1.5
    """A host that was not heard of for so long is lost."""
    host_limit: float = 120.0
    """A job without any host ends after so long."""
    record_every: float = 0.2
    trouble_limit: float = 30.0
    """A job ends when the manager or a host could not write for so long."""
    stop_limit: float = 10.0
    """The last checkpoint of a job that is stopped may take so long."""
    sweep_every: float = 60.0
    deaths: int = 3
    """So many at the same rows are poison."""
    step_limit: float | None = None
    """A step that takes longer ends the job; None: it may take any time."""
