"""Entries and snapshots as bytes: Arrow data behind a checksum, never pickle.

Contract
1. What `encode_…` gives, `decode_…` gives back; bytes that were torn or changed are
   `SnapshotCorrupt` (a checksum over all of them stands in front).
2. Behind the checksum: the header's length, the header, and Arrow streams, each beginning at a
   multiple of 8. They are written where they stay: these are most of the bytes that a job makes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch
from weir.events.memory import numbers_of
from weir.events.packed import Stream, stream_size, write_stream
from weir.reliable.store import Body
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot

_CHECKSUM = 16
"""Bytes of the checksum: half of a SHA-256, which processors compute by themselves."""
_START = _CHECKSUM + 8
"""Where the header begins, behind its length."""

_numbers_decoder = msgspec.msgpack.Decoder(list[tuple[int, int]])
_header_decoder = msgspec.msgpack.Decoder(tuple[tuple[int, ...], tuple[int, ...], list[str]])


def record_of(entry: Entry) -> pa.RecordBatch:
    """The rows of an entry as a record batch: lifetime, origins, payload."""
    rows = entry.rows
    times = [pa.array(a) for a in (rows.vs, rows.ve, *rows.origin)]
    names = [*(f"t{i}" for i in range(len(times))), *(f"c{i}" for i in range(len(rows.columns)))]
    return pa.RecordBatch.from_arrays([*times, *rows.columns], names=names)


def entry_of(record: pa.RecordBatch, seq: int, cti: int) -> Entry:
    """The entry of a record batch."""
    split = next((i for i, n in enumerate(record.schema.names) if n[0] == "c"), record.num_columns)
    times = [numbers_of(c) for c in record.columns[:split]]
    return Entry(
        seq, Batch(times[0], times[1], tuple(record.columns[split:]), tuple(times[2:])), cti
    )


def encode_entries(entries: Sequence[Entry]) -> Body:
    """Consecutive entries of one stream."""
    numbers = msgspec.msgpack.encode([(e.seq, e.cti) for e in entries])
    records = [record_of(e) for e in entries]
    return _sealed(numbers, [(records[0].schema, records)])


def decode_entries(data: bytes) -> tuple[Entry, ...]:
    header, streams = _opened(data)
    numbers = _numbers_decoder.decode(header)
    with pa.ipc.open_stream(streams) as records:
        return tuple(entry_of(r, *n) for r, n in zip(records, numbers, strict=True))


def encode_snapshot(snapshot: Snapshot) -> Body:
    """Positions and the names of the state's tables, then each of them."""
    header = (snapshot.inputs, snapshot.outputs, list(snapshot.tables))
    streams = [(table.schema, table.to_batches()) for table in snapshot.tables.values()]
    return _sealed(msgspec.msgpack.encode(header), streams)


def decode_snapshot(data: bytes) -> Snapshot:
    header, streams = _opened(data)
    inputs, outputs, names = _header_decoder.decode(header)
    return Snapshot(inputs, outputs, {n: pa.ipc.open_stream(streams).read_all() for n in names})


def encode_record(value: object) -> bytes:
    """A typed message behind its checksum."""
    body = msgspec.json.encode(value)
    return _checksum(body) + body


def decode_record(data: bytes) -> bytes:
    """The JSON of `encode_record`, for a typed decoder."""
    return bytes(_checked(data))


# --- bytes ---------------------------------------------------------------------------------


def _sealed(header: bytes, streams: Sequence[Stream]) -> Body:
    head = bytes(_CHECKSUM) + len(header).to_bytes(_START - _CHECKSUM, "little") + header
    head += bytes(-len(head) % 8)
    sealed = bytearray(len(head) + sum(map(stream_size, streams)))
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(sealed))
    sink.write(head)
    for stream in streams:
        write_stream(stream, sink)
    sealed[:_CHECKSUM] = _checksum(memoryview(sealed)[_CHECKSUM:])
    return sealed


def _opened(data: bytes) -> tuple[bytes, pa.BufferReader]:
    """The header, and what to read the streams from one by one."""
    _checked(data)
    start = _START + int.from_bytes(data[_CHECKSUM:_START], "little")
    streams = pa.BufferReader(data)
    streams.seek(start + -start % 8)
    return data[_START:start], streams


def _checksum(body: bytes | memoryview) -> bytes:
    return hashlib.sha256(body).digest()[:_CHECKSUM]


def _checked(data: bytes) -> memoryview:
    body = memoryview(data)[_CHECKSUM:]
    if _checksum(body) != data[:_CHECKSUM]:
        raise SnapshotCorrupt(f"{len(data)} bytes that do not have their checksum: torn or changed")
    return body
