"""Entries and snapshots as bytes: Arrow data behind a checksum, never pickle.

Contract
1. What `encode_…` gives, `decode_…` gives back; bytes that were torn or changed are
   `SnapshotCorrupt` (a checksum over all of them stands in front).
2. The schema of a stream is in its bytes; whoever reads needs to know how many columns are payload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot

_DIGEST_SIZE = 16


def record_of(entry: Entry) -> pa.RecordBatch:
    """The rows of an entry as a record batch: lifetime, origins, payload."""
    rows = entry.rows
    times = [pa.array(a) for a in (rows.vs, rows.ve, *rows.origin)]
    names = [*(f"t{i}" for i in range(len(times))), *(f"c{i}" for i in range(len(rows.columns)))]
    return pa.RecordBatch.from_arrays([*times, *rows.columns], names=names)


def entry_of(record: pa.RecordBatch, seq: int, cti: int) -> Entry:
    """The entry of a record batch."""
    split = next((i for i, n in enumerate(record.schema.names) if n[0] == "c"), record.num_columns)
    times = [c.to_numpy() for c in record.columns[:split]]
    return Entry(
        seq, Batch(times[0], times[1], tuple(record.columns[split:]), tuple(times[2:])), cti
    )


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """Consecutive entries of one stream."""
    numbers = msgspec.msgpack.encode([(e.seq, e.cti) for e in entries])
    return _sealed(numbers, [record_of(e) for e in entries])


def decode_entries(data: bytes) -> tuple[Entry, ...]:
    header, records = _opened(data)
    numbers = msgspec.msgpack.decode(header, type=list[tuple[int, int]])
    return tuple(entry_of(r, *n) for r, n in zip(records, numbers, strict=True))


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Positions, then each table of the state with its name."""
    tables = {name: _table_bytes(table) for name, table in snapshot.tables.items()}
    return _with_checksum(
        msgspec.msgpack.encode((list(snapshot.inputs), list(snapshot.outputs), tables))
    )


def decode_snapshot(data: bytes) -> Snapshot:
    body = _checked(data)
    inputs, outputs, tables = msgspec.msgpack.decode(
        body, type=tuple[list[int], list[int], dict[str, bytes]]
    )
    read: Mapping[str, pa.Table] = {n: pa.ipc.open_stream(t).read_all() for n, t in tables.items()}
    return Snapshot(tuple(inputs), tuple(outputs), dict(read))


def encode_record(value: object) -> bytes:
    """A typed message behind its checksum."""
    return _with_checksum(msgspec.json.encode(value))


def decode_record(data: bytes) -> bytes:
    """The JSON of `encode_record`, for a typed decoder."""
    return _checked(data)


# --- bytes ---------------------------------------------------------------------------------


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _sealed(header: bytes, records: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records[0].schema) as writer:
        for record in records:
            writer.write_batch(record)
    return _with_checksum(len(header).to_bytes(8, "little") + header + sink.getvalue().to_pybytes())


def _opened(data: bytes) -> tuple[bytes, list[pa.RecordBatch]]:
    body = _checked(data)
    size = int.from_bytes(body[:8], "little")
    # Copied by slicing: Arrow's buffers must begin aligned, which an offset into bytes does not.
    with pa.ipc.open_stream(body[8 + size :]) as reader:
        return body[8 : 8 + size], list(reader)


def _with_checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest() + body


def _checked(data: bytes) -> bytes:
    body = data[_DIGEST_SIZE:]
    if hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest() != data[:_DIGEST_SIZE]:
        raise SnapshotCorrupt(f"{len(data)} bytes that do not have their checksum: torn or changed")
    return body
