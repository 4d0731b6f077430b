"""Checks that a file still has the rows that were read of it, by hashes of its earlier bytes.

A live source that continues in a file starts after rows that were read before, maybe by another
process. If those rows have changed, the rest belongs to another file.

For a text file, the hash covers the bytes up to the end of the rows that were read; what follows
may still change. Parquet, Arrow and compressed files are written at once, and the first two have
their index at an end: for these, the hash covers both ends (`_EDGE` bytes each), and the size is
compared. Objects in buckets are replaced, never changed: their size and the store's tag are
compared.

Not detected: a file that was rewritten with the same beginning, and changes in the middle of a
Parquet or Arrow file that keep its size and both ends.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from weir.errors import InputError
from weir.files.buckets import ObjectVersion
from weir.files.chunks import Chunk, DataFile, SourcePartition
from weir.files.columnar import ArrowFile, ParquetFile
from weir.files.compressed_files import codec_of
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines

_PIECE = 1 << 22
_EDGE = 1 << 16


def gone(what: str, file: str, rows: int) -> InputError:
    """Return the error for a file whose rows, already read or needed again, are gone."""
    count = "1 row" if rows == 1 else f"{rows} rows"
    return InputError(
        f"it {what}, and {count} of it were read; put the whole file back and run again with "
        "--resume",
        file=file,
    )


def check_not_shorter(partition: SourcePartition, start: int) -> None:
    """Check that a partition without rows from `start` on still has the rows before it."""
    before = next(iter(partition.chunks(1, start - 1)), None) if start else None
    if start and (before is None or before.stop < start):
        raise gone("has fewer rows now", partition.name, start)


class Prefix:
    """A running hash of the first `position` bytes of a file."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.position = 0

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def advance(self, file: BinaryIO, position: int, data: bytes = b"") -> None:
        """Extend the hash to a position. `data` are the bytes up to there, if they are at hand."""
        if len(data) == position - self.position:
            self._hash.update(data)
            self.position = position
        while self.position < position:
            most = min(_PIECE, position - self.position)
            piece = os.pread(file.fileno(), most, self.position)
            if not piece:
                return  # the file is shorter now
            self._hash.update(piece)
            self.position += len(piece)


class FileMark(msgspec.Struct, frozen=True, array_like=True):
    """How many bytes of a file were read, and their digest."""

    read: int = 0
    digest: str = ""


def prefix_of(file: BinaryIO, name: str, mark: FileMark, rows: int) -> Prefix:
    """Return the prefix of a file that a mark was made of; raise InputError if it has changed."""
    prefix = Prefix()
    prefix.advance(file, mark.read)
    if prefix.position < mark.read:
        raise gone("was truncated", name, rows)
    if mark.read and prefix.digest != mark.digest:
        raise gone("no longer begins with what was read", name, rows)
    return prefix


def marked_chunks(
    partition: SourcePartition, size: int, start: int, mark: FileMark
) -> Iterator[tuple[Chunk, FileMark | None]]:
    """Yield the chunks of a file from `start` on, each with the mark of everything read so far
    (None if the rows are not in a file). `mark` is the mark at `start`."""
    match partition:
        case DataFile(version=ObjectVersion()):
            yield from _object_chunks(partition, size, start, mark)
        case JsonLines() | CsvFile() if codec_of(partition.name) is None:
            yield from _text_chunks(partition, size, start, mark)
        case ParquetFile() | ArrowFile() | JsonLines() | CsvFile():
            yield from _whole_chunks(partition, size, start, mark)
        case _:
            yield from ((chunk, None) for chunk in partition.chunks(size, start))


def _text_chunks(
    partition: JsonLines | CsvFile, size: int, start: int, mark: FileMark
) -> Iterator[tuple[Chunk, FileMark]]:
    with open(partition.path, "rb") as file:
        prefix = prefix_of(file, partition.name, mark, start)
        for chunk in partition.chunks(size, start):
            prefix.advance(file, chunk.read)
            yield chunk, FileMark(chunk.read, prefix.digest)


def _object_chunks(
    partition: SourcePartition, size: int, start: int, mark: FileMark
) -> Iterator[tuple[Chunk, FileMark]]:
    assert isinstance(partition, DataFile) and partition.version is not None
    now = FileMark(partition.version.size, partition.version.tag)
    if mark.digest and mark != now:
        raise gone("was replaced", partition.name, start)
    for chunk in partition.chunks(size, start):
        yield chunk, now


def _whole_chunks(
    partition: ParquetFile | ArrowFile | JsonLines | CsvFile, size: int, start: int, mark: FileMark
) -> Iterator[tuple[Chunk, FileMark]]:
    edges = _edges(partition)
    if mark.read and mark != edges:
        raise gone("is another file now", partition.name, start)
    for chunk in partition.chunks(size, start):
        yield chunk, edges


def _edges(file: DataFile) -> FileMark:
    """Return the size of a file, and a hash of its first and last bytes."""
    with open(file.path, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        ends = opened.read(_EDGE), os.pread(opened.fileno(), _EDGE, max(0, size - _EDGE))
    return FileMark(size, hashlib.sha256(b"".join(ends)).hexdigest())
