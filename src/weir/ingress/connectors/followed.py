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

import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec

from weir.errors import InputError
from weir.files.chunks import Chunk
from weir.files.framing import Framer
from weir.files.readers import open_partition
from weir.ingress.connectors.tailed import TailedFile
from weir.ingress.following import FOLDER_POLL, Clock, Endless, Followed, Lines, Stopped, claiming
from weir.ingress.ingress_log import IngressLog, IngressRecord
from weir.ingress.unchanged import check_not_shorter, gone, marked_chunks
from weir.plan.operators import Source

RECONNECT = 0.2


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


class Connection(Protocol):
    """What is used of a socket."""

    def recv(self, most: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...


@dataclass(frozen=True, slots=True)
class SocketLines(Endless):
    """JSON lines from a socket that this side connects to."""

    source: Source
    name: str

    def follow(self, size: int, start: int, log: IngressLog, stopped: Stopped) -> Iterator[Chunk]:
        at = log.start
        lines = Lines(self.source, self.name, start, offset=at.offset, line=at.line)
        clock = Clock(self.source)
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
        self, lines: Lines, record: IngressRecord, size: int, start: int, log: IngressLog
    ) -> Iterator[Chunk]:
        place = log.place(lines.offset, lines.line)
        if record.lines:
            for chunk in lines.chunks(record.lines, size):
                yield replace(chunk, place=place)
        if record.claim is not None and record.offset >= start:
            yield claiming(self.source, record.offset, record.claim, place)

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
                    yield from self.received_by(conn, stopped, durable if acks else None)
            except OSError:
                # Nobody listens, or the other side went away: it may come (again).
                time.sleep(RECONNECT)
                yield b""
                continue
            if ends:
                yield None
                return

    def received_by(
        self, conn: Connection, stopped: Stopped, durable: Callable[[], int] | None
    ) -> Iterator[bytes]:
        """Whole lines of one connection; of one beyond the limit, as much as shows that it is."""
        framer, told = Framer(self.source.options.max_record), -1
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
                if durable is None:  # who hears of what is durable sends the line again
                    for block in framer.end():
                        yield block.data + b"\n"
                return
            for block in framer.feed(data):
                yield block.data


@dataclass(frozen=True, slots=True)
class GrowingFolder(Endless):
    """A folder in which whole files appear (are renamed to); one partition."""

    source: Source
    name: str
    root: str = ""

    def follow(self, size: int, start: int, log: IngressLog, stopped: Stopped) -> Iterator[Chunk]:
        found = list(log.start.files)
        seen = set(found)
        clock = Clock(self.source)
        offset: int | None = log.start.offset
        while not stopped():
            record = log.read()
            if record is not None and offset is not None and record.offset != offset:
                raise gone("has other rows now", os.path.join(self.name, found[-1]), record.offset)
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
            if place.number == log.start.number:
                place = replace(place, read=log.start.read, digest=log.start.digest)
            if record.claim is not None:
                if record.offset >= start:
                    yield claiming(self.source, record.offset, record.claim, place)
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
                raise gone("is gone", path, rest)
            partition = open_partition(self.source, path, root=self.root)
            for chunk in marked_chunks(partition, size, rest, place):
                yield _shifted(chunk, record.offset)
                offset = record.offset + chunk.stop
            if offset is None:
                check_not_shorter(partition, (_end_of_last(log) or start) - record.offset)

    def _next(self, seen: set[str], offset: int, clock: Clock) -> IngressRecord | None:
        found = sorted(os.listdir(os.path.join(self.root, self.name)), key=os.fsencode)
        new = next((n for n in found if n not in seen and n[0] not in "._"), None)
        if new is not None:
            self._check_file(new)
            return IngressRecord(offset, file=new)
        if ".end" in found:
            return IngressRecord(offset, ends=True)
        claim = clock.claim()
        return None if claim is None else IngressRecord(offset, claim=claim)

    def _check_file(self, name: str) -> None:
        """What has appeared can be logged and read to an end: a pipe or a device cannot."""
        path = os.path.join(self.name, name)
        if not os.path.isfile(os.path.join(self.root, path)):
            raise InputError("it is no file; take it out of the folder", file=path)
        try:
            name.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            raise InputError("its name is no UTF-8; rename it", file=shown) from None


def _end_of_last(log: IngressLog) -> int:
    """Where the file that was logged last ended, if the log says so; else 0."""
    following = log.peek()
    return 0 if following is None else following.offset


def _shifted(chunk: Chunk, base: int) -> Chunk:
    """The chunk with offsets that go on behind the files before."""
    bad = tuple(replace(row, offset=row.offset + base) for row in chunk.bad)
    return replace(chunk, offsets=chunk.offsets + base, stop=chunk.stop + base, bad=bad)
