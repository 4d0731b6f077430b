"""Guesses the columns of a file and their types from its first rows.

Parquet and Arrow files declare their types. In a text file a column gets the narrowest of BOOLEAN,
BIGINT, DOUBLE, DATE, TIMESTAMP and STRING that fits all its values; in JSON also LIST and STRUCT.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from weir.errors import InputError
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from weir.files.buckets import ObjectVersion
from weir.files.chunks import DataFile
from weir.files.columnar import stored_schema
from weir.files.readers import ending_of
from weir.files.record_frames import to_utf8
from weir.plan.functions.coercion import common_type

Guess = tuple[pa.DataType, str | None]
"""The type of a column, and a note about it, if there is one."""

_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?", re.ASCII
)
_BOOLEAN = re.compile("true|false", re.I)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_CODE = re.compile(r"[+-]?0\d+|\+\d+", re.ASCII)
"""Text that looks like a number but is not: a postal code, a telephone number."""
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|-?Infinity", re.ASCII)


def file_columns(file: str, version: ObjectVersion | None, most: int) -> Mapping[str, Guess]:
    """Return the columns of a file with their types, and notes on them, from its first rows. A type
    is NULL if no value was seen, and Arrow's own if the language has no such type."""
    ending = ending_of(file)
    if ending in (".parquet", ".arrow"):
        stored = stored_schema(file, version)
        columns: list[tuple[str, Guess]] = [
            (field.name, (_weirs(field.type), None)) for field in stored
        ]
    elif ending == ".csv":
        columns = _csv(_lines(file, version, most), file)
    elif ending == ".jsonl":
        return _json(_lines(file, version, most), file)
    else:
        formats = ".jsonl, .csv (also .gz, .zst), .parquet, .arrow"
        raise InputError(f"unknown format; expected {formats}", file=file)
    names = [name for name, _ in columns]
    for name in names:
        if names.count(name) > 1:
            message = f"there are {names.count(name)} columns of this name; rename all but one"
            raise InputError(message, file=file, column=name)
    return dict(columns)


def is_known(dtype: pa.DataType) -> bool:
    """Tell whether the language has this type of Arrow's."""
    if pa.types.is_list(dtype):
        return is_known(dtype.value_type)
    if pa.types.is_struct(dtype):
        return all(is_known(field.type) for field in dtype)
    return dtype in _SIMPLE or bool(pa.types.is_decimal128(dtype))


_SIMPLE = (BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP)


def together(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type of a column that has these types in two files; STRING if they have no common
    type."""
    if {one, other} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(together(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {f.name: f.type for f in one}
        for f in other:
            fields[f.name] = together(fields.get(f.name, NULL), f.type)
        return pa.struct(list(fields.items()))
    if not is_known(one) or not is_known(other):
        return one if is_known(other) else other
    return common_type(one, other) or STRING


def settled(dtype: pa.DataType) -> pa.DataType:
    """Replace NULL, the type of columns without values, by STRING."""
    if pa.types.is_list(dtype):
        return pa.list_(settled(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(f.name, settled(f.type)) for f in dtype])
    return STRING if pa.types.is_null(dtype) else dtype


def _weirs(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the language that can hold this type of Arrow's; the type itself if there
    is none."""
    if pa.types.is_dictionary(dtype):
        return _weirs(dtype.value_type)
    if pa.types.is_timestamp(dtype):
        return TIMESTAMP
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(_weirs(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(f.name, _weirs(f.type)) for f in dtype])
    if pa.types.is_decimal(dtype) and dtype.precision <= 38:
        return pa.decimal128(dtype.precision, max(dtype.scale, 0))
    simple = (
        (BOOLEAN, pa.types.is_boolean),
        (DATE, pa.types.is_date),
        (DOUBLE, pa.types.is_floating),
        (NULL, pa.types.is_null),
    )
    for ours, fits in simple:
        if fits(dtype):
            return ours
    if pa.types.is_integer(dtype):
        return INT if dtype.bit_width < 32 or dtype == INT else BIGINT
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(is_text(dtype) for is_text in texts):
        return STRING
    binaries = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return BINARY if any(is_binary(dtype) for is_binary in binaries) else dtype


def _lines(file: str, version: ObjectVersion | None, most: int) -> list[str]:
    data = DataFile(file, (), version=version)
    with io.TextIOWrapper(data.open_text(), encoding="utf-8-sig", newline="") as text:
        try:
            lines = list(islice(text, most + 1))
        except UnicodeDecodeError as error:
            message = f"the file is not UTF-8; {to_utf8(error.object)}"
            raise InputError(message, file=file) from error
    if lines and "\0" in lines[0]:
        raise InputError(f"the file is not UTF-8; {to_utf8(lines[0].encode())}", file=file)
    return lines


def _csv(lines: Sequence[str], file: str) -> list[tuple[str, Guess]]:
    records = list(csv.reader(lines))
    header = next((r for r in records if r), None)
    if header is None:
        raise InputError("the file is empty; its first row is a header", file=file)
    if len(header) == 1:
        for other, word in ((";", "`;`"), ("\t", "tabs"), ("|", "`|`")):
            if other in header[0]:
                message = (
                    f"the header has {word} between its fields; expected commas: write the "
                    "file with commas, or as Parquet"
                )
                raise InputError(message, file=file, line=1)
    rows = [r for r in records[1:] if len(r) == len(header)]
    return [(name, _of_fields([r[i] for r in rows])) for i, name in enumerate(header)]


def _of_fields(values: Sequence[str]) -> Guess:
    dtype = _of_texts(values)
    if dtype == STRING and all(_DOUBLE.fullmatch(v) for v in values if v != ""):
        return dtype, "numbers with leading zeros, a plus or many digits, so they are kept as texts"
    return dtype, _wide(dtype)


def _wide(dtype: pa.DataType) -> str | None:
    return "there are numbers beyond 64 bits" if pa.types.is_decimal(dtype) else None


def _of_whole(numbers: Sequence[int]) -> pa.DataType | None:
    """Return the narrowest type that holds all of these numbers, or None."""
    if all(-(2**63) <= n < 2**63 for n in numbers):
        return BIGINT
    reach = max(map(abs, numbers))
    return next((pa.decimal128(d, 0) for d in (20, 38) if reach < 10**d), None)


def _of_texts(values: Iterable[str]) -> pa.DataType:
    seen = [v for v in values if v != ""]
    if not seen:
        return NULL
    if all(_DOUBLE.fullmatch(v) for v in seen):
        whole = all(_WHOLE.fullmatch(v) for v in seen)
        if any(_CODE.fullmatch(v) for v in seen) or (whole and len(max(seen, key=len)) > 39):
            return STRING
        if whole:
            return _of_whole([int(v) for v in seen]) or STRING
        return DOUBLE
    if all(_BOOLEAN.fullmatch(v) for v in seen):
        return BOOLEAN
    if all(_DATE.fullmatch(v) for v in seen):
        return DATE
    if all(_DATE.fullmatch(v) or _TIMESTAMP.fullmatch(v) for v in seen):
        return TIMESTAMP
    return STRING


def _json(lines: Sequence[str], file: str) -> Mapping[str, Guess]:
    values: dict[str, list[object]] = {}
    decoder = msgspec.json.Decoder()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise InputError(f"not JSON: {error}", file=file, line=number) from error
        if not isinstance(row, dict):
            raise InputError("each line must be an object, {…}", file=file, line=number)
        for name, value in row.items():
            if name != "$cti":
                values.setdefault(name, []).append(value)
    return {name: _of_field(field_values) for name, field_values in values.items()}


def _of_field(values: Sequence[object]) -> Guess:
    doubts: list[str] = []
    dtype = _of_values(values, doubts)
    return dtype, doubts[0] if doubts else _wide(dtype)


def _of_values(values: Iterable[object], doubts: list[str]) -> pa.DataType:
    """Return the type of JSON values. If they have no common type, return that of most values and
    add a sentence to `doubts`."""
    kinds: dict[type, list[Any]] = {}
    for value in values:
        if value is not None:
            kinds.setdefault(float if type(value) is int else type(value), []).append(value)
    if not kinds:
        return NULL
    kind, seen = max(kinds.items(), key=lambda item: (len(item[1]), item[0] is str))
    dtype = _of_kind(kind, seen, doubts)
    others = sum(map(len, kinds.values())) - len(seen)
    if others:
        count = f"{others} of {others + len(seen)} values {'is' if others == 1 else 'are'} not"
        doubts.append(f"{count} {_SAID[kind]}: such rows are bad, and bad = 'skip' leaves them out")
    return dtype


_SAID = {bool: "BOOLEAN", float: "numeric", str: "text", list: "LIST", dict: "STRUCT"}


def _of_kind(kind: type, seen: Sequence[Any], doubts: list[str]) -> pa.DataType:
    if kind is bool:
        return BOOLEAN
    if kind is float:
        return (_of_whole(seen) or DOUBLE) if all(type(v) is int for v in seen) else DOUBLE
    if kind is str:
        texts = _of_texts(seen)
        return texts if texts in (DATE, TIMESTAMP) and "" not in seen else STRING
    if kind is list:
        return pa.list_(_of_values([e for v in seen for e in v], doubts))
    fields: dict[str, list[object]] = {}
    for value in seen:
        for name, inner in value.items():
            fields.setdefault(name, []).append(inner)
    return pa.struct([(n, _of_values(v, doubts)) for n, v in fields.items()])
