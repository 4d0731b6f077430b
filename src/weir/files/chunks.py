"""Chunks: consecutive rows of one partition, with offsets and line numbers.

Contract
1. A partition is one file, what one connector reads, or rows in memory. A row's *offset* is its
   number. In a file the data rows are numbered from 0, bad rows included; explicit CTIs have no
   offset. Offsets depend on the file alone, never on chunks. In other partitions offsets grow, and
   may have gaps.
2. A reader checks the form of a row only (is this line a row of these columns?). It lists bad rows
   and never raises for them: the ingress decides what happens, in offset order.
3. `chunks(size, start)` gives the rows from offset `start` on. A CTI right before that row comes
   again, which changes nothing: CTIs only grow.
4. A chunk has at most `size` rows and about `CHUNK_BYTES`, unless a single row is larger. A reader
   holds only what it makes one chunk from: about `BLOCK_BYTES` of a text file and one record, some
   pages of a Parquet file, or a record batch of an Arrow file.
5. A reader that knows which columns are needed may leave the others out of its chunks. This does
   not change which rows are bad: every column that could have bad values is still checked.
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
    """Where a bad row stood, its text, and what is wrong with it."""

    offset: int
    line: int | None
    column: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive rows of a partition.

    `rows` has the needed columns; `offsets` and `lines` (None for files without lines) belong to
    its rows. The CTI `cti_times[i]` stands before row `cti_indexes[i]` of the chunk. `stop` is the
    offset of the first row after the chunk; `read` says how much of the partition's `size` has been
    read.
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
    """Where a live source resumes after the chunk. Chunks of a connector have its own state, those
    of the source machine a `Resume`."""
    judged: tuple[Int64s, Int64s] | None = None
    """The starts and ends of rows that an ingress has already admitted. None of them is late or
    bad; late rows that were adjusted have their new starts."""

    def line(self, row: int) -> int | None:
        return None if self.lines is None else int(self.lines[row])


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a row of a file begins: its offset and, in a text file, its first byte."""

    offset: int = 0
    position: int = 0


class SourcePartition(Protocol):
    """Reads the rows of one partition of a source. `size` is in bytes; for rows in memory, in
    rows."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]: ...


@runtime_checkable
class PartitionSlice(Protocol):
    """A part of a partition; its rows keep the offsets that they have in the whole."""

    @property
    def whole(self) -> SourcePartition: ...


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with its declared columns and the needed ones among them (None: all).

    `name` is what errors and LATE rows show. A relative name starts at `root`, for processes that
    work in another folder. The name of an object in a bucket is its URL; `version` is the version
    that all its readers read.
    """

    name: str
    columns: Columns
    needed: Collection[str] | None = None
    root: str = ""
    max_record: int = MAX_RECORD
    """The largest size of a record of a text file, in bytes."""
    version: ObjectVersion | None = None
    unit: str | None = None
    """The unit of times given as numbers, explicit CTIs included (`time_units.py`)."""
    since: FilePlace | None = None
    """Where reading begins (None: at the first row); lines are counted from there. Formats that
    find a row by its number do not need it."""

    @property
    def path(self) -> str:
        return self.name if is_object_url(self.name) else os.path.join(self.root, self.name)

    @property
    def size(self) -> int:
        return os.path.getsize(self.path) if self.version is None else self.version.size

    def open_text(self) -> BinaryIO:
        """Open the file, at its beginning or where reading begins."""
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
        """Open an object for random access."""
        return ObjectFile(self.name, version)

    def needs(self, column: str) -> bool:
        return self.needed is None or column in self.needed


def object_version(url: str) -> ObjectVersion:
    """Return the current version of an object; raise InputError if it does not exist."""
    version = find_object(url)
    if version is None:
        raise InputError("there is no such object", file=url)
    return version


def shown(text: str) -> str:
    """Return a row's text as messages show it, cut when it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
