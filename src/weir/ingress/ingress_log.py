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
6. A record refers to the one before it, and the manager's record to the last one that it has heard
   of. So one that is lost or changed is found, and is an error: what stood there is gone. A last
   record that is damaged and that nothing refers to was never written: the next one is written
   behind it, and refers to the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

import msgspec

from weir.errors import RunError, SnapshotCorrupt
from weir.files.chunks import LogPlace
from weir.reliable.codec import decode_record, encode_record
from weir.reliable.keys import ingress_key, is_known, number_of
from weir.reliable.objects import ObjectRef
from weir.reliable.store import ObjectExists, Store

_LOST = (
    "the log of a source has lost a record, and what stood there cannot be had again: put it back "
    "from a version or a backup of the store and run again with --resume, or start the job again "
    "with an empty store"
)


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
    before: str = ""
    """The seal of the record before it."""
    read: int = 0
    digest: str = ""
    """Of a file that grows: its first so many bytes, which it must keep."""


def begin_log(store: Store, name: str, token: str) -> LogPlace:
    """Make the first record of a log, if it is not there; where a source begins."""
    key, body = _first_record(name, token)
    with suppress(ObjectExists):  # whoever tried to begin this job before has made it
        store.put(key, body, new=True)
    return first_place(name, token)


def first_place(name: str, token: str) -> LogPlace:
    """Where the log of a job's source begins."""
    return LogPlace(ObjectRef.of(*_first_record(name, token)))


def _first_record(name: str, token: str) -> tuple[str, bytes]:
    key = ingress_key(name, 0)
    return key, encode_record(key, IngressRecord(0, writer=token))


class IngressLog:
    """The log of one partition, from a place on; see the module's rules."""

    def __init__(
        self, store: Store, name: str, start: LogPlace, end: ObjectRef | None = None
    ) -> None:
        """`end` is the last record that the job has heard of."""
        assert start.ref is not None
        self._store, self._name = store, name
        self.start, self._end = start, end
        self._writer = uuid4().hex
        self._last, self._before = start.ref, ""
        first = store.get(start.ref.key)
        try:
            self._replayed = _decoded(start.ref.key, start.ref.check(first))
        except SnapshotCorrupt as error:
            raise LogCollected(f"record {start.number} of the log of {name} is gone") from error
        self._replays_start = start.number > 0
        self._number = self._free = start.number + 1
        """Those of the next record to read and, when there is none, to write."""

    def read(self) -> IngressRecord | None:
        """The next record that is there."""
        if self._replays_start:
            self._replays_start = False
            return self._replayed
        found = self._next()
        if found is None:
            return None
        record, ref = found
        self._step(ref)
        if record.before != self._before:
            raise SnapshotCorrupt(f"{ref.key} does not follow the record before it: {_LOST}")
        if self._end is not None and ref.key == self._end.key and ref != self._end:
            raise SnapshotCorrupt(f"{ref.key} is not the record that was written: {_LOST}")
        return record

    def peek(self) -> IngressRecord | None:
        """The next record that is there, which is read again; for a look only."""
        found = self._next()
        return None if found is None else found[0]

    def _next(self) -> tuple[IngressRecord, ObjectRef] | None:
        """The next record, if there is one; an error when there must have been one. Damaged ones
        are passed over: whoever finds that nothing refers to one writes behind it (rule 6)."""
        number, why = self._number, ""
        while (body := self._store.get(ingress_key(self._name, number))) is not None:
            key = ingress_key(self._name, number)
            try:
                record = _decoded(key, body)
            except SnapshotCorrupt as error:
                number, why = number + 1, why or str(error)
                continue
            if why and record.before != self._last.seal:
                self._check_last()
                raise SnapshotCorrupt(f"{why}; {key} follows it: {_LOST}")
            return record, ObjectRef.of(key, body)
        self._free = number
        later = self._end.key if self._end is not None else ""
        if not later or number_of(later) < self._number:
            later = self._later(number)
        if not later:
            return None
        if self._store.get(ingress_key(self._name, number)) is not None:
            return self._next()  # it has come since
        self._check_last()
        why = why or f"{ingress_key(self._name, number)} is not in the store"
        raise SnapshotCorrupt(f"{why}, but {later} was written: {_LOST}")

    def _later(self, number: int) -> str:
        """A record behind this number that is there; empty when there is none."""
        for key in sorted(self._store.list(f"ingress/{self._name}/")):
            body = self._store.get(key) if is_known(key) and number_of(key) > number else None
            if body is not None and _is_record(key, body):
                return key
        return ""

    def _check_last(self) -> None:
        """Rule 4: the last record that was read or written must be there as it was."""
        body = self._store.get(self._last.key)
        if body is None or ObjectRef.of(self._last.key, body) != self._last:
            number = number_of(self._last.key)
            raise LogCollected(f"record {number} of the log of {self._name} is gone")

    def append(self, record: IngressRecord) -> bool:
        """Write the next record; False if somebody else's stands there, to be read first."""
        mine = msgspec.structs.replace(record, writer=self._writer, before=self._last.seal)
        while True:
            body = encode_record(self._key, mine)
            try:
                self._store.put(self._key, body, new=True)
            except ObjectExists:
                if self._next() is not None:
                    return False
                self._number = self._free
                continue
            self._step(ObjectRef.of(self._key, body))
            return True

    def place(self, offset: int, line: int = 1, found: Sequence[str] = ()) -> LogPlace:
        """That of the record that was read or written last."""
        return LogPlace(self._last, offset, line, found, len(found))

    @property
    def _key(self) -> str:
        return ingress_key(self._name, self._number)

    def _step(self, ref: ObjectRef) -> None:
        """A record was read or written; rule 4 says whether it counts."""
        self._check_last()
        self._before, self._last = self._last.seal, ref
        self._number = number_of(ref.key) + 1


_decoder = msgspec.json.Decoder(IngressRecord)


def _decoded(key: str, body: bytes) -> IngressRecord:
    return decode_record(key, body, _decoder)


def _is_record(key: str, body: bytes) -> bool:
    try:
        _decoded(key, body)
    except SnapshotCorrupt:
        return False
    return True
