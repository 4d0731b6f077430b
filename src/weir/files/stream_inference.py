"""Guesses the STREAM statement of files from their columns and their first rows.

The time column is the first TIMESTAMP, else a BIGINT whose name or values look like times. Comments
in the statement say what was guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import InputError
from weir.events.types import BIGINT, DOUBLE, NULL, STRING, TIMESTAMP, type_name
from weir.files.buckets import ObjectVersion
from weir.files.chunks import Columns
from weir.files.column_inference import Guess, file_columns, is_known, settled, together
from weir.files.readers import ending_of, open_partition, source_files, source_objects
from weir.files.sinks import UNPLAIN_NAME
from weir.plan.durations import duration_text, rounded_up
from weir.plan.names import RESERVED_WORDS, WINDOW_COLUMNS
from weir.plan.operators import Source, SourceOptions
from weir.plan.urls import is_object_url
from weir.wording import counted, in_one_line

MOST_ROWS = 10_000
_MOST_FILES = 20
_TIME_NAMES = re.compile(
    r"(^|_)(vs|ts|t|epoch|time|timestamp|at|date|datetime|when)($|_)|Time$|At$", re.I
)
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SINCE, _UNTIL = 5 * 10**8, 5 * 10**9
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class InferredStream:
    """The parts of a STREAM statement, with notes on what is a guess."""

    name: str
    path: str
    columns: Columns
    vs: str | None
    unit: str | None
    delay: int
    notes: Sequence[str]

    def text(self) -> str:
        """Return the statement as text, with its notes above it."""
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
        notes = "".join(f"-- {in_one_line(note)}\n" for note in self.notes)
        statement = (
            f"STREAM {self.name} ({columns})\n  FROM '{path}'\n  WITH ({', '.join(options)});\n"
        )
        return notes + statement

    def as_json(self) -> dict[str, object]:
        """Return the statement and its parts as `--json` prints them."""
        columns = [[name, _type_text(dtype)] for name, dtype in self.columns]
        return {
            "name": self.name,
            "path": self.path,
            "columns": columns,
            "vs": self.vs,
            "unit": self.unit,
            "delay": self.delay,
            "statement": self.text(),
        }


def inferred_stream(path: str) -> InferredStream:
    """Guess the STREAM statement of the files that a path names."""
    if is_object_url(path):
        files: Sequence[tuple[str, ObjectVersion | None]] = source_objects(path)
    else:
        files = [(file, None) for file in source_files(path, "")]
    looked = files[:_MOST_FILES]
    most = MOST_ROWS // len(looked)
    columns, notes, empty = _merged({f: file_columns(f, version, most) for f, version in looked})
    if len(files) > 1:
        which = f"the first {len(looked)} of " if len(looked) < len(files) else ""
        notes.insert(0, f"Guessed from the first rows of {which}{counted(len(files), 'file')}.")
    vs = _time_column(columns)
    unit, delay = (None, 0) if vs is None else _times(looked, columns, vs, most)
    if vs is None:
        notes.append("No column looks like a time: set `vs` to one that is, TIMESTAMP or BIGINT.")
        notes += _no_times([c for c in columns if c[0] not in empty])
    elif unit is not None:
        notes.append(f"{vs} looks like a number of {unit} since 1970.")
    if delay:
        notes.append(f"Rows are not in the order of {vs}: the delay admits those that were seen.")
    is_folder = files[0][0].startswith(f"{path.rstrip('/')}/")
    name = _stream_name(path if len(files) > 1 or is_folder else files[0][0])
    return InferredStream(name, path, columns, vs, unit, delay, notes)


# --- columns ---------------------------------------------------------------------------------


def _merged(
    columns_by_file: Mapping[str, Mapping[str, Guess]],
) -> tuple[Columns, list[str], list[str]]:
    """Return the common columns of all files, notes on what was guessed or left out, and the names
    of the columns without any value."""
    types: dict[str, pa.DataType] = {}
    doubts: dict[str, str | None] = {}
    for columns in columns_by_file.values():
        for name, (dtype, doubt) in columns.items():
            before = types.get(name, NULL)
            types[name] = together(before, dtype)
            if types[name] == STRING and {before, dtype} - {STRING, NULL}:
                doubt = doubt or f"{type_name(before)} in some files, {type_name(dtype)} in others"
            doubts[name] = doubts.get(name) or doubt
    if not types:
        raise InputError(
            "the file has no rows to guess columns from", file=next(iter(columns_by_file))
        )
    notes: list[str] = []
    for name, dtype in list(types.items()):
        # A row of JSON may lack a field; in other formats a missing column counts.
        lacks = [
            f for f, c in columns_by_file.items() if name not in c and ending_of(f) != ".jsonl"
        ]
        texts = any(ending_of(file) == ".jsonl" for file in columns_by_file)
        if not _may_be_named(name, dtype) or (texts and UNPLAIN_NAME.search(name)):
            notes.append(f"{name or '(no name)'}: not a valid name of a column, so it is left out.")
        elif not is_known(dtype):
            notes.append(f"{name}: there is no type for {dtype}, so it is left out.")
        elif lacks:
            notes.append(f"{name}: {lacks[0]} has no such column, so it is left out.")
        else:
            notes += [f"{name}: {doubts[name]}."] * bool(doubts[name])
            continue
        del types[name]
    if not types:
        raise InputError(" ".join(notes), file=next(iter(columns_by_file)))
    empty = [n for n, dtype in types.items() if pa.types.is_null(dtype)]
    if empty:
        notes.append(f"{', '.join(empty)}: no value was seen, so the type is a guess.")
    return [(n, settled(t)) for n, t in types.items()], notes, empty


def _may_be_named(name: str, dtype: pa.DataType) -> bool:
    """Tell whether a STREAM may have a column of this name, and its fields their names."""
    fields = dtype.value_type if pa.types.is_list(dtype) else dtype
    inner = [(f.name, f.type) for f in fields] if pa.types.is_struct(fields) else []
    named = name != "" and "." not in name and name not in WINDOW_COLUMNS
    return named and all(_may_be_named(*field) for field in inner)


# --- the time --------------------------------------------------------------------------------


def _time_column(columns: Columns) -> str | None:
    names = [n for n, _ in columns]
    if "vs" in names and dict(columns)["vs"] in (BIGINT, TIMESTAMP):
        return "vs"
    times = [n for n, dtype in columns if dtype == TIMESTAMP]
    numbers = [n for n, dtype in columns if dtype == BIGINT and _TIME_NAMES.search(n)]
    return next(iter((*times, *numbers)), None)


def _no_times(columns: Columns) -> list[str]:
    """Advise what to do with columns that have names of times but no times."""
    named = [n for n, dtype in columns if dtype in (STRING, DOUBLE) and _TIME_NAMES.search(n)]
    way = "a time is ISO 8601 text or a whole number: convert it before, or read it in Python."
    return [f"{name}: {way}" for name in named]


def _times(
    files: Sequence[tuple[str, ObjectVersion | None]], columns: Columns, vs: str, most: int
) -> tuple[str | None, int]:
    """Return the unit of a BIGINT time, and the delay that admits all of the first rows."""
    each = [_first_times(file, version, (vs, dict(columns)[vs]), most) for file, version in files]
    values = [v for times in each for v in times]
    unit, size = None, 1.0
    if dict(columns)[vs] == BIGINT and values:
        for name, times in _UNITS.items():
            if _SINCE * times <= min(values) and max(values) <= _UNTIL * times:
                unit, size = name, 10**6 / times
    lag = max(map(_lag, each))
    return unit, rounded_up(int(-(-lag * size // 1)))


def _first_times(
    file: str, version: ObjectVersion | None, column: tuple[str, pa.DataType], most: int
) -> list[int]:
    source = Source("A", (column,), file, SourceOptions(column[0]), 0)
    chunk = next(iter(open_partition(source, file, version=version).chunks(most)), None)
    if chunk is None:
        return []
    return [v for v in chunk.rows.column(0).cast(BIGINT).to_pylist() if v is not None]


def _lag(values: Sequence[int]) -> int:
    """Return the largest distance of a value below the largest value before it."""
    largest, lag = None, 0
    for value in values:
        largest = value if largest is None else max(largest, value)
        lag = max(lag, largest - value)
    return lag


# --- words -----------------------------------------------------------------------------------


def _stream_name(path: str) -> str:
    """Make a name of the last part of a path that has letters, without endings."""
    stems = [part.split(".")[0] for part in re.split(r"[/\\]", path)]
    words = next(filter(None, (re.findall(r"[A-Za-z0-9]+", s) for s in reversed(stems))), [])
    name = "".join(word[0].upper() + word[1:] for word in words)
    is_plain = name and not name[0].isdigit() and name.upper() not in RESERVED_WORDS
    return name if is_plain else f"Stream{name}"


def _quoted(name: str) -> str:
    plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in RESERVED_WORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def _type_text(dtype: pa.DataType) -> str:
    if pa.types.is_struct(dtype):
        return f"STRUCT({', '.join(f'{_quoted(f.name)} {_type_text(f.type)}' for f in dtype)})"
    if pa.types.is_list(dtype):
        return f"LIST({_type_text(dtype.value_type)})"
    return type_name(dtype)
