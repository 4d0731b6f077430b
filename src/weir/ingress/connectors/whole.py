"""Reads partitions that are complete from the beginning: files, and rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from weir.files.chunks import Chunk, SourcePartition
from weir.ingress.source_integrity import FileMark, check_not_shorter, marked_chunks
from weir.ingress.source_signals import Accept, Accepted, Finding, Finished, Rows

_decoder = msgspec.msgpack.Decoder(FileMark)


class WholeReading:
    """Reads a finite partition once. It detects a file that has become shorter than what was read
    of it, and a file that was replaced."""

    def __init__(self, partition: SourcePartition, state: bytes | None, start: int) -> None:
        self._partition, self._start = partition, start
        self._mark = FileMark() if state is None else _decoder.decode(state)
        self.offset = start
        self._chunks: Iterator[tuple[Chunk, FileMark | None]] | None = None

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        if self._chunks is None:
            self._chunks = marked_chunks(self._partition, most, self._start, self._mark)
            marked = next(self._chunks, None)
            if marked is None:
                check_not_shorter(self._partition, self._start)
        else:
            marked = next(self._chunks, None)
        if marked is None:
            return Finished()
        chunk, mark = marked
        self.offset = chunk.stop
        return Rows(chunk if mark is None else replace(chunk, resume=msgspec.msgpack.encode(mark)))

    def accept(self, accept: Accept) -> Accepted:
        raise AssertionError("a partition that ends has no log")

    def close(self) -> None:
        self._chunks = None
