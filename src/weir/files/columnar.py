"""Parquet and Arrow files: typed columns, one partition a file.

If the file lacks a declared column, or its type does not widen to the declared one, that is an
error of the file. Times of any unit become microseconds; a value that does not fit (finer than a
microsecond, say) makes its row a bad row. A column that is not needed is not read, unless its type
in the file has values that would not fit.

A file's metadata may be wrong, by damage or on purpose. So files are read, not mapped (a mapped
file that is truncated would crash the process). The checksums of pages are verified if they have
any, each batch is fully validated before its values are used, and the number of rows must match the
metadata. Errors of Arrow become InputErrors that name the file. Changed values in pages without a
checksum are not detected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from weir.errors import InputError, WeirError
from weir.events.arrow_streams import check_intact
from weir.events.types import BIGINT, DOUBLE, TIMESTAMP, type_name
from weir.files.buckets import ObjectVersion
from weir.files.chunks import CHUNK_BYTES, CHUNK_ROWS, BadRow, Chunk, Columns, DataFile, shown
from weir.files.columnar_types import columns_to_read
from weir.files.object_file import AHEAD, ObjectFile, joined
from weir.files.time_units import from_nanoseconds
from weir.kernels.expressions.casts import (
    convert_what_fits,
    list_converter,
    struct_converter,
)
from weir.kernels.expressions.evaluation import shown_value

if TYPE_CHECKING:
    import pyarrow.parquet as pq

IpcReader: TypeAlias = pa.RecordBatchFileReader | pa.RecordBatchStreamReader
Bytes: TypeAlias = pa.OSFile | pa.PythonFile
Batches: TypeAlias = Iterator[tuple[pa.RecordBatch, int]]
"""Batches of a file, each with the number of bytes read up to its end."""

_ARROW_FILE = b"ARROW1"
# Without a buffer all pages of a row group would be in memory at once.
_BUFFER_BYTES = 1 << 20
_GAP_BYTES = 1 << 16
"""Gaps up to this size are read along, to save a request."""
_MOST_HELD = 64
"""The largest number of pieces of an object in memory, unless it has more columns."""


class ParquetFile(DataFile):
    """A `.parquet` file as a partition."""

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with ExitStack() as opened:
            source = self.path if self.version is None else self.open_object(self.version)
            if isinstance(source, ObjectFile):
                opened.enter_context(source)
            file = opened.enter_context(closing(_opened(self, source)))
            with _names_the_file(self.name):
                columns = columns_to_read(file.schema_arrow, self)
                names = [name for name, _ in columns]
                groups, first = _groups_from(file.metadata, start)
                if isinstance(source, ObjectFile):
                    _expect(source, list(_column_spans(file.metadata, groups, names)), len(names))
            batches = self._batches(file, names, size, groups, first)
            yield from _chunks(self, batches, columns, size, start, first)

    def _batches(
        self,
        file: pq.ParquetFile,
        names: Sequence[str],
        size: int,
        groups: Sequence[int],
        rows: int,
    ) -> Batches:
        with _names_the_file(self.name):
            total = file.metadata.num_rows
            # Threads would not change the rows, only take cores from other vertices.
            most = _rows_within(CHUNK_BYTES, size, file.metadata, names)
            batches = file.iter_batches(
                batch_size=most, row_groups=list(groups), columns=list(names), use_threads=False
            )
        for batch in _intact(batches, self.name):
            rows += batch.num_rows
            yield batch, min(self.size, self.size * rows // max(total, 1))
        if rows != total:
            message = f"damaged: its metadata counts {total} rows, and {rows} are there"
            raise InputError(message, file=self.name)


class ArrowFile(DataFile):
    """A `.arrow` file (IPC file or stream format) as a partition."""

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        with _opened_ipc(self.path, self.version) as source:
            with _names_the_file(self.name):
                schema = _ipc(source, self.name, None).schema
                columns = columns_to_read(schema, self)
                indexes = [schema.get_field_index(name) for name, _ in columns]
            reader = _ipc(source, self.name, indexes if len(indexes) < len(schema) else None)
            if isinstance(reader, pa.RecordBatchStreamReader):
                batches, first = self._streamed(source, reader), 0
            else:
                begin, first = self._batch_with(source, schema, start)
                batches = self._from_batch(reader, begin)
            yield from _chunks(self, batches, columns, size, start, first)

    def _streamed(self, source: Bytes, reader: pa.RecordBatchStreamReader) -> Batches:
        for batch in _intact(reader, self.name):
            yield batch, source.tell()

    def _from_batch(self, reader: pa.RecordBatchFileReader, begin: int) -> Batches:
        count = reader.num_record_batches
        batches = (reader.get_batch(i) for i in range(begin, count))
        for i, batch in enumerate(_intact(batches, self.name), begin):
            yield batch, self.size * (i + 1) // count

    def _batch_with(self, source: Bytes, schema: pa.Schema, start: int) -> tuple[int, int]:
        """Return the number of the batch that has row `start`, and the number of that batch's first
        row. To count the rows before it, read the narrowest column only."""
        if start == 0 or not len(schema):
            return 0, 0
        narrowest = min(range(len(schema)), key=lambda i: _bits(schema.field(i).type))
        reader = _ipc(source, self.name, [narrowest])

        def counts() -> Iterator[int]:
            for number in range(reader.num_record_batches):
                with _names_the_file(self.name):
                    yield reader.get_batch(number).num_rows

        return _piece_with(counts(), start)


def _bits(dtype: pa.DataType) -> float:
    """Return the width of a value; texts, lists and the like are wider than any number."""
    return dtype.bit_width if pa.types.is_primitive(dtype) else math.inf


@contextmanager
def _names_the_file(name: str) -> Iterator[None]:
    """Turn errors of Arrow into InputErrors that name the file. Use it around calls of Arrow
    only."""
    try:
        yield
    except WeirError:
        raise
    except OSError as error:
        if error.errno is not None:  # the disk's fault
            raise
        raise _damaged(error, name) from error
    # Arrow's errors have no common base (KeyError, UnicodeDecodeError, MemoryError, …).
    except Exception as error:
        raise _damaged(error, name) from error


def _damaged(error: Exception, name: str) -> InputError:
    reason = "".join(c if c.isprintable() else " " for c in str(error)) or type(error).__name__
    return InputError(f"not a readable file: {shown(reason)}", file=name)


def _intact(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches after validating each; raise InputError at the first that is damaged."""
    batches = iter(batches)
    while True:
        with _names_the_file(name):
            batch = next(batches, None)
            if batch is None:
                return
            check_intact(batch)
        yield batch


@dataclass(frozen=True, slots=True)
class ArrivingBatches(DataFile):
    """Serves record batches from elsewhere as a partition, once; their number is unknown."""

    batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))

    @property
    def size(self) -> int:
        return 0

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        first = next(self.batches, None)
        if first is not None:
            columns = columns_to_read(first.schema, self)
            batches = ((batch, 0) for batch in chain([first], self.batches))
            yield from _chunks(self, batches, columns, size, start)


def stored_schema(file: str, version: ObjectVersion | None = None) -> pa.Schema:
    """Return the columns that the metadata of a Parquet or Arrow file declares."""
    if file.lower().endswith(".parquet"):
        data = ParquetFile(file, ())
        source = file if version is None else data.open_object(version)
        with closing(_opened(data, source)) as opened, _names_the_file(file):
            return opened.schema_arrow
    with _opened_ipc(file, version) as source:
        return _ipc(source, file, None).schema


def finer_rows(file: ParquetFile | ArrowFile, most: int) -> tuple[int, int]:
    """Look at the first rows; return their number, and how many have a TIMESTAMP finer than a
    microsecond."""
    schema = stored_schema(file.name if file.version is not None else file.path, file.version)
    stored = dict(zip(schema.names, schema.types, strict=True))
    declared = [n for n, dtype in file.columns if dtype == TIMESTAMP and n in stored]
    # The reader reports columns of types that cannot become TIMESTAMP.
    finer = [(n, stored[n]) for n in declared if _is_nanoseconds(stored[n])]
    if not finer:
        return 0, 0
    raw = replace(file, columns=finer, needed=None)
    chunk = next(raw.chunks(most), None)
    if chunk is None:
        return 0, 0
    marks = [np.asarray(c.cast(BIGINT).fill_null(0)) % 1000 != 0 for c in chunk.rows.columns]
    return chunk.rows.num_rows, int(np.logical_or.reduce(marks).sum())


def _is_nanoseconds(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) and dtype.unit == "ns")


def _rows_within(limit: int, size: int, metadata: pq.FileMetaData, names: Sequence[str]) -> int:
    """Return `size`, or fewer rows if so many would exceed the limit according to the metadata.
    Values that are stored once and occur often become larger when they are read; `_chunks` handles
    those."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if group.total_byte_size * size <= limit * group.num_rows:
            continue
        columns = (group.column(j) for j in range(group.num_columns))
        read = sum(c.total_uncompressed_size for c in columns if _is_of(c.path_in_schema, names))
        size = max(1, min(size, limit * group.num_rows // max(read, 1)))
    return size


def _groups_from(metadata: pq.FileMetaData, start: int) -> tuple[list[int], int]:
    """Return the row groups from the one with row `start` on, and the number of their first row."""
    counts = (metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    begin, first = _piece_with(counts, start)
    return list(range(begin, metadata.num_row_groups)), first


def _piece_with(counts: Iterable[int], start: int) -> tuple[int, int]:
    """Find the piece of a file that contains row `start`: return its number and that of its first
    row. `counts` are the rows of each piece. If no piece has the row, return the end of the
    file."""
    first = number = 0
    for rows in counts:
        if first + rows > start:
            break
        first += rows
        number += 1
    return number, first


def _column_spans(
    metadata: pq.FileMetaData, groups: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of the needed columns of these row groups."""
    for number in groups:
        group = metadata.row_group(number)
        for j in range(group.num_columns):
            column = group.column(j)
            if _is_of(column.path_in_schema, names):
                offsets = (column.dictionary_page_offset, column.data_page_offset)
                start = min(offset for offset in offsets if offset is not None)
                yield start, start + column.total_compressed_size


def _expect(source: ObjectFile, spans: Sequence[tuple[int, int]], columns: int) -> None:
    """Announce the byte ranges that will be read of an object. Short columns are read one after the
    other, long ones side by side, so that fewer pieces of each are held."""
    is_long = any(stop - start > _BUFFER_BYTES for start, stop in spans)
    streams = max(columns, 1) if is_long else 1
    ahead = max(1, min(AHEAD, _MOST_HELD // streams - 1))
    source.expect(joined(spans, _GAP_BYTES, _BUFFER_BYTES), _BUFFER_BYTES, ahead, streams)


def _is_of(path: str, names: Sequence[str]) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in names)


def _opened(data: DataFile, source: str | ObjectFile) -> pq.ParquetFile:
    import pyarrow.parquet as pq  # imported here because it is slow

    with _names_the_file(data.name):
        return pq.ParquetFile(
            source,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )


@contextmanager
def _opened_ipc(path: str, version: ObjectVersion | None) -> Iterator[Bytes]:
    if version is None:
        with pa.OSFile(path) as file:
            yield file
        return
    with ObjectFile(path, version) as opened:
        opened.expect([(0, version.size)])
        yield pa.PythonFile(opened, "r")


def _ipc(source: Bytes, name: str, indexes: list[int] | None) -> IpcReader:
    options = pa.ipc.IpcReadOptions(included_fields=indexes, use_threads=False)
    source.seek(0)
    is_file = source.read(len(_ARROW_FILE)) == _ARROW_FILE
    source.seek(0)
    with _names_the_file(name):
        opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
        return opened(source, options=options)


# --- chunks --------------------------------------------------------------------------------


def _chunks(
    file: DataFile, batches: Batches, columns: Columns, size: int, start: int, first: int = 0
) -> Iterator[Chunk]:
    """Make chunks of the rows from `start` on; `first` is the number of the first row in
    `batches`."""
    before = 0
    for batch, read in batches:
        most = max(1, min(size, CHUNK_BYTES * batch.num_rows // max(_bytes(batch), 1)))
        for begin in range(0, batch.num_rows, most):
            part = batch.slice(begin, most)
            skipped = min(max(start - first, 0), part.num_rows)
            if skipped < part.num_rows:
                share = (read - before) * (begin + part.num_rows) // batch.num_rows
                rows = part.slice(skipped)
                yield _chunk(file, rows, columns, first + skipped, before + share)
            first += part.num_rows
        before = read


def _bytes(batch: pa.RecordBatch) -> int:
    """Estimate the size of the rows with every value written out."""
    total = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            values = column.dictionary
            total += column.indices.nbytes + len(column) * values.nbytes // max(len(values), 1)
        else:
            total += column.nbytes
    return total


def _chunk(file: DataFile, batch: pa.RecordBatch, columns: Columns, first: int, read: int) -> Chunk:
    converted: dict[str, pa.Array] = {}
    lost = np.zeros(batch.num_rows, dtype=np.bool_)
    bad: list[BadRow] = []
    for name, dtype in columns:
        source = batch.column(name)
        column = convert_what_fits(partial(_cast, dtype=dtype), source, dtype)
        if column.null_count != source.null_count:
            wrong = np.asarray(column.is_null()) & np.asarray(source.is_valid())
            bad += _bad_rows(batch, name, dtype, np.flatnonzero(wrong & ~lost).tolist(), first)
            lost |= wrong
        if file.needs(name):
            converted[name] = column
    rows = pa.RecordBatch.from_pydict(converted)
    offsets = np.arange(first, first + batch.num_rows, dtype=np.int64)
    if not bad:
        return Chunk(rows, offsets, first + batch.num_rows, read=read)
    kept = ~lost
    return Chunk(
        rows.filter(pa.array(kept)),
        offsets[kept],
        first + batch.num_rows,
        bad=tuple(sorted(bad, key=lambda b: b.offset)),
        read=read,
    )


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type) and column.type != dtype:
        # A time without a zone is UTC, as in text files.
        if column.type.unit == "ns":
            return from_nanoseconds(column)
        return column.cast(pa.timestamp("us", column.type.tz)).cast(BIGINT).cast(TIMESTAMP)
    if pa.types.is_nested(column.type) and column.type != dtype:
        # Element by element, so that times in lists are cut like others.
        if pa.types.is_struct(dtype):
            return struct_converter([partial(_cast, dtype=f.type) for f in dtype], dtype)(column)
        return list_converter(partial(_cast, dtype=dtype.value_type), dtype)(column)
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
