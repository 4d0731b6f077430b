"""Channels: what a reader gets, and what is left when either side goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from pyarrow import flight

from machine.jobs import entry
from weir.errors import RunError
from weir.events.batch import empty_batch
from weir.reliable.stream import Entry
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import ChannelErrors, Client, Security, Server, Subscription
from weir.spark.live.message_checks import Wanted

SECRET = Security("secret")
ATTENDING = """
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import Security, Server

def attend(messages):
    for message in messages:
        print(message, flush=True)

server = Server(Endpoint("127.0.0.1"), Security("secret"), attend=attend)
print(server.url, flush=True)
input()
server.end()
"""
SERVER = """
import signal
from weir.events.batch import empty_batch
from weir.reliable.stream import Entry
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import Security, Server, Subscription

def subscribe(wanted):
    subscription = Subscription("only")
    subscription.put(Entry(wanted.seq, empty_batch(()), 7))
    return subscription

server = Server(Endpoint("127.0.0.1"), Security("secret"), subscribe=subscribe, unsubscribe=print)
print(server.url, flush=True)
signal.pause()
"""


class Streams:
    """Serves one entry to every reader, and then whatever comes."""

    def __init__(self) -> None:
        self.subscription = Subscription("only")
        self.gone = threading.Event()
        self.server = Server(
            Endpoint("127.0.0.1"),
            SECRET,
            subscribe=self._subscribe,
            unsubscribe=lambda _: self.gone.set(),
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


def test_a_line_that_nobody_closes_does_not_hold_up_its_server() -> None:
    """Nor the process of the server, when that leaves."""
    command = (sys.executable, "-c", ATTENDING)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        line = Client(process.stdout.readline().strip(), SECRET).line()
        line.say(b"a")
        assert process.stdout.readline() == "b'a'\n"
        process.stdin.write("end\n")
        process.stdin.flush()
        try:
            assert process.wait(10.0) == 0
        finally:
            process.kill()
    line.close()


def test_a_reader_without_the_secret_is_refused() -> None:
    streams = Streams()
    with pytest.raises(ChannelErrors):
        next(Client(streams.server.url, Security("guessed")).entries(Wanted("s", 0), ()))
    streams.server.shutdown()


def test_rows_come_over_a_socket_in_a_folder() -> None:
    subscription = Subscription("only")
    subscription.put(entry(0, 3))
    subscription.put(None)
    with TemporaryDirectory() as folder:  # the name of a socket must not be long
        server = Server(
            Endpoint(folder), SECRET, subscribe=lambda _: subscription, unsubscribe=lambda _: None
        )
        assert server.url.startswith(f"grpc+unix://{folder}/")
        assert server.port <= 0, "no port"
        (found,) = Client(server.url, SECRET).entries(Wanted("s", 0), (pa.int64(),))
        assert (found.rows.vs.tolist(), found.cti) == ([0, 1, 2], 3)
        server.shutdown()
        assert not list(Path(folder).iterdir())


def test_rows_of_other_columns_are_refused() -> None:
    streams = Streams()
    streams.subscription.put(entry(0, 3))
    found = Client(streams.server.url, SECRET).entries(Wanted("s", 0), (pa.string(),))
    with pytest.raises(RunError, match="instead of a lifetime, origins and string"):
        list(found)
    streams.subscription.put(None)  # as a host does: a call that waits would hold up the shutdown
    streams.server.shutdown()


@pytest.mark.parametrize(
    "descriptor",
    [flight.FlightDescriptor.for_path("a"), flight.FlightDescriptor.for_command(b"\x99")],
)
def test_a_wish_that_is_none_is_refused(descriptor: flight.FlightDescriptor) -> None:
    streams = Streams()
    client = flight.FlightClient(streams.server.url)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
    writer, reader = client.do_exchange(descriptor, options)
    with pytest.raises(flight.FlightServerError, match="cannot be used") as refused:
        reader.read_chunk()
    assert "Traceback" not in str(refused.value)
    reader.cancel()
    with pytest.raises(ChannelErrors):
        writer.close()
    streams.server.shutdown()


@pytest.mark.parametrize("given", [b"Bearer ", b"Bearer secre", b"Bearer secrets", b"secret"])
def test_a_wrong_secret_is_refused(given: bytes) -> None:
    streams = Streams()
    client = flight.FlightClient(streams.server.url)
    options = flight.FlightCallOptions(headers=[(b"authorization", given)])
    for call in (
        lambda: list(client.do_action(flight.Action("hello", b""), options)),
        lambda: list(client.list_flights(b"", options)),
        lambda: client.get_flight_info(flight.FlightDescriptor.for_path("a"), options),
        lambda: client.do_get(flight.Ticket(b""), options).read_all(),
        lambda: list(client.list_actions(options)),
    ):
        with pytest.raises(flight.FlightUnauthenticatedError, match="secret is missing or wrong"):
            call()
    streams.server.shutdown()
