"""Warns before a run if the first rows of its files look wrong.

- Numbers that look like seconds, milliseconds or nanoseconds since 1970 in a BIGINT time: without
  `unit` they are ticks, microseconds; with another unit they are times that nobody means.
- A declared field that no row of JSON lines has: it would be NULL in all of them.
- Times with nanoseconds, which are cut to microseconds.

Each is a `PlanWarning`. Only files are read, and of each source the first one; if it lacks a field,
others are searched for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches

import msgspec
import pyarrow.compute as pc

from weir.errors import InputError
from weir.events.types import BIGINT, TIMESTAMP
from weir.files.chunks import SourcePartition
from weir.files.columnar import ArrowFile, ParquetFile, finer_rows
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.files.time_units import FINER
from weir.plan.advice.plan_warnings import warn
from weir.plan.operators import Source
from weir.wording import counted

MOST_ROWS = 1000
_MOST_BYTES = 1 << 20
_MOST_FILES = 20
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_SINCE, _UNTIL = 5 * 10**8, 5 * 10**9
"""Seconds from 1985 to 2128: numbers between them that are ticks would be within two hours of
1970."""


def warn_of_inputs(opened: Iterable[tuple[Source, Sequence[SourcePartition]]]) -> None:
    """Warn of what the first rows of each source show."""
    for source, partitions in opened:
        first = partitions[0] if partitions else None
        if isinstance(first, JsonLines | CsvFile | ParquetFile | ArrowFile):
            # The run reports rows that cannot be read, with all that it knows of them.
            with suppress(InputError, OSError):
                _warn_of_unit(source, first)
            with suppress(InputError, OSError):
                _warn_of_nanoseconds(source, first)
            if isinstance(first, JsonLines):
                with suppress(InputError, OSError):
                    _warn_of_fields_of_files(source, partitions)


def _warn_of_unit(source: Source, file: SourcePartition) -> None:
    options = source.options
    if options.unit == "tick" or dict(source.declared)[options.vs] != BIGINT:
        return
    chunk = next(file.chunks(MOST_ROWS), None)
    if chunk is None:
        return
    limits = pc.min_max(chunk.rows.column(options.vs))
    least, most = limits["min"].as_py(), limits["max"].as_py()
    if least is None:
        return
    said = options.unit or "us"
    fitting = [u for u, size in _UNITS.items() if _SINCE * size <= least and most <= _UNTIL * size]
    if not fitting or said in fitting:
        return
    unit = fitting[0]
    day = datetime.fromtimestamp(least // _UNITS[unit], UTC).date()
    reading = f"is taken for {_WORDS[said]}"
    tick = ""
    if options.unit is None:
        reading += f": 1s is {10**6} of them"
        tick = ", or unit = 'tick' if they are plain numbers"
    _warn(
        f"STREAM {source.name}: `{options.vs}` looks like {_WORDS[unit]} since 1970 ({least} would "
        f"be {day.isoformat()}), and {reading}",
        f"write WITH (vs = {options.vs}, unit = '{unit}'), in Python vs='{options.vs}', "
        f"unit='{unit}'{tick}",
    )


def _warn_of_fields_of_files(source: Source, files: Sequence[SourcePartition]) -> None:
    """Warn of declared columns that the first rows of no file have; more than the first file are
    only read while something is missing."""
    fields: dict[str, None] = {}
    where, count = "", 0
    looked = [file for file in files[:_MOST_FILES] if isinstance(file, JsonLines)]
    for number, file in enumerate(looked, start=1):
        rows = [row for row in _json_rows(file) if "$cti" not in row]
        count = max(count, len(rows))
        fields.update(dict.fromkeys(name for row in rows for name in row))
        where = file.name if number == 1 else counted(number, "file")
        if not _lacking(source, fields):
            return
    if len(looked) < len(files):
        where = f"the first {len(looked)} of {len(files):,} files"
    _tell_fields(source, fields, count, where)


def warn_of_fields(source: Source, rows: Iterable[Mapping[str, object]], where: str) -> None:
    """Warn of declared columns that none of these rows has."""
    fields: dict[str, None] = {}
    count = 0
    for row in rows:
        if "$cti" not in row:
            count += 1
            fields.update(dict.fromkeys(row))
    _tell_fields(source, fields, count, where)


def _lacking(source: Source, fields: Mapping[str, None]) -> list[str]:
    return sorted({n for n, _ in source.declared if n != source.options.ve} - fields.keys())


def _tell_fields(source: Source, fields: Mapping[str, None], count: int, where: str) -> None:
    others = [n for n in fields if n not in dict(source.declared)]
    for name in _lacking(source, fields) if count else ():
        rows = f"none of the first {count:,} rows" if count == MOST_ROWS else "no row"
        _warn(
            f"STREAM {source.name}: {rows} of {where} has a field `{name}`; it is NULL there",
            _like(name, others) or (f"there are {', '.join(others)}" if others else ""),
        )


def _like(name: str, others: Sequence[str]) -> str:
    plain = {unicodedata.normalize("NFC", n): n for n in others}
    if unicodedata.normalize("NFC", name) in plain:
        return (
            f"the rows have `{name}` in another Unicode form: copy the name from the file, as the "
            "same letters may be other characters"
        )
    lower = {n.lower(): n for n in others}
    close = get_close_matches(name.lower(), lower, n=1)
    return f"did you mean `{lower[close[0]]}`?" if close else ""


def _warn_of_nanoseconds(
    source: Source, file: JsonLines | CsvFile | ParquetFile | ArrowFile
) -> None:
    if not any(dtype == TIMESTAMP for _, dtype in source.declared):
        return
    if isinstance(file, JsonLines | CsvFile):
        lines = _lines(file)
        count, finer = len(lines), sum(FINER.search(line) is not None for line in lines)
    else:
        count, finer = finer_rows(file, MOST_ROWS)
    if finer:
        _warn(
            f"STREAM {source.name}: times of {file.name} have nanoseconds, and are cut to "
            f"microseconds: in {finer:,} of the first {counted(count, 'row')}",
            "a BIGINT column keeps them as numbers",
        )


def _lines(file: JsonLines | CsvFile) -> list[bytes]:
    with file.open_text() as text:
        data = text.read(_MOST_BYTES)
    lines = data.splitlines()[: MOST_ROWS + 1]
    # The last one may be torn.
    return (lines if len(data) < _MOST_BYTES else lines[:-1])[:MOST_ROWS]


def _json_rows(file: JsonLines) -> Iterator[Mapping[str, object]]:
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    for line in _lines(file):
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # the run reports bad rows
            yield decoder.decode(line.removeprefix(b"\xef\xbb\xbf"))


def _warn(message: str, hint: str) -> None:
    text = f"{message}\n  hint: {hint}" if hint else message
    warn(text)
