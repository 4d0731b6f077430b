"""Faults of machines and networks in the middle of a live job, and how long each is felt.

A fault hits machines of a cluster; the hosts that run there are its victims. The job's story says
when the manager found them lost and when all their vertices ran again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from chaos.job import PROGRAM, Job
from chaos.kills import JobHangs, all_run, shown
from chaos.processes import EXECUTOR
from cluster.cluster import Cluster, environment
from cluster.latency import Latencies
from cluster.machines import Machine
from cluster.waiting import LIMIT, POLL, busiest, wait_for
from weir.job.status import JobStatus
from weir.job.story import StoryLine

WORKERS, HOSTS = 3, 3


def job_on(cluster: Cluster, hosts: int, program: str = PROGRAM) -> Job:
    """Make a live job on a cluster."""
    folder = cluster.folder / "job"
    folder.mkdir()
    driver = cluster.driver
    return Job(
        folder,
        cluster.master,
        hosts=hosts,
        on=driver.command,
        env=environment(driver, cluster.folder),
        options=cluster.options,
        program=program,
    )


@dataclass(slots=True)
class Felt:
    """A fault, and the seconds after which it was found and all vertices ran again (None: it cost
    no host, or that is not known); and how long rows took that began meanwhile."""

    name: str
    at: float
    sessions: frozenset[str]
    found: float | None = None
    running: float | None = None
    p99: float | None = None

    def measure(self, story: Sequence[StoryLine]) -> None:
        """Read from the story what the fault did."""
        later = [line for line in story if line.time >= self.at]
        lost = [s for s in self.sessions if any(f"host {s} lost" in x.what for x in later)]
        if not lost:
            return
        found = [x.time for x in later if any(x.what.startswith(f"host {s} lost") for s in lost)]
        self.found = max(found) - self.at
        fallen = {x.vertex for x in later if x.what in {f"lost with host {s}" for s in lost}}
        again = [
            next((x.time for x in later if x.vertex == v and x.what.startswith("runs again")), None)
            for v in fallen
        ]
        times = [t for t in again if t is not None]
        if len(times) == len(fallen) and times:
            self.running = max(times) - self.at

    def __str__(self) -> str:
        times = (self.found, self.running, self.p99)
        found, running, p99 = ("-" if t is None else f"{t:.2f}" for t in times)
        return f"{self.name:52} {found:>7} {running:>8} {p99:>8}"


class Faulty:
    """A live job on a cluster that suffers."""

    def __init__(
        self, cluster: Cluster, job: Job, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self.cluster, self.job, self._tell = cluster, job, tell
        self.felt: list[Felt] = []
        self.latencies = Latencies(job.folder / "store")

    def on(self, machine: Machine) -> frozenset[str]:
        """List the hosts on a machine."""
        status = self.job.status()
        assert status is not None
        return frozenset(h.id for h in status.hosts if h.machine == machine.name)

    def busiest(self) -> Machine:
        """Find the worker on which most vertices run."""
        return busiest(self.job, self.cluster.workers)

    def executors(self, machine: Machine) -> list[int]:
        """List the JVMs of Spark's executors on a machine."""
        found = [(pid, Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in machine.pids()]
        return [pid for pid, said in found if EXECUTOR.encode() in said]

    def suffer(self, name: str, hit: Machine, begin: Callable[[], None]) -> Felt:
        """Let a fault begin that hits a machine."""
        felt = Felt(name, time.time(), self.on(hit))
        self._tell(f"{name}, {len(felt.sessions)} hosts on {hit.name}")
        begin()
        self.felt.append(felt)
        return felt

    def status(self) -> JobStatus:
        status = self.job.status()
        assert status is not None
        return status

    def wait_for(
        self, found: Callable[[JobStatus], bool], what: str, within: float = LIMIT
    ) -> JobStatus:
        return wait_for(self.job, found, what, within)

    def wait_until_lost(self, felt: Felt) -> None:
        self.wait_for(
            lambda s: not felt.sessions & {h.id for h in s.hosts} and all_run(s),
            f"recovery from {felt.name}",
        )

    def wait_until_whole(self, hosts: int, within: float = LIMIT) -> None:
        self.wait_for(lambda s: all_run(s) and len(s.hosts) >= hosts, f"{hosts} hosts", within)

    def must_progress(self, seconds: float) -> None:
        """See that events which are made from now on are in the answer within so many seconds."""
        since = time.time()
        while self.latencies.look() < since:
            self.job.check()
            if time.time() > since + seconds:
                said = shown(self.job.status())
                raise JobHangs(f"rows of {seconds:.0f} s ago are not committed: {said}")
            time.sleep(POLL)

    def keep_progressing(self, seconds: float) -> None:
        """See that rows come for so many seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.must_progress(10.0)

    def measure(self, until: float) -> None:
        """Read from the story and from the answer what the faults did; they were over by then, or
        when all vertices ran again."""
        for felt in self.felt:
            felt.measure(self.job.story())
            over = until if felt.running is None else felt.at + felt.running
            felt.p99 = self.latencies.p99(felt.at, over)


Fault: TypeAlias = Callable[[Faulty], None]
"""Lets a job suffer, and sees that it goes on; its docstring is its title."""


def no_core_to_spare(cluster: Cluster) -> None:
    """Let every worker have a core for one host: one that is lost can come back only there."""
    cluster.cores = 1
