"""Writes record batches to files in each output format.

The same batches give the same bytes. The readers can read text formats back: an open end and every
NULL is null (JSON) or an empty field (CSV); see `jsonl.py` and `csv.py`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import PlanError
from weir.events.hashing import null_mask
from weir.events.python_lists import python_list, slices
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from weir.events.value_text import format_timestamps
from weir.files.paths import check_scheme
from weir.kernels.expressions.casts import cast_array, list_converter, struct_converter
from weir.loops.arrow_memory import array_of, numbers_of
from weir.plan.program import DIRECT
from weir.plan.urls import is_object_url

UNPLAIN_NAME = re.compile(r'["\\\x00-\x1f]')
"""Characters that msgspec accepts in no field name of a struct."""
_SPECIAL = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


class FileWriter(Protocol):
    """Writes one file, batch by batch."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def sink_format(path: str) -> str:
    """Return the ending that gives an output's format; a folder of parts is Parquet."""
    check_scheme(path)
    if path in DIRECT:
        raise PlanError(f"'{path}' is for live runs", hint="--runner live, or write to a file")
    if path.endswith("/") and is_object_url(path):
        hint = "write one file: a bucket cannot make several objects appear at once"
        raise PlanError(f"'{path}': an output cannot be a folder of a bucket", hint=hint)
    if path.endswith("/"):
        return ".parquet"
    for ending in SINKS:
        if path.lower().endswith(ending):
            return ending
    raise PlanError(f"unknown output format in '{path}'", hint=f"use {', '.join(SINKS)} or /")


class ParquetSink:
    def __init__(self, path: str, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq  # imported here because it is slow

        # Every setting that changes bytes is fixed here, not left to a default that may change.
        # Integers are stored as differences, which leaves half of random numbers and nearly nothing
        # of times; a dictionary of them costs more than it saves. Snappy compresses the differences
        # as well as Zstandard does, in half the time. (Arrow lets columns differ only if none is
        # nested.)
        texts = [f.name for f in schema if f.type in (STRING, BINARY)]
        numbers = [f.name for f in schema if f.type in (BIGINT, INT, TIMESTAMP, DATE)]
        flat = not any(pa.types.is_nested(f.type) for f in schema)
        codecs = {f.name: "snappy" if flat and f.name in numbers else "zstd" for f in schema}
        self._writer = pq.ParquetWriter(
            path,
            schema,
            version="2.6",
            compression=codecs if flat else "zstd",
            compression_level={n: 1 for n, c in codecs.items() if c == "zstd"} if flat else 1,
            use_dictionary=texts,
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
            data_page_version="1.0",
            write_statistics=True,
            write_page_checksum=True,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        rows = _canonical(batch)
        self._writer.write_table(pa.Table.from_batches([rows]), row_group_size=rows.num_rows)

    def close(self) -> None:
        self._writer.close()


class ArrowSink:
    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._writer = pa.ipc.new_file(path, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        # In IPC, slices keep the padding bits of their parents: copy them to plain arrays.
        columns = [pa.concat_arrays([c, c.slice(0, 0)]) for c in _canonical(batch).columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    def close(self) -> None:
        self._writer.close()


def _canonical(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [canonical_column(c) for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


class JsonSink:
    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `close`
        self._lines = JsonLinesForm(schema.names)

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write(self._lines.encode(batch))

    def close(self) -> None:
        self._file.close()


class JsonLinesForm:
    """Writes rows of these columns as JSON lines."""

    def __init__(self, columns: Sequence[str]) -> None:
        names = {f"f{i}": name for i, name in enumerate(columns)}
        self._encoder = msgspec.json.Encoder()
        self._row: Callable[..., object]
        if any(UNPLAIN_NAME.search(name) for name in columns):
            self._row = lambda *values: dict(zip(columns, values, strict=True))
        else:
            # Structs rather than dicts: the garbage collector need not look at them.
            self._row = msgspec.defstruct("Row", list(names), rename=names, gc=False)

    def encode(self, batch: pa.RecordBatch) -> bytes:
        parts = (batch.slice(start, end - start) for start, end in slices(batch.num_rows))
        return b"".join(self._encode(part) for part in parts)

    def _encode(self, batch: pa.RecordBatch) -> bytes:
        columns = [json_values(c) for c in batch.columns]
        return self._encoder.encode_lines(list(map(self._row, *columns)))


class CsvSink:
    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `close`
        names = _quoted(pa.array(schema.names, STRING)).to_pylist()
        self._file.write((",".join(names) + "\n").encode())

    def write(self, batch: pa.RecordBatch) -> None:
        lines = pc.binary_join_element_wise(*(_csv_fields(c) for c in batch.columns), ",")
        self._file.write(("\n".join(python_list(lines)) + "\n").encode())

    def close(self) -> None:
        self._file.close()


SINKS: Mapping[str, Callable[[str, pa.Schema], FileWriter]] = {
    ".parquet": ParquetSink,
    ".arrow": ArrowSink,
    ".jsonl": JsonSink,
    ".csv": CsvSink,
}


# --- values as text ------------------------------------------------------------------------


def json_values(column: pa.Array) -> list[object]:
    """Return the values of a column as JSON values."""
    dtype = column.type
    if dtype == DOUBLE:
        values: list[object] = column.to_pylist()
        if pc.all(pc.is_finite(column)).as_py() is False:
            values = [_SPECIAL.get(str(v), v) for v in values]
        return values
    if dtype == TIMESTAMP:
        texts: list[object] = format_timestamps(column).to_pylist()
        return texts
    if dtype == DATE or pa.types.is_decimal(dtype):
        plain: list[object] = cast_array(column, STRING).to_pylist()
        return plain
    if dtype == BINARY:
        return [None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()]
    if pa.types.is_list(dtype):
        return _json_lists(column)
    if pa.types.is_struct(dtype):
        return _json_structs(column)
    others: list[object] = column.to_pylist()
    return others


def _json_lists(column: pa.Array) -> list[object]:
    elements = iter(json_values(column.flatten()))
    lengths = pc.list_value_length(column).to_pylist()
    return [None if n is None else [next(elements) for _ in range(n)] for n in lengths]


def _json_structs(column: pa.Array) -> list[object]:
    names = [f.name for f in column.type]
    fields = [json_values(f) for f in column.flatten()]
    rows = zip(*fields, strict=True)
    present = column.is_valid().to_pylist()
    return [
        dict(zip(names, row, strict=True)) if here else None
        for row, here in zip(rows, present, strict=True)
    ]


def _csv_fields(column: pa.Array) -> pa.Array:
    if column.type == BINARY or pa.types.is_nested(column.type):
        values = json_values(column)
        texts = [v if v is None or isinstance(v, str) else _json_text(v) for v in values]
        column = pa.array(texts, STRING)
    return pc.fill_null(_quoted(cast_array(column, STRING)), "")


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _quoted(texts: pa.Array) -> pa.Array:
    """Put quotes around the texts that need them. The empty text does: without quotes it is
    NULL."""
    special = pc.match_substring_regex(texts, r'[,"\r\n]|^$')
    if not pc.any(special).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


_NOTHING = {STRING: "", BINARY: b"", BOOLEAN: False}


def canonical_column(column: pa.Array) -> pa.Array:
    """Return the column with a single form of NaN, and with zeros or nothing under its NULLs. Files
    that store values as they are in memory need this: Arrow leaves anything under a NULL, the
    processor chooses the sign of a NaN, and both depend on which rows were computed together.

    >>> column = canonical_column(pa.array([None, -float("nan")]))
    >>> np.frombuffer(column.buffers()[1], np.uint64).tolist() == [0, 0x7FF8000000000000]
    True
    """
    dtype = column.type
    if pa.types.is_list(dtype):
        return list_converter(canonical_column, dtype)(column)
    if pa.types.is_struct(dtype):
        return struct_converter([canonical_column] * dtype.num_fields, dtype)(column)
    if dtype == DOUBLE and np.isnan(numbers_of(column)).any():
        values = _values(column).view(np.float64)
        values[np.isnan(values)] = np.nan
        return _stored(column, values)
    if not column.null_count or dtype == NULL:
        return column
    if dtype in _NOTHING:
        return _masked(column, pc.fill_null(column, _NOTHING[dtype]).buffers()[1:])
    return _stored(column, _values(column))


def _values(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return a copy of the values' bytes, one row per value, with zeros for NULL."""
    width = column.type.bit_width // 8
    start, stop = column.offset * width, (column.offset + len(column)) * width
    values = array_of(column.buffers()[1], np.uint8)[start:stop].copy().reshape(-1, width)
    values[null_mask(column)] = 0
    return values


def _stored(column: pa.Array, values: npt.NDArray[np.generic]) -> pa.Array:
    return _masked(column, [pa.py_buffer(values)])


def _masked(column: pa.Array, buffers: list[pa.Buffer]) -> pa.Array:
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(column.type, len(column), [valid, *buffers])
