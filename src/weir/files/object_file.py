"""Reads an object of a bucket like a file: in ranges, several at a time, ahead of the reader.

A reader announces the spans that it will read, in order (of a text file everything, of a Parquet
file the needed columns). Spans are cut into pieces. A request for one piece starts requests for the
next ones, in threads, so a file that is read in order keeps several requests under way, and so do
the columns of a row group. Bytes outside the spans are requested only when they are read.

A piece is dropped after it was read to its end. If too many are held, the least recently used one
is dropped.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from weir.files.buckets import ObjectVersion, read_range

PIECE_BYTES = 1 << 22
AHEAD = 4
"""The number of pieces requested ahead."""

ByteSpan = tuple[int, int]


class ObjectFile(io.RawIOBase):
    """An object, in one `version`, as a seekable file for one thread."""

    def __init__(self, url: str, version: ObjectVersion) -> None:
        super().__init__()
        self._url, self._version = url, version
        self._position = 0
        self._pieces: Sequence[ByteSpan] = ()
        self._starts: Sequence[int] = ()
        self._held: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._done: set[int] = set()
        """The pieces that have been read to their ends."""
        self._ahead = self._most = 0
        self._pool: ThreadPoolExecutor | None = None

    def expect(
        self,
        spans: Sequence[ByteSpan],
        piece: int = PIECE_BYTES,
        ahead: int = AHEAD,
        streams: int = 1,
    ) -> None:
        """Announce the spans that will be read, in growing order and without overlaps. `streams` of
        them are read side by side."""
        self._pieces = [
            (start, min(start + piece, stop, self._version.size))
            for begin, stop in spans
            for start in range(max(begin, 0), min(stop, self._version.size), piece)
        ]
        self._starts = [start for start, _ in self._pieces]
        self._held.clear()
        self._done.clear()
        self._ahead, self._most = ahead, (ahead + 1) * (streams + 1)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._version.size}
        self._position = max(0, begin[whence] + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        rest = max(0, self._version.size - self._position)
        left = rest if size is None or size < 0 else min(size, rest)
        parts = []
        while left:
            parts.append(self._some(self._position, left))
            self._position += len(parts[-1])
            left -= len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._held.clear()
        super().close()

    def _some(self, position: int, most: int) -> bytes:
        """Return at least one byte from this position, and at most `most`."""
        number = bisect_right(self._starts, position) - 1
        if number < 0 or position >= self._pieces[number][1]:
            stop = position + most
            if number + 1 < len(self._starts):
                stop = min(stop, self._starts[number + 1])
            return read_range(self._url, self._version, position, stop)
        start, stop = self._pieces[number]
        piece = self._piece(number)
        data = piece[position - start : position - start + most]
        if position + len(data) == stop:
            self._held.pop(number, None)
            self._done.add(number)
        return data

    def _piece(self, number: int) -> bytes:
        ahead = range(number + 1, min(number + 1 + self._ahead, len(self._pieces)))
        for piece in (number, *(n for n in ahead if n not in self._done)):
            if piece not in self._held:
                self._held[piece] = self._asked(*self._pieces[piece])
        self._held.move_to_end(number)
        while len(self._held) > self._most:
            self._held.popitem(last=False)[1].cancel()
        return self._held[number].result()

    def _asked(self, start: int, stop: int) -> Future[bytes]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._ahead + 1, "weir-object")
        return self._pool.submit(read_range, self._url, self._version, start, stop)


def joined(spans: Sequence[ByteSpan], gap: int, most: int) -> list[ByteSpan]:
    """Join spans that are at most `gap` bytes apart, up to `most` bytes.

    >>> joined([(0, 10), (12, 20), (50, 60), (60, 90)], gap=5, most=25)
    [(0, 20), (50, 60), (60, 90)]
    """
    merged: list[ByteSpan] = []
    for start, stop in sorted(spans):
        if merged and start - merged[-1][1] <= gap and stop - merged[-1][0] <= most:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
