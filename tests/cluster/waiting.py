"""What those who watch a live job on a cluster wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from chaos.job import Job
from chaos.kills import JobHangs, all_run, shown
from cluster.machines import Machine
from weir.job.status import JobStatus

POLL = 0.2
LIMIT = 120.0
"""Seconds in which a job must be where it should be."""


def wait_for(
    job: Job, found: Callable[[JobStatus], bool], what: str, within: float = LIMIT
) -> JobStatus:
    """Wait until a job's status is as it should be, and return it."""
    until = time.monotonic() + within
    status = None
    while time.monotonic() < until:
        job.check()
        status = job.status()
        if status is not None and found(status):
            return status
        time.sleep(POLL)
    raise JobHangs(f"no {what} within {within:.0f} s: {shown(status)}")


def busiest(job: Job, workers: Sequence[Machine]) -> Machine:
    """Find the worker on which most vertices run, once all do."""
    status = wait_for(job, all_run, "vertices that run")
    load = {w.name: 0 for w in workers}
    for host in status.hosts:
        load[host.machine] = load.get(host.machine, 0) + len(host.vertices)
    return max(workers, key=lambda w: load[w.name])
