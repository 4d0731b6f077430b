"""Finds the manager's last record in a store.

Rules
1. Each number of a record is written once, in order; the largest counts. A hint says at which
   number to begin to look. It is written after its record, so it may be behind, never ahead.
2. Records far before the one that the hint names are deleted (`garbage_sweep.py`), the oldest
   first. So from the hint on, or from 0 if there is none, the records follow one another and are
   found by their names; a listing, which may lag behind, is needed only where the hint is lost.
3. A record is a base, or the difference to the record that it names (`ledger_difference.py`). It
   counts when all that it leads back to, up to a base, are there and whole.
4. If the hint, a commit or a later difference names a record that is missing or damaged, that
   record is lost, which is an error: the job must neither start over nor go back. A damaged record
   that nothing names counts as never written.
5. A manager that begins with a job takes it over by a record (`take_over`): one that still runs the
   job finds it under its next number, and stops.
"""

from __future__ import annotations

import msgspec

from weir.errors import RunError, SnapshotCorrupt
from weir.job.commit_log import LOST, Commit, decode_commit
from weir.job.garbage_sweep import collected_logs, orphaned_parts, unnamed
from weir.job.job_identity import JobRecord
from weir.job.ledger import Ledger
from weir.job.ledger_difference import LedgerDifference, decode_written
from weir.reliable.codec import decode_record, encode_record
from weir.reliable.object_names import (
    EPHEMERAL,
    JOB,
    LATEST_RECORD,
    commit_key,
    commits_of,
    is_known,
    number_of,
    record_key,
)
from weir.reliable.store import ObjectExists, Store
from weir.runtime.topology import vertex_name

_hint_decoder = msgspec.json.Decoder(int)

TRIES = 100
"""So often a job is tried to be taken over from a manager that writes records all the while."""
_ANOTHER_JOB = "the store holds records of another job than the one it says it is for"
_FIX = (
    "what it said of the job is lost. If the store keeps versions or there is a backup, put it "
    "back; else start the job again with an empty store"
)


def holds_job(store: Store) -> bool:
    """Say whether there is any sign of a job in a store."""
    return store.get(JOB) is not None or any(is_known(key) for key in store.list("records/"))


def encode_hint(number: int) -> bytes:
    """Encode the hint that names this record."""
    return encode_record(LATEST_RECORD, number)


def read_hint(store: Store) -> int | None:
    """Read the number that the hint names; None if there is no hint, or if it is damaged."""
    body = store.get(LATEST_RECORD)
    try:
        return None if body is None else decode_record(LATEST_RECORD, body, _hint_decoder)
    except SnapshotCorrupt:
        return None


def last_record(store: Store) -> Ledger | None:
    """Read the ledger of the last record; None where there never was one."""
    hint = read_hint(store)
    listed = {number_of(k) for k in store.list("records/") if k != LATEST_RECORD and is_known(k)}
    records = _Records(store)
    ledger: Ledger | None = None
    for number in sorted({0, *listed, *([hint] if hint is not None else [])}, reverse=True):
        ledger = records.ledger(number)
        if ledger is not None:
            break
    number = _number(ledger) + 1
    while store.get(record_key(number)) is not None:
        ledger = records.next_ledger(ledger, number)
        number += 1
    if hint is not None and hint > _number(ledger):
        records.ledger(hint)
        records.lost.setdefault(hint, f"which {LATEST_RECORD} names")
    for lost, named in sorted(records.lost.items()):
        if lost > _number(ledger):
            raise SnapshotCorrupt(
                f"{record_key(lost)}, {named}, is not in the store or not whole: {_FIX}"
            )
    return ledger


class _Records:
    """Reads the records of a store, each once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[int, Ledger | LedgerDifference | None] = {}
        """The records that were read; None: missing or damaged."""
        self.lost: dict[int, str] = {}
        """The records that differences lead back to and that are missing or damaged, and what names
        each."""

    def _record(self, number: int) -> Ledger | LedgerDifference | None:
        if number not in self._read:
            body = self._store.get(record_key(number))
            self._read[number] = None if body is None else _decoded(number, body)
        return self._read[number]

    def ledger(self, number: int) -> Ledger | None:
        """Read the ledger of a record; None if that does not count (rule 3)."""
        differences: list[LedgerDifference] = []
        record = self._record(number)
        while isinstance(record, LedgerDifference):
            differences.append(record)
            record = self._record(record.before)
        if record is None:
            if differences:
                last = differences[-1]
                self.lost[last.before] = f"which {record_key(last.number)} is a difference to"
            return None
        ledger = record.copied()
        for difference in reversed(differences):
            difference.apply_to(ledger)
        return ledger

    def next_ledger(self, ledger: Ledger | None, number: int) -> Ledger | None:
        """Read the ledger of the record after that of `ledger`, or after some that do not count;
        what does not count changes nothing."""
        record = self._record(number)
        if isinstance(record, LedgerDifference) and record.before == _number(ledger) and ledger:
            record.apply_to(ledger)
            return ledger
        return self.ledger(number) or ledger


def _decoded(number: int, body: bytes) -> Ledger | LedgerDifference | None:
    """Decode a record; None when it is damaged."""
    try:
        return decode_written(record_key(number), body)
    except SnapshotCorrupt:
        return None


def job_ledger(store: Store, job: JobRecord, *, thorough: bool = True) -> Ledger | None:
    """Read the last record of this job; None where none was made. If `thorough`, check too that no
    commit was made under a later record."""
    ledger = known_record(store, len(job.outputs)) if thorough else last_record(store)
    if ledger is not None and ledger.token != job.token:
        raise RunError(_ANOTHER_JOB)
    return ledger


def known_record(store: Store, outputs: int) -> Ledger | None:
    """Read the last record, and check that no commit of the job's outputs (so many there are) was
    made under a later one."""
    ledger = last_record(store)
    for commit in _last_commits(store, outputs, ledger):
        if commit.record > _number(ledger):
            ledger = last_record(store)  # it may have come since
        if commit.record > _number(ledger):
            raise SnapshotCorrupt(
                f"{record_key(commit.record)}, which a commit was made under, is not in the store "
                f"or not whole: {_FIX}"
            )
    return ledger


def take_over(store: Store, prepared: Ledger, manager: str) -> Ledger:
    """Write the next record of a job in the name of a manager, and return it (rule 4). The job was
    prepared from the record `prepared`; another manager may have written more since."""
    if prepared.number < 0:
        return prepared  # no manager has begun
    ledger = last_record(store) or prepared
    for _ in range(TRIES):
        if ledger.token != prepared.token:
            raise RunError(_ANOTHER_JOB)
        ledger.number, ledger.epoch, ledger.manager = ledger.number + 1, ledger.epoch + 1, manager
        ledger.base = ledger.number
        ledger.code, ledger.strategies = prepared.code, prepared.strategies
        key, body = record_key(ledger.number), ledger.encode()
        try:
            store.put(key, body, new=True)
            return ledger
        except ObjectExists:
            there = store.get(key)
        if there == body:
            return ledger  # the answer to the first try was lost
        if there is None:
            ledger.number -= 1  # it is gone again
        elif _decoded(ledger.number, there) is not None:
            ledger = last_record(store) or ledger
        # What is no record stays there, and the number after it is taken.
    raise RunError(
        "another driver runs this job, and writes records faster than this one can take it over; "
        "stop it, and run again with --resume"
    )


def _number(ledger: Ledger | None) -> int:
    return -1 if ledger is None else ledger.number


def _last_commits(store: Store, outputs: int, ledger: Ledger | None) -> list[Commit]:
    """Read the last whole commit of each output: from the last that the record refers to, or that
    is listed, on, number by number."""
    listed = store.list("commits/")
    last_commits = []
    for sink in (vertex_name("sink", number) for number in range(outputs)):
        recorded = ledger.checkpoints.get(sink, ()) if ledger is not None else ()
        numbers = {number_of(key) for key in commits_of(listed, sink)}
        numbers |= {checkpoint.number for checkpoint in recorded[-1:]}
        last = None
        for number in sorted(numbers, reverse=True):
            last = _whole_commit(store, sink, number)
            if last is not None:
                break
        number = max(numbers, default=-1) + 1
        while (later := _whole_commit(store, sink, number)) is not None:
            last, number = later, number + 1
        if last is not None:
            last_commits.append(last)
    return last_commits


def _whole_commit(store: Store, sink: str, number: int) -> Commit | None:
    """Read a commit; None if it is missing or damaged, as whoever refers to it will say."""
    key = commit_key(sink, number)
    body = store.get(key)
    try:
        return None if body is None else decode_commit(key, body)
    except SnapshotCorrupt:
        return None


def check_commits(store: Store, ledger: Ledger) -> None:
    """Check that all commits are there, up to those that the record refers to, so that a job does
    not go on for hours before it turns out that outputs are lost. Readers check what they hold."""
    listed = set(store.list("commits/"))
    for sink, recorded in ledger.checkpoints.items():
        if not recorded or not recorded[-1].key.startswith("commits/"):
            continue
        for number in range(recorded[-1].number + 1):
            key = commit_key(sink, number)
            if key not in listed and store.get(key) is None:
                raise SnapshotCorrupt(f"{key} is not in the store: {LOST}")


def sweep(store: Store, ledger: Ledger) -> tuple[str, ...]:
    """List the objects that nothing refers to, once the job is over and no host writes any more."""
    listed = [key for prefix in EPHEMERAL for key in store.list(prefix)]
    garbage = unnamed(listed, ledger.names, {}, ledger.epoch)
    logs = [key for key in store.list("ingress/") if is_known(key)]
    if not ledger.finished:
        return (*garbage, *collected_logs(logs, ledger.collected))
    last = {vertex: c[-1].number for vertex, c in ledger.checkpoints.items() if c}
    parts = orphaned_parts(store.list("parts/"), last, store.get)
    return (*garbage, *parts, *sorted(logs))
