"""Limits and times of a live job's machines; none of them changes an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from weir.plan.program import Program
from weir.plan.settings import HOST_LIMITS


@dataclass(frozen=True, slots=True)
class HostSettings:
    """The limits of a host; times are in seconds, sizes in bytes."""

    flush_interval: float = 0.5
    """Rows that have been only in memory for so long are written to the store."""
    segment_size: int = 4 << 20
    """Rows are written earlier when they have so many bytes."""
    commit_interval: float = 1.0
    """How often a sink commits the rows that it has."""
    tail_buffer: int = 64 << 20
    """A vertex waits while one of its streams has more bytes than this that are not durable."""
    send_buffer: int = 4 << 20
    """So many bytes may be under way to one reader on another host, or wait there; fewer, if its
    vertex has many inputs (`input_connections.py`)."""
    step_wait: float = 0.002
    """What came for a vertex waits so long for more, while others of the host can step."""
    ahead_buffer: int = 4 << 20
    """A vertex waits while, on each of its streams, even the fastest reader has so many bytes left
    to read; one that reads a part of the rows, the same part of so many."""
    store_patience: float = 120.0
    """A job ends when the store does not do what it is asked for so long."""
    synchronous: bool = False
    """Whether rows can be read only when they are durable."""
    check: bool = False
    """Whether rows that are written again are compared with those that were there."""


def host_settings(program: Program, otherwise: HostSettings) -> HostSettings:
    """Read the limits that a program sets; `otherwise` has those that it does not."""
    said = dict(program.settings)
    limits: dict[str, Any] = {n: read(str(said[n])) for n, read in HOST_LIMITS.items() if n in said}
    return replace(otherwise, **limits)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """The limits of the job manager; times are in seconds."""

    hosts: int = 1
    """The manager waits for so many hosts before it places vertices: it does not move them when
    more hosts come."""
    patience: float = 10.0
    """It waits at most for so long after the first host has come, or as `host_limit` says while
    others compile."""
    silence: float = 1.5
    """A host that was not heard of for so long is lost."""
    parted: float = 3.0
    """When a host has reported for so long that it does not reach another, one of them is lost."""
    host_limit: float = 120.0
    """A job without any host ends after so long."""
    record_every: float = 0.2
    """How often the manager writes its record, if it has changed."""
    differences: int = 64
    """So many records at most are differences to the ones before them (`ledger_difference.py`)."""
    kept_records: int = 100
    """So many records before the one that the hint names are kept."""
    trouble_limit: float = 120.0
    """A job ends when the manager or a host could not write to the store for so long."""
    apart_limit: float = 10.0
    """A host that cannot use the store for so long, while the manager can, is given up."""
    stop_limit: float = 10.0
    """The last checkpoint of a job that is stopped may take so long."""
    sweep_every: float = 60.0
    """How often the store is swept (`garbage_sweep.py`)."""
    deaths: int = 3
    """So many deaths at the same rows end the job (`poison.py`)."""
    step_limit: float | None = None
    """A step that takes longer ends the job; None: it may take any time."""
