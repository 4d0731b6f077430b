"""Checks that what was read of a file is still there, by hashes of what stands before a position.

A live source that continues in a file starts after rows that were read before, maybe in another
process. They must still be the same rows; otherwise what follows belongs to another file.

Of a text the first bytes are hashed, up to the end of the rows that were read; what follows them
may still be fixed. Parquet, Arrow and compressed files are written at once, and the
first two say at their ends where all lies: of them the size and both ends are hashed (`_EDGE` bytes
each). An object in a bucket is not changed but replaced: it is known by its size and the store's
tag.

What cannot be seen: a file that was rewritten with the very same beginning; other values in the
middle of a Parquet or Arrow file of the same size that keeps its ends.
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
    """Make the error that rows which are needed again, or came unseen, cannot be had."""
    count = "1 row" if rows == 1 else f"{rows} rows"
    return InputError(
        f"it {what}, and {count} of it were read; put the whole file back and run again with "
        "--resume",
        file=file,
    )


def check_not_shorter(partition: SourcePartition, start: int) -> None:
    """Check that a partition that gave no row from `start` on still has the rows before it."""
    before = next(iter(partition.chunks(1, start - 1)), None) if start else None
    if start and (before is None or before.stop < start):
        raise gone("has fewer rows now", partition.name, start)


class Prefix:
    """Keeps a running hash of the first bytes of a file; `position` says how many."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.position = 0

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def advance(self, file: BinaryIO, position: int, data: bytes = b"") -> None:
        """Go on to a position; `data` are the bytes up to there, where they are at hand."""
        if len(data) == position - self.position:
            self._hash.update(data)
            self.position = position
        while self.position < position:
            most = min(_PIECE, position - self.position)
            piece = os.pread(file.fileno(), most, self.position)
            if not piece:
                return  # it is shorter now
            self._hash.update(piece)
            self.position += len(piece)


class FileMark(msgspec.Struct, frozen=True, array_like=True):
    """Says what was read of a file: so many bytes, with this digest."""

    read: int = 0
    digest: str = ""


def prefix_of(file: BinaryIO, name: str, mark: FileMark, rows: int) -> Prefix:
    """Return the prefix that a mark was made of; raise InputError when it is another now."""
    prefix = Prefix()
    prefix.advance(file, mark.read)
    if prefix.position < mark.read:
        raise gone("was truncated", name, rows)
    if mark.read and prefix.digest != mark.digest:
        raise gone("does not begin any more with what was read of it", name, rows)
    return prefix


def marked_chunks(
    partition: SourcePartition, size: int, start: int, mark: FileMark
) -> Iterator[tuple[Chunk, FileMark | None]]:
    """Give the chunks of a file from `start` on, each with the mark of what was read of it by then
    (None for rows that are in no file). `mark` is that of the row before `start`."""
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
