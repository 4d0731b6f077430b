"""Blocks carry rows through Spark's shuffle.

Contract
1. A row of an exchange is (partition, input, first_vs, block): the vertex of the job, its input,
   the smallest start in the block, and the rows as an Arrow stream with narrowed numbers
   (`narrow.py`).
2. A block has at most `BLOCK_BYTES` of rows, unless a single row is larger.
3. Partitions below 0 are not vertices. `REPORT` rows carry a task's report. `COLLECTED` rows carry
   rows of an output that is collected in memory; their `input` is the output's number in the job.
4. A task's writers together hold at most about `HELD_BYTES`, however many vertices they write to.
5. If a job has a folder for blocks, each task writes its blocks for vertices to a file there, and
   `block` is a place in such a file.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructType

from weir.events.arrow_streams import stream_size, write_stream
from weir.events.batch import Batch, concat_batches
from weir.loops.arrow_memory import numbers_of
from weir.reliable.log import batch_bytes
from weir.reliable.stream import Entry
from weir.spark.narrow import narrowed, widened
from weir.spark.session import BLOCK_BYTES

HELD_BYTES = 64 << 20
REPORT, COLLECTED = -1, -2

_FIELDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("input", pa.int32()),
        ("first_vs", pa.int64()),
        ("block", pa.binary()),
    ]
)
ROWS = (
    StructType()
    .add("partition", IntegerType())
    .add("input", IntegerType())
    .add("first_vs", LongType())
    .add("block", BinaryType())
)
"""The columns of an exchange, as objects: Spark would have to parse a text."""


class BlockRow(NamedTuple):
    """One row of an exchange (rule 1)."""

    partition: int
    input: int
    first_vs: int
    block: bytes | pa.Buffer


def encode(rows: Batch) -> pa.Buffer:
    """Encode rows as an Arrow stream: starts, durations, origins, payload, with numbers
    narrowed."""
    lengths = rows.ve - rows.vs  # modulo 2⁶⁴, so that open ends survive too
    times = [pa.array(a) for a in (rows.vs, lengths, *rows.origin)]
    columns = [narrowed(c, f"c{i}") for i, c in enumerate((*times, *rows.columns))]
    fields = pa.schema([field for _, field in columns])
    record = pa.RecordBatch.from_arrays([stored for stored, _ in columns], schema=fields)
    stream = record.schema, [record]
    buffer = pa.allocate_buffer(stream_size(stream))
    write_stream(stream, pa.FixedSizeBufferWriter(buffer))
    return buffer


def decode(block: bytes | pa.Buffer, payload: int) -> Batch:
    """Decode the rows of a block with `payload` payload columns."""
    with pa.ipc.open_stream(block) as reader:
        record = reader.read_next_batch()
    columns = [widened(c, f) for c, f in zip(record.columns, record.schema, strict=True)]
    times = [numbers_of(c) for c in columns[: len(columns) - payload]]
    payload_columns = tuple(columns[len(columns) - payload :])
    return Batch(times[0], times[0] + times[1], payload_columns, tuple(times[2:]))


def row_record(row: BlockRow) -> pa.RecordBatch:
    """Return a row of an exchange as a record batch for Spark; the block is not copied."""
    numbers = [pa.array([n], f.type) for n, f in zip(row[:3], _FIELDS, strict=False)]
    block = pa.py_buffer(row.block)
    ends = pa.py_buffer(np.array([0, block.size], dtype=np.int32))
    blocks = pa.Array.from_buffers(pa.binary(), 1, [None, ends, block])
    return pa.RecordBatch.from_arrays([*numbers, blocks], schema=_FIELDS)


def rows_of(record: pa.RecordBatch) -> Iterator[BlockRow]:
    """Yield the rows of an exchange in a record batch from Spark."""
    numbers = [record.column(i).to_pylist() for i in range(3)]
    blocks = record.column(3)
    for row, (partition, input_index, first_vs) in enumerate(zip(*numbers, strict=True)):
        block = blocks[row].as_buffer()
        # NumPy needs aligned numbers. Sizes of blocks are multiples of 8, so all are aligned if one
        # is.
        yield BlockRow(
            partition, input_index, first_vs, block.to_pybytes() if block.address % 8 else block
        )


class Blocks:
    """Collects the blocks that a task writes: its streams add them, the task drains them. With a
    `folder`, blocks for vertices go to a file there."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        block_bytes: int = BLOCK_BYTES,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._file = None if folder is None else BlockFile(folder)
        self._ready: list[BlockRow] = []
        self._streams: list[BlockStream] = []
        self._block_bytes, self._held_bytes = block_bytes, held_bytes
        self._held = 0

    def stream(self, partition: int, input_index: int) -> BlockStream:
        """Make a stream to an input of a vertex."""
        stream = BlockStream(self, partition, input_index, self._block_bytes)
        self._streams.append(stream)
        return stream

    def add(self, row: BlockRow) -> None:
        self._ready.append(row)

    def add_rows(self, partition: int, input_index: int, rows: Batch) -> None:
        """Make a block from these rows."""
        block: bytes | pa.Buffer = encode(rows)
        if self._file is not None and partition >= 0:
            block = self._file.write(block)
        self.add(BlockRow(partition, input_index, int(np.min(rows.vs)), block))

    def hold(self, count: int) -> None:
        """Note that `count` more (or fewer) bytes are waiting for their blocks to fill."""
        self._held += count
        while self._held > self._held_bytes:
            max(self._streams, key=lambda s: s.held_bytes).flush()

    def flush(self) -> None:
        """Make blocks of all waiting rows, and end the streams."""
        for stream in self._streams:
            stream.flush()
        self._streams = []
        if self._file is not None:
            self._file.close()

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield the finished blocks, one record batch for each."""
        ready, self._ready = self._ready, []
        for row in ready:
            yield row_record(row)


class BlockStream:
    """The writing end of a stream whose rows go through Spark's shuffle.

    CTIs are not written: they follow from the order of blocks by `first_vs`.
    """

    def __init__(self, out: Blocks, partition: int, input_index: int, block_bytes: int) -> None:
        self._out, self._partition, self._input = out, partition, input_index
        self._block_bytes = block_bytes
        self._waiting: list[Batch] = []
        self.held_bytes = 0

    def write(self, entry: Entry) -> None:
        if not len(entry.rows):
            return
        size = batch_bytes(entry.rows)
        self._waiting.append(_without_rest(entry.rows, size))
        self.held_bytes += size
        self._out.hold(size)
        if self.held_bytes >= self._block_bytes:
            self.flush()

    def flush(self) -> None:
        """Make blocks of the waiting rows."""
        if not self._waiting:
            return
        rows = concat_batches(self._waiting)
        size, self._waiting, self.held_bytes = self.held_bytes, [], 0
        for some in _halved(rows, self._block_bytes):
            self._out.add_rows(self._partition, self._input, some)
        self._out.hold(-size)


def _without_rest(rows: Batch, size: int) -> Batch:
    """Copy the rows out of a large batch: while they wait, they would keep all of it in memory."""
    kept: int = sum(c.get_total_buffer_size() for c in rows.columns)
    return rows.take(np.arange(len(rows))) if kept > 4 * size else rows


def _halved(rows: Batch, limit: int) -> Iterator[Batch]:
    if len(rows) <= 1 or batch_bytes(rows) <= limit:
        yield rows
        return
    middle = len(rows) // 2
    yield from _halved(rows.slice(0, middle), limit)
    yield from _halved(rows.slice(middle, len(rows)), limit)


class BlockPlace(msgspec.Struct, frozen=True, array_like=True):
    """The place of a block: its file, its position in the file, and its size."""

    file: str
    start: int
    size: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BlockPlace)


class BlockFile:
    """A file with the blocks of one task, used if all tasks run on one machine.

    Spark copies data about ten times between two tasks, which took a third of the processor time of
    a replay. A task that runs twice writes two files; readers use the one that the surviving rows
    name.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._name = folder, uuid.uuid4().hex
        self._file: pa.NativeFile | None = None

    def write(self, block: pa.Buffer) -> bytes:
        """Write a block, and return its encoded place."""
        if self._file is None:
            self._file = pa.OSFile(os.path.join(self._folder, self._name), "wb")
        start = self._file.tell()
        self._file.write(block)
        return _encoder.encode(BlockPlace(self._name, start, block.size))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_block(folder: str, place: bytes | pa.Buffer) -> pa.Buffer:
    """Read the block at a place."""
    block = _decoder.decode(place)
    with pa.OSFile(os.path.join(folder, block.file)) as file:
        file.seek(block.start)
        return file.read_buffer(block.size)
