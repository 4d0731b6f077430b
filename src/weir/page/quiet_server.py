"""Servers beside a command leave its terminal alone: neither requests nor clients that go away are
told there."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietServer(ThreadingHTTPServer):
    """Answers each request in a thread that ends with the process."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away during its request; anything else is a bug."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class QuietRequest(BaseHTTPRequestHandler):
    """Reads a request, which may take `timeout` seconds."""

    timeout = 30.0
    server_version, sys_version = "weir", ""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
