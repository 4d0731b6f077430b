"""`tail://PATH` is a growing file of JSON lines; it ends when a file `PATH.end` exists.

Rules
1. The text after the last line end is an unfinished line. Once `PATH.end` exists, it is a row, good
   or torn.
2. The file may only grow. Otherwise rows may have come and gone unseen, and the job fails. Each
   look that finds more, and the last one, compares the last `_WINDOW` bytes that were read with the
   file. A restarted reading first compares the hash of everything that was read
   (`source_integrity.py`). Before the first checkpoint it compares the beginning of the file, whose
   digest is offered for the log before the first row is given.
3. A missing file is silent. If `PATH.end` exists without it, the file has no rows.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from weir.errors import InputError, PlanError
from weir.files.chunks import BLOCK_BYTES, Chunk
from weir.files.jsonl import JsonLines
from weir.files.readers import FORMATS
from weir.files.record_frames import BYTE_ORDER_MARK, Framer, TextChunk, skip_byte_order_mark
from weir.ingress.connectors.connector import Endless, Lines
from weir.ingress.source_integrity import FileMark, Prefix, gone, prefix_of
from weir.ingress.source_signals import (
    Accept,
    Accepted,
    Finding,
    Finished,
    IngressRecord,
    Offer,
    Quiet,
    Rows,
)
from weir.plan.operators import Source

POLL, ABSENT_POLL = 0.001, 0.05
SOON, SOON_POLL = 0.02, 0.0002
"""Seconds after growth in which a file is looked at more often, and the pause between those
looks."""
_WINDOW = 1 << 14
_BEGINNING = 1 << 16


class TailState(msgspec.Struct, frozen=True, array_like=True):
    """Where a reading of a growing file stands: the number of rows, lines and bytes read."""

    offset: int = 0
    line: int = 1
    mark: FileMark = FileMark()


_decoder = msgspec.msgpack.Decoder(TailState)


@dataclass(frozen=True, slots=True)
class TailedFile(Endless):
    """A file of JSON lines that grows."""

    source: Source
    name: str
    root: str = ""
    has_log = True
    has_free_rows = True

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.name)

    @property
    def local_files(self) -> str:
        return self.path

    def rooted(self, root: str) -> Self:
        return replace(self, root=root)

    def open(self, state: bytes | None, start: int) -> TailReading:
        return TailReading(self, TailState() if state is None else _decoder.decode(state), start)

    def is_ended(self) -> bool:
        return os.path.exists(f"{self.path}.end")


def open_tail(source: Source, directory: str) -> TailedFile:
    """Make the partition of a tail:// path; a relative one starts at `directory`."""
    path = source.path.removeprefix("tail://")
    ending = os.path.splitext(path)[1].lower()
    if ending in FORMATS and FORMATS[ending] is not JsonLines:
        hint = "only JSON lines are followed; a folder, 'PATH/', takes whole files of every format"
        raise PlanError(f"'{source.path}' is not a file of JSON lines", hint=hint)
    return TailedFile(source, os.path.join(directory, path))


class TailReading:
    """Reads the file once, by the module's rules."""

    def __init__(self, of: TailedFile, at: TailState, start: int) -> None:
        self._of, self._at, self._start = of, at, start
        self._file: io.FileIO | None = None
        self._prefix = Prefix()
        self._window = b""
        """The last bytes before the position in the file, at most `_WINDOW`."""
        self.offset = at.offset
        """The offset of the next row to give; held rows have not been given."""
        self._lines = Lines(of.source, of.name, start, offset=at.offset, line=at.line)
        self._framer = Framer(of.source.options.max_record, line=at.line, position=at.mark.read)
        self._text_chunk: TextChunk | None = None
        self._first = 0
        """The index of the first line of `_text_chunk` that has not been given."""
        self._held: Chunk | None = None
        """The first rows, held back until the log says how the file begins."""
        self._is_begun = at.mark.read > 0
        """Whether the log or the state says how the file begins, so that a restart can check it."""
        self._grew = -SOON
        """When a look last found new bytes."""

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        if self._held is not None:
            return self._begin(self._held, until)
        if self._text_chunk is not None:
            return self._rows(self._text_chunk, most, until)
        file = self._opened()
        if file is None and self._of.is_ended():
            # The file may have appeared after the first look, and then its end.
            file = self._opened()
            if file is None:
                return Finished()
        if file is None:
            return Quiet(self.offset, ABSENT_POLL, why=f"'{self._of.name}' is not there yet")
        data = self._more(file)
        if data:
            self._grew = now
            self._take(self._framer.feed(data))
            return (
                self._rows(self._text_chunk, most, until)
                if self._text_chunk
                else self._quiet(0.0, True)
            )
        if now < self._grew + SOON:
            return self._quiet(SOON_POLL)
        self._check_still_there(file)
        if not (self._of.is_ended() and self._at_end(file)):
            return self._quiet(POLL)
        self._check_still_there(file)  # it may have been replaced before `PATH.end` appeared
        self._check_window(file, file.tell())
        self._take(self._framer.end())
        return Finished() if self._text_chunk is None else self._rows(self._text_chunk, most, until)

    def accept(self, accept: Accept) -> Accepted:
        record = accept.record
        if record.digest and not accept.own:
            rows = max(self._start, accept.stop or 0, 1)
            file = self._opened()
            if file is None:
                raise gone("is gone", self._of.name, rows)
            prefix_of(file, self._of.name, FileMark(record.read, record.digest), rows)
        self._is_begun |= bool(record.digest)
        return Accepted(self.offset, self._state())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    # --- rows --------------------------------------------------------------------------------

    def _take(self, text_chunks: list[TextChunk]) -> None:
        self._text_chunk, self._first = (text_chunks[0] if text_chunks else None), 0

    def _rows(self, text_chunk: TextChunk, most: int, until: int | None) -> Finding:
        # A line holds at most one row.
        room = most if until is None else min(most, until - self._lines.offset)
        part = text_chunk.between(self._first, self._first + room)
        self._first += len(part)
        if self._first >= len(text_chunk):
            self._text_chunk = None
        chunk = self._lines.chunk(part)
        assert self._file is not None
        self._prefix.advance(self._file, part.stop, part.data)
        if chunk is None:
            return self._quiet(0.0, True)
        chunk = replace(chunk, resume=self._state())
        if not self._is_begun and not (chunk.bad and self._of.source.options.bad == "fail"):
            self._held = chunk
            return self._begin(chunk, until)
        return self._given(chunk)

    def _begin(self, chunk: Chunk, until: int | None) -> Finding:
        """Offer the beginning of the file for the log, then give the first rows."""
        if self._is_begun or until is not None:
            self._held = None
            return self._given(chunk)
        assert self._file is not None
        prefix = Prefix()
        prefix.advance(self._file, min(self._prefix.position, _BEGINNING))
        return Offer(IngressRecord(self.offset, read=prefix.position, digest=prefix.digest))

    def _given(self, chunk: Chunk) -> Rows:
        self.offset = chunk.stop
        return Rows(chunk)

    def _quiet(self, again_in: float, heard: bool = False) -> Quiet:
        self.offset = self._lines.offset
        return Quiet(self.offset, again_in, heard)

    def _state(self) -> bytes:
        if self._file is None or self._held is not None:
            return msgspec.msgpack.encode(self._at)
        mark = FileMark(self._prefix.position, self._prefix.digest)
        return msgspec.msgpack.encode(TailState(self._lines.offset, self._lines.line, mark))

    # --- the file ----------------------------------------------------------------------------

    def _opened(self) -> io.FileIO | None:
        """Return the file, at the position to continue from; None while it does not exist."""
        if self._file is not None:
            return self._file
        try:
            self._file = _regular_file(self._of.path, self._of.name)
        except FileNotFoundError:
            if self._start:
                raise gone("is gone", self._of.name, self._start) from None
            return None
        mark = self._at.mark
        self._prefix = prefix_of(self._file, self._of.name, mark, self._start)
        self._file.seek(mark.read)
        before = os.pread(self._file.fileno(), _WINDOW, max(0, mark.read - _WINDOW))
        self._window = before[: mark.read]
        return self._file

    def _more(self, file: io.FileIO) -> bytes:
        """Read the new bytes; empty if there are none."""
        begin, size = file.tell(), os.fstat(file.fileno()).st_size
        if begin == 0:
            if size < len(BYTE_ORDER_MARK) and not self._of.is_ended():
                return b""
            skip_byte_order_mark(file)
            begin = file.tell()
            self._framer.skip(begin)
        data = file.read(min(BLOCK_BYTES, max(size - begin, 0)))
        if data:
            self._check_window(file, begin)
            self._window = (self._window + data)[-_WINDOW:]
        return data

    def _check_window(self, file: io.FileIO, position: int) -> None:
        size = len(self._window)
        if os.pread(file.fileno(), size, position - size) != self._window:
            raise self._gone("no longer contains what was read: it was truncated")

    def _check_still_there(self, file: io.FileIO) -> None:
        """Check that the path still names the file that was read, and that it is not shorter.
        Called when everything is read."""
        opened = os.fstat(file.fileno())
        if opened.st_size < file.tell() or self._lines.offset < self._start:
            raise self._gone("was truncated")
        try:
            named = os.stat(self._of.path)
        except FileNotFoundError:
            raise self._gone("is gone") from None
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            raise self._gone("was replaced by another file")

    def _gone(self, what: str) -> Exception:
        return gone(what, self._of.name, max(self._lines.offset, self._start))

    def _at_end(self, file: io.FileIO) -> bool:
        """Tell whether everything is read. Called after the end is declared, when the file is
        complete."""
        return file.tell() == os.fstat(file.fileno()).st_size


def _regular_file(path: str, name: str) -> io.FileIO:
    """Open a file. Raise InputError for anything that has no end to wait for, such as a pipe or a
    device."""
    wrong = InputError("not a file", file=name)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a missing device
            raise wrong from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise wrong
    return io.FileIO(descriptor)
