"""Signals go into a source's machine and commands come out, one command at a time.

A driver carries a command out and answers it: commands for the log with a store, the others with
the connector's reading and a clock. The rules are the machine's; drivers enforce none.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import msgspec

from weir.files.chunks import Chunk


class IngressRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Says what happened at an offset of a source's partition: one record of its log.

    `offset` is that of the next row when the record was written.
    """

    offset: int
    lines: bytes = b""
    """The text of rows that came."""
    claim: int | None = None
    """A time that the clock claimed."""
    file: str = ""
    """A file that was found."""
    ends: bool = False
    writer: str = ""
    before: str = ""
    """The seal of the record before it."""
    read: int = 0
    digest: str = ""
    """The digest of the first `read` bytes of a file that grows, which it must keep."""
    owner: int = 0
    """The incarnation of the source that alone may claim from here on."""


# --- the log ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Read an object of the log; answered by `RecordRead`."""

    key: str


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Make an object of the log, if there is none of that name; answered by `Appended`."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class ListRecords:
    """List the objects of the log; answered by `RecordsListed`."""

    prefix: str


@dataclass(frozen=True, slots=True)
class RecordRead:
    """Brings what an object holds; None: there is none."""

    body: bytes | None


@dataclass(frozen=True, slots=True)
class Appended:
    """Says that the record is durable, or (not `stored`) that an object of that name was there
    before."""

    stored: bool


@dataclass(frozen=True, slots=True)
class RecordsListed:
    """Brings the names of objects, as they were some time ago."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """Says that a request to the store failed, or that its answer was lost; `lasts` if it will fail
    again."""

    why: str
    lasts: bool = False


# --- the connector ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """Open the connector where its resume state says (None: at the beginning); rows before
    `start` are counted and left out. Answered by `Opened`."""

    state: bytes | None
    start: int


@dataclass(frozen=True, slots=True)
class Poll:
    """Look for what is new: `Rows`, `Offer`, `Quiet` or `Finished`.

    At most `most` rows are wanted, and none from offset `until` on, where a record of the log
    stands. Without `until` the log is at its end: only then may something be offered."""

    most: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Accept:
    """Take in a record of the log, which counts from here on; answered by `Accepted`.

    `own`: it is what this connector offered. `stop` is the offset of the next record, if there is
    one: what this record brought ends there.
    """

    record: IngressRecord
    own: bool = False
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """Says that the connector is open; the next row that it reads has this offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Brings rows that can be read again at the same offsets; `chunk.resume` is the connector's
    state."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Offer:
    """Brings something that must be in the log before it counts; it is offered again until it is
    there."""

    record: IngressRecord


@dataclass(frozen=True, slots=True)
class Quiet:
    """Says that there is nothing to give now; look again in so many seconds."""

    offset: int
    """The offset of the next row; it moves past rows that are left out."""
    again_in: float
    heard: bool = False
    """Whether something has come, if no whole row."""
    why: str | None = None
    """What must happen outside before anything can come, and what keeps it from happening; None:
    it is only silent."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Says that the partition has ended, which everybody who reads it can see."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Says that the record is taken in; a source that resumes from it opens the connector with this
    state."""

    offset: int
    state: bytes | None


# --- the driver ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait:
    """Let so many seconds pass; `why` is that of `Quiet`."""

    seconds: float
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Give:
    """Hand a chunk to the source's vertex when it wants one; None: the partition has ended."""

    chunk: Chunk | None


LogCommand: TypeAlias = ReadRecord | AppendRecord | ListRecords
LogAnswer: TypeAlias = RecordRead | Appended | RecordsListed
Finding: TypeAlias = Rows | Offer | Quiet | Finished
SourceCommand: TypeAlias = LogCommand | Open | Poll | Accept | Wait | Give
SourceSignal: TypeAlias = LogAnswer | StoreFailed | Opened | Finding | Accepted

_T = TypeVar("_T")
LogTalk: TypeAlias = Generator[LogCommand, LogAnswer, _T]
"""A conversation with the store: commands come out, answers go in, a result at the end."""
