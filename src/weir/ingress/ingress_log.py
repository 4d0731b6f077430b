"""The log of a live source records its decisions, and the rows that it cannot read again.

Design note 0014 gives the reasons.

Rules
1. A record says what happened at an offset of the partition: rows that came (their text), a claim
   of the clock, a file that was found, or the end. It is durable before it takes effect.
2. Records are numbered, and each number is written once. If two instances write the same number,
   the second one adopts the first one's record and writes its own after it. A writer whose write
   failed, or found a record there, recognises its own record by its name in it.
3. A restarted source first replays the records, so it repeats what it did. It begins with the
   record from which the last rows before its snapshot came.
4. Records before that one are deleted, the smallest number first. After reading or writing record
   k, an instance checks that the record before it is unchanged. If it is, k was never deleted. If
   not, other instances are ahead (`LogCollected`), and k may be a new record under a deleted
   number, which does not count. Records name their writer, so no two are equal.
5. The first record is empty; it is written once, before the job starts.
6. Each record refers to the one before it, and the manager's record to the last one that the
   manager knows. So a lost or changed record is detected, and is an error: its content is gone. If
   the last record is damaged and nothing refers to it, its write never finished: the next record
   gets the next number, and refers to the record before the damaged one.

The log does no I/O: its methods are conversations with a store (`LogTalk`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import msgspec

from weir.errors import RunError, SnapshotCorrupt
from weir.ingress.source_signals import (
    Appended,
    AppendRecord,
    IngressRecord,
    ListRecords,
    LogTalk,
    ReadRecord,
    RecordRead,
    RecordsListed,
)
from weir.reliable.codec import decode_record, encode_record
from weir.reliable.object_names import ingress_key, is_known, number_of
from weir.reliable.objects import ObjectRef
from weir.reliable.store import ObjectExists, Store

LOST_RECORD = (
    "the log of a source has lost a record, whose content cannot be read again: put it back from "
    "a version or a backup of the store and run again with --resume, or start the job again with "
    "an empty store"
)


class LogCollected(RunError):
    """Raised when records that an instance still needs were deleted: the instance has fallen
    behind."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A record, and the reference to its object in the store."""

    record: IngressRecord
    ref: ObjectRef


def begin_log(store: Store, name: str, token: str) -> ObjectRef:
    """Write the first record of a log, unless it exists, and return its reference."""
    key, body = _first_record(name, token)
    with suppress(ObjectExists):  # written by an earlier attempt to start this job
        store.put(key, body, new=True)
    return ObjectRef.of(key, body)


def first_record(name: str, token: str) -> ObjectRef:
    """Return the reference to the first record of a source's log."""
    return ObjectRef.of(*_first_record(name, token))


def _first_record(name: str, token: str) -> tuple[str, bytes]:
    key = ingress_key(name, 0)
    return key, encode_record(key, IngressRecord(0, writer=token))


class IngressLog:
    """Reads and writes the log of one partition, starting at a given record, by the module's
    rules."""

    def __init__(
        self, name: str, start: ObjectRef, end: ObjectRef | None = None, *, writer: str
    ) -> None:
        """Begin at the record `start`. `end` is the last record that the job knows; `writer` is a
        unique name."""
        self._name, self._writer = name, writer
        self._start, self._end = start, end
        self._replayed: IngressRecord | None = None
        """The record to start with, until it has been read."""
        self._last, self._before = start, ""
        """The last record that was read or written, and the seal of the record before it."""
        self._number = self._free = number_of(start.key) + 1
        """The number of the next record to read and, if it does not exist, to write."""

    def begin(self) -> LogTalk[None]:
        """Check that the record to start with exists."""
        body = yield from self._get(self._start.key)
        number = number_of(self._start.key)
        try:
            record = _decoded(self._start.key, self._start.check(body))
        except SnapshotCorrupt as error:
            raise self._gone(self._start.key) from error
        self._replayed = record if number > 0 else None

    def read(self) -> LogTalk[Logged | None]:
        """Read the next record, or return None if it does not exist."""
        if self._replayed is not None:
            first, self._replayed = Logged(self._replayed, self._start), None
            return first
        following = yield from self._next()
        if following is None:
            return None
        yield from self._step(following.ref)
        if following.record.before != self._before:
            raise SnapshotCorrupt(
                f"{following.ref.key} does not follow the record before it: {LOST_RECORD}"
            )
        if (
            self._end is not None
            and following.ref.key == self._end.key
            and following.ref != self._end
        ):
            raise SnapshotCorrupt(
                f"{following.ref.key} is not the record that was written: {LOST_RECORD}"
            )
        return following

    def append(self, record: IngressRecord) -> LogTalk[ObjectRef | None]:
        """Write the next record. Return None if another instance's record has that number; read it
        first."""
        mine = msgspec.structs.replace(record, writer=self._writer, before=self._last.seal)
        while True:
            key = ingress_key(self._name, self._number)
            body = encode_record(key, mine)
            ref = ObjectRef.of(key, body)
            answer = yield AppendRecord(key, body)
            assert isinstance(answer, Appended)
            if not answer.stored:
                following = yield from self._next()
                if following is None:
                    self._number = self._free
                    continue
                if following.ref != ref:
                    return None
            yield from self._step(ref)
            return ref

    def _next(self) -> LogTalk[Logged | None]:
        """Read the next record, or return None if there is none; raise if there must be one.
        Damaged records that nothing refers to are skipped (rule 6)."""
        number, why = self._number, ""
        while True:
            key = ingress_key(self._name, number)
            body = yield from self._get(key)
            if body is None:
                break
            try:
                record = _decoded(key, body)
            except SnapshotCorrupt as error:
                number, why = number + 1, why or str(error)
                continue
            if why and record.before != self._last.seal:
                yield from self._check_last()
                raise SnapshotCorrupt(f"{why}; {key} follows it: {LOST_RECORD}")
            return Logged(record, ObjectRef.of(key, body))
        self._free = number
        later = self._end.key if self._end is not None else None
        if later is None or number_of(later) < self._number:
            later = yield from self._later(number)
        if later is None:
            return None
        if (yield from self._get(key)) is not None:
            return (yield from self._next())  # written in the meantime
        yield from self._check_last()
        raise SnapshotCorrupt(
            f"{why or f'{key} is not in the store'}, but {later} was written: {LOST_RECORD}"
        )

    def _later(self, number: int) -> LogTalk[str | None]:
        """Find a readable record with a larger number; None if there is none."""
        listed = yield ListRecords(f"ingress/{self._name}/")
        assert isinstance(listed, RecordsListed)
        for key in sorted(listed.keys):
            if not is_known(key) or number_of(key) <= number:
                continue
            body = yield from self._get(key)
            if body is not None and _is_record(key, body):
                return key
        return None

    def _check_last(self) -> LogTalk[None]:
        """Check by rule 4 that the last record that was read or written is unchanged."""
        body = yield from self._get(self._last.key)
        if body is None or ObjectRef.of(self._last.key, body) != self._last:
            raise self._gone(self._last.key)

    def _step(self, ref: ObjectRef) -> LogTalk[None]:
        """Advance past a record that was read or written, if it counts by rule 4."""
        yield from self._check_last()
        self._before, self._last = self._last.seal, ref
        self._number = number_of(ref.key) + 1

    def _gone(self, key: str) -> LogCollected:
        number = number_of(key)
        return LogCollected(f"record {number} of the log of {self._name} is gone ({key})")

    def _get(self, key: str) -> LogTalk[bytes | None]:
        answer = yield ReadRecord(key)
        assert isinstance(answer, RecordRead)
        return answer.body


_decoder = msgspec.json.Decoder(IngressRecord)


def _decoded(key: str, body: bytes) -> IngressRecord:
    return decode_record(key, body, _decoder)


def _is_record(key: str, body: bytes) -> bool:
    try:
        _decoded(key, body)
    except SnapshotCorrupt:
        return False
    return True
