"""Entries, snapshots and records as bytes: Arrow data or JSON after a seal, never pickle.

Contract
1. For the same key, `decode_…` returns what `encode_…` was given. For any other bytes it raises
   `SnapshotCorrupt`, which names the object (`objects.py` says how objects are sealed).
2. After the seal of entries and snapshots come the header's length, the header, and Arrow streams,
   each of which begins at a multiple of 8 bytes. They are written straight into the object's
   buffer, without a copy, since they are most of the bytes that a job makes.
3. Arrow data is validated in full before anybody uses it: a seal says that nobody changed it by
   accident, not that its offsets lie within its buffers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import starmap
from typing import Protocol, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from weir.errors import SnapshotCorrupt
from weir.events.arrow_streams import ArrowStream, check_intact, stream_size, write_stream
from weir.events.batch import Batch, Int64s
from weir.loops.arrow_memory import numbers_of
from weir.reliable.objects import SEAL, seal_of, unsealed
from weir.reliable.store import Body
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot
from weir.reliable.views import CellEntry, StoredEntry

_START = SEAL + 8
"""Where the header begins, after its length."""

_NUMBERS = "n"
"""The column that has, of rows by cell, how far the number of each is from the entry's first."""

_Value = TypeVar("_Value", covariant=True)


class TypedDecoder(Protocol[_Value]):
    """A decoder of msgspec for one type."""

    def decode(self, data: memoryview, /) -> _Value: ...


_entries_decoder = msgspec.msgpack.Decoder(list[tuple[int, int, tuple[int, ...] | None]])
_DAMAGE = (
    pa.ArrowException,
    msgspec.MsgspecError,
    zlib.error,
    LookupError,
    ValueError,
    OSError,
)
"""What the content of an object raises that does not hold what it should."""
_header_decoder = msgspec.msgpack.Decoder(tuple[tuple[int, ...], tuple[int, ...], list[str]])


def record_of(entry: StoredEntry) -> pa.RecordBatch:
    """Make a record batch of an entry's rows: lifetime, origins, payload."""
    rows = entry.rows
    times = [pa.array(a) for a in (rows.vs, rows.ve, *rows.origin)]
    names = [*(f"t{i}" for i in range(len(times))), *(f"c{i}" for i in range(len(rows.columns)))]
    return pa.RecordBatch.from_arrays([*times, *rows.columns], names=names)


def rows_of(record: pa.RecordBatch) -> Batch:
    """Make rows of a record batch that `record_of` made."""
    split = next((i for i, n in enumerate(record.schema.names) if n[0] == "c"), record.num_columns)
    times = [numbers_of(c) for c in record.columns[:split]]
    return Batch(times[0], times[1], tuple(record.columns[split:]), tuple(times[2:]))


def steps_of(entry: Entry) -> bytes:
    """Encode the numbers of an entry's rows: how many numbers are left out before each, in as few
    bytes as the largest of them needs. Nothing, if no row is left out."""
    if entry.numbers is None or not len(entry.rows):
        return b""
    steps = np.diff(entry.numbers, prepend=entry.seq - 1) - 1
    return steps.astype(np.min_scalar_type(int(steps.max()))).tobytes()


def numbers_after(seq: int, steps: bytes, count: int) -> Int64s:
    """Decode the numbers of so many rows from `seq` on; ValueError when they are none."""
    width = len(steps) // count if count else 0
    left_out = np.frombuffer(steps, np.dtype(f"<u{width}")) if width in (1, 2, 4, 8) else None
    if left_out is None or len(left_out) != count:
        raise ValueError(f"{len(steps)} bytes for the numbers of {count} rows")
    return seq - 1 + np.cumsum(left_out.astype(np.int64) + 1)


def encode_entries(key: str, entries: Sequence[StoredEntry]) -> Body:
    """Encode consecutive entries of one stream as the object of this name."""
    places = [(e.seq, e.cti, None if isinstance(e, Entry) else e.starts) for e in entries]
    records = [_stored(e) for e in entries]
    return _sealed(key, msgspec.msgpack.encode(places), [(records[0].schema, records)])


def _stored(entry: StoredEntry) -> pa.RecordBatch:
    record = record_of(entry)
    if isinstance(entry, Entry):
        return record
    numbers = pa.array((entry.numbers - entry.seq).astype(np.uint32))
    return pa.RecordBatch.from_arrays(
        [*record.columns, numbers], names=[*record.schema.names, _NUMBERS]
    )


def decode_entries(key: str, data: bytes) -> tuple[StoredEntry, ...]:
    """Decode the entries that `encode_entries` made an object of."""
    header, streams = _opened(key, data)
    with _naming(key):
        places = _entries_decoder.decode(header)
        with pa.ipc.open_stream(streams) as records:
            placed = [(record, *place) for record, place in zip(records, places, strict=True)]
        for record, *_ in placed:
            check_intact(record)
        return tuple(starmap(_entry, placed))


def _entry(
    record: pa.RecordBatch, seq: int, cti: int, starts: tuple[int, ...] | None
) -> StoredEntry:
    if starts is None:
        return Entry(seq, rows_of(record), cti)
    at, count = record.num_columns - 1, len(record)
    numbers = numbers_of(record.column(_NUMBERS).cast(pa.int64()))
    covered = np.zeros(count, dtype=np.bool_)
    covered[numbers] = True  # else LookupError
    ends = np.array(starts)
    if not covered.all() or ends[0] or ends[-1] != count or (np.diff(ends) < 0).any():
        raise ValueError("rows that are in no cell, or in two")
    rows = rows_of(record.select(range(at)))
    return CellEntry(seq, rows, cti, numbers=seq + numbers, starts=starts)


def encode_snapshot(key: str, snapshot: Snapshot) -> Body:
    """Encode a snapshot as the object of this name: positions and table names, then the tables."""
    header = (snapshot.inputs, snapshot.outputs, list(snapshot.tables))
    streams = [(table.schema, table.to_batches()) for table in snapshot.tables.values()]
    return _sealed(key, msgspec.msgpack.encode(header), streams)


def decode_snapshot(key: str, data: bytes) -> Snapshot:
    """Decode the snapshot that `encode_snapshot` made an object of."""
    header, streams = _opened(key, data)
    with _naming(key):
        inputs, outputs, names = _header_decoder.decode(header)
        tables = {n: pa.ipc.open_stream(streams).read_all() for n in names}
        for table in tables.values():
            check_intact(table)
        return Snapshot(inputs, outputs, tables)


def encode_record(key: str, value: object) -> bytes:
    """Encode a record (a msgspec struct) as the object of this name."""
    content = msgspec.json.encode(value)
    return seal_of(key, content) + content


def decode_record(key: str, data: bytes, decoder: TypedDecoder[_Value]) -> _Value:
    """Decode the record that `encode_record` made an object of."""
    content = unsealed(key, data)
    with _naming(key):
        return decoder.decode(content)


def encode_packed(key: str, value: object) -> bytes:
    """Encode a record as the object of this name, compressed: one that has many names."""
    content = zlib.compress(msgspec.json.encode(value), 1)
    return seal_of(key, content) + content


def decode_packed(key: str, data: bytes, decoder: TypedDecoder[_Value]) -> _Value:
    """Decode the record that `encode_packed` made an object of."""
    content = unsealed(key, data)
    with _naming(key):
        return decoder.decode(memoryview(zlib.decompress(content)))


# --- bytes ---------------------------------------------------------------------------------


def _sealed(key: str, header: bytes, streams: Sequence[ArrowStream]) -> Body:
    head = bytes(SEAL) + len(header).to_bytes(_START - SEAL, "little") + header
    head += bytes(-len(head) % 8)
    sealed = bytearray(len(head) + sum(map(stream_size, streams)))
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(sealed))
    sink.write(head)
    for stream in streams:
        write_stream(stream, sink)
    sealed[:SEAL] = seal_of(key, memoryview(sealed)[SEAL:])
    return sealed


def _opened(key: str, data: bytes) -> tuple[bytes, pa.BufferReader]:
    """Check the seal; return the header, and a reader that stands at the first stream."""
    unsealed(key, data)
    start = _START + int.from_bytes(data[SEAL:_START], "little")
    begins = start + -start % 8
    if begins > len(data):
        raise SnapshotCorrupt(f"{key}: its header is longer than the object")
    streams = pa.BufferReader(data)
    streams.seek(begins)
    return data[_START:start], streams


@contextmanager
def _naming(key: str) -> Iterator[None]:
    """Turn any error about the content of a sealed object into one that names the object."""
    try:
        yield
    except _DAMAGE as error:
        raise SnapshotCorrupt(f"{key} does not hold what it should: {error}") from error
