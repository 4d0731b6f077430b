"""CSV: a header row, commas, double quotes; one partition a file.

An empty field is NULL; `""` is the empty text. A quoted field may contain line ends. Columns that
are not declared are ignored. A declared column that is missing from the header, or is there twice,
is an error. Values are written as for CAST from STRING, except that a DECIMAL must not have more
decimals than fit. BINARY is base64; LIST and STRUCT are JSON texts, as in `jsonl.py`.
"""

from __future__ import annotations

import base64
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from weir.errors import InputError
from weir.events.types import BINARY, STRING, type_name
from weir.files.chunks import CHUNK_ROWS, NO_TIMES, Chunk, Columns, DataFile, shown
from weir.files.json_nesting import is_too_deep
from weir.files.jsonl import value_decoder, values_as
from weir.files.record_frames import (
    BYTE_ORDER_MARK,
    TextChunk,
    read_text_chunks,
    skip_byte_order_mark,
    to_utf8,
)
from weir.files.text_chunks import (
    Misfits,
    Typed,
    UntypedRows,
    cast_plain,
    cast_texts,
    exact_chunk,
    is_utf8,
    plain_chunk,
    too_long_faults,
)

Fields = list[str | None]

_FIELD = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",]*+))(,|$)')
_BESIDE_QUOTES = np.zeros(256, dtype=np.bool_)
_BESIDE_QUOTES[list(b',\r\n"')] = True


class CsvFile(DataFile):
    """Reads a `.csv` file as a partition."""

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with self.open_text() as file:
            skip_byte_order_mark(file)
            names, lines = _header(file, self.name, self.max_record)
            indexes = self._looked_at(names)
            seen = 0
            if self.since is not None:
                seen, lines = self.since.offset, 0
                file.seek(self.since.position)
            for text_chunk in read_text_chunks(
                file, size, self.max_record, line=lines + 1, quoted=True
            ):
                chunk = None
                if text_chunk.fits(self.max_record):
                    chunk = self._plain(text_chunk, indexes, len(names), seen, start)
                if chunk is None:
                    chunk = self._exact(text_chunk, indexes, len(names), seen, start)
                seen = chunk.stop
                if len(chunk.offsets) or chunk.bad:
                    yield chunk

    def _looked_at(self, names: Fields) -> dict[str, int]:
        """Return the index of each column that is needed or could have bad values; a STRING never
        has."""
        indexes = _column_indexes(names, self.columns, self.name)
        return {n: indexes[n] for n, dtype in self.columns if self.needs(n) or dtype != STRING}

    def _plain(
        self, text_chunk: TextChunk, indexes: Mapping[str, int], width: int, first: int, start: int
    ) -> Chunk | None:
        texts = _plain_texts(text_chunk, indexes, width)
        return (
            None
            if texts is None
            else plain_chunk(self, self._typed(texts), text_chunk, first, start)
        )

    def _exact(
        self, text_chunk: TextChunk, indexes: Mapping[str, int], width: int, first: int, start: int
    ) -> Chunk:
        records = _records(text_chunk, self.max_record, width)
        skipped = min(max(start - first, 0), len(records))
        records = records.since(skipped)
        rows = records.readable()
        texts = {n: pa.array([row[at] for row in rows], STRING) for n, at in indexes.items()}
        typed = self._typed(texts)
        return exact_chunk(
            self, records, typed, first + skipped, (NO_TIMES, NO_TIMES), text_chunk.stop
        )

    def _typed(self, texts: Mapping[str, pa.Array]) -> Typed:
        return {n: _values(texts[n], dtype) for n, dtype in self.columns if n in texts}


# --- records -------------------------------------------------------------------------------


def _header(file: BinaryIO, name: str, limit: int) -> tuple[Fields, int]:
    """Read the column names from the first record that is not blank; return them and the number of
    lines read."""
    parts: list[bytes] = []
    size = quotes = lines = 0
    while line := file.readline(limit + 2 - size):
        parts.append(line)
        size, quotes, lines = size + len(line), quotes + line.count(b'"'), lines + 1
        if size > limit + 1:
            message = f"the header row is longer than {limit} bytes; `max_record` says how long"
            raise InputError(f"{message} a record may be", file=name, line=1)
        if line.isspace() and size == len(line):
            parts, size = [], 0
        elif quotes % 2 == 0:
            break
    text = b"".join(parts)
    names = _split(text.decode("utf-8", "replace"))
    if not text:
        message = "the file is empty; its first row must be a header with the columns' names"
        raise InputError(message, file=name, line=1)
    if names is None:
        raise InputError("the header row has unbalanced quotes", file=name, line=1)
    return names, lines


def _split(text: str) -> Fields | None:
    """Split a record into its fields; None if its quotes are wrong."""
    line = text.rstrip("\r\n")
    if '"' not in line:
        return [field or None for field in line.split(",")]
    fields: Fields = []
    position = 0
    while True:
        match = _FIELD.match(line, position)
        if match is None:
            return None
        quoted, bare, comma = match.groups()
        fields.append(quoted.replace('""', '"') if quoted is not None else bare or None)
        position = match.end()
        if not comma:
            return fields


def _records(text_chunk: TextChunk, limit: int, width: int) -> UntypedRows[Fields]:
    numbers, texts, too_long = text_chunk.records(limit)
    rows: list[Fields] = []
    reason: str | None
    faults = too_long_faults(too_long, limit)
    for row, text in enumerate(texts):
        if row in faults:
            rows.append([])
            continue
        try:
            fields = _split(text.decode())
        except UnicodeDecodeError as error:
            fields, reason = [], f"not UTF-8: {error}"
        else:
            reason = _misfit(fields, width)
        if reason is not None:
            faults[row] = ("", reason)
        rows.append(fields or [])
    return UntypedRows(numbers, texts, rows, faults)


def _misfit(fields: Fields | None, width: int) -> str | None:
    if fields is None:
        return "a quote that does not fit: torn row"
    return None if len(fields) == width else f"wanted {width} fields, came {len(fields)}"


def _column_indexes(names: Fields, columns: Columns, file: str) -> dict[str, int]:
    indexes = {}
    for name, _ in columns:
        count = names.count(name)
        if not count:
            raise InputError(_missing(name, names, columns), file=file, line=1, column=name)
        if count > 1:
            message = f"the header has this name {count} times, not once"
            raise InputError(message, file=file, line=1, column=name)
        indexes[name] = names.index(name)
    return indexes


def _missing(name: str, names: Fields, columns: Columns) -> str:
    """Describe a declared column that the header lacks, and what the header has instead."""
    there = [n for n in names if n is not None]
    for other, word in ((";", "`;`"), ("\t", "tabs"), ("|", "`|`")):
        fields = [field.strip().strip('"') for n in there for field in n.split(other)]
        if len(fields) > len(there) and any(n in fields for n, _ in columns):
            return (
                f"the header has {word} between its fields; expected commas: write the "
                "file with commas, or as Parquet"
            )
    if any("\ufffd" in n or "\0" in n for n in there):
        return f"the header is not UTF-8; {to_utf8(','.join(there).encode())}"
    by_lower = {n.strip().lower(): n for n in there}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    meant = f"; did you mean `{by_lower[close[0]]}`?" if close else ""
    return f"the header has no such column, but {shown(', '.join(there))}{meant}"


# --- plain text chunks ---------------------------------------------------------------------


def _plain_texts(
    text_chunk: TextChunk, indexes: Mapping[str, int], width: int
) -> dict[str, pa.Array] | None:
    """Return the fields of a text chunk by column; None if Arrow could split it into other records
    than `_split` does."""
    data = text_chunk.data
    # Arrow skips a byte order mark, treats a lone \r as a line end, and accepts any quotes. With
    # one column, it reads a line of blanks as a row.
    if width == 1 or data.startswith(BYTE_ORDER_MARK) or not is_utf8(data):
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    if b'"' in data and not _quotes_fit(data):
        return None
    names = [str(index) for index in indexes.values()]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=len(data),
                column_names=[str(i) for i in range(width)],
            ),
            arrow_csv.ParseOptions(newlines_in_values=b'"' in data),
            arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, STRING),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=names,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(text_chunk):
        return None
    [batch] = table.combine_chunks().to_batches()
    return dict(zip(indexes, batch.columns, strict=True))


def _quotes_fit(data: bytes) -> bool:
    """Tell whether quotes occur only around fields, or doubled inside quoted fields."""
    characters = np.frombuffer(b"\n" + data + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    beside = np.concatenate((quotes[::2] - 1, quotes[1::2] + 1))
    return len(quotes) % 2 == 0 and bool(_BESIDE_QUOTES[characters[beside]].all())


# --- values --------------------------------------------------------------------------------


def _values(texts: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    if pa.types.is_decimal(dtype):
        column = cast_plain(texts, dtype)
        return _read_each(texts, dtype, Decimal) if column is None else (column, {})
    if dtype == BINARY:
        return _read_each(texts, dtype, lambda text: base64.b64decode(text, validate=True))
    if pa.types.is_nested(dtype):
        return _read_each(texts, dtype, _nested_reader(dtype))
    return cast_texts(texts, dtype)


def _nested_reader(dtype: pa.DataType) -> Callable[[str], object]:
    decoder = value_decoder(dtype)

    def read(text: str) -> object:
        if is_too_deep(text.encode()):
            raise ValueError("nested too deep")
        return decoder.decode(text)

    return read


def _read_each(
    texts: pa.Array, dtype: pa.DataType, read: Callable[[str], object]
) -> tuple[pa.Array, Misfits]:
    values: list[object] = []
    misfits = {}
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else read(text))
        except (InvalidOperation, ValueError, msgspec.DecodeError):
            values.append(None)
            misfits[row] = f"wanted {type_name(dtype)}, came {shown(repr(text))}"
    column, others = values_as(values, dtype)
    return column, {**others, **misfits}
