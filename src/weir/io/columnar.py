"""Parquet and Arrow files: typed columns, one partition a file.

A declared column that the file lacks, or has in a type that does not widen to the declared one,
is an error of the file. Times of any unit become microseconds; a value that does not fit (finer
than a microsecond, say) makes its row a bad row. Only wanted columns are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weir.errors import InputError
from weir.events.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.io.chunks import CHUNK_ROWS, BadRow, Chunk, shown
from weir.io.texts import Columns
from weir.kernels.casts import convert_what_fits
from weir.kernels.evaluation import shown_value


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A `.parquet` file as a partition."""

    name: str
    columns: Columns

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with closing(_opened(pq.ParquetFile, self.name)) as file:
            _check(file.schema_arrow, self.columns, self.name)
            wanted = [name for name, _ in self.columns]
            # Threads would not change the rows, only take cores from other vertices.
            batches = file.iter_batches(batch_size=size, columns=wanted, use_threads=False)
            yield from _chunks(batches, self.columns, size, start)


@dataclass(frozen=True, slots=True)
class ArrowFile:
    """A `.arrow` file (IPC file or stream format) as a partition."""

    name: str
    columns: Columns

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with pa.memory_map(self.name) as source:
            reader, batches = _ipc(source, self.name)
            _check(reader.schema, self.columns, self.name)
            yield from _chunks(batches, self.columns, size, start)


def _opened(open_file: type[pq.ParquetFile], name: str) -> pq.ParquetFile:
    try:
        return open_file(name)
    except pa.ArrowInvalid as error:
        raise InputError(f"not a readable file: {error}", file=name) from None


def _ipc(
    source: pa.MemoryMappedFile, name: str
) -> tuple[pa.RecordBatchFileReader, Iterator[pa.RecordBatch]]:
    try:
        reader = pa.ipc.open_file(source)
        return reader, (reader.get_batch(i) for i in range(reader.num_record_batches))
    except pa.ArrowInvalid:
        source.seek(0)
    try:
        stream = pa.ipc.open_stream(source)
        return stream, iter(stream)
    except pa.ArrowInvalid as error:
        raise InputError(f"not a readable file: {error}", file=name) from None


# --- types ---------------------------------------------------------------------------------


def _check(found: pa.Schema, columns: Columns, file: str) -> None:
    for name, dtype in columns:
        places = found.get_all_field_indices(name)
        if len(places) != 1:
            message = f"the file has this column {len(places)} times, not once"
            raise InputError(message, file=file, column=name)
        kind = found.field(places[0]).type
        if not _widens(kind, dtype):
            message = f"wanted {type_name(dtype)}, the file has {type_name(kind)}"
            raise InputError(message, file=file, column=name)


def _widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        return _widens(found.value_type, wanted)
    if found == wanted or pa.types.is_null(found):
        return True
    if pa.types.is_nested(wanted):
        return _nested_widens(found, wanted)
    if wanted == TIMESTAMP:
        return bool(pa.types.is_timestamp(found))
    if wanted == DATE:
        return bool(pa.types.is_date(found))
    if wanted in (BIGINT, INT):
        return bool(pa.types.is_integer(found)) and found.bit_width <= wanted.bit_width
    if wanted == DOUBLE:
        return bool(pa.types.is_floating(found) or pa.types.is_integer(found))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_decimal(found)) and found.scale <= wanted.scale
    if wanted == STRING:
        return bool(pa.types.is_large_string(found) or pa.types.is_string_view(found))
    return bool(pa.types.is_large_binary(found) or pa.types.is_fixed_size_binary(found))


def _nested_widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted):
        lists = pa.types.is_list(found) or pa.types.is_large_list(found)
        return bool(lists) and _widens(found.value_type, wanted.value_type)
    names = [f.name for f in wanted]
    return (
        bool(pa.types.is_struct(found))
        and [f.name for f in found] == names
        and all(_widens(f.type, w.type) for f, w in zip(found, wanted, strict=True))
    )


# --- chunks --------------------------------------------------------------------------------


def _chunks(
    batches: Iterator[pa.RecordBatch], columns: Columns, size: int, start: int
) -> Iterator[Chunk]:
    first = 0
    for batch in batches:
        for begin in range(0, batch.num_rows, size):
            part = batch.slice(begin, size)
            skipped = min(max(start - first, 0), part.num_rows)
            if skipped < part.num_rows:
                yield _chunk(part.slice(skipped), columns, first + skipped)
            first += part.num_rows


def _chunk(batch: pa.RecordBatch, columns: Columns, first: int) -> Chunk:
    arrays: list[pa.Array] = []
    lost = np.zeros(batch.num_rows, dtype=np.bool_)
    bad: list[BadRow] = []
    for name, dtype in columns:
        source = batch.column(name)
        column = convert_what_fits(partial(_cast, dtype=dtype), source, dtype)
        if column.null_count != source.null_count:
            wrong = np.asarray(column.is_null()) & np.asarray(source.is_valid())
            bad += _bad_rows(batch, name, dtype, np.flatnonzero(wrong & ~lost).tolist(), first)
            lost |= wrong
        arrays.append(column)
    rows = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])
    offsets = np.arange(first, first + batch.num_rows, dtype=np.int64)
    if not bad:
        return Chunk(rows, offsets, first + batch.num_rows)
    kept = ~lost
    ordered = tuple(sorted(bad, key=lambda b: b.offset))
    return Chunk(rows.filter(pa.array(kept)), offsets[kept], first + batch.num_rows, bad=ordered)


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if dtype == TIMESTAMP and column.type != dtype:
        # A time without a zone is UTC, as in text files.
        return column.cast(pa.timestamp("us", column.type.tz)).cast(BIGINT).cast(TIMESTAMP)
    return column.cast(dtype, safe=dtype != DOUBLE)


def _bad_rows(
    batch: pa.RecordBatch, name: str, dtype: pa.DataType, rows: Sequence[int], first: int
) -> list[BadRow]:
    return [
        BadRow(
            first + row,
            None,
            name,
            shown(repr({n: shown_value(batch.column(n)[row]) for n in batch.schema.names})),
            f"wanted {type_name(dtype)}, came {shown_value(batch.column(name)[row])}",
        )
        for row in rows
    ]
