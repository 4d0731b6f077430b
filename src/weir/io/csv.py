"""CSV: a header row, commas, double quotes; one partition a file.

An empty field is NULL, `""` the empty text. A quoted field may hold line ends. Columns that are
not declared are ignored; a declared one that the header lacks is an error, as is a header name
twice. Values look as in CAST from STRING, but a DECIMAL must not have more decimals than fit;
BINARY is base64. LIST and STRUCT have no form here.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from weir.errors import InputError
from weir.events.types import BINARY, STRING, type_name
from weir.io.chunks import CHUNK_ROWS, NO_TIMES, Chunk
from weir.io.jsonl import values_as
from weir.io.texts import Columns, Misfits, Record, Typed, cast_texts, grouped, text_chunk

Fields = list[str | None]

_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^",]*))(,|$)')


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A `.csv` file as a partition."""

    name: str
    columns: Columns

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with open(self.name, "rb") as file:
            lines = _joined(enumerate(file, start=1))
            header = next(lines, None)
            if header is None:
                raise InputError("an empty file, without a header row", file=self.name, line=1)
            names = _split(header[1])
            places = _places(names, self.columns, self.name)
            seen = 0
            for group in grouped(lines, size):
                records = [_record(number, text, len(names or ())) for number, text in group]
                skipped = min(max(start - seen, 0), len(records))
                seen += len(records)
                if len(records) > skipped:
                    yield _chunk(self.columns, places, records[skipped:], seen)


def _joined(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Records: lines joined while a quote is open; empty lines left out."""
    held, first = b"", 0
    for number, line in lines:
        if not held and not line.strip():
            continue
        if not held:
            first = number
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        held += line
        if held.count(b'"') % 2 == 0:
            yield first, held
            held = b""
    if held:
        yield first, held


def _split(text: bytes) -> Fields | None:
    """The fields of a record, or None when its quotes are wrong."""
    line = text.decode("utf-8").removesuffix("\n").removesuffix("\r")
    if '"' not in line:
        return [field or None for field in line.split(",")]
    fields: Fields = []
    place = 0
    while True:
        match = _FIELD.match(line, place)
        if match is None:
            return None
        quoted, bare, comma = match.groups()
        fields.append(quoted.replace('""', '"') if quoted is not None else bare or None)
        place = match.end()
        if not comma:
            return fields


def _record(number: int, text: bytes, width: int) -> Record[Fields]:
    try:
        fields = _split(text)
    except UnicodeDecodeError as error:
        return Record(number, text, None, reason=f"not UTF-8: {error}")
    if fields is None:
        return Record(number, text, None, reason="a quote that does not fit: torn row")
    if len(fields) != width:
        reason = f"wanted {width} fields, came {len(fields)}"
        return Record(number, text, None, reason=reason)
    return Record(number, text, fields)


def _places(names: Fields | None, columns: Columns, file: str) -> list[int]:
    places = []
    for name, dtype in columns:
        if pa.types.is_nested(dtype):
            message = f"CSV has no form for {type_name(dtype)}"
            raise InputError(message, file=file, line=1, column=name)
        count = names.count(name) if names is not None else 0
        if count != 1 or names is None:
            message = f"the header has this name {count} times, not once"
            raise InputError(message, file=file, line=1, column=name)
        places.append(names.index(name))
    return places


def _chunk(
    columns: Columns, places: Sequence[int], records: Sequence[Record[Fields]], stop: int
) -> Chunk:
    rows = [r.row for r in records if r.row is not None]
    parts = [
        _values([row[place] for row in rows], dtype)
        for place, (_, dtype) in zip(places, columns, strict=True)
    ]
    typed = Typed([p[0] for p in parts], [p[1] for p in parts])
    return text_chunk(columns, records, typed, stop - len(records), (NO_TIMES, NO_TIMES))


def _values(texts: Fields, dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    if pa.types.is_decimal(dtype):
        return _read_each(texts, dtype, Decimal)
    if dtype == BINARY:
        return _read_each(texts, dtype, lambda text: base64.b64decode(text, validate=True))
    return cast_texts(pa.array(texts, STRING), dtype)


def _read_each(
    texts: Fields, dtype: pa.DataType, read: Callable[[str], object]
) -> tuple[pa.Array, Misfits]:
    values: list[object] = []
    misfits = {}
    for row, text in enumerate(texts):
        try:
            values.append(None if text is None else read(text))
        except (InvalidOperation, binascii.Error):
            values.append(None)
            misfits[row] = f"wanted {type_name(dtype)}, came {text!r}"
    column, others = values_as(values, dtype)
    return column, {**others, **misfits}
