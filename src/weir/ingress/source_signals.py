"""The signals that go into a source's machine, and the commands that come out, one at a time.

A driver carries out a command and answers it: commands of the log with a store, the others with the
connector's reading and a clock. All rules are in the machine; drivers enforce none.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import msgspec

from weir.files.chunks import Chunk


class IngressRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record of a source's log: what happened at an offset of its partition.

    `offset` is the offset of the next row when the record was written.
    """

    offset: int
    lines: bytes = b""
    """The text of rows that came."""
    claim: int | None = None
    """A time claimed by the clock."""
    file: str = ""
    """A file that was found."""
    ends: bool = False
    writer: str = ""
    before: str = ""
    """The seal of the record before it."""
    read: int = 0
    digest: str = ""
    """The digest of the first `read` bytes of a growing file, which must not change."""
    owner: int = 0
    """The only incarnation of the source that may claim from here on."""


# --- the log ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Read an object of the log. Answer: `RecordRead`."""

    key: str


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Create an object of the log, unless the name exists. Answer: `Appended`."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class ListRecords:
    """List the objects of the log. Answer: `RecordsListed`."""

    prefix: str


@dataclass(frozen=True, slots=True)
class RecordRead:
    """The content of an object; None if it does not exist."""

    body: bytes | None


@dataclass(frozen=True, slots=True)
class Appended:
    """The record is durable or, if not `stored`, an object of that name existed already."""

    stored: bool


@dataclass(frozen=True, slots=True)
class RecordsListed:
    """The names of objects; the listing may lag behind."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """A request to the store failed, or its answer was lost; `lasts` if a retry would fail
    again."""

    why: str
    lasts: bool = False


# --- the connector ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """Open the connector at its resume state (None: at the beginning). Rows before `start` are
    counted and left out. Answer: `Opened`."""

    state: bytes | None
    start: int


@dataclass(frozen=True, slots=True)
class Poll:
    """Look for what is new. Answer: `Rows`, `Offer`, `Quiet` or `Finished`.

    Return at most `most` rows, and none from offset `until` on, the offset of the next record of
    the log. `until` is None at the end of the log; only then may the connector make an offer."""

    most: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Accept:
    """Apply a record of the log, which takes effect now. Answer: `Accepted`.

    `own`: this connector offered it. `stop` is the offset of the next record, if there is one; the
    rows of this record end there.
    """

    record: IngressRecord
    own: bool = False
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The connector is open; the next row that it reads has this offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that can be read again at the same offsets; `chunk.resume` is the connector's state."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that must be logged before it counts; the connector offers it until it is
    accepted."""

    record: IngressRecord


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nothing to give now; poll again in `again_in` seconds."""

    offset: int
    """The offset of the next row; it grows past rows that are left out."""
    again_in: float
    heard: bool = False
    """Whether something has come, even if it is not a whole row."""
    why: str | None = None
    """What must happen outside before anything can come, and what prevents it; None if the
    partition is merely silent."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The partition has ended, visibly for every reader."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The record is applied; a source that resumes from it opens the connector with this state."""

    offset: int
    state: bytes | None


# --- the driver ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait this many seconds; `why` is that of `Quiet`."""

    seconds: float
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Give:
    """Pass a chunk to the source's vertex when it wants one; None if the partition has ended."""

    chunk: Chunk | None


LogCommand: TypeAlias = ReadRecord | AppendRecord | ListRecords
LogAnswer: TypeAlias = RecordRead | Appended | RecordsListed
Finding: TypeAlias = Rows | Offer | Quiet | Finished
SourceCommand: TypeAlias = LogCommand | Open | Poll | Accept | Wait | Give
SourceSignal: TypeAlias = LogAnswer | StoreFailed | Opened | Finding | Accepted

_T = TypeVar("_T")
LogTalk: TypeAlias = Generator[LogCommand, LogAnswer, _T]
"""A conversation with the store: yields commands, receives answers, and returns a result."""
