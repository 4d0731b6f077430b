"""The log of a live source records what it decided and what it cannot read again.

Design note 0014 gives the reasons.

Rules
1. A record says what happened at an offset of the partition: rows that came (their text), a claim
   made by the clock, a file that was found, the end. It is durable before it takes effect.
2. Records are numbered and made once each. Of two instances that write the next one, the second
   takes the first one's record over, and writes its own after it. A writer whose write failed, or
   found a record there, recognises its own by its name.
3. A source that starts again goes through the records first, so it repeats what it did; it begins
   with the record that the last rows before its snapshot came from.
4. Records before that one are deleted, the smallest number first. Whoever reads or writes record k
   then looks whether the record before it is still the one it knows. If so, k was never deleted
   either. If not, others are ahead (`LogCollected`): a record that was made again under the
   number of a deleted one never counts. Records name their writer, so no two are ever the same.
5. The first record is empty; it is made once, before the job starts.
6. A record refers to the one before it, and the manager's record to the last one that it has heard
   of. So a record that was lost or changed is detected, and is an error: what it held is gone. A
   last record that is damaged and that nothing refers to was never written: the next one is written
   after it, and refers to the one before it.

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
    "the log of a source has lost a record, and what stood there cannot be had again: put it back "
    "from a version or a backup of the store and run again with --resume, or start the job again "
    "with an empty store"
)


class LogCollected(RunError):
    """Says that records which an instance still needs are gone: it has fallen behind."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Holds a record with the reference to its object in the store."""

    record: IngressRecord
    ref: ObjectRef


def begin_log(store: Store, name: str, token: str) -> ObjectRef:
    """Make the first record of a log, if it is not there, and return its reference."""
    key, body = _first_record(name, token)
    with suppress(ObjectExists):  # whoever tried to begin this job before has made it
        store.put(key, body, new=True)
    return ObjectRef.of(key, body)


def first_record(name: str, token: str) -> ObjectRef:
    """Return the reference to the first record of the log of a job's source."""
    return ObjectRef.of(*_first_record(name, token))


def _first_record(name: str, token: str) -> tuple[str, bytes]:
    key = ingress_key(name, 0)
    return key, encode_record(key, IngressRecord(0, writer=token))


class IngressLog:
    """Reads and writes the log of one partition from a record on, by the module's rules."""

    def __init__(
        self, name: str, start: ObjectRef, end: ObjectRef | None = None, *, writer: str
    ) -> None:
        """Begin at the record `start`. `end` is the last record that the job has heard of; `writer`
        is a name that nobody else has."""
        self._name, self._writer = name, writer
        self._start, self._end = start, end
        self._replayed: IngressRecord | None = None
        """The record that it starts with, until it was read."""
        self._last, self._before = start, ""
        """The last record that was read or written, and the seal of the one before it."""
        self._number = self._free = number_of(start.key) + 1
        """The number of the next record to read and, when there is none, to write."""

    def begin(self) -> LogTalk[None]:
        """Check that the record that it starts with is there."""
        body = yield from self._get(self._start.key)
        number = number_of(self._start.key)
        try:
            record = _decoded(self._start.key, self._start.check(body))
        except SnapshotCorrupt as error:
            raise self._gone(self._start.key) from error
        self._replayed = record if number > 0 else None

    def read(self) -> LogTalk[Logged | None]:
        """Read the next record; None when there is none."""
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
        """Write the next record; None if somebody else's stands there, to be read first."""
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
        """Read the next record; None if there is none, an error when there must have been one.
        Damaged records are passed over: whoever finds that nothing refers to one writes after it
        (rule 6)."""
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
            return (yield from self._next())  # it has come since
        yield from self._check_last()
        raise SnapshotCorrupt(
            f"{why or f'{key} is not in the store'}, but {later} was written: {LOST_RECORD}"
        )

    def _later(self, number: int) -> LogTalk[str | None]:
        """Find a record that is there after this number; None: there is none."""
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
        """Check by rule 4 that the last record that was read or written is there as it was."""
        body = yield from self._get(self._last.key)
        if body is None or ObjectRef.of(self._last.key, body) != self._last:
            raise self._gone(self._last.key)

    def _step(self, ref: ObjectRef) -> LogTalk[None]:
        """Continue after a record that was read or written, if it counts by rule 4."""
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
