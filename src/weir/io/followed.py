"""Sources without an end, which only a live run can read: they are followed.

    tail://PATH      a file of JSON lines that grows; it ends when a file PATH.end is there
    PATH/            a folder in which files appear, each whole; one partition, in the order found;
                     it ends when a file `.end` is in it
    tcp://HOST:PORT  JSON lines from a socket; its rows are logged before anybody sees them
                     (`?until=eof`: the partition ends when the other side closes; `?acks=yes`: the
                     other side is told, on connecting and then on and on, how many rows are
                     durable, so that it can go on there and nothing is lost or sent twice)

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
from weir.io.chunks import BLOCK_BYTES, CHUNK_ROWS, Chunk, Partition
from weir.io.ingress_log import IngressLog, IngressRecord, LogPlace
from weir.io.jsonl import JsonLines
from weir.io.readers import open_partition
from weir.io.texts import read_blocks
from weir.plan.nodes import Source

POLL = 0.001
SOON, SOON_POLL = 0.02, 0.0002
"""A file that grew less than `SOON` ago is looked at more often."""
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

    def __init__(
        self, source: Source, name: str, start: int, *, offset: int = 0, line: int = 1
    ) -> None:
        self._file = JsonLines(name, source.declared)
        self._read = self._file.block_reader()
        self._start = start
        self.offset, self.line = offset, line

    def chunks(self, data: bytes, size: int) -> Iterator[Chunk]:
        """The chunks of whole lines; rows before the start are counted and left out."""
        for block in read_blocks(io.BytesIO(data), size, line=self.line):
            chunk = self._read(block, self.offset, self._start)
            self.offset = chunk.stop
            self.line = int(block.lines[-1]) + 1
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


def _claiming(source: Source, offset: int, claim: int, place: LogPlace) -> Chunk:
    """A chunk without rows that claims a time."""
    none = np.empty(0, dtype=np.int64)
    rows = pa.RecordBatch.from_pylist([], schema=pa.schema(list(source.declared)))
    zero = np.zeros(1, dtype=np.int64)
    return Chunk(rows, none, offset, none, np.array([claim]), zero, place=place)


Claims = deque[tuple[IngressRecord, LogPlace]]


def _logged(log: IngressLog) -> Iterator[tuple[IngressRecord, LogPlace]]:
    """The records that are there, each with its place."""
    while (record := log.read()) is not None:
        yield record, log.place(record.offset)


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
        claims = deque(_logged(log))
        with self._opened(start, stopped) as file:
            rest = b""
            grew = 0.0
            while not stopped():
                more = os.fstat(file.fileno()).st_size - file.tell()
                data = file.read(min(BLOCK_BYTES, max(more, 0)))
                if not data and time.monotonic() < grew + SOON:
                    time.sleep(SOON_POLL)
                    continue
                if not data:
                    self._check_still_there(file, lines.offset, start)
                    if not claims and os.path.exists(f"{self.path}.end") and _at_end(file):
                        return
                    claim = clock.claim() if not claims else None
                    if claim is not None and log.append(IngressRecord(lines.offset, claim=claim)):
                        place = log.place(lines.offset)
                        yield _claiming(self.source, lines.offset, claim, place)
                    elif claim is not None:
                        claims += _logged(log)  # somebody else's claim stands there
                    yield from self._due(claims, lines.offset, start)
                    time.sleep(POLL)
                    continue
                clock.heard()
                grew = time.monotonic()
                whole, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    yield from self._chunks(lines, whole + newline, size, claims, start)

    def _chunks(
        self, lines: _Lines, data: bytes, size: int, claims: Claims, start: int
    ) -> Iterator[Chunk]:
        """Rows and the logged claims between them, where they stood."""
        while data:
            yield from self._due(claims, lines.offset, start)
            room = claims[0][0].offset - lines.offset if claims else len(data)
            cut = _after_lines(data, room)
            yield from lines.chunks(data[:cut], size)
            data = data[cut:]

    def _due(self, claims: Claims, offset: int, start: int) -> Iterator[Chunk]:
        while claims and claims[0][0].offset <= offset:
            record, place = claims.popleft()
            if record.claim is not None and record.offset >= start:
                yield _claiming(self.source, record.offset, record.claim, place)

    def _opened(self, start: int, stopped: Stopped) -> io.FileIO:
        while not os.path.exists(self.path) and not stopped():
            if start:
                raise _gone("is gone", self.name, start)
            time.sleep(FOLDER_POLL)
        return io.FileIO(self.path)

    def _check_still_there(self, file: io.FileIO, rows: int, start: int) -> None:
        """All is read that is there: is it the file that was read, and not less of it?"""
        opened = os.fstat(file.fileno())
        if opened.st_size < file.tell() or rows < start:
            raise _gone("was truncated", self.name, max(rows, start))
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            raise _gone("is gone", self.name, max(rows, start)) from None
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            raise _gone("was replaced by another file", self.name, max(rows, start))


def _gone(what: str, file: str, rows: int) -> InputError:
    """Rows that are needed again, or that came unseen, cannot be had."""
    return InputError(
        f"it {what}, and {rows} rows of it were read; put the whole file back and run again with "
        "--resume",
        file=file,
    )


def check_not_shorter(partition: Partition, start: int) -> None:
    """A partition that gave no row from `start` on has at least those before it."""
    before = next(iter(partition.chunks(1, start - 1)), None) if start else None
    if start and (before is None or before.stop < start):
        raise _gone("has fewer rows now", partition.name, start)


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
        at = log.start
        lines = _Lines(self.source, self.name, start, offset=at.offset, line=at.line)
        clock = _Clock(self.source)
        while (record := log.read()) is not None:
            yield from self._chunks(lines, record, size, start, log)
            if record.ends:
                return
        for received in self._received(stopped, lambda: lines.offset):
            claim = clock.claim() if received == b"" else None
            if received == b"" and claim is None:
                continue
            clock.heard()
            ends = received is None
            new = IngressRecord(lines.offset, received or b"", claim, ends=ends)
            while not log.append(new):
                other = log.read()
                assert other is not None
                yield from self._chunks(lines, other, size, start, log)
                new = msgspec.structs.replace(new, offset=lines.offset)
            yield from self._chunks(lines, new, size, start, log)
            if ends:
                return

    def _chunks(
        self, lines: _Lines, record: IngressRecord, size: int, start: int, log: IngressLog
    ) -> Iterator[Chunk]:
        place = log.place(lines.offset, lines.line)
        if record.lines:
            for chunk in lines.chunks(record.lines, size):
                yield replace(chunk, place=place)
        if record.claim is not None and record.offset >= start:
            yield _claiming(self.source, record.offset, record.claim, place)

    def _received(self, stopped: Stopped, durable: Callable[[], int]) -> Iterator[bytes | None]:
        """Whole lines as they come; nothing now and then; None at the end, if there is one. By
        the time that the next ones are asked for these are logged."""
        url = urlsplit(self.name)
        if url.hostname is None or url.port is None:
            raise InputError("wanted tcp://HOST:PORT", file=self.name)
        options = parse_qs(url.query)
        ends, acks = options.get("until") == ["eof"], options.get("acks") == ["yes"]
        while not stopped():
            try:
                with socket.create_connection((url.hostname, url.port), timeout=RECONNECT) as conn:
                    yield from _lines_of(conn, stopped, durable if acks else None)
            except OSError:
                # Nobody listens, or the other side went away: it may come (again).
                time.sleep(RECONNECT)
                yield b""
                continue
            if ends:
                yield None
                return


def _lines_of(
    conn: socket.socket, stopped: Stopped, durable: Callable[[], int] | None
) -> Iterator[bytes]:
    rest, told = b"", -1
    while not stopped():
        if durable is not None and durable() != told:
            told = durable()
            conn.sendall(f"{told}\n".encode())
        try:
            data = conn.recv(1 << 20)
        except TimeoutError:
            yield b""
            continue
        if not data:
            if rest and durable is None:  # who hears of what is durable sends the line again
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
        found = list(log.start.files)
        seen = set(found)
        clock = _Clock(self.source)
        offset: int | None = log.start.offset
        while not stopped():
            record = log.read()
            if record is not None and offset is not None and record.offset != offset:
                raise _gone("has other rows now", os.path.join(self.name, found[-1]), record.offset)
            if record is None:
                record = self._next(seen, offset if offset is not None else start, clock)
                if record is None:
                    time.sleep(FOLDER_POLL)
                    continue
                if not log.append(record):
                    continue
            if record.ends:
                return
            place = log.place(record.offset, found=found)
            if record.claim is not None:
                if record.offset >= start:
                    yield _claiming(self.source, record.offset, record.claim, place)
                continue
            seen.add(record.file)
            found.append(record.file)
            clock.heard()
            path = os.path.join(self.name, record.file)
            rest = max(start - record.offset, 0)
            # Where a file that lies before the start ended the next record says, and if there is
            # none, it ended at the start.
            offset = None if rest else record.offset
            if not os.path.exists(os.path.join(self.root, path)):
                if 0 < _end_of_last(log) <= start:
                    continue  # and whoever saw its rows may have taken it away
                raise _gone("is gone", path, rest)
            partition = open_partition(self.source, path, root=self.root)
            for chunk in partition.chunks(size, rest):
                yield replace(_shifted(chunk, record.offset), place=place)
                offset = record.offset + chunk.stop
            if offset is None:
                check_not_shorter(partition, (_end_of_last(log) or start) - record.offset)

    def _next(self, seen: set[str], offset: int, clock: _Clock) -> IngressRecord | None:
        found = sorted(os.listdir(os.path.join(self.root, self.name)), key=os.fsencode)
        new = next((n for n in found if n not in seen and n[0] not in "._"), None)
        if new is not None:
            return IngressRecord(offset, file=new)
        if ".end" in found:
            return IngressRecord(offset, ends=True)
        claim = clock.claim()
        return None if claim is None else IngressRecord(offset, claim=claim)


def _end_of_last(log: IngressLog) -> int:
    """Where the file that was logged last ended, if the log says so; else 0."""
    following = log.peek()
    return 0 if following is None else following.offset


def _shifted(chunk: Chunk, base: int) -> Chunk:
    """The chunk with offsets that go on behind the files before."""
    bad = tuple(replace(row, offset=row.offset + base) for row in chunk.bad)
    return replace(chunk, offsets=chunk.offsets + base, stop=chunk.stop + base, bad=bad)
