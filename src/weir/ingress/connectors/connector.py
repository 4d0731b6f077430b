"""A connector reads a live source: one small interface for all schemes.

Contract
1. A connector stands for what a path names: one partition, as a value that travels to the hosts.
   `open` makes a reading of it; only the reading does I/O.
2. A reading starts at its resume state, which only the connector itself can interpret.
3. `poll` returns at once, or after a short wait for the outside world. Rows that can be read again
   at the same offsets come as `Rows`. Rows that cannot, and choices, come as an `Offer`, which is
   made only while `until` is None, and repeated until it is accepted.
4. Offsets grow, and depend on the partition and its log alone. They may have gaps: if no row is
   left before `until`, the offset jumps to `until`.
5. `accept` applies a record of the log, whoever wrote it; `poll` then returns the record's rows.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol, Self

from weir.errors import PlanError
from weir.files.chunks import CHUNK_ROWS, Chunk
from weir.files.jsonl import JsonLines
from weir.files.record_frames import TextChunk, read_text_chunks
from weir.ingress.source_signals import Accept, Accepted, Finding
from weir.plan.operators import Source


class Reading(Protocol):
    """Reads a partition once, from a resume state, by the module's contract."""

    @property
    def offset(self) -> int:
        """The offset of the next row."""
        ...

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        """Look for what is new; `now` is in seconds from any start."""
        ...

    def accept(self, accept: Accept) -> Accepted: ...

    def close(self) -> None: ...


class Connector(ABC):
    """A partition that a live run follows; opens readings of it, by the module's contract. A
    subclass that lacks one of these members cannot be instantiated; mypy reports it earlier."""

    __slots__ = ()
    source: Source
    name: str
    """The name in errors and LATE rows."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The total number of rows; 0 if unknown."""

    @property
    @abstractmethod
    def has_end(self) -> bool:
        """Whether it is known to end by itself."""

    @property
    @abstractmethod
    def has_log(self) -> bool:
        """Whether it makes choices, or gives rows that cannot be read again."""

    @property
    @abstractmethod
    def has_free_rows(self) -> bool:
        """Whether rows may come at any time, without a record of the log before them."""

    @property
    @abstractmethod
    def local_files(self) -> str | None:
        """A glob of the local files that it reads, or None."""

    @abstractmethod
    def rooted(self, root: str) -> Self:
        """Return the connector for processes that work in another folder: a relative path then
        starts at `root`."""

    @abstractmethod
    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        """Yield all rows at once, for runs over finite inputs; raise PlanError if there is no
        end."""

    @abstractmethod
    def open(self, state: bytes | None, start: int) -> Reading:
        """Open a reading at this state (None: at the beginning). Rows before `start` are counted
        and left out."""


class Endless(Connector):
    """The common part of connectors that are followed for as long as the job runs."""

    __slots__ = ()
    size = 0
    has_end = False

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        hint = "run it with --runner live"
        raise PlanError(f"'{self.source.path}' has no end", hint=hint)


class Lines:
    """Turns text into chunks; offsets and line numbers continue from one text to the next."""

    def __init__(
        self, source: Source, name: str, start: int, *, offset: int = 0, line: int = 1
    ) -> None:
        self._limit = source.options.max_record
        self._read = JsonLines(
            name, source.declared, max_record=self._limit, unit=source.options.unit
        ).chunk_reader()
        self._start = start
        self.offset, self.line = offset, line

    def text_chunks(self, data: bytes, size: int) -> Iterator[TextChunk]:
        """Yield whole lines, at most `size` at a time."""
        return read_text_chunks(io.BytesIO(data), size, self._limit, line=self.line)

    def chunk(self, text_chunk: TextChunk) -> Chunk | None:
        """Make the chunk of a text chunk; None if it has no rows to give. Rows before the start are
        counted and left out."""
        chunk = self._read(text_chunk, self.offset, self._start)
        self.offset = chunk.stop
        self.line = int(text_chunk.lines[-1]) + 1
        return chunk if len(chunk.offsets) or len(chunk.cti_times) or chunk.bad else None
