"""Channels: what a reader gets, and what is left when either side goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from weir.events.batch import empty_batch
from weir.reliable.stream import Entry
from weir.spark.flight import ChannelErrors, Client, Security, Server, Subscription
from weir.spark.peers import Wanted

SECRET = Security("secret")
SERVER = """
import signal
from weir.events.batch import empty_batch
from weir.reliable.stream import Entry
from weir.spark.flight import Security, Server, Subscription

def subscribe(wanted):
    subscription = Subscription("only")
    subscription.put(Entry(wanted.seq, empty_batch(()), 7))
    return subscription

server = Server("127.0.0.1", Security("secret"), subscribe=subscribe, unsubscribe=print)
print(server.url, flush=True)
signal.pause()
"""


class Streams:
    """Serves one entry to every reader, and then whatever comes."""

    def __init__(self) -> None:
        self.subscription = Subscription("only")
        self.gone = threading.Event()
        self.server = Server(
            "127.0.0.1", SECRET, subscribe=self._subscribe, unsubscribe=lambda _: self.gone.set()
        )

    def _subscribe(self, wanted: Wanted) -> Subscription:
        self.subscription.put(Entry(wanted.seq, empty_batch(()), 7))
        return self.subscription


def test_a_reader_that_leaves_is_not_served_any_longer() -> None:
    streams = Streams()
    entries = Client(streams.server.url, SECRET).entries(Wanted("s", 3), ())
    assert (next(entries).seq) == 3
    leaving = threading.Thread(target=entries.close, daemon=True)  # type: ignore[attr-defined]
    leaving.start()
    leaving.join(5.0)
    assert not leaving.is_alive()
    streams.subscription.put(Entry(3, empty_batch(()), 8))
    assert streams.gone.wait(5.0)
    streams.server.shutdown()


def test_a_server_that_dies_ends_its_readers_without_noise(capfd: pytest.CaptureFixture) -> None:  # type: ignore[type-arg]
    command = (sys.executable, "-c", SERVER)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        entries = Client(process.stdout.readline().strip(), SECRET).entries(Wanted("s", 0), ())
        assert next(entries).cti == 7
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ChannelErrors):
            next(entries)
    del entries
    assert capfd.readouterr().err == ""


def test_a_reader_without_the_secret_is_refused() -> None:
    streams = Streams()
    with pytest.raises(ChannelErrors):
        next(Client(streams.server.url, Security("guessed")).entries(Wanted("s", 0), ()))
    streams.server.shutdown()
