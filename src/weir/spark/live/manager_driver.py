"""The driver of the job manager: it runs in the Spark driver, answers hosts, and writes the record.

One thread runs the machine; threads of the server bring reports and wait for its answers, others
read and write the store. At most one report of a host waits for the machine: a newer one takes its
place. Once a second the driver writes the status of the job, and what has
happened since, to the store, for `weir status` and `weir story`; and once more when the job has
ended, in whatever way. The history of its figures follows every `KEEP_EVERY` seconds.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from weir.errors import RunError
from weir.job.history import HistoryKeeper
from weir.job.manager import Manager
from weir.job.messages import Orders, Preparing, Report
from weir.job.record_writer import TAKEN_OVER
from weir.job.signals import (
    Answer,
    Delete,
    EndJob,
    Get,
    HungUp,
    List,
    ManagerCommand,
    ManagerSignal,
    Prepares,
    Pulsed,
    Put,
    Reported,
)
from weir.job.status import JobStatus, status_of
from weir.job.story import StoryLine
from weir.reliable.store import Store
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import Security, Server
from weir.spark.live.message_checks import read_preparing, read_pulse, read_report
from weir.spark.live.status_writer import Onlookers
from weir.spark.live.store_threads import StoreThreads

TICK = 0.02
TELL_EVERY = 1.0
KEEP_EVERY = 5.0
WATCH_EVERY = 0.25
ASK_EVERY = 2.0
"""Seconds between two questions to Spark why no host has come."""
ANSWER_WITHIN = 1.0
BUSY = 2.0
"""Seconds that a host may be at a step when the job is over, until it is not waited for."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A report of this session waits for the machine."""

    session: str


class ManagerDriver:
    """Runs a `Manager` with a server, threads and a store, until the job has ended."""

    def __init__(
        self,
        manager: Manager,
        store: Store,
        at: Endpoint,
        security: Security,
        show: Callable[[bytes], None],
        history: HistoryKeeper | None = None,
    ) -> None:
        self._machine, self._show, self._history = manager, show, history
        self._inbox: queue.SimpleQueue[ManagerSignal | Waiting | BaseException] = (
            queue.SimpleQueue()
        )
        self._reports: dict[str, Report] = {}
        """For each session the report that the machine has not taken yet; a newer one says all that
        it says, and takes its place."""
        self._reports_lock = threading.Lock()
        self._answers: dict[str, queue.SimpleQueue[Orders]] = {}
        """For each session whose report waits for an answer, where to put the orders."""
        self._lines: Counter[str] = Counter()
        """How many lines are open for each session."""
        self._lines_lock = threading.Lock()
        self._threads = StoreThreads(store, self._inbox.put)
        self._onlookers = Onlookers(store)
        self._ended: EndJob | None = None
        self._status_at = time.monotonic()
        """When the status was written last."""
        self._kept_at = self._status_at
        """When the history was written last."""
        self._lines_told = 0
        """How many lines of the story were told so far."""
        self._absence: str | None = None
        """Why no host has come, as far as is known."""
        self._refused = 0
        """How many messages of hosts could not be used so far."""
        self._epoch_of_clock = time.time() - time.monotonic()
        """What to add to the machine's clock to get seconds since 1970."""
        self._server = Server(at, security, act=self._act, attend=self._attend)
        self.url = self._server.url

    def run(
        self,
        check: Callable[[], None],
        watch: Callable[[JobStatus], None],
        stopping: Callable[[], bool],
        why_absent: Callable[[], str | None],
    ) -> EndJob:
        """Run the machine until the job has ended. Now and then `watch` is called with the status,
        `check` restarts the hosts' Spark job if need be, `stopping` says whether to stop, and
        `why_absent`, while there is no host, why none has come."""
        watched_at = asked_at = time.monotonic()
        try:
            while self._ended is None:
                self._turn()
                check()
                if stopping():
                    self._machine.stop(time.monotonic())
                if time.monotonic() - watched_at >= WATCH_EVERY:
                    watched_at = time.monotonic()
                    if self._machine.hosts or self._machine.preparing:
                        self._absence = None
                    elif watched_at - asked_at >= ASK_EVERY:
                        self._absence, asked_at = why_absent(), watched_at
                    watch(self.status())
        except Exception as error:
            self._ended = EndJob(str(error) or type(error).__name__)
            self._note(f"ends: {self._ended.error}")
            raise
        except BaseException:  # a second Ctrl-C or SIGTERM
            self._ended = EndJob(stopped=True)
            self._note("stopped, without waiting for a last checkpoint")
            raise
        finally:
            self._tell(time.monotonic())
        return self._ended

    def see(self, preparing: Preparing) -> None:
        """Take in that a host gets ready, or the driver for all; any thread may call this."""
        self._inbox.put(Prepares(preparing))

    def _note(self, what: str) -> None:
        self._machine.story.append(StoryLine(time.monotonic(), "", what, "end"))

    def release(self, gone: Callable[[], bool], within: float) -> None:
        """Go on answering hosts that the job is over, until all are gone, for so many seconds; but
        not for hosts that are at a step of `BUSY` seconds, and hear nothing."""
        until = time.monotonic() + within
        while not gone() and (now := time.monotonic()) < until:
            if self._machine.only_busy(now, BUSY):
                return
            self._turn()

    def close(self) -> None:
        self._threads.close(wait=True)
        self._onlookers.close()
        self._server.end()

    @property
    def resigned(self) -> bool:
        """Whether another manager has taken the job over."""
        return self._machine.resigned

    def status(self) -> JobStatus:
        status = status_of(self._machine, time.monotonic(), self._epoch_of_clock, self._ended)
        if not self._absence:
            return status
        return msgspec.structs.replace(status, trouble=self._absence)

    # --- the loop ----------------------------------------------------------------------------

    def _turn(self) -> None:
        try:
            signal = self._inbox.get(timeout=TICK)
            while True:
                if isinstance(signal, BaseException):
                    raise signal
                if isinstance(signal, Waiting):
                    with self._reports_lock:
                        signal = Reported(self._reports.pop(signal.session))
                self._do(self._machine.handle(signal, time.monotonic()))
                signal = self._inbox.get_nowait()
        except queue.Empty:
            pass
        now = time.monotonic()
        self._do(self._machine.tick(now))
        if now - self._status_at >= TELL_EVERY:
            self._status_at = now
            self._tell(now)

    def _do(self, commands: list[ManagerCommand]) -> None:
        for command in commands:
            match command:
                case Answer(session, orders):
                    waiting = self._answers.get(session)
                    if waiting is not None:
                        waiting.put(orders)
                case Put() | Get() | Delete() | List():
                    self._threads.do(command)
                case EndJob() as ended:
                    self._ended = ended
                    if ended.error and self._absence:
                        self._ended = EndJob(f"{ended.error} ({self._absence})")

    def _act(self, name: str, body: bytes) -> bytes:
        """Take in a report, a sign of life, a sign of a host that gets ready, a text for the
        console, or a mere hello; a thread of the server calls this."""
        if name == "hello":
            return b""
        if name == "show":
            try:
                self._show(body)
            except OSError as error:
                self._inbox.put(RunError(f"rows cannot be shown on stdout: {error.strerror}"))
                raise
            return b""
        try:
            if name == "pulse":
                self._inbox.put(Pulsed(read_pulse(body, self._machine.topology)))
                return b""
            if name == "prepare":
                self.see(read_preparing(body, self._machine.settings.hosts))
                return b""
            if name != "report":
                raise RunError(f"the job manager does not know what '{name}' is")
            report = read_report(body, self._machine.topology, self._machine.settings.hosts)
        except RunError as error:
            self._refused += 1
            if self._refused == MOST_REFUSED:
                self._inbox.put(error)  # a host that is refused would come again without end
            raise
        # Only while the report waits: orders that come too late are for the next report.
        answers = self._answers[report.session] = queue.SimpleQueue()
        with self._reports_lock:
            is_next = report.session not in self._reports
            self._reports[report.session] = report
        if is_next:
            self._inbox.put(Waiting(report.session))
        try:
            orders = answers.get(timeout=ANSWER_WITHIN)
            while not answers.empty():
                orders = answers.get_nowait()
        except queue.Empty:
            return b""
        finally:
            if self._answers.get(report.session) is answers:
                self._answers.pop(report.session, None)
        return msgspec.msgpack.encode(orders)

    def _attend(self, sessions: Iterator[bytes]) -> None:
        """Take in which sessions a line is kept open for, until it is closed; a thread of the
        server calls this. A host and its companion have a line each."""
        session = ""
        try:
            for body in sessions:
                self._leave_line(session)
                session = body.decode(errors="replace")
                with self._lines_lock:
                    self._lines[session] += 1
        finally:
            self._leave_line(session)

    def _leave_line(self, session: str) -> None:
        if not session:
            return
        with self._lines_lock:
            self._lines[session] -= 1
            if self._lines[session] > 0:
                return
            del self._lines[session]
        self._inbox.put(HungUp(session))

    # --- onlookers ---------------------------------------------------------------------------

    def _tell(self, now: float) -> None:
        """Have the status, and what has happened since the last time, written for onlookers."""
        lines = self._machine.story[self._lines_told :]
        self._lines_told += len(lines)
        shift = self._epoch_of_clock
        shifted = [msgspec.structs.replace(line, time=line.time + shift) for line in lines]
        status = self.status()
        is_ours = status.error != TAKEN_OVER  # else it is the other's to tell
        history = None
        if self._history is not None and is_ours:
            self._history.take(status)
            if self._ended is not None or now - self._kept_at >= KEEP_EVERY:
                history, self._kept_at = self._history.history, now
        epoch = self._machine.ledger.epoch
        self._onlookers.tell(status if is_ours else None, shifted, epoch, history)


MOST_REFUSED = 100
"""The job ends after so many messages of hosts that cannot be used, with the reason."""
