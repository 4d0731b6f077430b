"""`tcp://HOST:PORT` reads JSON lines from a socket; this side connects.

Rules
1. Received lines are offered for the log; their rows are given after the lines are accepted.
2. If a connection fails or breaks, this side reconnects until it succeeds; until then `Quiet` says
   why. A connection whose other side does not answer for some time is broken (`_WATCH`). With
   `?until=eof` the partition ends when the other side closes, and the end is logged too.
3. With `?acks=yes` this side sends the number of durable rows, on connecting and whenever it grows.
   The other side can continue there, so nothing is lost or sent twice. If another instance logs
   rows first, lines that this one has received but not logged are dropped and requested again;
   without acks they are logged after the other instance's rows.
4. When the other side closes, the text after the last line end is a row, unless it will be sent
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
"""The pause between two attempts to connect, and the time of one look at a silent connection, in
seconds."""
CONNECT_WITHIN = 3.0
"""The time limit for connecting, in seconds; long enough for the other side of the world and for
one lost packet."""
_WATCH = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPALIVE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 25_000,
}
"""Socket options with which the system closes a connection whose other side has not answered for 25
seconds, whether anything was sent or not. Each system has only some of them."""
_OPTIONS = {"until": ("eof",), "acks": ("yes", "no")}
"""The options of a URL, and the allowed values of each."""


class LineSocket(Protocol):
    """The methods of a socket that are used here; `recv` raises TimeoutError when nothing comes."""

    def recv(self, most: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


def connect(host: str, port: int) -> LineSocket:
    """Connect to the other side; raise OSError if nobody listens."""
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
    """Raise ConnectionRefusedError for a socket that is connected to itself. This happens if nobody
    listens on a local port and the system chooses that very port for this side."""
    if conn.getsockname() == conn.getpeername():
        # An ordinary close would block the port for its listener for a minute.
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def _watch(conn: socket.socket) -> None:
    """Let the system detect when the other side is gone without closing the connection."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _WATCH.items():
        if hasattr(socket, name):
            conn.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class SocketState(msgspec.Struct, frozen=True, array_like=True):
    """Where a reading of a socket stands: before the row and the line with these numbers."""

    offset: int = 0
    line: int = 1


_decoder = msgspec.msgpack.Decoder(SocketState)


@dataclass(frozen=True, slots=True)
class SocketLines(Endless):
    """JSON lines from a socket."""

    source: Source
    name: str
    host: str
    port: int
    ends: bool
    """Whether the partition ends when the other side closes."""
    acks: bool
    """Whether the other side is told what is durable."""
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
        """Where the record begins whose rows are being given."""
        self._logged = b""
        self._text_chunks: Iterator[TextChunk] = iter(())
        """The logged lines, and those of them that have not been given yet."""
        self._conn: LineSocket | None = None
        self._framer = Framer(of.source.options.max_record)
        self._begin: bytes | None = b""
        """The first bytes of a connection, while they may still be a byte order mark; None after
        that."""
        self._broken: str | None = None
        """Why there is no connection; None if there is one, or none was tried yet."""
        self._acked = -1
        """The number of durable rows that was last sent to the other side."""
        self._came: list[IngressRecord] = []
        """What came and is not in the log yet; its offset is unknown until then."""

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
        """Give the next rows of the accepted lines, or None."""
        if self._logged:
            self._text_chunks, self._logged = self._lines.text_chunks(self._logged, most), b""
        for text_chunk in self._text_chunks:
            chunk = self._lines.chunk(text_chunk)
            if chunk is not None:
                return Rows(replace(chunk, resume=msgspec.msgpack.encode(self._at)))
        return None

    # --- the connection ----------------------------------------------------------------------

    def _receive(self) -> tuple[float, bool]:
        """Receive what comes; return the seconds until the next look, and whether anything came."""
        try:
            conn = self._connected()
            self._tell_durable(conn)
            data = _received(conn)
        except OSError as error:
            # Nobody listens, or the other side is gone: try again later.
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
        """Return the received text without a byte order mark at its beginning."""
        if self._begin is None:
            return data
        self._begin += data
        if len(self._begin) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(self._begin):
            return b""
        text, self._begin = self._begin.removeprefix(BYTE_ORDER_MARK), None
        return text

    def _closed(self) -> list[TextChunk]:
        """Close the connection, and return the rest of the text by rule 4."""
        self.close()
        self._framer.feed(self._begin or b"")
        is_sent_again = self._of.acks and not self._of.ends
        left = [] if is_sent_again else self._framer.end()
        return [replace(text_chunk, data=text_chunk.data + b"\n") for text_chunk in left]


def _received(conn: LineSocket) -> bytes | None:
    """Return the received bytes: empty if the other side has closed, None if nothing came. If the
    other side is gone without closing (ETIMEDOUT), raise OSError; this happens once, then it looks
    closed."""
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
    """Read host, port and options from a URL; raise PlanError if it is invalid."""
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
