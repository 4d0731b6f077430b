"""Compares a live app with the serial loop, in the driver, over the first events of its logs.

Rules
1. Nothing is committed, or handed to a callback, before the first comparison: the manager holds the
   sinks until then. It is due when the job has read an event, or has none to read.
2. Logs that grow are compared again when ten times as many events are there, until as many as were
   asked for are; a difference ends the job, whenever it is found.
3. Where the driver cannot read the events (files that only hosts see, a log whose first records are
   collected), the job goes on without: its story says so.

A thread compares; the driver looks at what it has found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

from weir.errors import ReplayDiffers, WeirError
from weir.files.chunks import DataFile, SourcePartition
from weir.ingress.connectors.connector import Connector
from weir.ingress.ingress_log import IngressLog, first_record
from weir.ingress.source_driver import store_answer
from weir.ingress.source_signals import IngressRecord, LogTalk
from weir.job.manager import Manager
from weir.plan.stages import StagedPlan
from weir.reliable.store import Store
from weir.runtime.partitions import Partitions
from weir.runtime.topology import Topology
from weir.runtime.vertices import source_of
from weir.shadow.app_shadow import AppShadow
from weir.shadow.log_heads import is_only_logged, logged_rows, standing_rows
from weir.wording import counted

_T = TypeVar("_T")
GROWTH = 10
AGAIN, PATIENCE = 0.5, 20
"""Seconds between two looks for events that the job has read and the driver does not find, and how
often it looks."""


@dataclass(slots=True)
class ShadowGate:
    """Decides when to compare, by the module's rules; `read` reads the first rows of the logs."""

    shadow: AppShadow
    read: Callable[[int], Partitions]
    is_finite: bool
    """Whether all that the job will ever read is there from the beginning."""
    _under_way: Future[int] | None = None
    """The comparison that a thread is at."""
    _next: int = 0
    """How many events the job has to have read before the next comparison."""
    _not_before: float = 0.0
    """When to look again for events that were not found."""
    _tries: int = 0
    _count: int = 0
    """How many events were compared last."""
    _is_over: bool = False

    def look(self, machine: Manager, now: float) -> None:
        """Take in what a comparison has found, or begin one; ReplayDiffers if the two differ."""
        if self._is_over:
            return
        events, has_ended = _read_so_far(machine)
        if self._under_way is None:
            if now >= self._not_before and (events >= self._next or has_ended):
                self._under_way = _in_thread(self._compared)
        elif self._under_way.done():
            done, self._under_way = self._under_way, None
            self._take(done, machine, now, -1 if has_ended or self.is_finite else events)

    def _compared(self) -> int:
        return self.shadow.compare(self.read(self.shadow.most))

    def _take(self, done: Future[int], machine: Manager, now: float, events: int) -> None:
        """Take in a comparison; `events` have been read, −1: all that there will be."""
        try:
            count = done.result()
        except ReplayDiffers:
            raise
        except (WeirError, OSError) as error:
            self._end(machine, now, f"not compared with the serial loop: {error}")
            return
        if count == 0 and events >= 0:
            # Nothing has come yet, or the driver does not see it yet.
            self._next, self._not_before = 1, now + AGAIN
            self._tries += events > 0
            if self._tries > PATIENCE:
                self._end(machine, now, "not compared with the serial loop: no event was found")
            return
        news = f"the first {counted(count, 'event')} agree with the serial loop"
        # Where a second is too short for all of them, more of them do not help.
        if events < 0 or count >= self.shadow.most or count <= self._count:
            self._end(machine, now, news)
        else:
            self._count, self._next = count, min(GROWTH * count, self.shadow.most)
            machine.release(news, now)

    def _end(self, machine: Manager, now: float, news: str) -> None:
        machine.release(news, now)
        self._is_over = True


def _read_so_far(machine: Manager) -> tuple[int, bool]:
    """Return how many events the sources of a job have read, and whether they have ended."""
    sources = {spec.id for spec in machine.topology.sources}
    placements = [p for p in machine.placements if p.vertex in sources]
    has_ended = all(p.report is not None and p.report.status == "done" for p in placements)
    return sum(p.figures.events for p in placements), has_ended


def _in_thread(work: Callable[[], int]) -> Future[int]:
    outcome: Future[int] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # the driver takes it in
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True, name="shadow").start()
    return outcome


# --- the logs ----------------------------------------------------------------------------------


def log_heads(
    plan: StagedPlan, topology: Topology, partitions: Partitions, store: Store, token: str
) -> Callable[[int], Partitions]:
    """Return a function that reads the first rows that the logs of a job hold."""

    def read(most: int) -> Partitions:
        heads: dict[str, list[SourcePartition]] = {}
        for spec in topology.sources:
            name = source_of(plan, spec).name
            part = partitions[name][spec.index]
            if isinstance(part, Connector) and is_only_logged(part):
                head = logged_rows(part, _records(spec.id, store, token), most)
            else:
                head = standing_rows(_with_all_columns(part), most)
            heads.setdefault(name, []).append(head)
        return heads

    return read


def _with_all_columns(part: SourcePartition) -> SourcePartition:
    return replace(part, needed=None) if isinstance(part, DataFile) else part


def _records(vertex: str, store: Store, token: str) -> Iterator[IngressRecord]:
    """Read the log of a source from its beginning; LogCollected if that is gone."""
    log = IngressLog(vertex, first_record(vertex, token), writer="")
    _answered(log.begin(), store)
    while (logged := _answered(log.read(), store)) is not None:
        yield logged.record


def _answered(talk: LogTalk[_T], store: Store) -> _T:
    """Let a log talk with the store."""
    try:
        command = next(talk)
        while True:
            command = talk.send(store_answer(command, store))
    except StopIteration as done:
        result: _T = done.value
        return result
