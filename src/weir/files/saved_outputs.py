"""Reads outputs back: their files, their columns, and their rows as batches.

Contract
1. An output is a file, or a folder in which every file is a part, except for names that begin with
   `_` or `.`. All parts have the same format and columns.
2. Parquet and Arrow files know their types. Text files are read with the types in the output's
   digest file or, without one, with those of the output that it is compared with, by name.
3. Rows come block by block, in the order of each part; nothing is kept.
4. Rows without a lifetime (the BAD stream) become points at their `offset`, as in their digest.
5. What cannot be read is an InputError that names the file.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from weir.errors import InputError
from weir.events.batch import Batch, ticks
from weir.events.types import (
    BIGINT,
    NULL,
    STRING,
    TIMESTAMP,
    holding_type,
    stored_type_name,
)
from weir.files.buckets import ObjectVersion
from weir.files.chunks import CHUNK_ROWS, Chunk, DataFile, object_version
from weir.files.columnar import stored_schema
from weir.files.readers import FORMATS
from weir.files.sidecar import Sidecar, read_sidecar, sidecar_path, sidecar_schema
from weir.files.writers import OutputForm
from weir.plan.operators.source import LARGEST_RECORD
from weir.plan.schema import Schema
from weir.plan.urls import is_object_url, refuse_secrets

_TEXTS = (".jsonl", ".csv")
_TIMES = ("vs", "ve")


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """A written output: where it is, its columns and format, and the digest in its digest file."""

    path: str
    files: tuple[str, ...]
    form: OutputForm
    sidecar: Sidecar | None
    versions: Mapping[str, ObjectVersion] = field(default_factory=dict)
    """The versions of the files that are objects in a bucket."""

    def batches(self, file: str, size: int = CHUNK_ROWS) -> Iterator[Batch]:
        """Yield the rows of one of the files."""
        columns = [(name, self._read_as(dtype)) for name, dtype in self.form.columns]
        partition = FORMATS[self.form.ending](
            file, columns, max_record=LARGEST_RECORD, version=self.versions.get(file)
        )
        try:
            for chunk in partition.chunks(size):
                _refuse_bad(chunk, file)
                if chunk.rows.num_rows:
                    yield self._batch(chunk.rows, file)
        except OSError as error:
            raise InputError(f"cannot be read: {error}", file=file) from error

    def _read_as(self, dtype: pa.DataType) -> pa.DataType:
        return STRING if dtype == NULL and self.form.ending in _TEXTS else dtype

    def _batch(self, rows: pa.RecordBatch, file: str) -> Batch:
        columns = tuple(
            _as_null(rows, name, file) if dtype == NULL else rows.column(name)
            for name, dtype in self.form.schema.columns
        )
        if self.form.lifetime:
            return Batch(ticks(rows.column("vs")), ticks(rows.column("ve")), columns)
        offsets = ticks(rows.column("offset"))
        return Batch(offsets, offsets + 1, columns)


def _refuse_bad(chunk: Chunk, file: str) -> None:
    if chunk.bad:
        row = chunk.bad[0]
        message = f"{row.reason}; the row is {row.text}"
        raise InputError(message, file=file, line=row.line, column=row.column)


def _as_null(rows: pa.RecordBatch, name: str, file: str) -> pa.Array:
    if rows.column(name).null_count < rows.num_rows:
        raise InputError("expected NULL in every row", file=file, column=name)
    return pa.nulls(rows.num_rows)


def open_outputs(paths: Sequence[str]) -> list[SavedOutput]:
    """Open the outputs at these paths, for a comparison."""
    for path in paths:
        refuse_secrets(path)
    versions = {path: object_version(path) for path in paths if is_object_url(path)}
    files = [_files(path) for path in paths]
    sidecars = [read_sidecar(path) for path in paths]
    outputs = zip(paths, files, sidecars, strict=True)
    forms = [_own_form(path, parts, sidecar, versions) for path, parts, sidecar in outputs]
    lender = next((form for form in forms if form is not None), None)
    if lender is None:
        message = f"the types of its columns are not known: there is no {sidecar_path(paths[0])}"
        raise InputError(message, file=paths[0])
    return [
        SavedOutput(path, parts, form or _text_form(parts, lender, versions), sidecar, versions)
        for path, parts, form, sidecar in zip(paths, files, forms, sidecars, strict=True)
    ]


def column_differences(
    a: Sequence[tuple[str, str]], b: Sequence[tuple[str, str]], names: tuple[str, str]
) -> tuple[str, ...]:
    """Describe how the columns of two outputs differ, in names and types.

    >>> column_differences([("k", "INT"), ("v", "INT")], [("k", "BIGINT")], ("A", "B"))
    ('k is INT in A, BIGINT in B', 'v INT is in A only')
    """
    first, second = dict(a), dict(b)
    differences = [
        f"{name} is {first[name]} in {names[0]}, {second[name]} in {names[1]}"
        for name in first
        if name in second and first[name] != second[name]
    ]
    differences += [f"{n} {t} is in {names[0]} only" for n, t in a if n not in second]
    differences += [f"{n} {t} is in {names[1]} only" for n, t in b if n not in first]
    if not differences and list(first) != list(second):
        orders = [", ".join(columns) for columns in (first, second)]
        differences = [f"the order is {orders[0]} in {names[0]}, {orders[1]} in {names[1]}"]
    return tuple(differences)


def typed_names(form: OutputForm) -> list[tuple[str, str]]:
    """Return all columns of an output with their types as scripts write them."""
    return [(name, stored_type_name(dtype)) for name, dtype in form.columns]


# --- files and columns ---------------------------------------------------------------------


def _files(path: str) -> tuple[str, ...]:
    if not is_object_url(path) and not os.path.exists(path):
        raise InputError("no such file or folder", file=path)
    if is_object_url(path) or not os.path.isdir(path):
        files = [path]
    else:
        names = sorted((n for n in os.listdir(path) if n[0] not in "_."), key=os.fsencode)
        files = [os.path.join(path, name) for name in names]
    endings = {_ending(file) for file in files}
    if len(endings) != 1 or not endings <= set(FORMATS):
        formats = ", ".join(FORMATS)
        raise InputError(f"not an output: a file, or a folder of files, in {formats}", file=path)
    return tuple(files)


def _ending(file: str) -> str:
    return os.path.splitext(file)[1].lower()


def _own_form(
    path: str, files: Sequence[str], sidecar: Sidecar | None, versions: Mapping[str, ObjectVersion]
) -> OutputForm | None:
    """Return the form of an output as far as it is known without another output."""
    if _ending(files[0]) in _TEXTS:
        if sidecar is None:
            return None
        lender = OutputForm("", sidecar_schema(path, sidecar), sidecar.lifetime)
        return _text_form(files, lender, versions)
    form, *others = [_stored_form(file, versions.get(file)) for file in files]
    for file, other in zip(files[1:], others, strict=True):
        differ = column_differences(typed_names(form), typed_names(other), (files[0], file))
        if differ:
            raise InputError(f"parts of one output differ: {'; '.join(differ)}", file=path)
    return form


def _text_form(
    files: Sequence[str], lender: OutputForm, versions: Mapping[str, ObjectVersion]
) -> OutputForm:
    """Return the columns of text files, with the types and order of the lender's. A name that the
    lender does not have is STRING."""
    ending = _ending(files[0])
    named = list(dict.fromkeys(name for file in files for name in _text_names(file, versions)))
    columns = lender.schema.columns
    # A row of JSON may leave a NULL out; a header names every column.
    kept = [c for c in columns if ending == ".jsonl" or c[0] in named]
    new = [(n, STRING) for n in named if n not in lender.schema.names and n not in _TIMES]
    return OutputForm(ending, Schema((*kept, *new), lender.schema.time), lender.lifetime)


_decoder = msgspec.json.Decoder(dict[str, object])


def _text_names(file: str, versions: Mapping[str, ObjectVersion]) -> list[str]:
    """Return the names in the header, or in the first JSON row."""
    data = DataFile(file, (), version=versions.get(file))
    try:
        if _ending(file) == ".csv":
            with io.TextIOWrapper(data.open_text(), encoding="utf-8-sig", newline="") as lines:
                return next(csv.reader(lines), [])
        with data.open_text() as rows:
            first = next((row for row in rows if not row.isspace()), b"{}")
            return list(_decoder.decode(first))
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise InputError(f"not a readable file: {error}", file=file, line=1) from error


def _stored_form(file: str, version: ObjectVersion | None) -> OutputForm:
    stored = _stored_schema(file, version)
    types = {column.name: _held(column, file) for column in stored}
    lifetime = all(types.get(name) in (BIGINT, TIMESTAMP) for name in _TIMES)
    if not lifetime and types.get("offset") != BIGINT:
        message = "not an output: it has no time columns vs and ve, and no offset of bad rows"
        raise InputError(message, file=file)
    columns = tuple((n, t) for n, t in types.items() if not (lifetime and n in _TIMES))
    return OutputForm(_ending(file), Schema(columns, types.get("vs", BIGINT)), lifetime)


def _stored_schema(file: str, version: ObjectVersion | None) -> pa.Schema:
    try:
        return stored_schema(file, version)
    except OSError as error:
        raise InputError(f"not a readable file: {error}", file=file) from error


def _held(column: pa.Field, file: str) -> pa.DataType:
    dtype = holding_type(column.type)
    if dtype is None:
        raise InputError(f"no type of Weir holds {column.type}", file=file, column=column.name)
    return dtype
