"""The manager's records in a store: finding the last one, and sweeping what no record names.

Rules
1. Records are made once each, in order of number, so the one before a number that is not there is
   the last. A hint says where to begin to look; it may be behind, never ahead.
2. An object of a checkpoint or a stream that the record does not name, and whose incarnation is no
   longer at work, is nobody's: a host died between writing it and saying so.
"""

from __future__ import annotations

from collections.abc import Collection

from weir.errors import SnapshotCorrupt
from weir.job.keys import EPHEMERAL, LATEST_RECORD, incarnation_of, record_key
from weir.job.ledger import Ledger, decode_ledger
from weir.reliable.store import Store

KEPT_RECORDS = 100


def last_record(store: Store) -> Ledger | None:
    """The ledger of the last record; None where there never was one."""
    number = _hint(store)
    found: Ledger | None = None
    while (body := store.get(record_key(number))) is not None:
        found = decode_ledger(body)
        number += 1
    if found is None and number:
        raise SnapshotCorrupt(f"the store names {record_key(number)}, but it is not there")
    return found


def _hint(store: Store) -> int:
    """A number at or before the last record's; a hint that was torn is no hint."""
    hint = store.get(LATEST_RECORD)
    if hint is not None and len(hint) == len(record_key(0)):
        return int(hint.removeprefix(b"records/"))
    listed = [k for k in store.list("records/") if k != LATEST_RECORD]
    return int(max(listed).removeprefix("records/")) if listed else 0


def sweep(store: Store, ledger: Ledger, alive: Collection[int]) -> tuple[str, ...]:
    """The objects that are nobody's; `alive` are the incarnations at work."""
    named = {c.key for found in ledger.checkpoints.values() for c in found}
    named |= {s.key for found in ledger.segments.values() for s in found}
    return tuple(
        key
        for prefix in EPHEMERAL
        for key in store.list(prefix)
        if key not in named and incarnation_of(key) not in alive
    )


def old_records(store: Store, ledger: Ledger) -> tuple[str, ...]:
    """Records so old that no hint points below them."""
    keys = store.list("records/")
    return tuple(
        k for k in keys if k != LATEST_RECORD and k < record_key(ledger.number - KEPT_RECORDS)
    )
