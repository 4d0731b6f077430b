"""`tcp://HOST:PORT` brings JSON lines from a socket that this side connects to.

Rules
1. Lines that came are offered for the log; rows of them are given when they are accepted.
2. A connection that breaks, or cannot be made, is made again, for as long as that takes; until
   there is one that brings something or is silent, `Quiet` says why. One whose other side has not
   answered for some time is broken (`_WATCH`). With `?until=eof` the partition ends when the other
   side closes; that is logged too.
3. With `?acks=yes` the other side learns, on connecting and then continually, how many rows are
   durable, so that it can continue there and nothing is lost or sent twice. What came and was not
   logged before another instance logged rows is dropped, and asked for again; without acks it
   is logged after theirs.
4. What follows the last line end when the other side closes is a row, unless it will be sent
   again: with `?acks=yes` and without `?until=eof`.
5. A byte order mark at the beginning of a connection is not part of its text.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self
from urllib.parse import parse_qsl, urlsplit

import msgspec

from weir.errors import PlanError
from weir.files.record_frames import BYTE_ORDER_MARK, Framer, TextChunk
from weir.ingress.connectors.connector import Endless, Lines
from weir.ingress.source_integrity import gone
from weir.ingress.source_signals import Accept, Accepted, Finding, IngressRecord, Offer, Quiet, Rows
from weir.plan.operators import Source

RECONNECT = 0.2
"""Seconds between two tries to connect, and that one look at a silent connection takes."""
CONNECT_WITHIN = 3.0
"""Seconds in which a connection is made, or given up: ways to the other side of the world, and one
lost packet, take longer than a look."""
_WATCH = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPALIVE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 25_000,
}
"""The options by which the system gives a connection up whose other side has not answered for 25
seconds, whether anything was sent or not; systems have some of them each."""
_OPTIONS = {"until": ("eof",), "acks": ("yes", "no")}
"""The options of a URL, and what each may be."""


class LineSocket(Protocol):
    """Says what is used of a socket; `recv` raises TimeoutError when nothing comes."""

    def recv(self, most: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


def connect(host: str, port: int) -> LineSocket:
    """Connect to the other side; raise OSError when nobody listens."""
    conn = socket.create_connection((host, port), timeout=CONNECT_WITHIN)
    try:
        conn.settimeout(RECONNECT)
        _check_not_itself(conn)
        _watch(conn)
    except OSError:
        conn.close()
        raise
    return conn


def _check_not_itself(conn: socket.socket) -> None:
    """Raise ConnectionRefusedError for a socket that is connected to itself: the system may choose
    the very port that is called, if it is a local one and nobody listens there."""
    if conn.getsockname() == conn.getpeername():
        # Closed the ordinary way, it would keep the port from its listener for a minute.
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def _watch(conn: socket.socket) -> None:
    """Have the system notice when the other side is gone without a word."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _WATCH.items():
        if hasattr(socket, name):
            conn.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class SocketState(msgspec.Struct, frozen=True, array_like=True):
    """Says where a reading of a socket stands: before the row and the line of these numbers."""

    offset: int = 0
    line: int = 1


_decoder = msgspec.msgpack.Decoder(SocketState)


@dataclass(frozen=True, slots=True)
class SocketLines(Endless):
    """Names a socket that brings JSON lines."""

    source: Source
    name: str
    host: str
    port: int
    ends: bool
    """Whether it ends when the other side closes."""
    acks: bool
    """Whether the other side learns what is durable."""
    connect: Callable[[str, int], LineSocket]
    has_log = True
    has_free_rows = False
    local_files = None

    def rooted(self, root: str) -> Self:
        return self

    def open(self, state: bytes | None, start: int) -> SocketReading:
        return SocketReading(
            self, SocketState() if state is None else _decoder.decode(state), start
        )


class SocketReading:
    """Reads the socket once, by the module's rules."""

    def __init__(self, of: SocketLines, at: SocketState, start: int) -> None:
        self._of = of
        self._lines = Lines(of.source, of.name, start, offset=at.offset, line=at.line)
        self._at = at
        """Where the record begins whose rows are given."""
        self._logged = b""
        self._text_chunks: Iterator[TextChunk] = iter(())
        """Lines that are in the log, and what of them is not given yet."""
        self._conn: LineSocket | None = None
        self._framer = Framer(of.source.options.max_record)
        self._begin: bytes | None = b""
        """What came of a connection that may still begin with a byte order mark; None: no more."""
        self._broken: str | None = None
        """Why there is no connection; None: there is one, or none was tried yet."""
        self._acked = -1
        """How many rows the other side knows to be durable."""
        self._came: list[IngressRecord] = []
        """What came and is not in the log yet; its offset is not known before."""

    @property
    def offset(self) -> int:
        return self._lines.offset

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        rows = self._rows(most)
        if rows is not None:
            return rows
        if until is not None:
            if self.offset != until:
                raise gone("has other rows in the log", self._of.name, until)
            return Quiet(self.offset, 0.0)
        pause, heard = (0.0, True) if self._came else self._receive()
        if self._came:
            return Offer(msgspec.structs.replace(self._came[0], offset=self.offset))
        return Quiet(self.offset, pause, heard, why=self._broken)

    def accept(self, accept: Accept) -> Accepted:
        record = accept.record
        if accept.own and record.claim is None:
            self._came.pop(0)
        elif record.lines and self._of.acks:
            self._came.clear()
            self.close()
        self._at = SocketState(self._lines.offset, self._lines.line)
        self._logged = record.lines
        return Accepted(self.offset, msgspec.msgpack.encode(self._at))

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def _rows(self, most: int) -> Rows | None:
        """Give the next rows of what was accepted, if any are left."""
        if self._logged:
            self._text_chunks, self._logged = self._lines.text_chunks(self._logged, most), b""
        for text_chunk in self._text_chunks:
            chunk = self._lines.chunk(text_chunk)
            if chunk is not None:
                return Rows(replace(chunk, resume=msgspec.msgpack.encode(self._at)))
        return None

    # --- the connection ----------------------------------------------------------------------

    def _receive(self) -> tuple[float, bool]:
        """Take in what comes; return the seconds after which to look again, and whether anything
        came."""
        try:
            conn = self._connected()
            self._tell_durable(conn)
            data = _received(conn)
        except OSError as error:
            # Nobody listens, or the other side went away: it may come (again).
            self.close()
            address = f"{self._of.host}:{self._of.port}"
            self._broken = f"no connection to {address}: {error.strerror or error}"
            return RECONNECT, False
        if data != b"":
            self._broken = None
        if data is None:
            return 0.0, False
        text_chunks = self._framer.feed(self._text(data)) if data else self._closed()
        self._came += [IngressRecord(0, text_chunk.data) for text_chunk in text_chunks]
        if data:
            return 0.0, True
        if self._of.ends:
            self._came.append(IngressRecord(0, ends=True))
        return RECONNECT, False

    def _connected(self) -> LineSocket:
        if self._conn is None:
            self._conn = self._of.connect(self._of.host, self._of.port)
            self._framer, self._acked = Framer(self._of.source.options.max_record), -1
            self._begin = b""
        return self._conn

    def _tell_durable(self, conn: LineSocket) -> None:
        if self._of.acks and self.offset != self._acked:
            self._acked = self.offset
            conn.sendall(f"{self._acked}\n".encode())

    def _text(self, data: bytes) -> bytes:
        """Return the text of what came, without the byte order mark that it may begin with."""
        if self._begin is None:
            return data
        self._begin += data
        if len(self._begin) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(self._begin):
            return b""
        text, self._begin = self._begin.removeprefix(BYTE_ORDER_MARK), None
        return text

    def _closed(self) -> list[TextChunk]:
        """Return what is left when the other side has closed, by rule 4."""
        self.close()
        self._framer.feed(self._begin or b"")
        is_sent_again = self._of.acks and not self._of.ends
        left = [] if is_sent_again else self._framer.end()
        return [replace(text_chunk, data=text_chunk.data + b"\n") for text_chunk in left]


def _received(conn: LineSocket) -> bytes | None:
    """Return what has come; empty when the other side has closed, None when nothing came. A side
    that is gone without a word (ETIMEDOUT) is an OSError, once; then it looks closed."""
    try:
        return conn.recv(1 << 20)
    except TimeoutError as error:
        if error.errno == errno.ETIMEDOUT:
            raise
        return None


def open_socket(source: Source, connect: Callable[[str, int], LineSocket] = connect) -> SocketLines:
    """Make the partition of a tcp:// URL."""
    host, port, query = _address(source.path)
    pairs = parse_qsl(query, keep_blank_values=True)
    for number, (key, value) in enumerate(pairs):
        if value not in _OPTIONS.get(key, ()) or key in dict(pairs[:number]):
            hint = "tcp:// knows until=eof, acks=yes and acks=no, each once"
            raise PlanError(f"'{source.path}': invalid option {key}={value}", hint=hint)
    options = dict(pairs)
    ends, acks = "until" in options, options.get("acks") == "yes"
    return SocketLines(
        source=source, name=source.path, host=host, port=port, ends=ends, acks=acks, connect=connect
    )


def _address(path: str) -> tuple[str, int, str]:
    """Read host, port and options from a URL; PlanError if it is not the address of a socket."""
    hint = "as in tcp://localhost:9000, with a port from 1 to 65535"
    wrong = PlanError(f"invalid address of a socket '{path}'", hint=hint)
    try:
        url = urlsplit(path)
        host, port = url.hostname or "", url.port
        host.encode("idna")  # as `connect` does
    except ValueError:
        raise wrong from None
    if not host or not port or url.username is not None or url.path.strip("/") or url.fragment:
        raise wrong
    return host, port, url.query
