"""Text files: lines to records to chunks, for all formats that are made of lines.

A record is what becomes one data row. Each format says how lines become records and records
columns; numbering, places and bad rows are the same for all, and here.

A format reads a block of records in one of two ways. The *plain* way is vectorised and gives up
(None) at anything out of the ordinary: a bad row, a CTI, a blank line. The *exact* way takes one
record after the other. Where the plain way does not give up, both give the same chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Generic, TypeVar

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.text import parse_timestamps
from weir.events.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.io.chunks import BLOCK_BYTES, BadRow, Chunk, DataFile, shown
from weir.kernels.casts import build_cast

Misfits = Mapping[int, str]
"""Rows of a column whose value does not fit, and why."""

Row = TypeVar("Row")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEWLINE, _QUOTE = b'\n"'


# --- blocks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records as they stand in the file, blank ones too."""

    data: bytes
    ends: Int64s
    """Where each record ends in `data`."""
    lines: Int64s
    """The number of each record's first line, from 1."""
    stop: int
    """Where the block ends in the file."""

    def __len__(self) -> int:
        return len(self.ends)

    def records(self) -> tuple[list[int], list[bytes]]:
        """Numbers of lines and texts of the records that are not blank."""
        starts = [0, *self.ends[:-1].tolist()]
        texts = [self.data[a:b] for a, b in zip(starts, self.ends.tolist(), strict=True)]
        kept = [i for i, text in enumerate(texts) if not text.isspace()]
        return self.lines[kept].tolist(), [texts[i] for i in kept]


def skip_byte_order_mark(file: BinaryIO) -> None:
    """Some editors begin UTF-8 text with a mark, which is no part of it."""
    if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        file.seek(0)


def read_blocks(
    file: BinaryIO, size: int, *, line: int = 1, quoted: bool = False
) -> Iterator[Block]:
    """The rest of a file, at most `size` records at a time. A record is a line, or if `quoted`,
    lines up to one that leaves no quote open; the first has the number `line`."""
    place = file.tell()
    while data := _read_records(file, quoted):
        breaks = _line_ends(data)
        last_lines = _last_lines(data, breaks) if quoted else np.arange(len(breaks))
        ends = breaks[last_lines]
        lines = line + np.concatenate(([0], last_lines[:-1] + 1))
        for first in range(0, len(ends), size):
            begin = int(ends[first - 1]) if first else 0
            these = ends[first : first + size]
            part = data[begin : int(these[-1])]
            yield Block(part, these - begin, lines[first : first + size], place + int(these[-1]))
        place += len(data)
        line += len(breaks)


def _read_records(file: BinaryIO, quoted: bool) -> bytes:
    parts = [file.read(BLOCK_BYTES), file.readline()]
    is_open = quoted and sum(part.count(b'"') for part in parts) % 2
    while is_open and (following := file.readline()):
        parts.append(following)
        is_open ^= following.count(b'"') % 2
    return b"".join(parts)


def _line_ends(data: bytes) -> Int64s:
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + 1
    return ends if data.endswith(b"\n") else np.append(ends, len(data))


def _last_lines(data: bytes, breaks: Int64s) -> Int64s:
    """Which lines end a record: those that leave no quote open, and the last one."""
    quotes = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _QUOTE)
    closed = np.searchsorted(quotes, breaks) % 2 == 0
    closed[-1] = True
    return np.flatnonzero(closed)


def is_utf8(data: bytes) -> bool:
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    return True


# --- values --------------------------------------------------------------------------------

_ARROW_ONLY = {INT: b"xX", BIGINT: b"xX", DOUBLE: b"("}
"""Bytes of every text that Arrow reads as this type and CAST does not: 0x1F, nan(1)."""


def cast_texts(texts: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    """Texts as values of a type."""
    column = cast_plain(texts, dtype)
    if column is not None:
        return column, {}
    column = build_cast(STRING, dtype, lenient=True)(texts)
    if column.null_count == texts.null_count:
        return column, {}
    lost = np.asarray(column.is_null()) & np.asarray(texts.is_valid())
    return column, {
        int(row): f"wanted {type_name(dtype)}, came {texts[int(row)].as_py()!r}"
        for row in np.flatnonzero(lost)
    }


def cast_plain(texts: pa.Array, dtype: pa.DataType) -> pa.Array | None:
    """Texts that all are values of a type; None when it takes a closer look to say."""
    if dtype == STRING:
        return texts
    data = texts.buffers()[2]
    letters = _ARROW_ONLY.get(dtype, b"")
    if letters and data is not None and any(c in data.to_pybytes() for c in letters):
        return None
    try:
        return parse_timestamps(texts) if dtype == TIMESTAMP else texts.cast(dtype)
    except pa.ArrowInvalid:
        return None


# --- chunks --------------------------------------------------------------------------------


@dataclass(slots=True)
class Records(Generic[Row]):
    """Data rows that are not yet typed, column by column: objects for rows would cost more
    than reading them. `faults` are the rows that could not be read (column and reason); their
    `rows` mean nothing."""

    lines: Sequence[int]
    texts: Sequence[bytes]
    rows: Sequence[Row]
    faults: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def since(self, start: int) -> Records[Row]:
        """Without the first `start` rows."""
        if not start:
            return self
        faults = {i - start: fault for i, fault in self.faults.items() if i >= start}
        return Records(self.lines[start:], self.texts[start:], self.rows[start:], faults)

    def readable(self) -> Sequence[Row]:
        if not self.faults:
            return self.rows
        return [row for i, row in enumerate(self.rows) if i not in self.faults]


Typed = Mapping[str, tuple[pa.Array, Misfits]]
"""Columns of some records, and the rows of them that do not fit."""


def plain_chunk(file: DataFile, typed: Typed, block: Block, first: int, start: int) -> Chunk | None:
    """A chunk of all records of a block, or those from offset `start` on; None if one misfits."""
    if any(misfits for _, misfits in typed.values()):
        return None
    skipped = min(max(start - first, 0), len(block))
    rows = _rows(file, typed)
    stop = first + len(block)
    offsets = np.arange(first + skipped, stop)
    return Chunk(rows.slice(skipped), offsets, stop, block.lines[skipped:], read=block.stop)


def exact_chunk(
    file: DataFile,
    records: Records[Row],
    typed: Typed,
    first: int,
    ctis: tuple[Int64s, Int64s],
    read: int,
) -> Chunk:
    """A chunk of the records (the first has offset `first`); `typed` is of the readable ones,
    and CTI places count all records."""
    count = len(records)
    was_read = np.ones(count, dtype=np.bool_)
    was_read[list(records.faults)] = False
    bad = [_bad(records, i, first, *fault) for i, fault in records.faults.items()]
    readable = np.flatnonzero(was_read)
    fits = np.ones(len(readable), dtype=np.bool_)
    for name, (_, misfits) in typed.items():
        for row, reason in misfits.items():
            if fits[row]:
                bad.append(_bad(records, int(readable[row]), first, name, reason))
                fits[row] = False
    kept = readable[fits]
    rows = _rows(file, typed)
    times, places = ctis
    return Chunk(
        rows if fits.all() else rows.filter(pa.array(fits)),
        kept + first,
        first + count,
        np.array(records.lines, dtype=np.int64)[kept],
        times,
        np.searchsorted(kept, places).astype(np.int64),
        tuple(sorted(bad, key=lambda b: b.offset)),
        read,
    )


def _rows(file: DataFile, typed: Typed) -> pa.RecordBatch:
    columns = {name: column for name, (column, _) in typed.items() if file.needs(name)}
    return pa.RecordBatch.from_pydict(columns)


def _bad(records: Records[Row], at: int, first: int, column: str, reason: str) -> BadRow:
    text = shown(records.texts[at].decode("utf-8", "backslashreplace").rstrip("\r\n"))
    return BadRow(first + at, records.lines[at], column, text, reason)
