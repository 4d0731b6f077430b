"""Feeds: the growing files, folders, sockets and queues from which a simulated world reads.

A feed brings the rows of one partition as simulated time passes. Files and folders are real ones,
in a folder of the run's own, so that the connectors of the live runtime read them; a socket is
simulated below its connector; a queue has a connector of its own, whose offsets have gaps.
What a feed does is drawn when it is made, so it does the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, Self

import msgspec
import numpy as np

from weir.errors import RunError
from weir.files.chunks import Chunk
from weir.ingress.connectors.connector import Connector, Endless, Lines
from weir.ingress.connectors.folder import GrowingFolder
from weir.ingress.connectors.tail import TailedFile
from weir.ingress.connectors.tcp import LineSocket, open_socket
from weir.ingress.source_signals import (
    Accept,
    Accepted,
    Finding,
    Finished,
    IngressRecord,
    Quiet,
    Rows,
)
from weir.plan.operators import Source
from weir.simulator.timeline import Timeline


@dataclass(frozen=True, slots=True)
class FedRow:
    """A row as a line of JSON, and the simulated second at which it comes."""

    at: float
    text: bytes


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """A row with the offset and the line that a run over the log gives it."""

    offset: int
    line: int
    text: bytes


class Feed(Protocol):
    """A feed brings the rows of one partition; see the module's docstring."""

    def connector(self, source: Source, folder: str) -> Connector:
        """Make the connector that reads the partition; files lie in this folder."""
        ...

    def begin(self, folder: str, time: Timeline) -> None:
        """Bring the rows from now on."""
        ...

    def logged(self, records: Sequence[IngressRecord]) -> list[LoggedRow]:
        """List the rows that a run over a log with these records reads."""
        ...


def _numbered(texts: Sequence[bytes], first: int = 0) -> list[LoggedRow]:
    return [LoggedRow(first + i, i + 1, text) for i, text in enumerate(texts)]


class TailFeed:
    """A file that appears, grows by whole and by torn lines, and is declared to be at its end."""

    def __init__(
        self, name: str, rows: Sequence[FedRow], ends: float, rng: np.random.Generator
    ) -> None:
        self._name, self._rows, self._ends = name, rows, ends
        self._pieces: list[tuple[float, bytes]] = []
        for row, following in zip(rows, [*rows[1:], FedRow(ends, b"")], strict=False):
            cut = int(rng.integers(0, len(row.text))) if rng.random() < 0.3 else 0
            later = row.at + float(rng.random()) * (following.at - row.at)
            self._pieces += [(row.at, row.text[: cut or None])]
            self._pieces += [(later, row.text[cut:])] if cut else []

    def connector(self, source: Source, folder: str) -> Connector:
        return TailedFile(source, self._name, folder)

    def begin(self, folder: str, time: Timeline) -> None:
        path = Path(folder, self._name)

        def grow(piece: bytes) -> None:
            with path.open("ab") as file:
                file.write(piece)

        for at, piece in self._pieces:
            time.after(at, partial(grow, piece))
        time.after(self._ends, lambda: grow(b""))
        time.after(self._ends, Path(f"{path}.end").touch)

    def logged(self, records: Sequence[IngressRecord]) -> list[LoggedRow]:
        return _numbered([row.text for row in self._rows])


class FolderFeed:
    """A folder in which files appear, whole, in any order of names."""

    def __init__(
        self, name: str, rows: Sequence[FedRow], ends: float, rng: np.random.Generator
    ) -> None:
        self._name, self._ends = name, ends
        self._files: dict[str, tuple[float, list[bytes]]] = {}
        first = 0
        while first < len(rows):
            stop = first + int(rng.integers(1, 9))
            part = rows[first:stop]
            file = f"{rng.integers(0, 1000):03}-{first}.jsonl"
            self._files[file] = (part[-1].at, [row.text for row in part])
            first = stop

    def connector(self, source: Source, folder: str) -> Connector:
        Path(folder, self._name).mkdir(exist_ok=True)
        return GrowingFolder(source, self._name, folder)

    def begin(self, folder: str, time: Timeline) -> None:
        files = Path(folder, self._name)

        def appear(file: str, lines: Sequence[bytes]) -> None:
            (files / f".{file}").write_bytes(b"".join(lines))
            (files / f".{file}").rename(files / file)

        for file, (at, lines) in self._files.items():
            time.after(at, partial(appear, file, lines))
        time.after(self._ends, (files / ".end").touch)

    def logged(self, records: Sequence[IngressRecord]) -> list[LoggedRow]:
        rows: list[LoggedRow] = []
        files = [record.file for record in records if record.file]
        if sorted(files) != sorted(self._files):
            raise RunError(f"the log has the files {files}, wanted {sorted(self._files)}")
        for file in files:
            rows += _numbered(self._files[file][1], len(rows))
        return rows


class SocketFeed:
    """A peer that sends lines to whoever connected last.

    With `acks` it goes on after what is durable, and closes when all of it is; else it sends each
    line once, whoever is there, and what was under way is lost with its reader."""

    def __init__(
        self, number: int, rows: Sequence[FedRow], ends: float, rng: np.random.Generator
    ) -> None:
        self._rows, self._ends = rows, ends
        self._acks = bool(rng.random() < 0.7)
        options = "&acks=yes" if self._acks else ""
        self._name = f"tcp://simulated:{number + 1}?until=eof{options}"
        self._sizes = rng.integers(1, 120, 64).tolist()
        self._time: Timeline | None = None
        self._peer: _Peer | None = None
        self.sent = 0

    def connector(self, source: Source, folder: str) -> Connector:
        return open_socket(replace(source, path=self._name), self._connect)

    def begin(self, folder: str, time: Timeline) -> None:
        self._time, self._peer, self.sent = time, None, 0

    def _connect(self, host: str, port: int) -> LineSocket:
        if self._peer is not None:
            self._peer.broken = True
        self._peer = _Peer(self)
        return self._peer

    def piece(self, acked: int | None) -> bytes:
        """Return what is sent next to a reader that has said that `acked` rows are durable (None:
        it has said nothing yet); empty: the end."""
        assert self._time is not None
        if self._acks and acked is None:
            raise TimeoutError
        due = sum(row.at <= self._time.now for row in self._rows)
        if self.sent < due:
            self.sent += 1
            return self._rows[self.sent - 1].text
        over = due == len(self._rows) and self._time.now >= self._ends
        if over and (not self._acks or acked == len(self._rows)):
            return b""
        raise TimeoutError

    def size(self, number: int) -> int:
        return int(self._sizes[number % len(self._sizes)])

    def logged(self, records: Sequence[IngressRecord]) -> list[LoggedRow]:
        rows: list[LoggedRow] = []
        for record in records:
            if record.lines and record.offset != len(rows):
                raise RunError(f"a record of {self._name} is at {record.offset}, not {len(rows)}")
            rows += [
                LoggedRow(len(rows) + i, len(rows) + i + 1, text)
                for i, text in enumerate(record.lines.splitlines(keepends=True))
            ]
        logged, sent = [row.text for row in rows], [row.text for row in self._rows]
        if logged != sent if self._acks else not set(logged) <= set(sent):
            raise RunError(f"{len(logged)} rows of {self._name} are logged, {len(sent)} were sent")
        return rows


class _Peer:
    """One connection to the feed, as its connector sees it."""

    def __init__(self, feed: SocketFeed) -> None:
        self._feed, self._left = feed, b""
        self._acked: int | None = None
        self.broken = False
        self._pieces = 0

    def recv(self, most: int, /) -> bytes:
        if self.broken:
            raise ConnectionResetError
        if not self._left:
            self._left = self._feed.piece(self._acked)
        self._pieces += 1
        size = min(most, self._feed.size(self._pieces))
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def sendall(self, data: bytes, /) -> None:
        if self.broken:
            raise ConnectionResetError
        if self._acked is None:
            self._feed.sent = int(data)
        self._acked = int(data)

    def close(self) -> None:
        self.broken = True


class QueueFeed:
    """A queue whose rows can be read again, and whose offsets have gaps."""

    def __init__(
        self, name: str, rows: Sequence[FedRow], ends: float, rng: np.random.Generator
    ) -> None:
        self.name, self.rows, self._ends = name, rows, ends
        self.offsets = np.cumsum(rng.integers(1, 4, len(rows))).tolist()
        self._time: Timeline | None = None

    def connector(self, source: Source, folder: str) -> Connector:
        return SimulatedQueue(source, self.name, self)

    def begin(self, folder: str, time: Timeline) -> None:
        self._time = time

    @property
    def arrived(self) -> int:
        """How many rows have come by now."""
        assert self._time is not None
        return sum(row.at <= self._time.now for row in self.rows)

    @property
    def is_over(self) -> bool:
        assert self._time is not None
        return self._time.now >= self._ends

    def logged(self, records: Sequence[IngressRecord]) -> list[LoggedRow]:
        return [
            LoggedRow(offset, number + 1, row.text)
            for number, (offset, row) in enumerate(zip(self.offsets, self.rows, strict=True))
        ]


@dataclass(frozen=True, slots=True)
class SimulatedQueue(Endless):
    """The connector of a `QueueFeed`."""

    source: Source
    name: str
    feed: QueueFeed
    has_log = True
    has_free_rows = True
    local_files = None

    def rooted(self, root: str) -> Self:
        return self

    def open(self, state: bytes | None, start: int) -> QueueReading:
        return QueueReading(self, 0 if state is None else _position.decode(state), start)


_position = msgspec.msgpack.Decoder(int)


class QueueReading:
    """One reading of a queue; its state is how many rows it has read."""

    def __init__(self, of: SimulatedQueue, position: int, start: int) -> None:
        self._of, self._feed, self._position, self._start = of, of.feed, position, start
        self.offset = self._feed.offsets[position - 1] + 1 if position else 0

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        offsets, stop = self._feed.offsets, self._feed.arrived
        if until is not None:
            stop = min(stop, sum(offset < until for offset in offsets))
        for chunk in self._chunks(min(stop, self._position + most)):
            return Rows(chunk)
        if until is not None:
            self.offset = until
        elif self._position == len(offsets) and self._feed.is_over:
            return Finished()
        return Quiet(self.offset, 0.02)

    def accept(self, accept: Accept) -> Accepted:
        return Accepted(self.offset, msgspec.msgpack.encode(self._position))

    def close(self) -> None:
        pass

    def _chunks(self, stop: int) -> Iterator[Chunk]:
        """Read the rows up to a position, without those whose offset lies before the start."""
        first, self._position = self._position, max(stop, self._position)
        for position in range(first, self._position):
            self.offset = self._feed.offsets[position] + 1
        kept = [i for i in range(first, self._position) if self._feed.offsets[i] >= self._start]
        if not kept:
            return
        lines = Lines(self._of.source, self._of.name, 0, offset=kept[0], line=kept[0] + 1)
        for text_chunk in lines.text_chunks(
            b"".join(self._feed.rows[i].text for i in kept), len(kept)
        ):
            chunk = lines.chunk(text_chunk)
            assert chunk is not None
            offsets = np.array([self._feed.offsets[i] for i in kept])
            state = msgspec.msgpack.encode(self._position)
            yield replace(chunk, offsets=offsets, stop=self.offset, resume=state)
