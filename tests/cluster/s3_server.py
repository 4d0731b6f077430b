"""A server of S3's protocol on a machine of its own in the box, which can be made to fail.

    server = S3Server(machine, folder)
    server.start()
    server.fail(status=503)      # every request is answered so
    server.mend()

Contract
1. moto keeps the objects in the memory of a process that nobody but this machine can reach. In
   front of it stands the server that others see, a process that can be killed and started again:
   no object is lost with it, as none is with a real store.
2. What the server does wrong stands in a file, and holds from the next request on:
   delay=2.0    seconds before each answer        status=503   this answer, and nothing is done
   late=30.0    listings leave out what is younger lose=5      it does what it is asked, but one
                                                                answer in five is never sent
3. Every request is noted with its method, path, condition and the status of its answer.
4. `onlooker` gives the objects themselves, whatever the server does.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cluster.machines import Machine
from weir.reliable.store import Body

PORT, HIDDEN_PORT = 9000, 9001
BUCKET = "weir"
KEY, SECRET = "AKIACLUSTERINABOX", "a-secret-that-no-log-may-hold"
_CONTENTS = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)
_MODIFIED = re.compile(rb"<LastModified>([^<]*)</LastModified>")
_DROPPED = ("transfer-encoding", "connection", "content-length", "date", "server")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the server noted it."""

    time: float
    method: str
    path: str
    condition: str
    status: int


@dataclass
class S3Server:
    """The server, on its machine."""

    machine: Machine
    folder: Path
    bucket: str = BUCKET
    _front: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What a process of another machine needs to reach the bucket."""
        return _environment(f"http://{self.machine.address}:{PORT}")

    def start(self) -> None:
        """Start both processes, and make the bucket."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.mend()
        with (self.folder / "moto.log").open("ab") as log:
            self.machine.start(
                sys.executable, "-c", _QUIET_MOTO, str(HIDDEN_PORT), log=log, env=_plain()
            )
        self.start_front()
        self._wait_until_it_answers()

    def start_front(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._front = self.machine.start(
                sys.executable, "-m", "cluster.s3_server", str(self.folder), log=log, env=_plain()
            )

    def kill_front(self) -> None:
        """Kill the server that others see."""
        assert self._front is not None
        os.killpg(self._front.pid, signal.SIGKILL)
        self._front.wait()

    def fail(self, **how: float) -> None:
        """Do this wrong from now on; see the module's second rule."""
        made = self.folder / "faults.new"
        made.write_text(json.dumps(how), encoding="utf-8")
        made.rename(self.folder / "faults")

    def mend(self) -> None:
        self.fail()

    def requests(self) -> list[Request]:
        """List the requests so far."""
        lines = (self.folder / "requests").read_text("utf-8").splitlines()
        return [
            Request(float(at), method, path, condition, int(status))
            for at, method, path, condition, status in (line.split("\t") for line in lines)
        ]

    def onlooker(self, url: str) -> Onlooker:
        """Open a part of the bucket on the server's own machine, behind the server."""
        return Onlooker(self.machine, url)

    def write_profile(self, home: Path) -> None:
        """Write AWS files with the keys and the address to a user's folder."""
        folder = home / ".aws"
        folder.mkdir(parents=True, exist_ok=True)
        keys = f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
        (folder / "credentials").write_text(keys, encoding="utf-8")
        address = f"http://{self.machine.address}:{PORT}"
        said = f"[default]\nregion = us-east-1\nendpoint_url = {address}\n"
        (folder / "config").write_text(said, encoding="utf-8")

    def _wait_until_it_answers(self) -> None:
        done = self.machine.run(
            sys.executable,
            "-c",
            _MAKE_BUCKET,
            self.bucket,
            f"http://127.0.0.1:{PORT}",
            env=_environment(f"http://127.0.0.1:{PORT}"),
            timeout=60,
        )
        if done.returncode:
            raise TimeoutError(f"no server of buckets: {done.stderr}")


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def _environment(address: str) -> dict[str, str]:
    return _plain() | {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


_QUIET_MOTO = """
import logging, sys
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.server import main
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
"""
_MAKE_BUCKET = """
import sys, boto3
from botocore.config import Config
tries = Config(retries={"max_attempts": 40, "mode": "standard"})
boto3.client("s3", endpoint_url=sys.argv[2], config=tries).create_bucket(Bucket=sys.argv[1])
"""


class Onlooker:
    """Reads a store on the server's machine, in a process that stays; only `get` and `list`."""

    def __init__(self, machine: Machine, url: str) -> None:
        self._process = subprocess.Popen(
            machine.command(sys.executable, "-m", "cluster.s3_server", "look", url),
            env=_environment(f"http://127.0.0.1:{HIDDEN_PORT}"),
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lock = threading.Lock()

    def _ask(self, *question: str) -> bytes | None:
        with self._lock:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            size = int(self._process.stdout.readline())
            return None if size < 0 else self._process.stdout.read(size)

    def get(self, key: str) -> bytes | None:
        return self._ask("get", key)

    def list(self, prefix: str = "") -> list[str]:
        keys: list[str] = json.loads(self._ask("list", prefix) or b"[]")
        return keys

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        raise NotImplementedError

    def delete(self, keys: Iterable[str]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _look(url: str) -> None:
    from weir.files.object_store import ObjectStore

    store = ObjectStore(url)
    for line in sys.stdin.buffer:
        what, name = json.loads(line)
        body = store.get(name) if what == "get" else json.dumps(store.list(name)).encode()
        sys.stdout.buffer.write(f"{-1 if body is None else len(body)}\n".encode())
        sys.stdout.buffer.write(body or b"")
        sys.stdout.buffer.flush()


# --- the server that others see ------------------------------------------------------------------


class _Front(BaseHTTPRequestHandler):
    """Passes a connection's requests on to moto, unless it is to do something wrong."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    folder = Path()
    asked = 0
    noting = threading.Lock()

    def setup(self) -> None:
        super().setup()
        self._back = http.client.HTTPConnection("127.0.0.1", HIDDEN_PORT)

    def do_any(self) -> None:
        faults = json.loads((self.folder / "faults").read_text("utf-8"))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(faults.get("delay", 0.0))
        status = int(faults.get("status", 0))
        with self.noting:
            type(self).asked += 1
            loses = "lose" in faults and self.asked % int(faults["lose"]) == 0
        if status:
            self._note(status)
            self._answer(status, [], _refusal(status))
            return
        self._back.request(self.command, self.path, body, dict(self.headers.items()))
        answer = self._back.getresponse()
        data = answer.read()
        self._note(answer.status)
        if "late" in faults and "list-type=2" in self.path:
            data = _without_the_young(data, faults["late"])
        if loses:
            self.close_connection = True
            return
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self._answer(answer.status, answer.getheaders(), data, length)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815

    def _answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, length: str | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in _DROPPED:
                self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _note(self, status: int) -> None:
        condition = self.headers.get("If-None-Match", "")
        line = f"{time.time():.3f}\t{self.command}\t{self.path}\t{condition}\t{status}\n"
        with self.noting, (self.folder / "requests").open("a", encoding="utf-8") as file:
            file.write(line)

    def log_message(self, *_: object) -> None: ...


def _refusal(status: int) -> bytes:
    code = {503: "SlowDown", 429: "TooManyRequests", 403: "AccessDenied"}.get(status, "Error")
    return f"<Error><Code>{code}</Code><Message>{KEY}</Message></Error>".encode()


def _without_the_young(listing: bytes, age: float) -> bytes:
    """Leave the objects out that were written less than `age` seconds ago."""
    before = datetime.now(UTC).timestamp() - age

    def kept(found: re.Match[bytes]) -> bytes:
        modified = _MODIFIED.search(found[0])
        assert modified is not None
        return (
            found[0] if datetime.fromisoformat(modified[1].decode()).timestamp() < before else b""
        )

    shown = _CONTENTS.sub(kept, listing)
    count = len(_CONTENTS.findall(shown))
    return re.sub(rb"<KeyCount>\d+</KeyCount>", b"<KeyCount>%d</KeyCount>" % count, shown)


def _serve(folder: str) -> None:
    _Front.folder = Path(folder)
    server = ThreadingHTTPServer(("0.0.0.0", PORT), _Front)
    server.daemon_threads = True
    server.serve_forever(0.1)


if __name__ == "__main__":
    if sys.argv[1] == "look":
        _look(sys.argv[2])
    else:
        _serve(sys.argv[1])
