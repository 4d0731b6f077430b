"""Who gets what from the page's server."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulated_store import SimulatedStore
from weir.errors import RunError
from weir.page import quiet_server
from weir.page.quiet_server import MOST_CONNECTIONS
from weir.page.server import LOOPBACK, PageServer, serving


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> SimulatedStore:
    job = SimulatedStore(tmp_path_factory.mktemp("job"), seconds=4)
    job.pass_seconds(2)
    return job


@pytest.fixture(scope="module")
def server(job: SimulatedStore) -> Iterator[PageServer]:
    server = PageServer(job.store)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def asked(
    server: PageServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(LOOPBACK, server.server_address[1], timeout=10)
    connection.putrequest(method, path, skip_host=True)
    headers = {"Host": server.names[0], **headers}
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def token(server: PageServer) -> str:
    return server.address.split("#token=")[1]


def test_clients_that_go_away_are_not_told_of(
    server: PageServer, capfd: pytest.CaptureFixture[str]
) -> None:
    asking = f"GET /view HTTP/1.1\r\nHost: {server.names[0]}\r\n\r\n".encode()
    for number in range(40):
        with socket.create_connection(server.server_address[:2]) as client:
            # It closes with a reset: in the middle of its request, or of the answer.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.send(asking if number % 2 else asking[:20])
    assert asked(server, "/")[0] == 200
    assert capfd.readouterr() == ("", "")


def opened(server: PageServer, count: int) -> list[socket.socket]:
    """Connections that send nothing."""
    return [socket.create_connection(server.server_address[:2]) for _ in range(count)]


def wait_for_connections(server: PageServer, count: int) -> None:
    until = time.monotonic() + 10
    while len(server._open) != count:
        assert time.monotonic() < until, f"{len(server._open)} connections are open, not {count}"
        time.sleep(0.005)


def test_a_client_that_opens_very_many_connections_gets_some(server: PageServer) -> None:
    wait_for_connections(server, 0)
    threads = threading.active_count()
    clients = opened(server, MOST_CONNECTIONS)
    wait_for_connections(server, MOST_CONNECTIONS)
    for _ in range(5):
        clients += opened(server, 8)
        assert threading.active_count() <= threads + MOST_CONNECTIONS
    status, body, headers = asked(server, "/")
    assert status == 503 and body == b"too many connections are open; try again later"
    assert headers["Retry-After"] == "5"
    assert clients[-1].recv(100).startswith(b"HTTP/1.1 503 ")
    for client in clients:
        client.close()
    wait_for_connections(server, 0)
    assert asked(server, "/")[0] == 200


def test_nobody_can_keep_all_connections(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet_server, "LONG", 0.0)
    wait_for_connections(server, 0)
    clients = opened(server, MOST_CONNECTIONS)
    wait_for_connections(server, MOST_CONNECTIONS)
    assert asked(server, "/")[0] == 200
    assert clients[0].recv(100) == b"", "the oldest is closed"
    for client in clients:
        client.close()
    wait_for_connections(server, 0)


def test_what_fails_in_the_server_is_told(
    server: PageServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> tuple[bytes, str]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(server, "view", failing)
    with pytest.raises(http.client.HTTPException):
        asked(server, "/view", Authorization=f"Bearer {token(server)}")
    assert "RuntimeError: a bug" in capfd.readouterr().err


def test_only_loopback_is_listened_at(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address.startswith(f"http://127.0.0.1:{server.server_address[1]}/#token=")
    assert len(token(server)) >= 32


def test_the_token_opens_the_view_and_nothing_else_does(server: PageServer) -> None:
    status, body, headers = asked(server, "/view", Authorization=f"Bearer {token(server)}")
    assert status == 200 and json.loads(body)["title"] == "shops"
    assert headers["Cache-Control"] == "no-store"
    right = token(server)
    for wrong in (
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {right[:-1]}",
        f"Bearer {right}x",
        right,
        f"Basic {right}",
        "Bearer \xe9",
    ):
        status, body, _ = asked(server, "/view", Authorization=wrong)
        assert (status, b"shops" in body) == (401, False), wrong
    assert asked(server, "/view")[0] == 401
    assert asked(server, f"/view?token={right}")[0] == 404


def test_the_page_itself_tells_nothing(server: PageServer) -> None:
    status, body, headers = asked(server, "/")
    assert status == 200 and b"shops" not in body and token(server).encode() not in body
    assert headers["X-Frame-Options"] == "DENY" and headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1", "localhost:1"]
)
def test_other_hosts_are_refused(server: PageServer, host: str) -> None:
    for path in ("/", "/view"):
        given = asked(server, path, Host=host, Authorization=f"Bearer {token(server)}")
        assert given[0] == 421


@pytest.mark.parametrize(
    "path",
    [
        "/status",
        "/../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/view/",
        "/assets/page.js",
        "/%00",
        "http://127.0.0.1/view",
    ],
)
def test_nothing_of_the_file_system_is_served(server: PageServer, path: str) -> None:
    assert asked(server, path, Authorization=f"Bearer {token(server)}")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_it_can_only_be_read(server: PageServer, method: str) -> None:
    assert asked(server, "/view", method, Authorization=f"Bearer {token(server)}")[0] == 501


def test_a_view_that_has_not_changed_is_not_sent_again(
    server: PageServer, job: SimulatedStore
) -> None:
    bearer = f"Bearer {token(server)}"
    tag = asked(server, "/view", Authorization=bearer)[2]["ETag"]
    assert asked(server, "/view", Authorization=bearer, If_None_Match=tag)[:2] == (304, b"")
    job.pass_second()
    server._last = None  # as if half a second had passed
    status, _, headers = asked(server, "/view", Authorization=bearer, If_None_Match=tag)
    assert status == 200 and headers["ETag"] != tag


def test_reading_writes_nothing(server: PageServer, job: SimulatedStore) -> None:
    folder = Path(job.store.location)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    asked(server, "/view", Authorization=f"Bearer {token(server)}")
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


def test_a_port_that_is_taken_is_told(server: PageServer, job: SimulatedStore) -> None:
    port = server.server_address[1]
    with (
        pytest.raises(RunError, match=f"cannot listen on port {port}: Address already in use"),
        serving(job.store, port),
    ):
        pass
