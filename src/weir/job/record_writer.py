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
   a later one. Records are deleted only far before the one that the last durable hint names: so
   the last record is found from the hint on, number by number, whatever a listing leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weir.errors import SnapshotCorrupt
from weir.job.ledger import Ledger, decode_ledger
from weir.job.record_reader import encode_hint
from weir.job.settings import ManagerSettings
from weir.job.signals import Delete, ManagerCommand, Put
from weir.reliable.object_names import LATEST_RECORD, number_of, record_key

TAKEN_OVER = "another job manager has taken over this store; this one stops"


@dataclass(slots=True)
class _Record:
    """A record that is being written."""

    key: str
    garbage: tuple[str, ...]
    """The objects to delete once it is durable."""
    collected: Mapping[str, int]
    """What it says is collected; see `Ledger.collected`."""
    names: frozenset[str]
    """The objects that it refers to."""
    put: Put = field(repr=False)
    """The command that writes it."""
    again_at: float | None = None
    """When to write it again, if writing it has failed."""
    failing_since: float | None = None
    """When writing it failed for the first time."""


class RecordWriter:
    """Writes the ledger whenever it has changed, by the module's rules."""

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
        self.collected: Mapping[str, int] = dict(ledger.collected)
        """What the last durable record says is collected."""
        self.number = ledger.number
        """The number of the last durable record."""
        self._names = ledger.names
        """The objects that the last durable record refers to."""
        self._written_at = now
        """When the last record was begun."""
        self._writing: _Record | None = None
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
        coming = self._writing.names if self._writing is not None else frozenset[str]()
        return self._names | coming | self._ledger.names

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
        return [self._begin(self._collect())]

    def _begin(self, garbage: tuple[str, ...]) -> Put:
        self._ledger.number += 1
        key = record_key(self._ledger.number)
        body = self._ledger.encode()
        put = Put(key, lambda: body, new=True)
        collected, names = dict(self._ledger.collected), self._ledger.names
        self._writing = _Record(key=key, garbage=garbage, collected=collected, names=names, put=put)
        return put

    def stored(self, key: str, now: float) -> list[ManagerCommand]:
        """Take in that an object is durable; if it is the record, delete what it made garbage."""
        if key == LATEST_RECORD:
            return self._hint_stored()
        written = self._writing
        if written is None or key != written.key:
            return []
        self._writing = None
        if not self.established:
            self.established = True
            self._tell(f"manager of epoch {self._ledger.epoch}", now)
        self.collected, self._names = written.collected, written.names
        self.number = number_of(key)
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
        if written is None or key != written.key:
            return []
        if body == written.put.encode():
            return self.stored(key, now)
        if body is None:
            return [written.put]  # it is gone again
        if _is_record(key, body):
            self.stops = TAKEN_OVER
            return []
        self._tell(f"{key} is in the way and is no record", now)
        return [self._begin(written.garbage)]

    def failed(self, key: str, why: str, now: float, ending: str | None, *, lasts: bool) -> bool:
        """Take in that an object could not be written or read; say whether it is the record. That
        is written again, or the manager stops. `ending` is the error that the job ends with, if it
        does; `lasts`: it would fail again."""
        if key == LATEST_RECORD:
            self._hinting = None
        writing = self._writing
        if writing is None or key != writing.key:
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
        decode_ledger(key, body)
    except SnapshotCorrupt:
        return False
    return True
