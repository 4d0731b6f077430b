"""Sources without an end, which only a live run can read: they are followed.

    tail://PATH      a file of JSON lines that grows; it ends when a file PATH.end is there
    PATH/            a folder in which files appear, each whole; one partition, in the order found
    tcp://HOST:PORT  JSON lines from a socket; its rows are logged before anybody sees them
                     (`?until=eof`: the partition ends when the other side closes)

With `idle`, a partition that is silent for so long claims the clock's time less `idle`; the claim
is logged first. Everything else can be read again at the same offset.
"""

from __future__ import annotations

import io
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable
from urllib.parse import parse_qs, urlsplit

import msgspec
import numpy as np
import pyarrow as pa

from weir.errors import InputError, PlanError
from weir.io.chunks import BLOCK_BYTES, CHUNK_ROWS, Chunk
from weir.io.ingress_log import IngressLog, IngressRecord
from weir.io.jsonl import JsonLines
from weir.io.readers import open_partition
from weir.io.texts import read_blocks
from weir.plan.nodes import Source

POLL = 0.001
FOLDER_POLL = 0.05
RECONNECT = 0.2

Stopped = Callable[[], bool]


@runtime_checkable
class Followed(Protocol):
    """A partition that a live run follows."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]: ...

    def follow(
        self, size: int, start: int, log: IngressLog, stopped: Stopped
    ) -> Iterator[Chunk]: ...


def open_followed(source: Source, directory: str) -> Followed | None:
    """The partition behind a path that has no end; None for others."""
    path = source.path
    if path.startswith("tail://"):
        return TailedFile(source, os.path.join(directory, path.removeprefix("tail://")))
    if path.startswith("tcp://"):
        return SocketLines(source, path)
    if path.endswith("/"):
        return GrowingFolder(source, os.path.join(directory, path))
    return None


class _Endless:
    """What followed partitions share. Relative names start at `root`, as of a `DataFile`."""

    name: str
    size = 0

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        hint = "run it with --runner live"
        raise PlanError(f"'{self.name}' has no end", hint=hint)


class _Lines:
    """Text to chunks, with offsets and line numbers that go on."""

    def __init__(self, source: Source, name: str, start: int) -> None:
        self._file = JsonLines(name, source.declared)
        self._read = self._file.block_reader()
        self._start = start
        self.offset = 0
        self._line = 1

    def chunks(self, data: bytes, size: int) -> Iterator[Chunk]:
        """The chunks of whole lines; rows before the start are counted and left out."""
        for block in read_blocks(io.BytesIO(data), size, line=self._line):
            chunk = self._read(block, self.offset, self._start)
            self.offset = chunk.stop
            self._line = int(block.lines[-1]) + 1
            if len(chunk.offsets) or len(chunk.cti_times) or chunk.bad:
                yield chunk


class _Clock:
    """When a silent partition claims time."""

    def __init__(self, source: Source) -> None:
        idle = source.options.idle
        self._idle = None if idle is None else idle / 1e6
        self._heard = time.monotonic()

    def heard(self) -> None:
        self._heard = time.monotonic()

    def claim(self) -> int | None:
        """The time to claim now, if any."""
        if self._idle is None or time.monotonic() - self._heard < self._idle:
            return None
        self.heard()
        return int((time.time() - self._idle) * 1e6)


def _claiming(source: Source, offset: int, claim: int) -> Chunk:
    """A chunk without rows that claims a time."""
    none = np.empty(0, dtype=np.int64)
    rows = pa.RecordBatch.from_pylist([], schema=pa.schema(list(source.declared)))
    return Chunk(rows, none, offset, none, np.array([claim]), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class TailedFile(_Endless):
    """A file of JSON lines that grows."""

    source: Source
    name: str
    root: str = ""

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.name)

    def follow(self, size: int, start: int, log: IngressLog, stopped: Stopped) -> Iterator[Chunk]:
        lines = _Lines(self.source, self.name, start)
        clock = _Clock(self.source)
        claims = deque(iter(log.read, None))
        with self._opened(stopped) as file:
            rest = b""
            while not stopped():
                data = file.read(BLOCK_BYTES)
                if not data:
                    if not claims and os.path.exists(f"{self.path}.end") and _at_end(file):
                        return
                    claim = clock.claim() if not claims else None
                    if claim is not None and log.append(IngressRecord(lines.offset, claim=claim)):
                        yield _claiming(self.source, lines.offset, claim)
                    yield from self._due(claims, lines.offset, start)
                    time.sleep(POLL)
                    continue
                clock.heard()
                whole, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    yield from self._chunks(lines, whole + newline, size, claims, start)

    def _chunks(
        self, lines: _Lines, data: bytes, size: int, claims: deque[IngressRecord], start: int
    ) -> Iterator[Chunk]:
        """Rows and the logged claims between them, where they stood."""
        while data:
            yield from self._due(claims, lines.offset, start)
            room = claims[0].offset - lines.offset if claims else len(data)
            cut = _after_lines(data, room)
            yield from lines.chunks(data[:cut], size)
            data = data[cut:]

    def _due(self, claims: deque[IngressRecord], offset: int, start: int) -> Iterator[Chunk]:
        while claims and claims[0].offset <= offset:
            record = claims.popleft()
            if record.claim is not None and record.offset >= start:
                yield _claiming(self.source, record.offset, record.claim)

    def _opened(self, stopped: Stopped) -> io.FileIO:
        while not os.path.exists(self.path) and not stopped():
            time.sleep(FOLDER_POLL)
        return io.FileIO(self.path)


def _at_end(file: io.FileIO) -> bool:
    """Whether all is read: what was written before the end was declared is there by now."""
    return file.tell() == os.fstat(file.fileno()).st_size


def _after_lines(data: bytes, count: int) -> int:
    """Where the first `count` lines end; a line holds at most one row."""
    if data.count(b"\n") <= count:
        return len(data)
    place = 0
    for _ in range(count):
        place = data.index(b"\n", place) + 1
    return place


@dataclass(frozen=True, slots=True)
class SocketLines(_Endless):
    """JSON lines from a socket that this side connects to."""

    source: Source
    name: str

    def follow(self, size: int, start: int, log: IngressLog, stopped: Stopped) -> Iterator[Chunk]:
        lines = _Lines(self.source, self.name, start)
        clock = _Clock(self.source)
        while (record := log.read()) is not None:
            yield from self._chunks(lines, record, size, start)
            if record.ends:
                return
        for received in self._received(stopped):
            claim = clock.claim() if received == b"" else None
            if received == b"" and claim is None:
                continue
            clock.heard()
            ends = received is None
            new = IngressRecord(lines.offset, received or b"", claim, ends=ends)
            while not log.append(new):
                other = log.read()
                assert other is not None
                yield from self._chunks(lines, other, size, start)
                new = msgspec.structs.replace(new, offset=lines.offset)
            yield from self._chunks(lines, new, size, start)
            if ends:
                return

    def _chunks(
        self, lines: _Lines, record: IngressRecord, size: int, start: int
    ) -> Iterator[Chunk]:
        if record.lines:
            yield from lines.chunks(record.lines, size)
        if record.claim is not None and record.offset >= start:
            yield _claiming(self.source, record.offset, record.claim)

    def _received(self, stopped: Stopped) -> Iterator[bytes | None]:
        """Whole lines as they come; nothing now and then; None at the end, if there is one."""
        url = urlsplit(self.name)
        if url.hostname is None or url.port is None:
            raise InputError("wanted tcp://HOST:PORT", file=self.name)
        ends = parse_qs(url.query).get("until") == ["eof"]
        while not stopped():
            try:
                with socket.create_connection((url.hostname, url.port), timeout=RECONNECT) as conn:
                    yield from _lines_of(conn, stopped)
            except OSError:
                # Nobody listens, or the other side went away: it may come (again).
                time.sleep(RECONNECT)
                yield b""
                continue
            if ends:
                yield None
                return


def _lines_of(conn: socket.socket, stopped: Stopped) -> Iterator[bytes]:
    rest = b""
    while not stopped():
        try:
            data = conn.recv(1 << 20)
        except TimeoutError:
            yield b""
            continue
        if not data:
            if rest:
                yield rest + b"\n"
            return
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if newline:
            yield whole + newline


@dataclass(frozen=True, slots=True)
class GrowingFolder(_Endless):
    """A folder in which whole files appear (are renamed to); one partition."""

    source: Source
    name: str
    root: str = ""

    def follow(self, size: int, start: int, log: IngressLog, stopped: Stopped) -> Iterator[Chunk]:
        seen: set[str] = set()
        clock = _Clock(self.source)
        offset = 0
        while not stopped():
            record = log.read()
            if record is None:
                record = self._next(seen, offset, clock)
                if record is None:
                    time.sleep(FOLDER_POLL)
                    continue
                if not log.append(record):
                    continue
            if record.claim is not None:
                if record.offset >= start:
                    yield _claiming(self.source, record.offset, record.claim)
                continue
            seen.add(record.file)
            clock.heard()
            path = os.path.join(self.name, record.file)
            # A file that gives no chunk lies before the start: the next record says where it ended,
            # and if there is none, it ended at the start.
            offset = max(record.offset, start)
            rest = max(start - record.offset, 0)
            for chunk in open_partition(self.source, path, root=self.root).chunks(size, rest):
                yield _shifted(chunk, record.offset)
                offset = record.offset + chunk.stop

    def _next(self, seen: set[str], offset: int, clock: _Clock) -> IngressRecord | None:
        found = sorted(os.listdir(os.path.join(self.root, self.name)), key=os.fsencode)
        new = next((n for n in found if n not in seen and n[0] not in "._"), None)
        if new is not None:
            return IngressRecord(offset, file=new)
        claim = clock.claim()
        return None if claim is None else IngressRecord(offset, claim=claim)


def _shifted(chunk: Chunk, base: int) -> Chunk:
    """The chunk with offsets that go on behind the files before."""
    bad = tuple(replace(row, offset=row.offset + base) for row in chunk.bad)
    return replace(chunk, offsets=chunk.offsets + base, stop=chunk.stop + base, bad=bad)
