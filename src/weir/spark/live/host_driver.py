"""The driver of a host: it gives the machine threads and channels, in a process below a Spark task.

That process is a child of the task's (`host_process.py`). Its main thread runs
the machine: it takes signals from an inbox, lets vertices step, and carries commands out. Other
threads do all that may have to wait (they read and write the store, read sources, receive and send
entries, report to the manager), and only put signals into the inbox.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from uuid import uuid4

import msgspec

from weir.errors import RunError, WeirError
from weir.files.object_store import ObjectStore
from weir.files.obstore_use import is_used_here
from weir.ingress.ingress_log import LogCollected
from weir.job.host import Host
from weir.job.poison import Death
from weir.job.signals import (
    ChunkRead,
    Connect,
    Deliver,
    Disconnect,
    EndSession,
    EndSubscription,
    Get,
    HostCommand,
    HostSignal,
    MakeRoom,
    Pull,
    Put,
    SourceBehind,
    SourceFailed,
    SourceWaits,
)
from weir.reliable.store import Store
from weir.spark.live.addresses import own_endpoint
from weir.spark.live.flight import Server
from weir.spark.live.host_process import keep_host
from weir.spark.live.host_reports import PulseSender, Reporter
from weir.spark.live.job_description import JobDescription
from weir.spark.live.loop_warmup import make_warm
from weir.spark.live.machine_check import check_this_machine
from weir.spark.live.step_notes import SharedNotes
from weir.spark.live.store_threads import StoreThreads
from weir.spark.live.stream_connections import HostLinks
from weir.spark.worker import settle_worker

_FIX = "everything is kept, so fix it and run again with --resume"


def run_host(job: JobDescription, slot: int) -> None:
    """Run a host in this Spark task until the job is over."""
    settle_worker(job.manager, slot)
    if is_used_here():
        raise RunError(
            "this Python worker has used obstore for another job of the session, and cannot fork "
            "a host; Spark starts another worker"
        )
    if job.host_at is None:
        check_this_machine(job)
    make_warm(job, slot)
    vertices = [spec.id for spec in job.topology.order]
    keep_host(partial(_host, job, slot), partial(PulseSender, job), vertices)


def _host(job: JobDescription, slot: int, notes: SharedNotes, deaths: Sequence[Death]) -> None:
    with closing(ObjectStore(job.store).impatient()) as store:
        while not _Session(job=job, slot=slot, store=store, notes=notes, deaths=deaths).run():
            pass


class _Session:
    """Runs one session of a host: from its first report until it starts over, or the job is
    over."""

    def __init__(
        self,
        job: JobDescription,
        slot: int,
        store: ObjectStore,
        notes: SharedNotes,
        deaths: Sequence[Death],
    ) -> None:
        self._job, self._slot = job, slot
        self._inbox: queue.SimpleQueue[HostSignal | BaseException] = queue.SimpleQueue()
        self._machine = Host(
            session=f"{slot}-{uuid4().hex[:8]}",
            topology=job.topology,
            strategies=job.strategies,
            make=job.maker(lambda text: self._reporter.show(text)),
            settings=job.host_settings,
            notes=notes,
            deaths=deaths,
            clock=time.monotonic,
        )
        notes.open_session(self._machine.session)
        self._threads = StoreThreads(store, self._inbox.put)
        self._sources = _Sources(job, store, self._inbox.put)
        self._links = HostLinks(job.security, job.types_of, self._inbox.put)
        self._report_at = 0.0
        """When to look again whether there is something to report."""
        self._over: bool | None = None
        """None while the session runs; then whether the job is over."""
        self._server = Server(
            job.host_at or own_endpoint(job.addresses, job.manager),
            job.security,
            link=self._links.attend,
        )
        self._links.address = self._server.url
        self._reporter = Reporter(job, self._inbox.put, notes)

    def run(self) -> bool:
        """Run the session to its end; say whether the job is over."""
        try:
            while self._over is None:
                self._turn()
        finally:
            self._close()
        return self._over

    def _turn(self) -> None:
        self._report()
        now = time.monotonic()
        self._links.watch(now)
        progressed, commands = self._machine.work(now)
        self._do(commands)
        try:
            signal = self._inbox.get(timeout=0 if progressed else self._pause())
            while True:
                if isinstance(signal, BaseException):
                    raise signal
                self._do(self._machine.handle(signal, time.monotonic()))
                signal = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _pause(self) -> float:
        """Compute for how long there is nothing to do unless a signal comes."""
        due = (self._report_at, self._links.next_watch, self._machine.next_due)
        return max(min(due) - time.monotonic(), 0.0)

    def _report(self) -> None:
        now = time.monotonic()
        if now < self._report_at:
            return
        self._report_at = now + self._job.report_every
        if self._reporter.is_due(now) and self._machine.is_report_due(now):
            report = self._machine.report(
                now, self._server.url, self._slot, os.getpid(), socket.gethostname()
            )
            unreached = self._links.unreached(now)
            self._reporter.tell(msgspec.structs.replace(report, unreached=unreached))
            self._report_at = time.monotonic() + self._job.report_every

    def _close(self) -> None:
        self._reporter.close()
        self._links.close()
        self._sources.close()
        self._threads.close(wait=False)
        self._server.end()

    # --- commands ----------------------------------------------------------------------------

    def _do(self, commands: list[HostCommand]) -> None:
        for command in commands:
            match command:
                case Deliver():
                    self._links.deliver(command)
                case MakeRoom():
                    self._links.make_room(command)
                case Put() | Get():
                    self._threads.do(command)
                case Connect():
                    self._links.connect(command)
                case Disconnect(connection=connection):
                    self._links.disconnect(connection)
                case EndSubscription(name):
                    self._links.end(name)
                case Pull():
                    self._sources.pull(command)
                case EndSession(over):
                    self._over = over


class _Sources:
    """Reads the partitions of sources, each in a thread of its own, one chunk ahead of the host."""

    def __init__(
        self, job: JobDescription, store: Store, put: Callable[[HostSignal], None]
    ) -> None:
        self._job, self._store, self._put = job, store, put
        self._asked: dict[tuple[str, int], queue.SimpleQueue[None]] = {}
        """For each vertex and incarnation, one item for every chunk that the host has asked for."""
        self._closed = False

    def pull(self, pull: Pull) -> None:
        key = (pull.vertex, pull.incarnation)
        if key not in self._asked:
            self._asked[key] = queue.SimpleQueue()
            threading.Thread(target=self._run, args=(pull,), daemon=True, name="source").start()
        self._asked[key].put(None)

    def _run(self, pull: Pull) -> None:
        vertex, incarnation = pull.vertex, pull.incarnation
        asked = self._asked[vertex, incarnation]
        last: str | None = None

        def waits(why: str | None) -> None:
            nonlocal last
            if why != last:
                last = why
                self._put(SourceWaits(vertex, incarnation, why))

        try:
            for chunk in self._job.chunks(pull, self._store, lambda: self._closed, waits):
                asked.get()
                self._put(ChunkRead(vertex, incarnation, chunk))
        except LogCollected as error:
            self._put(SourceBehind(vertex, incarnation, str(error)))
            return
        except WeirError as error:
            self._put(SourceFailed(vertex, incarnation, f"{type(error).__name__}: {error}"))
            return
        except OSError as error:
            why = f"'{error.filename}' cannot be read: {error.strerror}; {_FIX}"
            self._put(SourceFailed(vertex, incarnation, why if error.filename else str(error)))
            return
        except Exception as error:  # a reader's bug or a broken file: it must not look like silence
            self._put(SourceFailed(vertex, incarnation, f"{type(error).__name__}: {error}"))
            return
        if not self._closed:
            asked.get()
            self._put(ChunkRead(vertex, incarnation, None))

    def close(self) -> None:
        self._closed = True
