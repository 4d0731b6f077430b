"""A connector is what a live source reads through: one small interface for every scheme.

Contract
1. A connector is what a path names: one partition, as a value that travels to the hosts. `open`
   makes a reading of it; all I/O is the reading's.
2. A reading starts where its own resume state says. Nobody else can read that state.
3. `poll` returns at once, or after the short time that the outside world lets it wait. Rows that
   can be read again at the same offset come as `Rows`. What cannot, and what is a choice, is an
   `Offer`, only while `until` is None, and again until it is accepted.
4. Offsets grow and depend on the partition and its log alone. They may have gaps: where no row is
   left before `until`, the offset moves there.
5. `accept` takes in a record of the log, whoever wrote it: rows of it are polled from then on.
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
    """Reads a partition once, from a resume state on, by the module's contract."""

    @property
    def offset(self) -> int:
        """The offset of the next row that is given."""
        ...

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        """Look for what is new; `now` is in seconds from any start."""
        ...

    def accept(self, accept: Accept) -> Accepted: ...

    def close(self) -> None: ...


class Connector(ABC):
    """Names a partition that a live run follows, and opens readings of it, by the module's
    contract. One that does not state all of this cannot be made; mypy reports it earlier."""

    __slots__ = ()
    source: Source
    name: str
    """What errors and LATE rows show."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows it has in all; 0: that is not known."""

    @property
    @abstractmethod
    def has_end(self) -> bool:
        """Whether it is known to end by itself."""

    @property
    @abstractmethod
    def has_log(self) -> bool:
        """Whether it makes choices, or reads rows that cannot be read again."""

    @property
    @abstractmethod
    def has_free_rows(self) -> bool:
        """Whether rows come at any time, without a record of the log before them."""

    @property
    @abstractmethod
    def local_files(self) -> str | None:
        """The files of this machine that it reads, as a glob; None: it reads none."""

    @abstractmethod
    def rooted(self, root: str) -> Self:
        """Return the connector for processes that work in another folder: a relative path starts
        at `root`."""

    @abstractmethod
    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        """Give all rows at once, as runs over files read them; PlanError if there is no end."""

    @abstractmethod
    def open(self, state: bytes | None, start: int) -> Reading:
        """Open a reading where this state says (None: at the beginning); rows before `start` are
        counted and left out."""


class Endless(Connector):
    """Holds what connectors share that are followed for as long as the job runs."""

    __slots__ = ()
    size = 0
    has_end = False

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        hint = "run it with --runner live"
        raise PlanError(f"'{self.source.path}' has no end", hint=hint)


class Lines:
    """Turns text into chunks, with offsets and line numbers that go on from one text to the
    next."""

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
        """Give whole lines, at most `size` at a time."""
        return read_text_chunks(io.BytesIO(data), size, self._limit, line=self.line)

    def chunk(self, text_chunk: TextChunk) -> Chunk | None:
        """Make the chunk of a text chunk; None if it has no rows to give. Rows before the start are
        counted and left out."""
        chunk = self._read(text_chunk, self.offset, self._start)
        self.offset = chunk.stop
        self.line = int(text_chunk.lines[-1]) + 1
        return chunk if len(chunk.offsets) or len(chunk.cti_times) or chunk.bad else None
