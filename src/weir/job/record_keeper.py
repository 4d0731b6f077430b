"""The manager's records on their way to the store, one after the other.

Rules
1. Records are numbered, and each is made once: a manager that finds another's record under the next
   number is no longer the manager, and stops (fencing). What lies there and is no record is left,
   and the number after it is tried.
2. One record is under way at a time. If nothing is heard of it, it is written again; if it is there
   already, it is read: it may be this manager's own.
3. What a record no longer refers to is deleted when the record is durable, and no earlier do hosts
   forget rows (`collected`).
4. A manager that cannot write its record for `trouble_limit` seconds stops without one: it may not
   be the manager any more. One that is about to end with an error does not wait for so long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weir.errors import SnapshotCorrupt
from weir.job.ledger import Ledger, decode_ledger
from weir.job.records import encode_hint
from weir.job.settings import ManagerSettings
from weir.job.signals import Delete, ManagerCommand, Put
from weir.reliable.keys import LATEST_RECORD, number_of, record_key

TAKEN_OVER = "another job manager has taken over this store; this one stops"


@dataclass(slots=True)
class _Record:
    """A record on its way, and what is garbage once it is durable."""

    key: str
    garbage: tuple[str, ...]
    collected: Mapping[str, int]
    names: frozenset[str]
    put: Put = field(repr=False)
    again_at: float | None = None
    failing_since: float | None = None


class RecordKeeper:
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
        """`collect` takes what nobody needs out of the ledger, and names its objects; `tell` adds
        a line to the job's story."""
        self._ledger, self._settings = ledger, settings
        self._collect, self._tell = collect, tell
        self.changed = True
        """Whether the ledger says more than the last record; the manager sets it."""
        self.established = False
        """Whether the manager's first record is durable."""
        self.stops = ""
        """Why the manager must stop without another record; empty: it need not."""
        self.collected: Mapping[str, int] = dict(ledger.collected)
        """What the last durable record says is collected."""
        self.number = ledger.number
        """The number of the last durable record."""
        self._names = ledger.names
        self._written_at = now
        self._writing: _Record | None = None

    @property
    def settled(self) -> bool:
        """Whether all that the ledger says is durable."""
        return self.established and self._writing is None and not self.changed

    @property
    def named(self) -> frozenset[str]:
        """What the last durable record relies on, and what the next one will."""
        coming = self._writing.names if self._writing is not None else frozenset[str]()
        return self._names | coming | self._ledger.names

    def write(self, now: float, *, hurry: bool) -> list[ManagerCommand]:
        """Begin a record if one is due, or repeat the one that failed."""
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
        self._writing = _Record(key, garbage, collected, names, put)
        return put

    def stored(self, key: str, now: float) -> list[ManagerCommand]:
        """Take in that an object is durable; if it is the record, delete what it made garbage."""
        written = self._writing
        if written is None or key != written.key:
            return []
        self._writing = None
        if not self.established:
            self.established = True
            self._tell(f"manager of epoch {self._ledger.epoch}", now)
        self.collected, self._names = written.collected, written.names
        number = self.number = number_of(key)
        hint = Put(LATEST_RECORD, lambda: encode_hint(number))
        return [hint, Delete(written.garbage)] if written.garbage else [hint]

    def loaded(self, key: str, body: bytes | None, now: float) -> list[ManagerCommand]:
        """Decide whose record it is that lies under the number of the one under way."""
        written = self._writing
        if written is None or key != written.key:
            return []
        if body == written.put.encode():
            return self.stored(key, now)
        if body is None:
            return [written.put]  # it was lost since
        if _is_record(key, body):
            self.stops = TAKEN_OVER
            return []
        self._tell(f"{key} is in the way and is no record", now)
        return [self._begin(written.garbage)]

    def failed(self, key: str, why: str, now: float, ending: str) -> None:
        """Take in that an object could not be written or read; it is tried again, or the manager
        stops. `ending` is the error that the job ends with, if it does."""
        writing = self._writing
        if writing is None or key != writing.key:
            return  # anything else is for the next sweep
        writing.again_at = now + self._settings.record_every
        if writing.failing_since is None:
            writing.failing_since = now
            self._tell(f"the record could not be written: {why}", now)
        elif ending:
            self.stops = ending
        elif now - writing.failing_since > self._settings.trouble_limit:
            self.stops = (
                f"the job manager cannot go on: {why}; everything that is durable is kept, so "
                "mend it and run again with --resume"
            )


def _is_record(key: str, body: bytes) -> bool:
    try:
        decode_ledger(key, body)
    except SnapshotCorrupt:
        return False
    return True
