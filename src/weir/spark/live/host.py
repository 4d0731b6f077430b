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
from weir.ingress.ingress_log import LogCollected
from weir.job.host import Host
from weir.job.messages import Pulse, Report
from weir.job.poison import Death
from weir.job.signals import (
    Arrived,
    BeginAnew,
    ChunkRead,
    Connect,
    Deliver,
    Disconnect,
    EndSubscription,
    Get,
    HostCommand,
    HostSignal,
    Lost,
    MakeRoom,
    Misled,
    OrdersArrived,
    Pull,
    Put,
    SourceBehind,
    SourceFailed,
    SourceWaits,
    Subscribed,
    Taken,
    Unsubscribed,
)
from weir.reliable.log import batch_bytes
from weir.reliable.store import Store
from weir.reliable.stream import Entry
from weir.runtime.vertices import stream_schema
from weir.spark.live.addresses import own_endpoint
from weir.spark.live.flight import ChannelErrors, Client, Companion, Server, Subscription
from weir.spark.live.host_job import LiveJob
from weir.spark.live.host_process import LONG_STEP, keep_host
from weir.spark.live.machine_check import check_this_machine
from weir.spark.live.peers import Wanted, read_orders
from weir.spark.live.step_notes import SharedNotes
from weir.spark.live.store_threads import StoreThreads
from weir.spark.live.warming import make_warm
from weir.spark.worker import settle_worker

IDLE = 0.02
"""Seconds that the loop waits for a signal before it looks at the clock."""
RECEIVE_BYTES = 16 << 20
"""So many bytes may have arrived for one input that its vertex has not read yet."""
_MEND = "everything is kept, so mend it and run again with --resume"
ALONE = 20.0
"""Seconds: a host that cannot reach the manager for so long gives up."""


def run_host(job: LiveJob, slot: int) -> None:
    """Run a host in this Spark task until the job is over."""
    settle_worker(job.manager, slot)
    if job.host_at is None:
        check_this_machine(job)
    make_warm(job, slot)
    vertices = [spec.id for spec in job.topology.order]
    keep_host(partial(_host, job, slot), partial(_Voice, job), vertices)


def _host(job: LiveJob, slot: int, notes: SharedNotes, deaths: Sequence[Death]) -> None:
    with closing(ObjectStore(job.store)) as store:
        while not _Session(job, slot, store, notes, deaths).run():
            pass


class _Voice:
    """Tells the manager what the companion of a host knows (`host_process.py`)."""

    def __init__(self, job: LiveJob) -> None:
        self._job = job
        self._client: Client | None = None
        self._line: Companion | None = None
        self._session = ""
        """The session that the manager was told on this line."""

    def __call__(self, pulse: Pulse) -> None:
        try:
            if self._client is None or self._line is None:
                self._client = Client(self._job.manager, self._job.security)
                self._line, self._session = self._client.companion(), ""
            if pulse.session != self._session:
                self._line.say(pulse.session.encode())
                self._session = pulse.session
            self._client.act("pulse", msgspec.msgpack.encode(pulse))
        except ChannelErrors:
            self._hang_up()  # and try again with the next sign

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._client is not None:
            self._client.close()
        self._client = self._line = None


class _Session:
    """Runs one session of a host: from its first report until it begins anew, or the job is
    over."""

    def __init__(
        self,
        job: LiveJob,
        slot: int,
        store: ObjectStore,
        notes: SharedNotes,
        deaths: Sequence[Death],
    ) -> None:
        self._job, self._slot = job, slot
        self._inbox: queue.SimpleQueue[HostSignal | BaseException] = queue.SimpleQueue()
        self._machine = Host(
            f"{slot}-{uuid4().hex[:8]}",
            job.topology,
            job.strategies,
            job.maker(lambda text: self._reporter.show(text)),
            job.host_settings,
            notes,
            deaths,
        )
        notes.open_session(self._machine.session)
        self._threads = StoreThreads(store, self._inbox.put)
        self._sources = _Sources(job, store, self._inbox.put)
        self._receivers: dict[tuple[str, int], _Receiver] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._over: bool | None = None
        """None while the session runs; then whether the job is over."""
        self._server = Server(
            job.host_at or own_endpoint(job.addresses, job.manager),
            job.security,
            subscribe=self._subscribe,
            unsubscribe=self._unsubscribe,
            sent=lambda s, e: self._inbox.put(Taken(s.name, batch_bytes(e.rows) + 1)),
        )
        self._reporter = _Reporter(job, self._inbox.put, notes)

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
        progressed, commands = self._machine.work(time.monotonic())
        self._do(commands)
        try:
            signal = self._inbox.get(timeout=0 if progressed else IDLE)
            while True:
                if isinstance(signal, BaseException):
                    raise signal
                self._do(self._machine.handle(signal, time.monotonic()))
                signal = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _report(self) -> None:
        if self._reporter.is_due(time.monotonic()):
            self._reporter.tell(
                self._machine.report(
                    self._server.url, self._slot, os.getpid(), socket.gethostname()
                )
            )

    def _close(self) -> None:
        self._reporter.close()
        for receiver in self._receivers.values():
            receiver.close()
        for subscription in list(self._subscriptions.values()):
            subscription.put(None)
        self._sources.close()
        self._threads.close(wait=False)
        self._server.shutdown()

    # --- commands ----------------------------------------------------------------------------

    def _do(self, commands: list[HostCommand]) -> None:
        for command in commands:
            match command:
                case Deliver(name, entry):
                    if name in self._subscriptions:
                        self._subscriptions[name].put(entry)
                case MakeRoom(vertex, input, _, size):
                    receiver = self._receivers.get((vertex, input))
                    if receiver is not None:
                        receiver.consumed(size)
                case Put() | Get():
                    self._threads.do(command)
                case Connect():
                    self._disconnect(command.vertex, command.input)
                    receiver = _Receiver(command, self._job, self._inbox.put)
                    self._receivers[command.vertex, command.input] = receiver
                case Disconnect(vertex, input):
                    self._disconnect(vertex, input)
                case EndSubscription(name):
                    subscription = self._subscriptions.pop(name, None)
                    if subscription is not None:
                        subscription.put(None)
                case Pull():
                    self._sources.pull(command)
                case BeginAnew(over):
                    self._over = over

    def _disconnect(self, vertex: str, input: int) -> None:
        receiver = self._receivers.pop((vertex, input), None)
        if receiver is not None:
            receiver.close()

    def _subscribe(self, wanted: Wanted) -> Subscription:
        """Begin a subscription; a thread of the server calls this."""
        subscription = Subscription(uuid4().hex)
        self._subscriptions[subscription.name] = subscription
        self._inbox.put(Subscribed(subscription.name, wanted.stream, wanted.seq))
        return subscription

    def _unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; a thread of the server calls this."""
        self._subscriptions.pop(subscription.name, None)
        self._inbox.put(Unsubscribed(subscription.name))


class _Receiver:
    """Receives the entries of one connection to another host as signals, at most about
    `RECEIVE_BYTES` ahead of the vertex that reads them."""

    def __init__(self, connect: Connect, job: LiveJob, put: Callable[[HostSignal], None]) -> None:
        self._connect, self._job, self._put = connect, job, put
        self._ahead = 0
        """How many bytes have arrived that the vertex has not read yet."""
        self._changed = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, daemon=True, name="receiver").start()

    def _run(self) -> None:
        c = self._connect
        try:
            client = Client(c.address, self._job.security)
            writer = self._job.topology.writer_of(c.stream)
            types = stream_schema(self._job.plan, writer, c.stream).types
            for entry in client.entries(Wanted(c.stream, c.seq), types):
                if not self._wait_for_room(entry):
                    client.close()
                    return
                self._put(Arrived(c.vertex, c.input, c.connection, entry))
        except ChannelErrors:
            pass  # it does not matter what broke the channel: the machine connects again
        except RunError as error:
            self._put(Misled(c.vertex, c.input, c.connection, str(error)))
            return
        if not self._closed:
            self._put(Lost(c.vertex, c.input, c.connection))

    def _wait_for_room(self, entry: Entry) -> bool:
        """Wait until an entry may be put into the inbox; False when the connection was closed."""
        with self._changed:
            while self._ahead > RECEIVE_BYTES and not self._closed:
                self._changed.wait()
            self._ahead += batch_bytes(entry.rows)
            return not self._closed

    def consumed(self, size: int) -> None:
        """Take in that the vertex has read so many bytes."""
        with self._changed:
            self._ahead = max(0, self._ahead - size)  # some may have come over an older connection
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()


class _Sources:
    """Reads the partitions of sources, each in a thread of its own, one chunk ahead of the host."""

    def __init__(self, job: LiveJob, store: Store, put: Callable[[HostSignal], None]) -> None:
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
        last = ""

        def waits(why: str) -> None:
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
            why = f"'{error.filename}' cannot be read: {error.strerror}; {_MEND}"
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


class _Reporter:
    """Sends the last report to the manager again and again, also while a step takes long; the
    manager's answers become signals."""

    def __init__(
        self,
        job: LiveJob,
        put: Callable[[HostSignal | BaseException], None],
        notes: SharedNotes,
    ) -> None:
        self._job, self._put, self._notes = job, put, notes
        self._last: Report | None = None
        self._told_at = 0.0
        self._wake = threading.Event()
        self._closed = False
        self._shown: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        """Texts for the console of whoever started the job."""
        self._unshown = b""
        """The text that was taken from `_shown` and is not known to have arrived."""
        threading.Thread(target=self._run, daemon=True, name="reporter").start()

    def is_due(self, now: float) -> bool:
        return now - self._told_at >= self._job.report_every

    def tell(self, report: Report) -> None:
        self._told_at = time.monotonic()
        self._last = report
        self._wake.set()

    def show(self, text: bytes) -> None:
        """Send a text to the console of whoever started the job."""
        self._shown.put(text)
        self._wake.set()

    def _run(self) -> None:
        answered = time.monotonic()
        client: Client | None = None
        while not self._closed:
            self._wake.wait(4 * self._job.report_every)
            self._wake.clear()
            if self._last is None:
                continue
            step = self._notes.read()
            if step is not None and step.seconds < LONG_STEP:
                step = None
            report = msgspec.structs.replace(self._last, step=step)
            try:
                client = client or Client(self._job.manager, self._job.security)
                while self._unshown or not self._shown.empty():
                    self._unshown = self._unshown or self._shown.get()
                    client.act("show", self._unshown)
                    self._unshown = b""
                answer = client.act("report", msgspec.msgpack.encode(report))
            except ChannelErrors as error:
                client = None
                if time.monotonic() - answered > ALONE:
                    self._put(RunError(f"the job manager cannot be reached: {error}"))
                    return
                time.sleep(self._job.report_every)
                continue
            answered = time.monotonic()
            self._notes.beat()
            try:
                if answer:
                    self._put(OrdersArrived(read_orders(answer, self._job.topology)))
            except RunError as error:
                self._put(error)
                return

    def close(self) -> None:
        self._closed = True
        self._wake.set()
