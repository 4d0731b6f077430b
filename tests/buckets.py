"""Servers of S3's protocol on loopback for the tests that need a bucket: one that keeps objects,
and ones that answer what a test says."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import obstore
import pytest
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

SECRET = "a-secret-that-nobody-may-print"


@lru_cache(maxsize=1)
def server_url() -> str:
    """Start the server of this process, at the first call."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    return f"http://127.0.0.1:{server.get_host_and_port()[1]}"


@dataclass(frozen=True)
class Bucket:
    """A new bucket, and what the test does in it."""

    name: str
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    @property
    def store(self) -> S3Store:
        return S3Store(
            self.name,
            endpoint=self.environment["AWS_ENDPOINT_URL"],
            access_key_id="test",
            secret_access_key=SECRET,
            region="us-east-1",
            client_options={"allow_http": True},
        )

    def put(self, key: str, body: bytes | str) -> str:
        """Write an object and return its URL."""
        obstore.put(self.store, key, body.encode() if isinstance(body, str) else body)
        return f"{self.url}/{key}"

    def get(self, key: str) -> bytes:
        return bytes(obstore.get(self.store, key).bytes())

    def names(self) -> list[str]:
        return sorted(str(meta["path"]) for page in obstore.list(self.store) for meta in page)


@contextmanager
def new_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Make a bucket, and an environment that leads to it."""
    bucket = Bucket(
        f"weir-{uuid.uuid4().hex[:12]}",
        {
            "AWS_ENDPOINT_URL": server_url(),
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        },
    )
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=bucket.environment["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket=bucket.name)
    yield bucket


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def scripted_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], list[str]]]:
    """Give a function that serves s3:// by a function from then on; the methods of what is asked
    for are noted."""
    made: list[ThreadingHTTPServer] = []

    def serve(answer: Answer) -> list[str]:
        requests: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                requests.append(self.command)
                answer(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        made.append(server)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        return requests

    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    yield serve
    for server in made:
        server.shutdown()
        server.server_close()


def refusing(status: int, code: str) -> Answer:
    """Refuse everything, and repeat the credentials, as servers do."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        body = (
            f"<Error><Code>{code}</Code><Message>no</Message><AWSAccessKeyId>AKIAEXAMPLE"
            f"</AWSAccessKeyId><SignatureProvided>{SECRET}</SignatureProvided></Error>"
        ).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)

    return answer
