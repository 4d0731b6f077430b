"""The reports that a host and its companion send to the job manager.

Rules
1. The host reports, its companion gives signs of life (`host_process.py`). Each of them also keeps
   a line open, so the manager knows as soon as both processes are gone.
2. A host that cannot reach the manager for `ALONE` seconds gives up. An attempt counts for no
   longer than a call may take: while the user's code holds Python's lock, an answer that has come
   cannot be taken.
3. One report is under way at a time, and the host makes no other before it was answered or has
   failed: the next one says all that is new until then. Meanwhile the last one is sent again and
   again, as a sign of life.
4. A sign of life that is not answered within `PULSE_WITHIN` seconds is given up, and the next one
   goes over a new connection: after a link was down, one that is new works at once, an old one
   only when TCP tries again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import msgspec

from weir.errors import RunError
from weir.job.messages import Pulse, Report
from weir.job.signals import HostSignal, OrdersArrived
from weir.spark.live.flight import CALL_LIMIT, ChannelErrors, Client, OpenLine
from weir.spark.live.host_process import LONG_STEP
from weir.spark.live.job_description import JobDescription
from weir.spark.live.message_checks import read_orders
from weir.spark.live.step_notes import SharedNotes

ALONE = 20.0
"""Seconds; see rule 2."""
PULSE_WITHIN = 1.0
"""Seconds; see rule 4."""


class ToManager:
    """Calls the manager for a session of a host, and keeps a line open for it.

    After a call that failed the next one goes over a new connection. The line stays until there is
    another, and a call more was answered: the manager may only have been slow to answer."""

    def __init__(self, job: JobDescription) -> None:
        self._job = job
        self._client: Client | None = None
        self._line: tuple[Client, OpenLine] | None = None
        """The line that is open, and the client that it belongs to."""
        self._last_line: tuple[Client, OpenLine] | None = None
        """The line before it, if that is still open."""
        self._session = ""
        """The session that the manager was told on this line."""

    def act(self, session: str, name: str, body: bytes, within: float = CALL_LIMIT) -> bytes:
        """Ask the manager for an action; return its answer."""
        client = self._client or Client(self._job.manager, self._job.security)
        self._client = None
        try:
            answer = client.act(name, body, within)
            self._attend(client, session)
        except ChannelErrors:
            if self._line is None or self._line[0] is not client:
                client.close()
            raise
        self._client = client
        return answer

    def _attend(self, client: Client, session: str) -> None:
        """Have a line of this client that says the session."""
        _hang_up(self._last_line)
        self._last_line = None
        if self._line is None or self._line[0] is not client:
            line = client.line()
            line.say(session.encode())
            self._last_line, self._line = self._line, (client, line)
        elif session != self._session:
            self._line[1].say(session.encode())
        self._session = session

    def close(self) -> None:
        _hang_up(self._last_line)
        _hang_up(self._line)
        self._client = self._line = self._last_line = None


def _hang_up(line: tuple[Client, OpenLine] | None) -> None:
    if line is not None:
        line[1].close()
        line[0].close()


class PulseSender:
    """Tells the manager what the companion of a host knows."""

    def __init__(self, job: JobDescription) -> None:
        self._manager = ToManager(job)

    def __call__(self, pulse: Pulse) -> None:
        try:
            self._manager.act(pulse.session, "pulse", msgspec.msgpack.encode(pulse), PULSE_WITHIN)
        except ChannelErrors:
            return  # the next sign goes over a new connection


class ManagerAbsence:
    """Adds up for how long the manager was out of reach, by rule 2.

    >>> absence = ManagerAbsence()
    >>> [absence.failed(after=0.1) for _ in range(3)], absence.failed(after=60.0)
    ([False, False, False], False)
    >>> [absence.failed(after=CALL_LIMIT) for _ in range(3)]
    [False, False, True]
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def failed(self, after: float) -> bool:
        """Take in that a call has failed after so many seconds; say whether to give up."""
        self._seconds += min(after, CALL_LIMIT)
        return self._seconds >= ALONE

    def answered(self) -> None:
        self._seconds = 0.0


class Reporter:
    """Sends the last report to the manager again and again, also while a step takes long; the
    manager's answers become signals."""

    def __init__(
        self,
        job: JobDescription,
        put: Callable[[HostSignal | BaseException], None],
        notes: SharedNotes,
    ) -> None:
        self._job, self._put, self._notes = job, put, notes
        self._manager = ToManager(job)
        self._last: Report | None = None
        self._reported_at = 0.0
        self._under_way = False
        """Whether the last report was not answered yet, and has not failed."""
        self._wake = threading.Event()
        self._closed = False
        self._shown: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        """Texts for the console of whoever started the job."""
        self._unshown = b""
        """The text that was taken from `_shown` and is not known to have arrived."""
        threading.Thread(target=self._run, daemon=True, name="reporter").start()

    def is_due(self, now: float) -> bool:
        return not self._under_way and now - self._reported_at >= self._job.report_every

    def tell(self, report: Report) -> None:
        self._reported_at, self._under_way = time.monotonic(), True
        self._last = report
        self._wake.set()

    def show(self, text: bytes) -> None:
        """Send a text to the console of whoever started the job."""
        self._shown.put(text)
        self._wake.set()

    def _run(self) -> None:
        absence = ManagerAbsence()
        while not self._closed:
            self._wake.wait(4 * self._job.report_every)
            self._wake.clear()
            if self._last is None:
                continue
            began = time.monotonic()
            last = self._last
            try:
                answer = self._report(last)
            except ChannelErrors as error:
                self._under_way = False
                time.sleep(self._job.report_every)
                if absence.failed(time.monotonic() - began):
                    self._put(RunError(f"the job manager cannot be reached: {error}"))
                    return
                continue
            absence.answered()
            self._under_way = self._last is not last
            self._notes.beat()
            try:
                if answer:
                    self._put(OrdersArrived(read_orders(answer, self._job.topology)))
            except RunError as error:
                self._put(error)
                return
        self._manager.close()

    def _report(self, last: Report) -> bytes:
        """Bring what is to be shown and the last report to the manager; return its answer."""
        while self._unshown or not self._shown.empty():
            self._unshown = self._unshown or self._shown.get()
            self._manager.act(last.session, "show", self._unshown)
            self._unshown = b""
        step = self._notes.read()
        if step is not None and step.seconds < LONG_STEP:
            step = None
        report = msgspec.structs.replace(last, step=step, clock=time.monotonic())
        return self._manager.act(last.session, "report", msgspec.msgpack.encode(report))

    def close(self) -> None:
        self._closed = True
        self._wake.set()
