"""The server of the page: on loopback, protected by a token, read-only.

Rules
1. It listens on 127.0.0.1 only. Other users of the machine cannot read the page without the token.
   The token is in the fragment of the printed address, which browsers do not send; the page sends
   it in a header, so other pages cannot make requests in its name.
2. A request whose Host is not this server's is rejected, which prevents DNS rebinding (a foreign
   name that resolves to loopback).
3. It serves two paths, `/` and `/view`, and no files. `/` needs no token and contains nothing of
   the job.
4. Views are read one at a time, and at most once in `FRESH` seconds, however many requests come.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import msgspec

from weir.errors import RunError
from weir.files.object_store import ObjectStore
from weir.page.document import live_page
from weir.page.quiet_server import QuietRequest, QuietServer
from weir.page.view import ViewReader

LOOPBACK = "127.0.0.1"
FRESH = 0.5


class PageServer(QuietServer):
    """Serves the page of a store's job; `address` is the address to open."""

    def __init__(self, store: ObjectStore, port: int = 0) -> None:
        try:
            super().__init__((LOOPBACK, port), _Request)
        except OSError as error:
            raise RunError(f"cannot listen on port {port}: {error.strerror}") from None
        self._token = secrets.token_urlsafe(24)
        self._reader = ViewReader(store, time.time)
        self._lock = threading.Lock()
        self._last: tuple[float, bytes, str] | None = None
        """The last view: when it was read, its content, and its tag."""
        at = self.server_address[1]
        self.names = (f"{LOOPBACK}:{at}", f"localhost:{at}")
        """The Host headers that are accepted."""
        self.address = f"http://{self.names[0]}/#token={self._token}"

    def admits(self, authorization: str) -> bool:
        """Tell whether a request has the token; the time that this takes reveals nothing of the
        token."""
        expected = f"Bearer {self._token}"
        return hmac.compare_digest(authorization.encode("utf-8", "replace"), expected.encode())

    def view(self) -> tuple[bytes, str]:
        """Read the view as JSON, and a tag that changes with it."""
        with self._lock:
            now = time.monotonic()
            if self._last is None or now - self._last[0] >= FRESH:
                view = self._reader.read()
                body = msgspec.json.encode(view)
                timeless = msgspec.json.encode(msgspec.structs.replace(view, time=0.0))
                tag = f'"{hashlib.sha256(timeless).hexdigest()[:32]}"'
                self._last = (now, body, tag)
            return self._last[1:]


class _Request(QuietRequest):
    """Answers one request, by the module's rules."""

    server: PageServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802 (the name is that of http.server)
        if self.headers.get("Host", "").lower() not in self.server.names:
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"this server is for loopback only\n")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, live_page().encode(), "text/html; charset=utf-8")
        elif self.path != "/view":
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here\n")
        elif not self.server.admits(self.headers.get("Authorization", "")):
            self._answer(HTTPStatus.UNAUTHORIZED, b"the token is wrong\n")
        else:
            body, tag = self.server.view()
            if self.headers.get("If-None-Match") == tag:
                self._answer(HTTPStatus.NOT_MODIFIED, b"", tag=tag)
            else:
                self._answer(HTTPStatus.OK, body, "application/json", tag)

    def _answer(
        self, status: HTTPStatus, body: bytes, kind: str = "text/plain", tag: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(store: ObjectStore, port: int = 0) -> Iterator[str]:
    """Serve the page in a thread while the block runs; yield the address to open."""
    server = PageServer(store, port)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True, name="page")
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
