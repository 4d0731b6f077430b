"""`tail://PATH`: a file of JSON lines that grows, until a file `PATH.end` is there.

Rules
1. What stands behind the last line end is a row, or a torn one, once the end is declared; before
   that it is a line that somebody still writes.
2. The file only grows. At each look that finds more, and at the end, the last `_WINDOW` bytes
   before it are what was read; and whoever starts again first holds all that was read against its
   hash (`unchanged.py`), without a checkpoint at least its beginning, which is logged before the
   first row is given. Else the job ends: rows may have come and gone unseen.
3. Claims of the clock stand in the log, at offsets; a source that starts again says them there.
"""

from __future__ import annotations

import io
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from weir.files.chunks import BLOCK_BYTES, Chunk, LogPlace
from weir.files.framing import BYTE_ORDER_MARK, Block, Framer, skip_byte_order_mark
from weir.ingress.following import FOLDER_POLL, POLL, Clock, Endless, Lines, Stopped, claiming
from weir.ingress.ingress_log import IngressLog, IngressRecord
from weir.ingress.unchanged import Prefix, gone, prefix_of
from weir.plan.operators import Source

SOON, SOON_POLL = 0.02, 0.0002
"""A file that grew less than `SOON` ago is looked at more often."""
_WINDOW = 1 << 14
_BEGINNING = 1 << 16

Claims = deque[tuple[IngressRecord, LogPlace]]


@dataclass(frozen=True, slots=True)
class TailedFile(Endless):
    """A file of JSON lines that grows."""

    source: Source
    name: str
    root: str = ""

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.name)

    def follow(self, size: int, start: int, log: IngressLog, stopped: Stopped) -> Iterator[Chunk]:
        with self._opened(start, stopped) as file:
            yield from _Tail(self, file, start, log).chunks(size, stopped)

    def is_ended(self) -> bool:
        return os.path.exists(f"{self.path}.end")

    def _opened(self, start: int, stopped: Stopped) -> io.FileIO:
        while not os.path.exists(self.path) and not stopped():
            if start:
                raise gone("is gone", self.name, start)
            time.sleep(FOLDER_POLL)
        return io.FileIO(self.path)


class _Tail:
    """One reading of the file."""

    def __init__(self, of: TailedFile, file: io.FileIO, start: int, log: IngressLog) -> None:
        self._of, self._file, self._start, self._log = of, file, start, log
        at = log.start
        if not at.read or at.offset > start:  # nothing is known but the record
            at = LogPlace(at.ref)
        self._prefix: Prefix = prefix_of(file, of.name, at, start)
        self._place = at
        """The last record of the log that is behind us."""
        self._lines = Lines(of.source, of.name, start, offset=at.offset, line=at.line)
        self._framer = Framer(of.source.options.max_record, line=at.line, position=at.read)
        self._clock = Clock(of.source)
        self._claims: Claims = deque()
        self._is_begun = at.read > 0
        """Whether it is known how the file begins: a restart then sees whether it still does."""
        self._take_logged()
        file.seek(at.read)
        self._window = os.pread(file.fileno(), _WINDOW, max(0, at.read - _WINDOW))[: at.read]
        """What stands right before the position."""

    def chunks(self, size: int, stopped: Stopped) -> Iterator[Chunk]:
        grew = 0.0
        while not stopped():
            data = self._more()
            if data:
                self._clock.heard()
                grew = time.monotonic()
                for block in self._framer.feed(data):
                    yield from self._rows(block, size)
                continue
            if time.monotonic() < grew + SOON:
                time.sleep(SOON_POLL)
                continue
            self._check_still_there()
            if self._of.is_ended() and self._at_end():
                yield from self._last(size)
                return
            yield from self._silent()
            time.sleep(POLL)

    def _more(self) -> bytes:
        """What has come, if anything has."""
        begin, size = self._file.tell(), os.fstat(self._file.fileno()).st_size
        if begin == 0:
            if size < len(BYTE_ORDER_MARK) and not self._of.is_ended():
                return b""
            skip_byte_order_mark(self._file)
            begin = self._file.tell()
            self._framer.skip(begin)
        data = self._file.read(min(BLOCK_BYTES, max(size - begin, 0)))
        if data:
            self._check_window(begin)
            self._window = (self._window + data)[-_WINDOW:]
        return data

    def _last(self, size: int) -> Iterator[Chunk]:
        """The end is declared, and all is read that was written before."""
        self._check_window(self._file.tell())
        for block in self._framer.end():
            yield from self._rows(block, size)
        yield from self._due()
        if self._claims:
            raise self._gone("was truncated", self._claims[0][0].offset)

    def _silent(self) -> Iterator[Chunk]:
        yield from self._due()
        claim = None if self._claims else self._clock.claim()
        if claim is None:
            return
        offset = self._lines.offset
        if self._log.append(IngressRecord(offset, claim=claim)):
            yield self._claimed(claim, self._log.place(offset))
        else:  # somebody else's record stands there
            self._take_logged()

    def _take_logged(self) -> None:
        """Claims that are there wait for their places; a beginning is held against the file."""
        beginnings: list[LogPlace] = []
        while (record := self._log.read()) is not None:
            place = self._log.place(record.offset)
            if record.digest:
                beginnings.append(replace(place, read=record.read, digest=record.digest))
            self._claims.append((record, place))
        for beginning in beginnings:
            rows = max(record.offset for record, _ in self._claims)
            prefix_of(self._file, self._of.name, beginning, max(self._start, rows, 1))
            self._is_begun = True

    def _begin(self) -> None:
        """Log how the file begins."""
        prefix = Prefix()
        prefix.advance(self._file, min(self._prefix.position, _BEGINNING))
        new = IngressRecord(0, read=prefix.position, digest=prefix.digest)
        while not self._is_begun:
            if self._log.append(new):
                self._is_begun = True
                if not self._claims:  # those that wait are before it in the log
                    self._place = self._log.place(0)
            else:
                self._take_logged()

    def _rows(self, block: Block, size: int) -> Iterator[Chunk]:
        """Rows and the logged claims between them, where they stood."""
        first = 0
        while first < len(block):
            yield from self._due()
            # A line holds at most one row.
            room = self._claims[0][0].offset - self._lines.offset if self._claims else size
            part = block.between(first, first + min(room, size))
            first += len(part)
            chunk = self._lines.chunk(part)
            self._prefix.advance(self._file, part.stop, part.data)
            if chunk is None:
                continue
            if not self._is_begun and not (chunk.bad and self._of.source.options.bad == "fail"):
                self._begin()
            yield replace(chunk, place=self._here(self._place))

    def _due(self) -> Iterator[Chunk]:
        while self._claims and self._claims[0][0].offset <= self._lines.offset:
            record, place = self._claims.popleft()
            if record.claim is not None and record.offset >= self._start:
                yield self._claimed(record.claim, place)

    def _claimed(self, claim: int, place: LogPlace) -> Chunk:
        self._place = place
        return claiming(self._of.source, self._lines.offset, claim, self._here(place))

    def _here(self, place: LogPlace) -> LogPlace:
        """A place in the log, and how far the file is read."""
        offset, line = self._lines.offset, self._lines.line
        prefix = self._prefix
        return replace(place, offset=offset, line=line, read=prefix.position, digest=prefix.digest)

    # --- is it the file that was read? ------------------------------------------------------

    def _check_window(self, position: int) -> None:
        size = len(self._window)
        if os.pread(self._file.fileno(), size, position - size) != self._window:
            raise self._gone("does not hold any more what was read of it: it was truncated")

    def _check_still_there(self) -> None:
        """All is read that is there: is it the file that was read, and not less of it?"""
        opened = os.fstat(self._file.fileno())
        if opened.st_size < self._file.tell() or self._lines.offset < self._start:
            raise self._gone("was truncated")
        try:
            named = os.stat(self._of.path)
        except FileNotFoundError:
            raise self._gone("is gone") from None
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            raise self._gone("was replaced by another file")

    def _gone(self, what: str, rows: int = 0) -> Exception:
        return gone(what, self._of.name, max(self._lines.offset, self._start, rows))

    def _at_end(self) -> bool:
        """Whether all is read: what was written before the end was declared is there by now."""
        return self._file.tell() == os.fstat(self._file.fileno()).st_size
