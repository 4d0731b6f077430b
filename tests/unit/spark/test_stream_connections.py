"""Connections between hosts: one over which nothing comes is given up, and another one is made."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from weir.events.batch import empty_batch
from weir.job.signals import Arrived, Connect, HostSignal, Lost
from weir.reliable.stream import Entry
from weir.spark.live import flight
from weir.spark.live import stream_connections as receiving
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import Security, Server, Subscription
from weir.spark.live.message_checks import Wanted
from weir.spark.live.stream_connections import Receivers

SECRET = Security("secret")


class Way:
    """A way to a server on which everything gets lost, without a word, once it is broken."""

    def __init__(self, port: int) -> None:
        self._port, self.is_broken = port, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.url = f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._ends += (near, far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, come: socket.socket, go: socket.socket) -> None:
        was_broken = False
        with suppress(OSError):
            while data := come.recv(1 << 16):
                was_broken |= self.is_broken  # as with a server that has given the connection up
                if not was_broken:
                    go.sendall(data)

    def close(self) -> None:
        self._listener.close()
        for end in self._ends:
            end.close()


class Writer:
    """Serves to each reader one entry, and then what is put."""

    def __init__(self) -> None:
        self.subscriptions: list[Subscription] = []
        self.server = Server(
            Endpoint("127.0.0.1"), SECRET, subscribe=self._begin, unsubscribe=lambda _: None
        )

    def _begin(self, wanted: Wanted) -> Subscription:
        made = Subscription(str(len(self.subscriptions)))
        made.put(Entry(wanted.seq, empty_batch(()), 7))
        self.subscriptions.append(made)
        return made

    def close(self) -> None:
        for subscription in self.subscriptions:
            subscription.put(None)
        self.server.shutdown()


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    monkeypatch.setattr(flight, "SIGN_EVERY", 0.1)
    monkeypatch.setattr(receiving, "SILENCE", 0.3)
    monkeypatch.setattr(receiving, "WATCH_EVERY", 0.05)
    monkeypatch.setattr(receiving, "UNREACHED", 1.0)
    made = Writer()
    yield made
    made.close()


@pytest.fixture
def way(writer: Writer) -> Iterator[Way]:
    made = Way(urlsplit(writer.server.url).port or 0)
    yield made
    made.close()


def watched(
    receivers: Receivers, given: queue.SimpleQueue[HostSignal], within: float
) -> HostSignal:
    """Watch over connections until a signal comes."""
    until = time.monotonic() + within
    while given.empty() and time.monotonic() < until:
        time.sleep(0.02)
        receivers.watch(time.monotonic())
    return given.get_nowait()


def test_a_connection_over_which_nothing_comes_is_given_up(writer: Writer, way: Way) -> None:
    given: queue.SimpleQueue[HostSignal] = queue.SimpleQueue()
    receivers = Receivers(SECRET, lambda _: (), given.put)
    receivers.connect(Connect("v", 0, 1, way.url, "s", 3))
    assert isinstance(came := watched(receivers, given, 5.0), Arrived) and came.entry.seq == 3
    with pytest.raises(queue.Empty):
        watched(receivers, given, 1.0)  # there are no rows, but signs of life
    way.is_broken = True
    assert watched(receivers, given, 5.0) == Lost("v", 0, 1)
    way.is_broken = False
    receivers.connect(Connect("v", 0, 2, way.url, "s", 4))
    assert isinstance(came := watched(receivers, given, 5.0), Arrived)
    assert (came.connection, came.entry.seq) == (2, 4)
    assert not receivers.unreached(time.monotonic())
    receivers.close()


def test_each_connection_in_vain_may_take_longer(writer: Writer, way: Way) -> None:
    given: queue.SimpleQueue[HostSignal] = queue.SimpleQueue()
    receivers = Receivers(SECRET, lambda _: (), given.put)
    way.is_broken = True
    waited = []
    for number in range(3):
        began = time.monotonic()
        receivers.connect(Connect("v", 0, number, way.url, "s", 0))
        assert watched(receivers, given, 5.0) == Lost("v", 0, number)
        waited.append(time.monotonic() - began)
        assert receivers.unreached(time.monotonic()) == ((way.url,) if number == 2 else ())
    assert 0.3 < waited[0] < 0.6 < waited[1] < 1.2 < waited[2]
    receivers.close()


def test_a_host_that_stood_still_gives_up_no_connection(writer: Writer) -> None:
    given: queue.SimpleQueue[HostSignal] = queue.SimpleQueue()
    receivers = Receivers(SECRET, lambda _: (), given.put)
    receivers.connect(Connect("v", 0, 1, writer.server.url, "s", 0))
    assert isinstance(watched(receivers, given, 5.0), Arrived)
    receivers.watch(time.monotonic() + 60.0)
    assert given.empty()
    receivers.close()
