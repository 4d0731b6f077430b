"""An HTTP server that runs beside a command, without disturbing its terminal or process.

Rules
1. Nothing is printed about requests, or about clients that go away.
2. At most `MOST_CONNECTIONS` are open at a time, each with a thread, however many clients come.
   One more is answered 503 and closed at once, unless another has been open for `LONG` seconds:
   that one is closed in its place, so that nobody can keep all of them.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_CONNECTIONS = 32
LONG = 30.0
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 5\r\n"
    b"Content-Length: 46\r\nConnection: close\r\n\r\n"
    b"too many connections are open; try again later"
)
_LATE_REQUEST = 0.02
"""Seconds in which the request of a client that gets 503 should have come: a connection that is
closed with unread bytes is reset, and the client may not see the answer."""


class QuietServer(ThreadingHTTPServer):
    """Answers each request in a thread that ends with the process."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket.socket, float] = {}
        """The connections that are open, the oldest first, and since when."""
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin to serve a connection, if there is room for it."""
        if self._has_room():
            with self._lock:
                self._open[request] = time.monotonic()
            super().process_request(request, client_address)
        else:
            _refuse(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def _has_room(self) -> bool:
        """Say whether another connection may be opened; where one has been open for long, it is
        closed for that."""
        with self._lock:
            if len(self._open) < MOST_CONNECTIONS:
                return True
            oldest, since = next(iter(self._open.items()))
            if time.monotonic() - since < LONG:
                return False
            del self._open[oldest]
        with suppress(OSError):  # it has ended meanwhile
            oldest.shutdown(socket.SHUT_RDWR)
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away during its request; anything else is a bug."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class QuietRequest(BaseHTTPRequestHandler):
    """Reads a request, which may take `timeout` seconds."""

    timeout = LONG
    server_version, sys_version = "weir", ""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _refuse(client: socket.socket) -> None:
    with suppress(OSError):  # it is gone, or has sent nothing
        client.settimeout(_LATE_REQUEST)
        with suppress(TimeoutError):
            client.recv(1 << 16)
        client.sendall(_BUSY)
