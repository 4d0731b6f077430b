"""The manager's records in a store: finding the last one.

Rules
1. Records are made once each, in order of number, so the one before a number that is not there is
   the last. A hint says where to begin to look; it may be behind, never ahead.
2. Records far behind the last are deleted (`sweeping.py`), the oldest first. So a hint that is
   older than them helps nobody, and what is listed is tried too: the largest that is there counts.
3. A store where there was a record has one. If none can be found that is an error, never a job
   that begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from weir.errors import SnapshotCorrupt
from weir.job.keys import EPHEMERAL, LATEST_RECORD, number_of, record_key
from weir.job.ledger import Ledger, decode_ledger
from weir.job.sweeping import collected_logs, orphaned_parts, unnamed
from weir.reliable.store import Store


def last_record(store: Store) -> Ledger | None:
    """The ledger of the last record; None where there never was one."""
    tried = False
    for number in _candidates(store):
        tried = True
        found: Ledger | None = None
        while (body := store.get(record_key(number))) is not None:
            found = decode_ledger(body)
            number += 1
        if found is not None:
            return found
    if tried:
        raise SnapshotCorrupt("the store had a job's records, and none of them is there")
    return None


def _candidates(store: Store) -> Iterator[int]:
    """Where the search may begin, the best first; a hint that was torn is no hint."""
    hint = store.get(LATEST_RECORD)
    numbers = {number_of(k) for k in store.list("records/") if k != LATEST_RECORD}
    if hint is not None and len(hint) == len(record_key(0)):
        numbers.add(number_of(hint.decode()))
    yield from sorted(numbers, reverse=True)
    if hint is not None or store.get(record_key(0)) is not None:
        yield 0


def sweep(store: Store, ledger: Ledger) -> tuple[str, ...]:
    """All that is nobody's, once the job is over and no host writes any more."""
    listed = [key for prefix in EPHEMERAL for key in store.list(prefix)]
    found = unnamed(listed, ledger.names, {}, ledger.epoch)
    if not ledger.finished:
        return (*found, *collected_logs(store.list("ingress/"), ledger.collected))
    parts = orphaned_parts(store.list("parts/"), store.get)
    return (*found, *parts, *sorted(store.list("ingress/")))
