"""Writes the manager's records to the store, one after the other.

Rules
1. Records are numbered, and each number can be written only once. A manager that finds a record of
   another manager under its next number is no longer the manager, and stops (fencing). If something
   else is there, the keeper leaves it and takes the number after it.
2. One record is under way at a time. If writing it fails, it is written again. If there is an
   object of that name already, the keeper reads it: it may be this very record.
3. When a record is durable, the objects that it no longer refers to are deleted, and hosts may
   forget rows (`collected`); not earlier.
4. A manager that cannot write its record for `trouble_limit` seconds, or never will, stops without
   one: another may have taken over. A manager that is about to end with an error stops when the
   write fails twice.
5. A hint names a record that is durable. One hint is under way at a time, so that none comes after
   a later one. Records are deleted only far before the one that the last durable hint names, and
   before the last base but one that it leads past: so the last record is found from the hint on,
   number by number, whatever a listing leaves out, with all that it is a difference to, also by one
   who has read an earlier hint.
6. A record is a base or the difference to the one before it (`ledger_difference.py`). What keeps a
   number from being written is followed by a base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weir.errors import SnapshotCorrupt
from weir.job.ledger import Ledger
from weir.job.ledger_difference import Record, RecordMaker, decode_written
from weir.job.record_reader import encode_hint
from weir.job.settings import ManagerSettings
from weir.job.signals import Delete, ManagerCommand, Put
from weir.reliable.object_names import LATEST_RECORD, number_of

TAKEN_OVER = "another job manager has taken over this store; this one stops"


@dataclass(slots=True)
class _Writing:
    """A record that is being written."""

    record: Record
    garbage: tuple[str, ...]
    """The objects to delete once it is durable."""
    put: Put = field(repr=False)
    """The command that writes it."""
    again_at: float | None = None
    """When to write it again, if writing it has failed."""
    failing_since: float | None = None
    """When writing it failed for the first time."""


class RecordWriter:
    """Writes the ledger, which is watched, whenever it has changed, by the module's rules."""

    def __init__(
        self,
        ledger: Ledger,
        settings: ManagerSettings,
        now: float,
        *,
        collect: Callable[[], tuple[str, ...]],
        tell: Callable[[str, float], None],
    ) -> None:
        """`collect` removes from the ledger what nobody needs, and returns the objects to delete;
        `tell` adds a line to the job's story."""
        self._ledger, self._settings = ledger, settings
        self._collect, self._tell = collect, tell
        self.changed = True
        """Whether the ledger says more than the last record; the manager sets it."""
        self.established = False
        """Whether the manager's first record is durable."""
        self.stops: str | None = None
        """Why the manager must stop without another record; None: it need not."""
        self._maker = RecordMaker(ledger, settings.differences)
        self.collected = dict(ledger.collected)
        """What the last durable record says is collected."""
        self._risen: dict[str, int] = {}
        """What of that is new since the manager was told."""
        self.number = ledger.number
        """The number of the last durable record."""
        self._bases = [ledger.base if ledger.base >= 0 else ledger.number]
        """The numbers of the last durable bases, from that which the ledger was read from on."""
        self._written_at = now
        """When the last record was begun."""
        self._writing: _Writing | None = None
        """The record under way."""
        self._hinting: int | None = None
        """The number that the hint under way names."""
        self.hinted = -1
        """The number that the last durable hint of this manager names."""

    @property
    def settled(self) -> bool:
        """Whether all that the ledger says is durable."""
        return self.established and self._writing is None and not self.changed

    @property
    def named(self) -> frozenset[str]:
        """The objects that the last durable record refers to, or that the next one will."""
        leaving = self._writing.record.left if self._writing is not None else ()
        return self._ledger.names.union(self._maker.left, leaving)

    @property
    def unneeded(self) -> int:
        """The number below which records can be deleted; see rule 5."""
        bases = [base for base in self._bases if base <= self.hinted]
        return min(self.hinted - self._settings.kept_records, bases[-2] if len(bases) > 1 else -1)

    def taken_risen(self) -> dict[str, int]:
        """Take what has become collected since this was asked last; see `collected`."""
        risen, self._risen = self._risen, {}
        return risen

    def write(self, now: float, *, hurry: bool) -> list[ManagerCommand]:
        """Begin a record if one is due (in a `hurry` sooner), or repeat the write that failed."""
        writing = self._writing
        if writing is not None:
            if writing.again_at is None or now < writing.again_at:
                return []
            writing.again_at = None
            return [writing.put]
        waited = now - self._written_at >= self._settings.record_every
        if self.established and not (self.changed and (waited or hurry)):
            return []
        self.changed = False
        self._written_at = now
        garbage = self._collect()
        return [self._begin(self._maker.next_record(), garbage)]

    def _begin(self, record: Record, garbage: tuple[str, ...]) -> Put:
        put = Put(record.key, lambda: record.body, new=True)
        self._writing = _Writing(record, garbage, put)
        return put

    def stored(self, key: str, now: float) -> list[ManagerCommand]:
        """Take in that an object is durable; if it is the record, delete what it made garbage."""
        if key == LATEST_RECORD:
            return self._hint_stored()
        written = self._writing
        if written is None or key != written.record.key:
            return []
        self._writing = None
        if not self.established:
            self.established = True
            self._tell(f"manager of epoch {self._ledger.epoch}", now)
        self.collected |= written.record.collected
        self._risen |= written.record.collected
        self.number = number_of(key)
        if written.record.base == self.number:
            self._bases = [*self._bases[-7:], self.number]
        delete: list[ManagerCommand] = [Delete(written.garbage)] if written.garbage else []
        return [*self._hint(), *delete]

    def _hint(self) -> list[ManagerCommand]:
        """Write a hint that names the last durable record, if none is under way (rule 5)."""
        if self._hinting is not None:
            return []
        number = self._hinting = self.number
        return [Put(LATEST_RECORD, lambda: encode_hint(number))]

    def _hint_stored(self) -> list[ManagerCommand]:
        if self._hinting is None:
            return []
        self.hinted, self._hinting = self._hinting, None
        return self._hint() if self.hinted < self.number else []

    def loaded(self, key: str, body: bytes | None, now: float) -> list[ManagerCommand]:
        """Take in what lies under the number of the record under way, and decide whose it is."""
        written = self._writing
        if written is None or key != written.record.key:
            return []
        if body == written.record.body:
            return self.stored(key, now)
        if body is None:
            return [written.put]  # it is gone again
        if _is_record(key, body):
            self.stops = TAKEN_OVER
            return []
        self._tell(f"{key} is in the way and is no record", now)
        return [self._begin(self._maker.instead_of(written.record), written.garbage)]

    def failed(self, key: str, why: str, now: float, ending: str | None, *, lasts: bool) -> bool:
        """Take in that an object could not be written or read; say whether it is the record. That
        is written again, or the manager stops. `ending` is the error that the job ends with, if it
        does; `lasts`: it would fail again."""
        if key == LATEST_RECORD:
            self._hinting = None
        writing = self._writing
        if writing is None or key != writing.record.key:
            return False  # anything else is for the next sweep
        writing.again_at = now + self._settings.record_every
        if lasts:
            self.stops = _cannot_go_on(why)
        elif writing.failing_since is None:
            writing.failing_since = now
        elif ending:
            self.stops = ending
        elif now - writing.failing_since > self._settings.trouble_limit:
            self.stops = _cannot_go_on(why)
        return True


def _cannot_go_on(why: str) -> str:
    return (
        f"the job manager cannot go on: {why}; everything that is durable is kept, so fix it and "
        "run again with --resume"
    )


def _is_record(key: str, body: bytes) -> bool:
    try:
        decode_written(key, body)
    except SnapshotCorrupt:
        return False
    return True
