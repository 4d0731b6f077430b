"""Finds and deletes objects in the store that nothing refers to, now or later.

Such an object is left when its writer dies between writing it and reporting it.

Rules
1. A checkpoint or a segment is deleted when neither the last durable record nor the next one names
   it, and the instance that wrote it no longer runs, or runs and will not report it again. What an
   instance of a later epoch wrote is left to the manager of that epoch.
2. Only a manager whose own record is durable may sweep: from then on no record will name what
   instances of earlier epochs still write.
3. A part is deleted when the commit of its number names another part. While there is no such
   commit, an instance that the manager has given up may still make it, so the part stays.
4. The manager's records are deleted when they are far before the one that the hint names, and no
   difference that may still be read leads back to them.
5. Records of a source's log are deleted when a durable record says that they are not needed, the
   smallest number first.
6. Objects with a name that no job would give are left alone. So is a part whose commit is lost or
   damaged: if that commit is put back from a backup, the part counts again.
7. The manager lists the store now and then, and deletes by these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from weir.errors import SnapshotCorrupt
from weir.job.commit_log import decode_commit
from weir.job.ledger import Ledger
from weir.job.messages import Checkpoint
from weir.job.signals import Delete, Get, List, ManagerCommand
from weir.reliable.log import Segment
from weir.reliable.object_names import (
    EPHEMERAL,
    LATEST_RECORD,
    commit_key,
    first_of,
    incarnation_of,
    is_ephemeral,
    is_known,
    number_of,
)

EPOCH_BITS = 24
"""Incarnations are epoch << EPOCH_BITS | counter."""


class Alive(Protocol):
    """What an instance that runs has reported (see `Placement`)."""

    @property
    def checkpoints(self) -> Sequence[Checkpoint]: ...
    @property
    def segments(self) -> Mapping[str, Sequence[Segment]]: ...
    @property
    def flushed(self) -> Mapping[str, int]: ...


class Sweeper:
    """Asks now and then what is in the store, and says what to delete of it (rule 7)."""

    def __init__(self, every: float, now: float) -> None:
        self._every, self._swept_at = every, now
        self._parts: tuple[str, ...] = ()
        """The parts that were listed last; which to delete, the commits say that are read then."""

    def sweep(self, now: float) -> list[ManagerCommand]:
        """List the store, if the last time is long enough ago."""
        if now - self._swept_at < self._every:
            return []
        self._swept_at = now
        return [List(prefix) for prefix in (*EPHEMERAL, "parts/", "records/", "ingress/")]

    def listed(
        self,
        keys: tuple[str, ...],
        ledger: Ledger,
        named: frozenset[str],
        collected: Mapping[str, int],
        alive: Mapping[int, Alive],
        unneeded: int,
    ) -> list[ManagerCommand]:
        """Delete listed objects by rules 1, 4 and 5, and read the commits that decide on parts.
        `named` are the objects that records refer to, `collected` is what the last durable record
        says, records below `unneeded` may go; for `alive` see `unnamed`."""
        garbage = (
            unnamed(keys, named, alive, ledger.epoch),
            old_records(keys, unneeded),
            collected_logs(keys, collected),
        )
        commands: list[ManagerCommand] = [Delete(objects) for objects in garbage if objects]
        parts = tuple(key for key in keys if key.startswith("parts/") and is_known(key))
        if parts:
            last = {v: c[-1].number for v, c in ledger.checkpoints.items() if c}
            self._parts = parts
            commands += [Get(key) for key in doubtful_commits(parts, last)]
        return commands

    def loaded(self, key: str, body: bytes | None) -> list[ManagerCommand]:
        """Take in a commit that was read; delete the parts of its number that it does not name."""
        if body is None or not key.startswith("commits/"):
            return []
        losing = losing_parts(self._parts, key, body)
        return [Delete(losing)] if losing else []


def unnamed(
    listed: Iterable[str],
    named: frozenset[str],
    alive: Mapping[int, Alive],
    epoch: int,
) -> tuple[str, ...]:
    """Find the checkpoints and segments to delete by rule 1; `alive` has what each incarnation that
    runs has reported."""

    def is_nobodys(key: str) -> bool:
        incarnation = incarnation_of(key)
        if key in named or incarnation >> EPOCH_BITS > epoch:
            return False
        return incarnation not in alive or _is_past(key, alive[incarnation])

    return tuple(key for key in listed if is_ephemeral(key) and is_known(key) and is_nobodys(key))


def _is_past(key: str, alive: Alive) -> bool:
    """Say whether a running instance has written this object and will not report it again: it is a
    checkpoint before those that it reports, or a segment that was collected before any report."""
    if key.startswith("checkpoints/"):
        return number_of(key) < min((c.number for c in alive.checkpoints), default=0)
    stream = key.removeprefix("streams/").rsplit("/", 1)[0]
    held = {segment.key for segment in alive.segments.get(stream, ())}
    return key not in held and first_of(key) <= alive.flushed.get(stream, -1)


def old_records(listed: Iterable[str], unneeded: int) -> tuple[str, ...]:
    """Find the manager's records to delete by rule 4, the oldest first."""
    return tuple(
        key
        for key in sorted(listed)
        if key.startswith("records/")
        and key != LATEST_RECORD
        and is_known(key)
        and number_of(key) < unneeded
    )


def collected_logs(listed: Iterable[str], collected: Mapping[str, int]) -> tuple[str, ...]:
    """Find the records of sources' logs to delete by rule 5."""
    return tuple(
        key
        for key in sorted(listed)
        if key.startswith("ingress/")
        and is_known(key)
        and number_of(key) < collected.get(key.rsplit("/", 1)[0], 0)
    )


def doubtful_commits(parts: Iterable[str], commits: Mapping[str, int]) -> tuple[str, ...]:
    """Name the commits that must be read to know which of these parts to delete: those with more
    than one part, and the first of each sink, which may have none. `commits` has the number of
    each sink's last known commit."""
    part_counts: dict[tuple[str, int], int] = {}
    for key in parts:
        sink, number = _sink_and_number(key)
        if number <= commits.get(sink, -1):
            part_counts[sink, number] = part_counts.get((sink, number), 0) + 1
    return tuple(
        commit_key(sink, number)
        for (sink, number), count in part_counts.items()
        if count > 1 or number == 0
    )


def losing_parts(parts: Iterable[str], commit: str, body: bytes) -> tuple[str, ...]:
    """Find the parts of a commit's number that the commit, which has this content, does not name
    (rule 3)."""
    try:
        chosen = decode_commit(commit, body).part
    except SnapshotCorrupt:
        return ()  # rule 6
    _, sink, _ = commit.split("/")
    mine = (key for key in parts if _sink_and_number(key) == (sink, number_of(commit)))
    return tuple(key for key in mine if chosen is None or key != chosen.key)


def orphaned_parts(
    parts: Iterable[str], last: Mapping[str, int], get: Callable[[str], bytes | None]
) -> tuple[str, ...]:
    """Find the parts that no commit names, when no more commits will be made; `last` has the number
    of each sink's last commit."""
    orphans: list[str] = []
    for key in filter(is_known, parts):
        sink, number = _sink_and_number(key)
        body = get(commit_key(sink, number))
        if body is not None:
            orphans += losing_parts([key], commit_key(sink, number), body)
        elif number > last.get(sink, -1):
            orphans.append(key)
    return tuple(orphans)


def _sink_and_number(part: str) -> tuple[str, int]:
    """Read the sink of a part, and the number of its commit, from the part's name."""
    _, sink, _ = part.split("/")
    return sink, number_of(part)
