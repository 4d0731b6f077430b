"""Makes inputs from rows that a Python program has in memory.

`from_rows` takes a list of dicts, a dict of columns, or a table of Arrow, Pandas or Polars. It
writes the rows to an Arrow file, in a folder that is removed when the process ends. So every runner
on this machine reads them like any file, and equal rows are one file.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow as pa

from weir.errors import InputError, PlanError
from weir.events.decimal_doubles import nearest_doubles
from weir.events.python_types import TypeText, written_type
from weir.events.types import DATE, DOUBLE, STRING, TIMESTAMP, holding_type, type_name
from weir.files.python_values import column_of, whole_microseconds
from weir.plan.advice.python_habits import instead
from weir.plan.binding.binder import unknown
from weir.plan.durations import Ticks
from weir.plan.fluent.sources import stream
from weir.plan.fluent.stream import Stream

KINDS = "a list of dicts, a dict of columns, or a table of Arrow, Pandas or Polars"


@instead(
    schema="columns={'at': 'TIMESTAMP', …}",
    **dict.fromkeys(("time", "ts", "timestamp", "event_time", "index"), "vs='at'"),
)
def from_rows(
    rows: object,
    *,
    vs: str,
    name: str = "Rows",
    columns: Mapping[str, TypeText] | None = None,
    ve: str | None = None,
    lifetime: Ticks | None = None,
    delay: Ticks = 0,
    late: Literal["fail", "drop", "adjust"] = "fail",
    unit: Literal["s", "ms", "us", "ns", "tick"] | None = None,
) -> Stream:
    """Make a stream of rows in memory: a list of dicts, a dict of columns, or a table of Arrow,
    Pandas or Polars.

    Rows must be in order of time; `delay` says how late a row may come. `unit` is the unit of times
    that are numbers. Types are those of the values, or those in `columns`, which is required when
    there are no rows. The rows are kept in a temporary file on this machine while the process runs;
    for a cluster, write them to a file that all machines see, or use `from_spark`.

    >>> rows = from_rows([{"at": 1, "k": "x"}, {"at": 4, "k": "y"}], vs="at")
    >>> rows.duration(5).collect().column("ve").to_pylist()
    [6, 9]
    """
    if columns is None:
        table = table_of(rows)
        if not table.column_names:
            hint = "name them: from_rows(…, columns={'at': 'TIMESTAMP', …})"
            raise PlanError("there are no rows to take the columns from", hint=hint)
        types = {field.name: _held(field) for field in table.schema}
    else:
        types = {n: written_type(t, f"column `{n}`") for n, t in columns.items()}
        table = table_of(rows, types)
    if vs not in types and vs in _index_names(rows):
        raise PlanError(
            f"`{vs}` is the index of the DataFrame, not a column", hint="df.reset_index() makes it"
        )
    return stream(
        name, types, table, vs=vs, ve=ve, lifetime=lifetime, delay=delay, late=late, unit=unit
    )


def rows_path(rows: object, name: str, columns: Mapping[str, pa.DataType]) -> str:
    """Write the rows to a file, with these column types, and return its path."""
    table = table_of(rows, columns)
    arrays = [_column(table, column, dtype) for column, dtype in columns.items()]
    sink = pa.BufferOutputStream()
    fields = pa.schema(list(columns.items()))
    with pa.ipc.new_file(sink, fields) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=fields))
    body = sink.getvalue()
    digest = hashlib.sha256(body).hexdigest()[:16]
    readable = "".join(c if c.isalnum() else "_" for c in name)[:40]
    path = _folder(os.getpid()) / f"{readable}-{digest}.arrow"
    if not path.exists():
        path.write_bytes(body)
    return str(path)


def table_of(rows: object, columns: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Return rows of any kind as a table. Dicts are searched for the names in `columns`; without
    `columns`, for every name that occurs."""
    table = _table(rows, columns)
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise PlanError(f"two columns of the rows are called `{name}`", hint="rename one")
    if columns is not None and not table.column_names:
        return pa.schema(list(columns.items())).empty_table()
    return table


def _table(rows: object, columns: Mapping[str, pa.DataType] | None) -> pa.Table:
    match rows:
        case pa.Table():
            return rows
        case pa.RecordBatch():
            return pa.Table.from_batches([rows])
        case Mapping():
            for name in rows:
                _check_text(name)
            return _checked_table(lambda: pa.table({n: _values(v, n) for n, v in rows.items()}))
        case str() | bytes():
            raise PlanError(f"expected rows, not {rows!r}", hint=f"rows are {KINDS}")
        case Sequence() if all(isinstance(row, Mapping) for row in rows):
            return _of_dicts(rows, columns)
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        return _checked_table(lambda: pa.Table.from_pandas(rows, preserve_index=False))
    if hasattr(rows, "__arrow_c_stream__") and not hasattr(rows, "to_frame"):
        _refuse_objects(getattr(rows, "schema", {}))
        return _checked_table(lambda: pa.table(rows))
    hint = f"rows are {KINDS}"
    if hasattr(rows, "to_frame"):
        hint = f"call .to_frame() on it: {hint}"
    elif hasattr(rows, "collect"):
        hint = f"call .collect() on it: {hint}"
    elif isinstance(rows, Iterator):
        hint = f"write list(…) around it: {hint}"
    raise PlanError(f"expected rows, not a value of type {type(rows).__name__}", hint=hint)


def _of_dicts(
    rows: Sequence[Mapping[str, object]], columns: Mapping[str, pa.DataType] | None
) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        _check_text(name)
    if columns is None:
        return _columns_of(rows, dict.fromkeys(names))
    for name in columns:
        if rows and name not in names:
            raise unknown("column", name, names)
    return _columns_of(rows, columns)


def _columns_of(
    rows: Sequence[Mapping[str, object]], types: Mapping[str, pa.DataType | None]
) -> pa.Table:
    """Make a table from dicts; a type of None is inferred from the values."""
    arrays = [column_of([row.get(n) for row in rows], t, n, "the rows") for n, t in types.items()]
    return pa.table(arrays, names=list(types))


def _values(values: Iterable[object], name: str) -> pa.Array:
    """Return a column of a dict of columns: values of any kind, or an Arrow array."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    return column_of(list(values), None, name, "the rows")


def _check_text(name: object) -> None:
    if not isinstance(name, str):
        raise PlanError(f"the name of a column must be a text, not {name!r}")


def _refuse_objects(schema: object) -> None:
    """Reject Polars columns of Python objects: Arrow would get their memory addresses."""
    for name, dtype in schema.items() if isinstance(schema, Mapping) else ():
        if "Object" in re.findall(r"\w+", str(dtype).partition("categories")[0]):
            hint = 'convert them to texts: pl.Series([str(v) for v in df["…"]])'
            raise PlanError(f"column `{name}` holds Python objects", hint=hint)


def _index_names(rows: object) -> Sequence[object]:
    names: Sequence[object] = getattr(getattr(rows, "index", None), "names", ())
    return names


def _checked_table(make: Callable[[], pa.Table]) -> pa.Table:
    try:
        return make()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the rows do not fit into columns: {error}") from error


def _held(field: pa.Field) -> pa.DataType:
    dtype = holding_type(field.type)
    if dtype is None or pa.types.is_null(dtype):
        raise PlanError(
            f"cannot tell the type of column `{field.name}`, which is {field.type}",
            hint="name it: from_rows(…, columns={'name': 'STRING', …})",
        )
    return dtype


def _column(table: pa.Table, name: str, dtype: pa.DataType) -> pa.Array:
    if name not in table.column_names:
        raise unknown("column", name, table.column_names)
    column = table.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):  # its values may have types that Arrow does not accept
        values = column.dictionary.cast(holding_type(column.type))
        column = pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
    if holding_type(column.type) == STRING and dtype in (TIMESTAMP, DATE):  # as in files
        return column_of(column.to_pylist(), dtype, name, "the rows")
    try:
        if dtype == TIMESTAMP and pa.types.is_timestamp(column.type):
            return whole_microseconds(column, name, "the rows")
        if dtype == DOUBLE and pa.types.is_decimal128(column.type):
            return nearest_doubles(column)
        return column.cast(dtype)
    except pa.ArrowException as error:
        why = f"values of {column.type} do not fit into {type_name(dtype)}: {error}"
        raise InputError(why, column=name) from error


@cache
def _folder(process: int) -> Path:
    """Create the folder of this process, which is removed when it ends; a forked process creates
    its own."""
    folder = Path(tempfile.mkdtemp(prefix=f"weir-rows-{process}-"))
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
