"""An HTTP server that runs beside a command and prints nothing.

Rules
1. Nothing is printed about requests or disconnected clients.
2. At most `MOST_CONNECTIONS` connections are open at a time, each with a thread. If there are more,
   one that has been open for `LONG` seconds is closed, so that nobody can keep all of them; if
   there is none, the new one gets 503 and is closed at once.
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
"""How long to wait for the request of a client that gets 503, in seconds. A connection that is
closed with unread bytes is reset, and the client may not see the answer."""


class QuietServer(ThreadingHTTPServer):
    """Answers each request in its own thread, which does not keep the process alive."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket.socket, float] = {}
        """The open connections, the oldest first, and when each was opened."""
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start serving a connection if there is room for it."""
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
        """Tell whether another connection may be opened; make room by closing one that has been
        open for long."""
        with self._lock:
            if len(self._open) < MOST_CONNECTIONS:
                return True
            oldest, since = next(iter(self._open.items()))
            if time.monotonic() - since < LONG:
                return False
            del self._open[oldest]
        with suppress(OSError):  # it has ended in the meantime
            oldest.shutdown(socket.SHUT_RDWR)
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect during their requests; anything else is a bug."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class QuietRequest(BaseHTTPRequestHandler):
    """Reads a request, with a time limit of `timeout` seconds."""

    timeout = LONG
    server_version, sys_version = "weir", ""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _refuse(client: socket.socket) -> None:
    with suppress(OSError):  # the client is gone, or has sent nothing
        client.settimeout(_LATE_REQUEST)
        with suppress(TimeoutError):
            client.recv(1 << 16)
        client.sendall(_BUSY)
