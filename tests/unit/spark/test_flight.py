"""Channels: what comes over them, and what is left when either side goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from pyarrow import flight

from weir.errors import RunError
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import ChannelErrors, Client, Exchange, Security, Server

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
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import Security, Server

def link(hello, exchange):
    exchange.send(b"stands", b"")
    exchange.receive()

server = Server(Endpoint("127.0.0.1"), Security("secret"), link=link)
print(server.url, flush=True)
signal.pause()
"""
BODY = bytes(range(256)) * 8


class Echo:
    """Sends every message back, until its client leaves."""

    def __init__(self, at: Endpoint | None = None) -> None:
        self.gone = threading.Event()
        self.server = Server(at or Endpoint("127.0.0.1"), SECRET, link=self._link)

    def _link(self, hello: bytes, exchange: Exchange) -> None:
        if hello == b"bad":
            raise RunError("it cannot be used")
        exchange.send(hello, b"")
        with suppress(*ChannelErrors):
            while (message := exchange.receive()) is not None:
                exchange.send(message[0], message[1].to_pybytes())
        self.gone.set()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.server.shutdown()


def test_messages_go_both_ways_with_and_without_a_body(echo: Echo) -> None:
    exchange = Client(echo.server.url, SECRET).exchange(b"hello")
    assert exchange.receive() == (b"hello", pa.py_buffer(b""))
    for words, body in [(b"a", b""), (b"b", BODY), (b"c", b"x"), (b"d", b"")]:
        exchange.send(words, body)
        received = exchange.receive()
        assert received is not None
        assert (received[0], received[1].to_pybytes()) == (words, body)
        assert received[1].address % 8 == 0
    exchange.close()
    assert echo.gone.wait(5.0)


def test_a_client_that_gives_up_ends_a_wait_for_messages(echo: Echo) -> None:
    exchange = Client(echo.server.url, SECRET).exchange(b"hello")
    assert exchange.receive() is not None
    threading.Timer(0.1, exchange.give_up).start()
    with pytest.raises(ChannelErrors):
        exchange.receive()
    exchange.close()
    assert echo.gone.wait(5.0)


def test_a_server_that_dies_ends_its_links_without_noise(capfd: pytest.CaptureFixture) -> None:  # type: ignore[type-arg]
    command = (sys.executable, "-c", SERVER)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        exchange = Client(process.stdout.readline().strip(), SECRET).exchange(b"")
        assert exchange.receive() is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ChannelErrors):
            exchange.receive()
        exchange.close()
    del exchange
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


def test_a_link_without_the_secret_is_refused(echo: Echo) -> None:
    with pytest.raises(ChannelErrors):
        Client(echo.server.url, Security("guessed")).exchange(b"hello").receive()
    assert not echo.gone.is_set()


def test_messages_come_over_a_socket_in_a_folder() -> None:
    with TemporaryDirectory() as folder:  # the name of a socket must not be long
        echo = Echo(Endpoint(folder))
        assert echo.server.url.startswith(f"grpc+unix://{folder}/")
        assert echo.server.port <= 0, "no port"
        exchange = Client(echo.server.url, SECRET).exchange(b"hello")
        assert exchange.receive() is not None
        exchange.close()
        echo.server.shutdown()
        assert not list(Path(folder).iterdir())


def test_a_link_that_cannot_be_used_is_refused_with_its_reason(echo: Echo) -> None:
    client = flight.FlightClient(echo.server.url)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"bad"), options)
    with pytest.raises(flight.FlightServerError, match="cannot be used") as refused:
        reader.read_chunk()
    assert "Traceback" not in str(refused.value)
    reader.cancel()
    with pytest.raises(ChannelErrors):
        writer.close()


def test_a_body_of_other_columns_is_refused(echo: Echo) -> None:
    client = flight.FlightClient(echo.server.url)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"hello"), options)
    record = pa.record_batch({"a": [1]})
    writer.begin(record.schema)
    writer.write_with_metadata(record, b"words")
    assert reader.read_chunk().app_metadata.to_pybytes() == b"hello"
    with pytest.raises(flight.FlightServerError, match="a body of columns"):
        reader.read_chunk()
    reader.cancel()
    with pytest.raises(ChannelErrors):
        writer.close()


@pytest.mark.parametrize("given", [b"Bearer ", b"Bearer secre", b"Bearer secrets", b"secret"])
def test_a_wrong_secret_is_refused(echo: Echo, given: bytes) -> None:
    client = flight.FlightClient(echo.server.url)
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
