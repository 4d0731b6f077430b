"""Checks a whole store: every object that others refer to must be there, unchanged.

What is checked
1. The job's record, the hint and the manager's last record.
2. Every checkpoint and every segment that the record refers to: name, size, seal, content.
3. Every commit from the first to the last, and every part: name, size, seal, rows and digest.
4. Of a job that has not finished, every record of a source's log, from the first that a restart
   needs to the last that is known.
5. What onlookers are shown: the status, the plan, the history, and every object of the story, whose
   numbers have no gaps. The job needs none of them, so damage to them is reported as harmless.
Other objects are only counted: nothing refers to them, so they do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import msgspec

from weir.errors import RunError, SnapshotCorrupt
from weir.job.commit_log import Commit, decode_commit, read_chain, read_part
from weir.job.history import read_history
from weir.job.job_identity import read_job
from weir.job.ledger import Ledger
from weir.job.messages import Checkpoint
from weir.job.plan_drawing import read_plan
from weir.job.record_reader import job_ledger
from weir.job.status import STATUS, decode_status
from weir.job.store_listing import SizedStore
from weir.job.story import expected_story, read_story_object
from weir.reliable.codec import decode_record, decode_snapshot
from weir.reliable.log import Segment
from weir.reliable.object_names import (
    HISTORY,
    JOB,
    PLAN,
    UNCHECKED,
    commit_key,
    ingress_key,
    ingress_log,
    is_known,
    number_of,
)
from weir.reliable.objects import SEAL, ObjectRef, unsealed
from weir.reliable.store import ObjectUnreadable
from weir.runtime.topology import vertex_name

OnChecked = Callable[[int], None]
"""Is called with how many objects were checked so far."""


class Damage(msgspec.Struct, frozen=True):
    """Names an object that is missing or is not what was written, and says what is wrong."""

    key: str
    what: str


class Verified(msgspec.Struct, frozen=True):
    """The result of a check: how many objects were checked, how many nothing refers to, and what is
    damaged."""

    objects: int
    unreferred: int
    strange: tuple[str, ...]
    """The names of objects that no job would give: they are somebody else's."""
    damage: tuple[Damage, ...]


@dataclass(slots=True)
class _StoreCheck:
    """A check under way: which objects were looked at, and what damage was found."""

    store: SizedStore
    progress: OnChecked
    seen: set[str] = field(default_factory=set)
    damage: list[Damage] = field(default_factory=list)

    def check(self, key: str, look: Callable[[], object]) -> None:
        self.seen.add(key)
        try:
            look()
        except (SnapshotCorrupt, ObjectUnreadable) as error:
            self.damage.append(Damage(key, str(error)))
        self.progress(len(self.seen))


def verify_store(store: SizedStore, progress: OnChecked = lambda _: None) -> Verified:
    """Check a whole store; RunError when it holds no job, or one of another format."""
    check = _StoreCheck(store, progress)
    try:
        job = read_job(store)
    except SnapshotCorrupt as error:
        return Verified(1, 0, (), (Damage(JOB, str(error)),))
    if job is None:
        raise RunError("the store holds no job")
    check.seen.add(JOB)
    try:
        ledger = job_ledger(store, job) or Ledger()
    except SnapshotCorrupt as error:
        check.damage.append(Damage("records/", str(error)))
        ledger = Ledger()
    _check_named(check, ledger)
    for number in range(len(job.outputs)):
        _check_output(check, ledger, number)
    for vertex, end in () if ledger.finished else ledger.logs.items():
        _check_log(check, vertex, ledger.collected.get(ingress_log(vertex), 0), end)
    _check_shown(check)
    keys = [key for key, _ in store.sizes()]
    strange = tuple(key for key in keys if not is_known(key))
    beside = ("records/", UNCHECKED)
    others = [k for k in keys if is_known(k) and k not in check.seen and not k.startswith(beside)]
    return Verified(len(check.seen), len(others), strange, tuple(check.damage))


_REWRITTEN = "no harm to the job: it is only shown, and written again when the job runs"
_ONLY_SHOWN = "no harm to the job: only weir story and the page lack what it said"


def _check_shown(check: _StoreCheck) -> None:
    """Check what onlookers are shown."""
    store = check.store
    there = {key for key, _ in store.sizes()}
    for key, read in ((STATUS, _read_status), (PLAN, read_plan), (HISTORY, read_history)):
        if key in there:
            check.check(key, _harmless(partial(read, store), _REWRITTEN))
    for key in expected_story(store):
        check.check(key, _harmless(partial(read_story_object, store, key), _ONLY_SHOWN))


def _read_status(store: SizedStore) -> object:
    body = store.get(STATUS)
    return None if body is None else decode_status(body)


def _harmless(look: Callable[[], object], why: str) -> Callable[[], object]:
    """Make a look at an object whose damage harms no job; the error says why."""

    def looked() -> None:
        try:
            look()
        except (SnapshotCorrupt, ObjectUnreadable) as error:
            raise SnapshotCorrupt(f"{error}; {why}") from error

    return looked


def _check_named(check: _StoreCheck, ledger: Ledger) -> None:
    for checkpoints in ledger.checkpoints.values():
        for checkpoint in checkpoints:
            if not checkpoint.key.startswith("commits/"):
                check.check(checkpoint.key, partial(_check_snapshot, check.store, checkpoint))
    for segments in ledger.segments.values():
        for segment in segments:
            check.check(segment.key, partial(_check_segment, check.store, segment))


def _check_segment(store: SizedStore, segment: Segment) -> None:
    segment.decode(store.get(segment.key))


def _check_snapshot(store: SizedStore, checkpoint: Checkpoint) -> None:
    snapshot = decode_snapshot(checkpoint.key, checkpoint.ref.read(store))
    if (snapshot.inputs, snapshot.outputs) != (checkpoint.inputs, checkpoint.outputs):
        raise SnapshotCorrupt(
            f"{checkpoint.key} is a snapshot at other positions than it should be"
        )


def _check_output(check: _StoreCheck, ledger: Ledger, number: int) -> None:
    """Check all commits and parts of an output. One that is lost does not hide the others, since
    every commit vouches for the one before it."""
    sink = vertex_name("sink", number)
    recorded = ledger.checkpoints.get(sink, ())
    last = recorded[-1].ref if recorded else None
    try:
        links = read_chain(check.store, sink, last)
    except (SnapshotCorrupt, ObjectUnreadable):
        _check_loose(check, sink, last)
        return
    for link in links:
        check.seen.add(link.ref.key)
        part = link.commit.part
        key = part.key if part is not None else link.ref.key
        check.check(key, partial(read_part, check.store, link))


def _check_loose(check: _StoreCheck, sink: str, last: ObjectRef | None) -> None:
    """Check every commit of a broken chain by itself, against what the others say of it."""
    referred = {} if last is None else {last.key: last}
    for key, commit, ref in _whole_commits(check.store, sink):
        referred.setdefault(key, ref)
        for named in (commit.before, commit.part):
            if named is not None:
                referred[named.key] = named
    numbers = {number_of(key) for key in referred if key.startswith("commits/")}
    for number in sorted(set(range(max(numbers, default=-1))) - numbers):
        key = commit_key(sink, number)
        check.damage.append(Damage(key, f"{key} is not in the store or not whole"))
    for key, ref in sorted(referred.items()):
        check.check(key, partial(_check_object, check.store, ref))


def _check_object(store: SizedStore, ref: ObjectRef) -> None:
    unsealed(ref.key, ref.read(store))


def _whole_commits(store: SizedStore, sink: str) -> Iterator[tuple[str, Commit, ObjectRef]]:
    for key in filter(is_known, store.list(f"commits/{sink}/")):
        try:
            body = store.get(key)
            if body is not None:
                yield key, decode_commit(key, body), ObjectRef.of(key, body)
        except (SnapshotCorrupt, ObjectUnreadable):
            continue  # what refers to it is checked, and names it


class _LogRecord(msgspec.Struct, frozen=True):
    """The one field of a record of a source's log that is needed here: the seal of the record
    before it."""

    before: str = ""


_log_decoder = msgspec.json.Decoder(_LogRecord)


def _check_log(check: _StoreCheck, vertex: str, first: int, end: ObjectRef) -> None:
    """Check a source's log from the last record that is known back to the first that is needed."""
    seals = {number_of(end.key): end.seal}

    def look(number: int) -> None:
        key = ingress_key(vertex, number)
        body = check.store.get(key)
        if body is None:
            raise SnapshotCorrupt(f"{key} is not in the store")
        before = check.store.get(ingress_key(vertex, number - 1)) if number else None
        if before is not None and before[:SEAL].hex() == seals.get(number):
            seals[number - 1] = seals[number]  # passed over: see the log's sixth rule
            return
        if body[:SEAL].hex() != seals.get(number, body[:SEAL].hex()):
            raise SnapshotCorrupt(f"{key} is not the object that was written under this name")
        seals[number - 1] = decode_record(key, body, _log_decoder).before

    for number in range(number_of(end.key), first - 1, -1):
        check.check(ingress_key(vertex, number), partial(look, number))
