"""Kills of a job's processes, and how long the job takes to be whole again.

worker     kill -9 of a host, which is a process below a Python worker
executor   kill -9 of an executor's JVM, with all hosts on it
stop       SIGSTOP of a host; when it was found lost, SIGCONT: it comes back as a zombie
driver     kill -9 of the driver, then `weir run … --resume`

Contract
1. Which kinds come in which order, how long is waited and who is hit follow from a seed; the rest
   is up to the machine.
2. Most kills wait until the job is whole (all vertices run, all hosts are there); one in four
   comes at once, into the recovery from the one before.
3. A job that is not whole within the limit hangs: `JobHangs` says what it was waiting for.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from chaos.job import Job
from weir.job.status import HostStatus, JobStatus
from weir.job.story import StoryLine

T = TypeVar("T")

POLL = 0.1


class Kind(StrEnum):
    worker = "worker"
    executor = "executor"
    stop = "stop"
    driver = "driver"


SHARES = {Kind.worker: 13, Kind.executor: 7, Kind.stop: 6, Kind.driver: 4}
IN_RECOVERY = 0.25


class JobHangs(Exception):
    """The job did not get where it should within the limit."""


@dataclass(slots=True)
class Kill:
    """A kill, and when the job was as before. Times are seconds since 1970."""

    kind: Kind
    victim: str
    at: float
    sessions: frozenset[str]
    """The hosts that are hit."""
    after_epoch: int
    """The job's manager is of a later epoch when it has noticed."""
    stopped: int | None = None
    running_at: float | None = None
    whole_at: float | None = None

    def is_noticed(self, status: JobStatus) -> bool:
        alive = {host.id for host in status.hosts}
        return status.epoch > self.after_epoch and not self.sessions & alive


@dataclass(slots=True)
class Chaos:
    """See the module's docstring."""

    job: Job
    rng: random.Random
    limit: float
    tell: Callable[[str], None] = lambda _: None
    kills: list[Kill] = field(default_factory=list)

    def run(self, kinds: Sequence[Kind]) -> None:
        """Kill one after the other; returns when the job is whole again."""
        self.wait_until_whole()
        for kind in kinds:
            self.strike(kind)
            if self.rng.random() < IN_RECOVERY:
                time.sleep(self.rng.uniform(0.0, 1.5))
            else:
                self.wait_until_whole()
                time.sleep(self.rng.uniform(0.2, 2.0))
        self.wait_until_whole()

    def strike(self, kind: Kind) -> Kill:
        """One kill, as soon as there is somebody to hit."""
        busy = self._wait_for(self._busy_hosts, "a host with vertices")
        kill = self._strike(kind, self.rng.choice(busy), busy)
        self.kills.append(kill)
        self.tell(f"{kind}: {kill.victim}")
        if kind is Kind.driver:
            self.job.start(resume=True)
        return kill

    def _strike(self, kind: Kind, host: HostStatus, hosts: Sequence[HostStatus]) -> Kill:
        family, now = self.job.family, time.time()
        said = f"pid {host.pid} with {len(host.vertices)} vertices"
        match kind:
            case Kind.worker:
                family.signal(host.pid, signal.SIGKILL)
                return Kill(kind, said, now, frozenset({host.id}), -1)
            case Kind.stop:
                family.signal(host.pid, signal.SIGSTOP)
                return Kill(kind, said, now, frozenset({host.id}), -1, stopped=host.pid)
            case Kind.executor:
                executor = next(p for p in family.above(host.pid) if p in family.executors())
                hit = [h for h in hosts if executor in family.above(h.pid)]
                family.signal(executor, signal.SIGKILL)
                said = f"pid {executor} with {len(hit)} host{'s' * (len(hit) > 1)}"
                return Kill(kind, said, now, frozenset(h.id for h in hit), -1)
            case Kind.driver:
                status = self.job.status()
                assert status is not None
                said = f"pid {self.job.driver} of epoch {status.epoch}"
                self.job.kill_driver()
                return Kill(kind, said, now, frozenset(), status.epoch)

    # --- waiting -----------------------------------------------------------------------------

    def wait_until_whole(self) -> None:
        self._wait_for(self._is_whole, "all vertices and hosts")

    def _wait_for(self, found: Callable[[JobStatus], T], what: str) -> T:
        """What is found in a status that knows of all kills, once it is something."""
        until = time.monotonic() + self.limit
        status = None
        while time.monotonic() < until:
            self.job.check()
            self.job.family.look()
            status = self.job.status()
            if status is not None:
                self._note(status)
                if all(kill.is_noticed(status) for kill in self.kills) and (got := found(status)):
                    return got
            time.sleep(POLL)
        raise JobHangs(f"no {what} within {self.limit:.0f} s: {shown(status)}")

    def _note(self, status: JobStatus) -> None:
        """Wake hosts that were found lost; note which kills are over."""
        for kill in self.kills:
            if not kill.is_noticed(status) or status.time < kill.at:
                continue
            if kill.stopped is not None:
                self._wake(kill.stopped)
                kill.stopped = None
            if kill.running_at is None and all_run(status):
                kill.running_at = status.time
            if kill.whole_at is None and self._is_whole(status):
                kill.whole_at = status.time

    def _wake(self, pid: int) -> None:
        for family in self.job.families:
            if any(p.pid == pid for p in family.look()):
                family.signal(pid, signal.SIGCONT)

    def _is_whole(self, status: JobStatus) -> bool:
        return all_run(status) and len(status.hosts) == self.job.hosts

    def _busy_hosts(self, status: JobStatus) -> list[HostStatus]:
        alive = {p.pid for p in self.job.family.look()}
        return [h for h in status.hosts if h.vertices and h.pid in alive]


def all_run(status: JobStatus) -> bool:
    return status.state == "running" and all(
        v.status in ("running", "done") for v in status.vertices
    )


def shown(status: JobStatus | None) -> str:
    if status is None:
        return "the job has told nothing"
    waiting = [f"{v.id} is {v.status}" for v in status.vertices if v.status != "running"]
    said = ", ".join(waiting) or "all vertices run"
    return f"{status.state} in epoch {status.epoch}, {len(status.hosts)} hosts, {said}"


def make_deck(kills: int, kinds: Sequence[Kind], rng: random.Random) -> list[Kind]:
    """So many kinds by their shares, shuffled; each comes once before any does by chance."""
    first = list(kinds)
    rng.shuffle(first)
    rest: list[Kind] = []
    while len(first) + len(rest) < kills:
        deck = [kind for kind in kinds for _ in range(SHARES[kind] - (not rest))]
        rng.shuffle(deck)
        rest += deck
    return [*first, *rest][:kills]


def found_at(kill: Kill, story: Sequence[StoryLine]) -> float | None:
    """When the manager found all its hosts lost."""
    told = tuple(f"host {session} lost: " for session in kill.sessions)
    times = [line.time for line in story if line.what.startswith(told)]
    return max(times) if times and len(times) == len(told) else None


def running_at(kill: Kill, story: Sequence[StoryLine]) -> float | None:
    """When the last of its vertices ran again: the story knows better than the status, which is
    told once a second."""
    lost = {f"lost with host {session}" for session in kill.sessions}
    pending = {line.vertex: line.time for line in story if line.what in lost}
    ended = []
    for vertex, since in pending.items():
        again = (
            line.time
            for line in story
            if line.vertex == vertex and line.time >= since and line.what.startswith("runs again")
        )
        ended.append(next(again, None))
    times = [t for t in ended if t is not None]
    if not times or len(times) < len(ended):
        return kill.running_at
    # What the status knew before was told of a later loss, under another driver.
    return min(max(times), max(times) if kill.running_at is None else kill.running_at)
