"""Makes chunks of text files, for all formats that consist of lines.

A record becomes one data row. Each format defines how lines become records, and records columns.
Offsets, line numbers and bad rows work the same in all formats; this module makes them.

A format reads a text chunk in one of two ways. The *plain* way is vectorised, and gives up (None)
on anything unusual: a bad row, a CTI, a blank line. The *exact* way reads one record after the
other. Whenever the plain way does not give up, both make the same chunk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import Int64s
from weir.events.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.events.value_text import parse_timestamps
from weir.files.chunks import BadRow, Chunk, DataFile, shown
from weir.files.record_frames import UTF16_MARKS, TextChunk, to_utf8
from weir.files.time_units import without_nanoseconds
from weir.kernels.expressions.casts import build_cast

Misfits = Mapping[int, str]
"""The rows of a column whose values do not fit, and why."""

Row = TypeVar("Row")

_SHOWN_BYTES = 2_000
"""Bytes of a bad record that are kept; more than messages show."""


def is_utf8(data: bytes) -> bool:
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    return True


# --- values --------------------------------------------------------------------------------

_ARROW_ONLY = {INT: b"xX", BIGINT: b"xX", DOUBLE: b"("}
"""Bytes in texts that Arrow reads as this type but CAST does not: 0x1F, nan(1)."""


def cast_texts(texts: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    """Cast texts to a type. Texts that are not values of it are misfits."""
    column = cast_plain(texts, dtype)
    if column is not None:
        return column, {}
    if dtype == TIMESTAMP:
        texts = without_nanoseconds(texts)
    column = build_cast(STRING, dtype, lenient=True)(texts)
    if column.null_count == texts.null_count:
        return column, {}
    lost = np.asarray(column.is_null()) & np.asarray(texts.is_valid())
    return column, {
        int(row): misfit_reason(dtype, texts[int(row)].as_py()) for row in np.flatnonzero(lost)
    }


def misfit_reason(dtype: pa.DataType, value: object) -> str:
    """Explain why a value does not fit a type, with a hint if a number should be a time."""
    reason = f"wanted {type_name(dtype)}, came {shown(repr(value))}"
    if dtype == TIMESTAMP and str(value).lstrip("-").isdecimal():
        return f"{reason}; {EPOCH_HINT}"
    return reason


_UTF16_BEGINS = tuple(mark.decode("utf-8", "backslashreplace") for mark in UTF16_MARKS)


def told_row(row: BadRow) -> str:
    """Describe a bad row for an error."""
    if row.line == 1 and row.text.startswith(_UTF16_BEGINS):
        return f"the file is not UTF-8; {to_utf8(UTF16_MARKS[0])}"
    return f"{told_reason(row.reason)}; the row is {row.text}"


_DECODED = re.compile(r": Expected `[^`]*`, got `(\w+)`")
_JSON_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number with decimals",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def told_reason(reason: str) -> str:
    """Reword the reason of a bad row for an error, without Python's names. (Rows of BAD keep those:
    a running job must not change what it writes.)

    >>> told_reason("wanted BIGINT: Expected `int | null`, got `str`")
    'wanted BIGINT, came a text'
    """
    plain = _DECODED.sub(lambda match: f", came {_JSON_WORDS.get(match[1], match[1])}", reason)
    return plain.replace(", came None", ", came NULL")


EPOCH_HINT = (
    "a number since 1970 is declared as BIGINT, and WITH (vs = column, unit = 's') says what it "
    "counts (s, ms, us, ns); TO_TIMESTAMP(x * 1000000) makes a TIMESTAMP of seconds in a query"
)


def cast_plain(texts: pa.Array, dtype: pa.DataType) -> pa.Array | None:
    """Cast texts that are all plain values of a type; None if the exact way must decide."""
    if dtype == STRING:
        return texts
    data = texts.buffers()[2]
    letters = _ARROW_ONLY.get(dtype, b"")
    if letters and data is not None and any(c in data.to_pybytes() for c in letters):
        return None
    try:
        column = parse_timestamps(texts) if dtype == TIMESTAMP else texts.cast(dtype)
    except pa.ArrowInvalid:
        return None
    # An infinity may come from a number that is too large: 1e400.
    return None if dtype == DOUBLE and pc.any(pc.is_inf(column)).as_py() else column


# --- records -------------------------------------------------------------------------------


def too_long_faults(rows: Collection[int], limit: int) -> dict[int, tuple[str, str]]:
    """Return the column and the reason of records that are longer than the limit."""
    return dict.fromkeys(rows, ("", f"longer than {limit} bytes, which is `max_record`"))


# --- chunks --------------------------------------------------------------------------------


@dataclass(slots=True)
class UntypedRows(Generic[Row]):
    """Data rows that are not typed yet, column by column, since an object for each row would cost
    more than reading it. `faults` are the rows that could not be read (column and reason); their
    values in `rows` mean nothing."""

    lines: Sequence[int]
    texts: Sequence[bytes]
    rows: Sequence[Row]
    faults: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def since(self, start: int) -> UntypedRows[Row]:
        """Return the rows without the first `start`."""
        if not start:
            return self
        faults = {i - start: fault for i, fault in self.faults.items() if i >= start}
        return UntypedRows(self.lines[start:], self.texts[start:], self.rows[start:], faults)

    def readable(self) -> Sequence[Row]:
        if not self.faults:
            return self.rows
        return [row for i, row in enumerate(self.rows) if i not in self.faults]


Typed = Mapping[str, tuple[pa.Array, Misfits]]
"""The columns of some records, and their rows that do not fit."""


def plain_chunk(
    file: DataFile, typed: Typed, text_chunk: TextChunk, first: int, start: int
) -> Chunk | None:
    """Make a chunk of the records of a text chunk from offset `start` on; None if one misfits."""
    if any(misfits for _, misfits in typed.values()):
        return None
    skipped = min(max(start - first, 0), len(text_chunk))
    rows = _rows(file, typed)
    stop = first + len(text_chunk)
    offsets = np.arange(first + skipped, stop)
    return Chunk(
        rows.slice(skipped), offsets, stop, text_chunk.lines[skipped:], read=text_chunk.stop
    )


def exact_chunk(
    file: DataFile,
    records: UntypedRows[Row],
    typed: Typed,
    first: int,
    ctis: tuple[Int64s, Int64s],
    read: int,
) -> Chunk:
    """Make a chunk of the records, the first of which has offset `first`. `typed` has the readable
    records only; the indexes of CTIs count all records."""
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
    times, indexes = ctis
    return Chunk(
        rows if fits.all() else rows.filter(pa.array(fits)),
        kept + first,
        first + count,
        np.array(records.lines, dtype=np.int64)[kept],
        times,
        np.searchsorted(kept, indexes).astype(np.int64),
        tuple(sorted(bad, key=lambda b: b.offset)),
        read,
    )


def _rows(file: DataFile, typed: Typed) -> pa.RecordBatch:
    columns = {name: column for name, (column, _) in typed.items() if file.needs(name)}
    return pa.RecordBatch.from_pydict(columns)


def _bad(records: UntypedRows[Row], at: int, first: int, column: str, reason: str) -> BadRow:
    begin = records.texts[at][:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return BadRow(first + at, records.lines[at], column, shown(begin.rstrip("\r\n")), reason)
