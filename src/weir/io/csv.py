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
from itertools import islice

import pyarrow as pa

from weir.errors import InputError
from weir.events.types import BINARY, STRING, type_name
from weir.io.chunks import CHUNK_ROWS, NO_TIMES, Chunk
from weir.io.jsonl import values_as
from weir.io.texts import Columns, Misfits, Records, Typed, cast_texts, text_chunk

Fields = list[str | None]

_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^",]*))(,|$)')


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A `.csv` file as a partition."""

    name: str
    columns: Columns

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with open(self.name, "rb") as file:
            groups = _record_groups(file, size)
            names = _header(groups, self.name)
            places = _places(names, self.columns, self.name)
            seen = 0
            for numbers, texts in groups:
                records = _records(numbers, texts, len(names))
                skipped = min(max(start - seen, 0), len(records))
                seen += len(records)
                if len(records) > skipped:
                    kept = records.since(skipped)
                    texts_of = _text_columns(kept, places, len(names))
                    yield _chunk(self.columns, texts_of, kept, seen)


def _record_groups(file: Iterable[bytes], size: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
    """Records with the numbers of their first lines: the header alone, then groups."""
    lines = enumerate(file, start=1)
    size_now = 1
    while group := list(islice(lines, size_now)):
        # With all quotes closed, the next line begins a record.
        open_quotes = sum(line.count(b'"') for _, line in group) % 2
        while open_quotes and (following := next(lines, None)) is not None:
            group.append(following)
            open_quotes ^= following[1].count(b'"') % 2
        numbers, texts = _joined(group)
        if texts:
            yield numbers, texts
            size_now = size


def _joined(lines: Sequence[tuple[int, bytes]]) -> tuple[list[int], list[bytes]]:
    """Records: lines joined while a quote is open; blank lines between records left out."""
    numbers: list[int] = []
    texts: list[bytes] = []
    is_open = False
    for number, line in lines:
        if is_open:
            texts[-1] += line
        elif not line.isspace():
            numbers.append(number)
            texts.append(line)
        is_open ^= bool(line.count(b'"') % 2)
    return numbers, texts


def _header(groups: Iterator[tuple[Sequence[int], list[bytes]]], file: str) -> Fields:
    _, [text] = next(groups, ((), [b""]))
    names = _split(text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
    if not text or names is None:
        raise InputError("no readable header row", file=file, line=1)
    return names


def _split(text: str) -> Fields | None:
    """The fields of a record, or None when its quotes are wrong."""
    line = text.rstrip("\r\n")
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


def _records(numbers: Sequence[int], texts: list[bytes], width: int) -> Records[Fields]:
    if _is_plain(texts, width):
        return Records(numbers, texts, ())  # read column by column, see _text_columns
    rows: list[Fields] = []
    faults: dict[int, tuple[str, str]] = {}
    for row, text in enumerate(texts):
        try:
            fields = _split(text.decode())
        except UnicodeDecodeError as error:
            fields, reason = [], f"not UTF-8: {error}"
        else:
            reason = _misshape(fields, width)
        if reason:
            faults[row] = ("", reason)
        rows.append(fields or [])
    return Records(numbers, texts, rows, faults)


def _is_plain(texts: list[bytes], width: int) -> bool:
    """No quotes, no torn rows, nothing that is not UTF-8: commas are all there is to see."""
    together = b"".join(texts)
    if b'"' in together or any(text.count(b",") != width - 1 for text in texts):
        return False
    try:
        together.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text_columns(records: Records[Fields], places: Sequence[int], width: int) -> list[Fields]:
    if records.rows or records.faults:
        rows = records.readable()
        return [[row[place] for row in rows] for place in places]
    # Plain rows: all fields in one list, of which a column is every so many.
    fields = b",".join([text.rstrip(b"\r\n") for text in records.texts]).decode().split(",")
    return [[field or None for field in fields[place::width]] for place in places]


def _misshape(fields: Fields | None, width: int) -> str:
    if fields is None:
        return "a quote that does not fit: torn row"
    return "" if len(fields) == width else f"wanted {width} fields, came {len(fields)}"


def _places(names: Fields, columns: Columns, file: str) -> list[int]:
    places = []
    for name, dtype in columns:
        if pa.types.is_nested(dtype):
            message = f"CSV has no form for {type_name(dtype)}"
            raise InputError(message, file=file, line=1, column=name)
        count = names.count(name)
        if count != 1:
            message = f"the header has this name {count} times, not once"
            raise InputError(message, file=file, line=1, column=name)
        places.append(names.index(name))
    return places


def _chunk(columns: Columns, texts: Sequence[Fields], records: Records[Fields], stop: int) -> Chunk:
    parts = [_values(t, dtype) for t, (_, dtype) in zip(texts, columns, strict=True)]
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
