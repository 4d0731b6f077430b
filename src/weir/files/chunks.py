"""Chunks: rows of one partition in order, with offsets and line numbers, as readers make them.

Contract
1. A partition is one file, what one connector reads, or rows in memory. The data rows of a file are
   numbered from 0 (the *offset*), bad ones included; explicit CTIs have no number. Offsets depend
   on the file alone, never on chunks. In other partitions they grow, and may have gaps.
2. A reader judges form only (is this line a row of these columns?). It never raises for a bad
   row: it lists it, and the ingress decides, in offset order.
3. `chunks(size, start)` gives the rows from offset `start` on; a CTI that stands right before
   that row comes again, which changes nothing: CTIs only grow.
4. A chunk has at most `size` rows and about `CHUNK_BYTES`, unless a single row has more. No more
   is held than what a chunk is made of: about `BLOCK_BYTES` of a text file and one record, some
   pages of a Parquet file, a record batch of an Arrow file.
5. A reader that knows which columns are needed may leave others out of its chunks, but which
   rows are bad does not change: what could misfit is looked at all the same.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from weir.errors import InputError
from weir.events.batch import Int64s
from weir.files.buckets import ObjectVersion, find_object
from weir.files.compressed_files import codec_of, decompressed
from weir.files.object_file import ObjectFile
from weir.plan.operators.source import MAX_RECORD
from weir.plan.urls import is_object_url

Columns = Sequence[tuple[str, pa.DataType]]

CHUNK_ROWS = 65_536
CHUNK_BYTES = 1 << 25
BLOCK_BYTES = 1 << 22
NO_TIMES: Int64s = np.empty(0, dtype=np.int64)
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class BadRow:
    """Says of a row that does not fit where it stood, what stood there, and what was wrong."""

    offset: int
    line: int | None
    column: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Holds some rows of a partition, in order.

    `rows` has the columns that are needed; `offsets` and `lines` (None for files without lines)
    are theirs. CTI number i stands before row `cti_indexes[i]` of the chunk. `stop` is the offset
    of the first row after the chunk, `read` how much of the partition's `size` has been read.
    """

    rows: pa.RecordBatch
    offsets: Int64s
    stop: int
    lines: Int64s | None = None
    cti_times: Int64s = field(default_factory=lambda: NO_TIMES)
    cti_indexes: Int64s = field(default_factory=lambda: NO_TIMES)
    bad: tuple[BadRow, ...] = ()
    read: int = 0
    resume: bytes | None = None
    """Where a live source goes on after the chunk. From a connector: its own state. From the
    source machine: `Resume`."""
    judged: tuple[Int64s, Int64s] | None = None
    """The starts and ends of rows that an ingress has admitted before: none of them is late or bad,
    and those that were late have the starts that it gave them."""

    def line(self, row: int) -> int | None:
        return None if self.lines is None else int(self.lines[row])


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Says where a row of a file begins: its offset, and in a text file its first byte."""

    offset: int = 0
    position: int = 0


class SourcePartition(Protocol):
    """Gives the rows of one partition of a source. `size` is in bytes, in memory in rows."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]: ...


@runtime_checkable
class PartitionSlice(Protocol):
    """A part of a partition; its rows have the offsets that they have in the whole."""

    @property
    def whole(self) -> SourcePartition: ...


@dataclass(frozen=True, slots=True)
class DataFile:
    """Names a file with its declared columns, and those of them that are needed (None: all).

    `name` is what errors and LATE rows show; a relative one starts at `root`, for processes that
    work in another folder. The name of an object in a bucket is its URL, and `version` the one
    that all who read it read.
    """

    name: str
    columns: Columns
    needed: Collection[str] | None = None
    root: str = ""
    max_record: int = MAX_RECORD
    """The bytes that a record of a text file may have."""
    version: ObjectVersion | None = None
    unit: str | None = None
    """What numbers of times count, of explicit CTIs too (`time_units.py`)."""
    since: FilePlace | None = None
    """Where reading begins (None: at the first row); lines are then counted from there. Files that
    find a row by its number need none."""

    @property
    def path(self) -> str:
        return self.name if is_object_url(self.name) else os.path.join(self.root, self.name)

    @property
    def size(self) -> int:
        return os.path.getsize(self.path) if self.version is None else self.version.size

    def open_text(self) -> BinaryIO:
        """Open the file to be read to its end, from its beginning or from where reading begins."""
        codec = codec_of(self.name)
        if self.version is None:
            if codec is None:
                return open(self.path, "rb")
            return decompressed(open(self.path, "rb"), codec, self.name)
        opened = self.open_object(self.version)
        begins = 0 if self.since is None or codec is not None else self.since.position
        opened.expect([(begins, self.version.size)])
        text = io.BufferedReader(opened)
        return text if codec is None else decompressed(text, codec, self.name)

    def open_object(self, version: ObjectVersion) -> ObjectFile:
        """Open an object, to be read here and there."""
        return ObjectFile(self.name, version)

    def needs(self, column: str) -> bool:
        return self.needed is None or column in self.needed


def object_version(url: str) -> ObjectVersion:
    """Return which version of an object is there; raise InputError if there is none."""
    version = find_object(url)
    if version is None:
        raise InputError("there is no such object", file=url)
    return version


def shown(text: str) -> str:
    """Return a row's text as messages show it, cut when it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
