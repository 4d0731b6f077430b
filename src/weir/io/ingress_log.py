"""The log of what a live source decided or cannot read again (architecture §3.5, §3.6).

Rules
1. A record says what happened at an offset of the partition: rows that came (their text), a claim
   made by the clock, a file that was found, the end. It is durable before it takes effect.
2. Records are numbered and made once each. Of two instances that write the next one, the second
   takes the first one's record over, and writes its own behind it.
3. A source that starts again goes through the records first, so it says the same again; it begins
   with the record that the last rows before its snapshot came from (`LogPlace`).
4. Records before that one are deleted, the smallest number first. Whoever reads or writes record k
   then looks whether the record before it is still the one it knows. If so, k was never deleted
   either. If not, others are ahead (`LogCollected`): a record that was made anew under the number
   of a deleted one is never believed. Records name their writer, so no two are ever the same.
5. The first record says nothing; it is made once, before the job starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import msgspec

from weir.errors import RunError
from weir.job.keys import ingress_key
from weir.reliable.codec import decode_record, encode_record
from weir.reliable.store import ObjectExists, Store


class LogCollected(RunError):
    """Records that an instance still needs are gone: it has fallen behind."""


class IngressRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """See rule 1. `offset` is that of the next row when it was written."""

    offset: int
    lines: bytes = b""
    claim: int | None = None
    file: str = ""
    ends: bool = False
    writer: str = ""
    read: int = 0
    digest: str = ""
    """Of a file that grows: its first so many bytes, which it must keep."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a source is in its log: at a record of this number and writer, before which the
    partition had `offset` rows and `line` was the next, and these files were found. Of the file
    that it reads, `read` bytes are behind it, with this digest (`unchanged.py`)."""

    number: int
    writer: str
    offset: int = 0
    line: int = 1
    _found: Sequence[str] = field(default=(), repr=False)
    _found_count: int = 0
    read: int = 0
    digest: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        # The list is shared by all places of a run and only grows.
        return tuple(self._found[: self._found_count])


def begin_log(store: Store, name: str, token: str) -> LogPlace:
    """Make the first record of a log, if it is not there; where a source begins."""
    first = IngressRecord(0, writer=token)
    with suppress(ObjectExists):  # whoever tried to begin this job before has made it
        store.put(ingress_key(name, 0), encode_record(first), new=True)
    return LogPlace(0, token)


class IngressLog:
    """The log of one partition, from a place on; see the module's rules."""

    def __init__(self, store: Store, name: str, start: LogPlace) -> None:
        self._store, self._name = store, name
        self.start = start
        self._writer = uuid4().hex
        self._number = start.number
        self._last_writer = start.writer
        first = store.get(self._key)
        if first is None or _decoded(first).writer != start.writer:
            raise LogCollected(f"record {start.number} of the log of {name} is gone")
        self._before = first
        self._replays_start = start.number > 0
        self._number += 1

    def read(self) -> IngressRecord | None:
        """The next record that is there."""
        if self._replays_start:
            self._replays_start = False
            return _decoded(self._before)
        body = self._store.get(self._key)
        if body is None:
            return None
        self._step(body)
        record = _decoded(body)
        self._last_writer = record.writer
        return record

    def peek(self) -> IngressRecord | None:
        """The next record that is there, which is read again; for a look only."""
        body = self._store.get(self._key)
        return None if body is None else _decoded(body)

    def append(self, record: IngressRecord) -> bool:
        """Write the next record; False if somebody else's stands there, to be read first."""
        body = encode_record(msgspec.structs.replace(record, writer=self._writer))
        try:
            self._store.put(self._key, body, new=True)
        except ObjectExists:
            return False
        self._step(body)
        self._last_writer = self._writer
        return True

    def place(self, offset: int, line: int = 1, found: Sequence[str] = ()) -> LogPlace:
        """That of the record that was read or written last."""
        return LogPlace(self._number - 1, self._last_writer, offset, line, found, len(found))

    @property
    def _key(self) -> str:
        return ingress_key(self._name, self._number)

    def _step(self, body: bytes) -> None:
        """A record was read or written; rule 4 says whether it counts."""
        if self._store.get(ingress_key(self._name, self._number - 1)) != self._before:
            raise LogCollected(f"record {self._number - 1} of the log of {self._name} is gone")
        self._before = body
        self._number += 1


_decoder = msgspec.json.Decoder(IngressRecord)


def _decoded(body: bytes) -> IngressRecord:
    return _decoder.decode(decode_record(body))
