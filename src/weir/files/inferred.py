"""Guesses the STREAM statement of a file from its columns and its first rows.

Types of Parquet and Arrow files are their own. In texts a column has the narrowest of BOOLEAN,
BIGINT, DOUBLE, DATE, TIMESTAMP and STRING that all its values have; in JSON also LIST and STRUCT.
The time is the first TIMESTAMP, else a BIGINT that is called like a time, or looks like one. What
was guessed is said in a comment.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import pyarrow as pa

from weir.errors import InputError
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    type_name,
)
from weir.files.buckets import Found
from weir.files.chunks import Columns, DataFile
from weir.files.columnar import stored_schema
from weir.files.readers import ending_of, open_partition, source_files, source_objects
from weir.plan.durations import duration_text
from weir.plan.operators import Source, SourceOptions
from weir.plan.urls import is_object_url
from weir.script.cursor import RESERVED

MOST_ROWS = 10_000
_TIME_NAMES = re.compile(r"(^|_)(vs|ts|time|timestamp|at|date|datetime|when)($|_)|Time$|At$", re.I)
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SINCE, _UNTIL = 5 * 10**8, 5 * 10**9
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_BIGINT = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|-?Infinity", re.ASCII)
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class InferredStream:
    """Holds what a STREAM statement says, and what about it is a guess."""

    name: str
    path: str
    columns: Columns
    vs: str | None
    unit: str | None
    delay: int
    notes: Sequence[str]

    def text(self) -> str:
        """Write the statement, with its notes above it."""
        columns = ", ".join(f"{_quoted(n)} {_type_text(t)}" for n, t in self.columns)
        if len(columns) > 80:
            listed = (f"  {_quoted(n)} {_type_text(t)}" for n, t in self.columns)
            columns = "\n" + ",\n".join(listed) + "\n"
        options = [f"vs = {_quoted(self.vs) if self.vs is not None else '…'}"]
        if self.unit is not None:
            options.append(f"unit = '{self.unit}'")
        if self.delay:
            options.append(f"delay = {duration_text(self.delay)}")
        path = self.path.replace("'", "''")
        notes = "".join(f"-- {note}\n" for note in self.notes)
        said = f"STREAM {self.name} ({columns})\n  FROM '{path}'\n  WITH ({', '.join(options)});\n"
        return notes + said

    def as_json(self) -> dict[str, object]:
        """Return the statement and its parts, as --json has them."""
        columns = [[name, _type_text(dtype)] for name, dtype in self.columns]
        return {
            "name": self.name, "path": self.path, "columns": columns, "vs": self.vs,
            "unit": self.unit, "delay": self.delay, "statement": self.text(),
        }  # fmt: skip


def inferred_stream(path: str) -> InferredStream:
    """Guess the STREAM statement of the files that a path names."""
    found: Found | None = None
    if is_object_url(path):
        file, found = source_objects(path)[0]
    else:
        file = source_files(path, "")[0]
    ending = ending_of(file)
    notes: list[str] = []
    if ending in (".parquet", ".arrow"):
        columns = _stored(stored_schema(file, found), file)
    elif ending == ".csv":
        columns = _csv(_lines(file, found), file)
    elif ending == ".jsonl":
        columns = _json(_lines(file, found), file)
    else:
        known = ".jsonl, .csv (also .gz, .zst), .parquet, .arrow"
        raise InputError(f"its ending says no format; known are {known}", file=file)
    empty = [n for n, dtype in columns if pa.types.is_null(dtype)]
    columns = [(n, STRING if pa.types.is_null(t) else t) for n, t in columns]
    if empty:
        notes.append(f"{', '.join(empty)}: no value was seen, so the type is a guess.")
    vs = _time_column(columns)
    unit, delay = (None, 0) if vs is None else _times(file, found, columns, vs)
    if vs is None:
        notes.append("No column looks like a time: say which one is (`vs`), TIMESTAMP or BIGINT.")
    elif unit is not None:
        notes.append(f"{vs} looks like a number of {unit} since 1970.")
    if delay:
        notes.append(f"Rows are not in the order of {vs}: the delay admits those that were seen.")
    return InferredStream(_stream_name(file), path, columns, vs, unit, delay, notes)


# --- columns ---------------------------------------------------------------------------------


def _stored(found: pa.Schema, file: str) -> Columns:
    return [(field.name, _weirs(field.type, f"{file}, column {field.name}")) for field in found]


def _weirs(dtype: pa.DataType, where: str) -> pa.DataType:
    """Return the type of the language that holds a type of Arrow's."""
    if pa.types.is_dictionary(dtype):
        return _weirs(dtype.value_type, where)
    if pa.types.is_timestamp(dtype):
        return TIMESTAMP
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(_weirs(dtype.value_type, where))
    if pa.types.is_struct(dtype):
        return pa.struct([(f.name, _weirs(f.type, where)) for f in dtype])
    if pa.types.is_decimal(dtype) and dtype.precision <= 38:
        return pa.decimal128(dtype.precision, max(dtype.scale, 0))
    simple = (
        (BOOLEAN, pa.types.is_boolean), (DATE, pa.types.is_date), (DOUBLE, pa.types.is_floating),
        (NULL, pa.types.is_null),
    )  # fmt: skip
    for ours, fits in simple:
        if fits(dtype):
            return ours
    if pa.types.is_integer(dtype) and dtype != pa.uint64():
        return INT if dtype.bit_width < 32 or dtype == INT else BIGINT
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return STRING
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return BINARY
    raise InputError(f"{where}: there is no type for {dtype}")


def _lines(file: str, found: Found | None) -> list[str]:
    data = DataFile(file, (), found=found)
    with io.TextIOWrapper(data.open_text(), encoding="utf-8-sig", newline="") as text:
        try:
            return list(islice(text, MOST_ROWS + 1))
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8: {error}", file=file) from error


def _csv(lines: Sequence[str], file: str) -> Columns:
    records = list(csv.reader(lines))
    header = next((r for r in records if r), None)
    if header is None:
        raise InputError("the file is empty; its first row is a header", file=file)
    if len(header) == 1:
        for other, word in ((";", "`;`"), ("\t", "tabs"), ("|", "`|`")):
            if other in header[0]:
                message = f"the header has {word} between its fields, where commas are wanted"
                raise InputError(message, file=file, line=1)
    rows = [r for r in records[1:] if len(r) == len(header)]
    return [(name, _of_texts([r[i] for r in rows])) for i, name in enumerate(header)]


def _of_texts(values: Iterable[str]) -> pa.DataType:
    seen = [v for v in values if v != ""]
    if not seen:
        return NULL
    kinds: tuple[tuple[pa.DataType, re.Pattern[str]], ...] = (
        (BOOLEAN, re.compile("true|false", re.I)),
        (BIGINT, _BIGINT),
        (DOUBLE, _DOUBLE),
        (DATE, _DATE),
        (TIMESTAMP, _TIMESTAMP),
    )
    for dtype, pattern in kinds:
        if all(pattern.fullmatch(v) for v in seen):
            return dtype
    if all(_DATE.fullmatch(v) or _TIMESTAMP.fullmatch(v) for v in seen):
        return TIMESTAMP
    return STRING


def _json(lines: Sequence[str], file: str) -> Columns:
    values: dict[str, list[object]] = {}
    decoder = msgspec.json.Decoder()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise InputError(f"no JSON: {error}", file=file, line=number) from error
        if not isinstance(row, dict):
            raise InputError("each line is to be an object, {…}", file=file, line=number)
        for name, value in row.items():
            if name != "$cti":
                values.setdefault(name, []).append(value)
    if not values:
        raise InputError("the file has no rows to guess columns from", file=file)
    return [(name, _of_values(found)) for name, found in values.items()]


def _of_values(values: Iterable[object]) -> pa.DataType:
    """Return the type of JSON values; STRING where they have none together."""
    seen = [v for v in values if v is not None]
    if not seen:
        return NULL
    if all(isinstance(v, bool) for v in seen):
        return BOOLEAN
    if all(isinstance(v, int) and not isinstance(v, bool) for v in seen):
        return BIGINT if all(-(2**63) <= int(str(v)) < 2**63 for v in seen) else DOUBLE
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in seen):
        return DOUBLE
    if all(isinstance(v, str) for v in seen):
        texts = _of_texts([str(v) for v in seen if v])
        return texts if texts in (DATE, TIMESTAMP) and "" not in seen else STRING
    if all(isinstance(v, list) for v in seen):
        element = _of_values([e for v in seen if isinstance(v, list) for e in v])
        return pa.list_(STRING if pa.types.is_null(element) else element)
    if all(isinstance(v, dict) for v in seen):
        fields: dict[str, list[object]] = {}
        for value in seen:
            for name, inner in value.items() if isinstance(value, dict) else ():
                fields.setdefault(name, []).append(inner)
        typed = {n: _of_values(v) for n, v in fields.items()}
        return pa.struct([(n, STRING if pa.types.is_null(t) else t) for n, t in typed.items()])
    return STRING


# --- the time --------------------------------------------------------------------------------


def _time_column(columns: Columns) -> str | None:
    names = [n for n, _ in columns]
    if "vs" in names and dict(columns)["vs"] in (BIGINT, TIMESTAMP):
        return "vs"
    times = [n for n, dtype in columns if dtype == TIMESTAMP]
    numbers = [n for n, dtype in columns if dtype == BIGINT and _TIME_NAMES.search(n)]
    return next(iter((*times, *numbers)), None)


def _times(file: str, found: Found | None, columns: Columns, vs: str) -> tuple[str | None, int]:
    """Return the unit of a BIGINT time, and the delay that admits all of the first rows."""
    source = Source("A", ((vs, dict(columns)[vs]),), file, SourceOptions(vs), 0)
    chunk = next(iter(open_partition(source, file, found=found).chunks(MOST_ROWS)), None)
    if chunk is None or not chunk.rows.num_rows:
        return None, 0
    values = [v for v in chunk.rows.column(0).cast(BIGINT).to_pylist() if v is not None]
    unit, size = None, 1.0
    if dict(columns)[vs] == BIGINT and values:
        for name, times in _UNITS.items():
            if _SINCE * times <= min(values) and max(values) <= _UNTIL * times:
                unit, size = name, 10**6 / times
    largest, lag = None, 0
    for value in values:
        largest = value if largest is None else max(largest, value)
        lag = max(lag, largest - value)
    return unit, _rounded(int(-(-lag * size // 1)))


def _rounded(ticks: int) -> int:
    """Round a duration up to one that is short to write."""
    for size in (86_400 * 10**6, 3_600 * 10**6, 60 * 10**6, 10**6, 1_000):
        if ticks > size:
            return -(-ticks // size) * size
    return ticks


# --- words -----------------------------------------------------------------------------------


def _stream_name(file: str) -> str:
    stem = re.split(r"[/\\]", file)[-1].split(".")[0]
    words = re.findall(r"[A-Za-z0-9]+", stem)
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name and not name[0].isdigit() else f"Stream{name}"


def _quoted(name: str) -> str:
    plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _type_text(dtype: pa.DataType) -> str:
    if pa.types.is_struct(dtype):
        return f"STRUCT({', '.join(f'{_quoted(f.name)} {_type_text(f.type)}' for f in dtype)})"
    if pa.types.is_list(dtype):
        return f"LIST({_type_text(dtype.value_type)})"
    return type_name(dtype)
