"""What followed sources share: lines that go on, and claims of the clock."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from weir.errors import PlanError
from weir.files.chunks import CHUNK_ROWS, Chunk, LogPlace
from weir.files.framing import Block, read_blocks
from weir.files.jsonl import JsonLines
from weir.ingress.ingress_log import IngressLog
from weir.plan.operators import Source

POLL = 0.001
FOLDER_POLL = 0.05

Stopped = Callable[[], bool]


@runtime_checkable
class Followed(Protocol):
    """A partition that a live run follows."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]: ...

    def follow(
        self, size: int, start: int, log: IngressLog, stopped: Stopped
    ) -> Iterator[Chunk]: ...


class Endless:
    """What followed partitions share. Relative names start at `root`, as of a `DataFile`."""

    name: str
    size = 0

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        hint = "run it with --runner live"
        raise PlanError(f"'{self.name}' has no end", hint=hint)


class Lines:
    """Text to chunks, with offsets and line numbers that go on."""

    def __init__(
        self, source: Source, name: str, start: int, *, offset: int = 0, line: int = 1
    ) -> None:
        self._limit = source.options.max_record
        self._read = JsonLines(name, source.declared, max_record=self._limit).block_reader()
        self._start = start
        self.offset, self.line = offset, line

    def chunks(self, data: bytes, size: int) -> Iterator[Chunk]:
        """The chunks of whole lines."""
        for block in read_blocks(io.BytesIO(data), size, self._limit, line=self.line):
            chunk = self.chunk(block)
            if chunk is not None:
                yield chunk

    def chunk(self, block: Block) -> Chunk | None:
        """The chunk of a block, if it has one; rows before the start are counted and left out."""
        chunk = self._read(block, self.offset, self._start)
        self.offset = chunk.stop
        self.line = int(block.lines[-1]) + 1
        return chunk if len(chunk.offsets) or len(chunk.cti_times) or chunk.bad else None


class Clock:
    """When a silent partition claims time."""

    def __init__(self, source: Source) -> None:
        idle = source.options.idle
        self._idle = None if idle is None else idle / 1e6
        self._heard = time.monotonic()

    def heard(self) -> None:
        self._heard = time.monotonic()

    def claim(self) -> int | None:
        """The time to claim now, if any."""
        if self._idle is None or time.monotonic() - self._heard < self._idle:
            return None
        self.heard()
        return int((time.time() - self._idle) * 1e6)


def claiming(source: Source, offset: int, claim: int, place: LogPlace) -> Chunk:
    """A chunk without rows that claims a time."""
    none = np.empty(0, dtype=np.int64)
    rows = pa.RecordBatch.from_pylist([], schema=pa.schema(list(source.declared)))
    zero = np.zeros(1, dtype=np.int64)
    return Chunk(rows, none, offset, none, np.array([claim]), zero, place=place)
