"""What lies in the store and is nobody's: a writer died between writing it and saying so.

Rules
1. A checkpoint or a segment is nobody's when no record names it, neither the last durable one nor
   the one to come, and its incarnation is at work no longer; of one at work, when the instance
   has ceased to report it. What a later epoch's incarnation wrote is its manager's business.
2. Only a manager whose own record is durable may sweep: from then on nothing that instances of
   earlier epochs write can be named any more.
3. A part is nobody's when the commit of its number names another. While there is no such commit a
   zombie may still make it, so the part stays.
4. Records far behind the last are nobody's.
5. Records of a source's log are nobody's when a durable record says so; the smallest goes first.
6. What has no name of the job's is left alone. So is a part whose commit is lost or damaged: with a
   backup of that commit it counts again.
7. A manager lists the store now and then, and deletes by these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weir.errors import SnapshotCorrupt
from weir.job.commits import decode_commit
from weir.job.ledger import Ledger
from weir.job.messages import VertexReport
from weir.job.signals import Delete, Get, List, ManagerCommand
from weir.reliable.keys import (
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
KEPT_RECORDS = 100


class Sweeper:
    """Rule 7: asks what is in the store, and says what of it to delete."""

    def __init__(self, every: float, now: float) -> None:
        self._every, self._swept_at = every, now
        self._parts: tuple[str, ...] = ()
        """The parts that were listed last; commits that are read decide on them."""

    def sweep(self, now: float) -> list[ManagerCommand]:
        """List the store, if it is time."""
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
        alive: Mapping[int, VertexReport | None],
    ) -> list[ManagerCommand]:
        """Delete what is nobody's, and read the commits that decide on parts. What is `named` a
        record relies on, `collected` is what a durable one says; for `alive` see `unnamed`."""
        garbage = (
            unnamed(keys, named, alive, ledger.epoch),
            old_records(keys, ledger.number),
            collected_logs(keys, collected),
        )
        commands: list[ManagerCommand] = [Delete(found) for found in garbage if found]
        parts = tuple(key for key in keys if key.startswith("parts/") and is_known(key))
        if parts:
            last = {v: c[-1].number for v, c in ledger.checkpoints.items() if c}
            self._parts = parts
            commands += [Get(key) for key in doubtful_commits(parts, last)]
        return commands

    def loaded(self, key: str, body: bytes | None) -> list[ManagerCommand]:
        """Delete the parts that a commit has not chosen."""
        if body is None or not key.startswith("commits/"):
            return []
        losing = losing_parts(self._parts, key, body)
        return [Delete(losing)] if losing else []


def unnamed(
    listed: Iterable[str],
    named: frozenset[str],
    alive: Mapping[int, VertexReport | None],
    epoch: int,
) -> tuple[str, ...]:
    """Rule 1: `alive` has the last report of each incarnation at work."""

    def is_nobodys(key: str) -> bool:
        incarnation = incarnation_of(key)
        if key in named or incarnation >> EPOCH_BITS > epoch:
            return False
        if incarnation not in alive:
            return True
        report = alive[incarnation]
        return report is not None and _is_past(key, report)

    return tuple(key for key in listed if is_ephemeral(key) and is_known(key) and is_nobodys(key))


def _is_past(key: str, report: VertexReport) -> bool:
    """Whether an instance at work has written this and will never speak of it again: a checkpoint
    before those that it reports, a segment that was collected before it was ever reported."""
    if key.startswith("checkpoints/"):
        return number_of(key) < min((c.number for c in report.checkpoints), default=0)
    stream = key.removeprefix("streams/").rsplit("/", 1)[0]
    held = {segment.key for segment in report.segments.get(stream, ())}
    return key not in held and first_of(key) <= report.flushed.get(stream, -1)


def old_records(listed: Iterable[str], last: int) -> tuple[str, ...]:
    """Rule 4, the oldest first."""
    return tuple(
        key
        for key in sorted(listed)
        if key.startswith("records/")
        and key != LATEST_RECORD
        and is_known(key)
        and number_of(key) < last - KEPT_RECORDS
    )


def collected_logs(listed: Iterable[str], collected: Mapping[str, int]) -> tuple[str, ...]:
    """Rule 5."""
    return tuple(
        key
        for key in sorted(listed)
        if key.startswith("ingress/")
        and is_known(key)
        and number_of(key) < collected.get(key.rsplit("/", 1)[0], 0)
    )


def doubtful_commits(parts: Iterable[str], commits: Mapping[str, int]) -> tuple[str, ...]:
    """The commits that must be read to know which of these parts are nobody's: those with more
    than one part, and the first of each sink, which may have none. `commits` has the number of
    each sink's last known commit."""
    found: dict[tuple[str, int], int] = {}
    for key in parts:
        sink, number = _sink_and_number(key)
        if number <= commits.get(sink, -1):
            found[sink, number] = found.get((sink, number), 0) + 1
    return tuple(
        commit_key(sink, number)
        for (sink, number), count in found.items()
        if count > 1 or number == 0
    )


def losing_parts(parts: Iterable[str], commit: str, body: bytes) -> tuple[str, ...]:
    """Rule 3: the parts that this commit, with this content, has not chosen."""
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
    """The parts that no commit names, when no more will be made; `last` has the number of each
    sink's last commit."""
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
    _, sink, _ = part.split("/")
    return sink, number_of(part)
