"""Cuts bytes into records, whatever the pieces in which they arrive.

Contract
1. A record is a line; in a `quoted` format (CSV), as many lines as it takes to close all quotes. At
   the end of the input, the rest after the last line end is a record too.
2. A record's length is that of its bytes without the `\\n` after it. A record longer than the limit
   may lack bytes beyond it. `TextChunk.records` returns its index, and readers list it as a bad
   row. This depends on the record alone, never on how its bytes were cut.
3. At most one block of input and one record of the largest size are held. Each byte is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from weir.events.batch import Int64s
from weir.files.chunks import BLOCK_BYTES

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NEWLINE, _QUOTE = b'\n"'
_BEYOND = 2
"""How many bytes beyond the limit are kept: one of them may be a line end inside quotes."""


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Whole records as they are in the file, blank ones included."""

    data: bytes
    ends: Int64s
    """Where each record ends in `data`."""
    lines: Int64s
    """The number of each record's first line, from 1."""
    stop: int
    """Where the text chunk ends in the file."""

    def __len__(self) -> int:
        return len(self.ends)

    def fits(self, limit: int) -> bool:
        """Return True if no record is longer than the limit; a quick check for most text chunks."""
        return len(self.data) <= limit or int(np.diff(self.ends, prepend=0).max()) <= limit

    def records(self, limit: int) -> tuple[list[int], list[bytes], frozenset[int]]:
        """Return the line numbers and texts of the records that are not blank, and the indexes of
        those longer than the limit. These are always cut to the same bytes."""
        starts = [0, *self.ends[:-1].tolist()]
        texts = [self.data[a:b] for a, b in zip(starts, self.ends.tolist(), strict=True)]
        too_long = {i for i, text in enumerate(texts) if len(text.removesuffix(b"\n")) > limit}
        kept = [i for i, text in enumerate(texts) if i in too_long or not text.isspace()]
        return (
            self.lines[kept].tolist(),
            [texts[i][: limit + 1] if i in too_long else texts[i] for i in kept],
            frozenset(index for index, i in enumerate(kept) if i in too_long),
        )

    def between(self, first: int, stop: int) -> TextChunk:
        """Return the records [first, stop) as a text chunk."""
        if first == 0 and stop >= len(self):
            return self
        begin, ends = int(self.ends[first - 1]) if first else 0, self.ends[first:stop]
        end = int(ends[-1])
        position = self.stop - (len(self.data) - end)
        return TextChunk(self.data[begin:end], ends - begin, self.lines[first:stop], position)

    def parts(self, size: int) -> Iterator[TextChunk]:
        """Yield the records in text chunks of at most `size`."""
        for first in range(0, len(self), size):
            yield self.between(first, first + size)


class Framer:
    """Cuts bytes that arrive in pieces into records, by the module's contract."""

    def __init__(
        self, limit: int, *, quoted: bool = False, line: int = 1, position: int = 0
    ) -> None:
        self._limit, self._quoted = limit, quoted
        self._line = line
        """The number of the first line that has not been returned yet."""
        self._position = position
        """Where that line begins in the file."""
        self._held = bytearray()
        """The kept bytes of the unfinished record."""
        self._held_bytes = self._held_lines = 0
        """How many bytes and line ends of the unfinished record have come."""
        self._is_open = 0
        """1 if a quote is open, else 0."""

    def skip(self, count: int) -> None:
        """Note that `count` bytes of the file are left out before the next piece."""
        self._position += count

    def feed(self, data: bytes) -> list[TextChunk]:
        """Return the records that these bytes complete, in one text chunk or none."""
        characters = np.frombuffer(data, dtype=np.uint8)
        breaks = np.flatnonzero(characters == _NEWLINE) + 1
        last_lines = self._last_lines(characters, breaks)
        if not len(last_lines):
            self._hold(data, len(breaks))
            return []
        ends = breaks[last_lines]
        cut = int(ends[-1])
        lines = np.concatenate(([0], self._held_lines + last_lines + 1)) + self._line
        stop = self._position + self._held_bytes + cut
        whole = b"".join((self._held, data[:cut]))
        text_chunk = TextChunk(whole, ends + len(self._held), lines[:-1], stop)
        self._begin(int(lines[-1]), stop)
        self._hold(data[cut:], len(breaks) - int(last_lines[-1]) - 1)
        return [text_chunk]

    def end(self) -> list[TextChunk]:
        """Return the record after the last line end, if any. Call it when nothing more will
        come."""
        if not self._held_bytes:
            return []
        text, stop = bytes(self._held), self._position + self._held_bytes
        text_chunk = TextChunk(text, np.array([len(text)]), np.array([self._line]), stop)
        self._begin(self._line + self._held_lines + 1, stop)
        return [text_chunk]

    def _last_lines(self, characters: npt.NDArray[np.uint8], breaks: Int64s) -> Int64s:
        """Return the indexes of the lines that end a record: those that leave no quote open."""
        if not self._quoted:
            return np.arange(len(breaks))
        quotes = np.flatnonzero(characters == _QUOTE)
        closed = (np.searchsorted(quotes, breaks) + self._is_open) % 2 == 0
        self._is_open = (self._is_open + len(quotes)) % 2
        return np.flatnonzero(closed)

    def _hold(self, data: bytes, lines: int) -> None:
        self._held += data[: self._limit + _BEYOND - len(self._held)]
        self._held_bytes += len(data)
        self._held_lines += lines

    def _begin(self, line: int, position: int) -> None:
        self._line, self._position = line, position
        self._held.clear()
        self._held_bytes = self._held_lines = 0


def skip_byte_order_mark(file: BinaryIO) -> None:
    """Skip the mark with which some editors begin UTF-8 text."""
    if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        file.seek(0)


def to_utf8(begin: bytes) -> str:
    """Advise how to convert a text that is not UTF-8, judging by its first bytes.

    >>> to_utf8("id".encode("utf-16"))
    'write it in UTF-8, as by iconv -f UTF-16 -t UTF-8'
    """
    wide = begin.startswith(UTF16_MARKS) or b"\0" in begin[:16]
    return f"write it in UTF-8, as by iconv -f {'UTF-16' if wide else 'LATIN1'} -t UTF-8"


def read_text_chunks(
    file: BinaryIO, size: int, limit: int, *, line: int = 1, quoted: bool = False
) -> Iterator[TextChunk]:
    """Read the rest of a file in text chunks of at most `size` records; `line` is the number of the
    first line."""
    framer = Framer(limit, quoted=quoted, line=line, position=file.tell())
    while data := file.read(BLOCK_BYTES):
        for text_chunk in framer.feed(data):
            yield from text_chunk.parts(size)
    for text_chunk in framer.end():
        yield from text_chunk.parts(size)
