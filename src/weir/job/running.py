"""One instance in a host: how it begins, and what of it goes to the store when.

Rules
1. It begins from the checkpoint that it is ordered to; a sink that commits, behind the last
   commit there is (one that nobody heard of included: it looks for the next until there is none).
2. A checkpoint counts when the store has it. At most one is under way, and none before the
   instance has caught up with the one it began from.
3. A commit is two steps: the rows as a part under a name of this incarnation, then the commit,
   which is made once: whoever comes second takes over the other's positions and goes on from
   there, or stops if the other is newer.
4. A segment is written when it is large or old enough; see `log.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from weir.errors import SnapshotCorrupt
from weir.events.batch import OPEN
from weir.job.commits import Commit, decode_commit, encode_part
from weir.job.instance import Instance, MakeInstance, SinkInstance, SourceInstance
from weir.job.keys import checkpoint_key, commit_key, part_key, segment_key
from weir.job.messages import Checkpoint, VertexOrder, VertexReport
from weir.job.poison import Notes
from weir.job.signals import Get, HostCommand, Pull, Put
from weir.job.strategy import Strategy
from weir.job.topology import VertexSpec
from weir.reliable.codec import (
    decode_snapshot,
    encode_entries,
    encode_record,
    encode_snapshot,
)
from weir.reliable.digest import Digest, digest
from weir.reliable.log import LogStream, Segment
from weir.reliable.replay import needs_of
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot

KEPT_CHECKPOINTS = 3
"""So many are reported; the manager has heard of older ones, or does without."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Limits of a host; times in seconds, sizes in bytes."""

    tail_bytes: int = 64 << 20
    flush_after: float = 0.5
    segment_bytes: int = 4 << 20
    window_bytes: int = 4 << 20
    """What may be under way to one subscriber."""
    ahead_bytes: int = 4 << 20
    """What a vertex may have written that none of its readers has read."""
    commit_every: float = 1.0
    synchronous: bool = False
    """Rows are readable only when durable."""
    check: bool = False


class Running:
    """See the module's rules."""

    def __init__(
        self,
        spec: VertexSpec,
        order: VertexOrder,
        strategy: Strategy,
        make: MakeInstance,
        settings: HostSettings,
        now: float,
        notes: Notes,
    ) -> None:
        self._notes = notes
        self.spec, self.order = spec, order
        self.instance: Instance | None = None
        self.status: Literal["loading", "running", "behind", "failed"] = "loading"
        self.asked = 0
        """The last time that everybody was asked for a checkpoint; see `Orders.checkpoint`."""
        self._kept = self._saving_for = 0
        self._strategy, self._make, self._settings = strategy, make, settings
        self._checkpoints: list[Checkpoint] = []
        self._number = order.restart.number if order.restart is not None else -1
        self._saved_at = now
        self._saved: tuple[int, ...] | None = None
        self._saving_marker: tuple[int, ...] = ()
        self._saving: Checkpoint | None = None
        self._commit: Commit | None = None
        self._committed = Digest()
        self._flushing: dict[str, tuple[LogStream, Segment]] = {}
        self._flushed: dict[str, int] = {}
        self._volatile_since: dict[str, float] = {}
        self._pulled = False
        self._corrupt: list[str] = []
        self._error = ""

    # --- beginning ---------------------------------------------------------------------------

    def begin(self) -> Sequence[Put | Get]:
        restart = self.order.restart
        if self.spec.kind == "sink":
            self.instance = self._make(self.spec, {}, None)
            if self._commits:
                key = commit_key(self.spec.id, max(self._number, 0))
                return [Get(key)]
            if restart is not None:
                self.instance.load(Snapshot(restart.inputs, (), {}))
            self.status = "running"
            return []
        if restart is not None:
            return [Get(restart.key)]
        self._start(None)
        return []

    @property
    def _commits(self) -> bool:
        return isinstance(self.instance, SinkInstance) and self.instance.commits

    def _start(self, snapshot: Snapshot | None) -> None:
        self.instance = self._make(self.spec, self.order.segments, snapshot)
        self._saved = self.instance.marker if snapshot is not None else None
        self.status = "running"

    def loaded(self, key: str, body: bytes | None, now: float) -> Sequence[Put | Get]:
        """An object that was asked for."""
        if key.startswith("commits/"):
            return self._commit_read(key, body, now)
        try:
            if body is None:
                raise SnapshotCorrupt(f"{key} is not in the store")
            self._start(decode_snapshot(body))
        except SnapshotCorrupt as error:
            self.spoil(key, error)
        return []

    def spoil(self, key: str, error: Exception) -> None:
        """An object is not what was written: the manager must find another way."""
        self._corrupt.append(key)
        self.status, self._error = "failed", f"{key}: {error}"

    def fail(self, error: str) -> None:
        self.status, self._error = "failed", error

    def fall_behind(self, why: str) -> None:
        """What it still needs is gone: others are ahead, or the store has lost it."""
        self.status, self._error = "behind", why

    def check_floors(self) -> None:
        """Rows that this copy still needs may be gone; see `VertexOrder.floors`."""
        if self.instance is None or self.status != "running":
            return
        for cursor in self.instance.cursors:
            has = cursor.position if cursor.near is not None else cursor.wanted
            if has < self.order.floors.get(cursor.stream, 0):
                self.status = "behind"

    # --- checkpoints -------------------------------------------------------------------------

    def keep(self, now: float) -> Sequence[Put | Get]:
        """A checkpoint or a commit, if one is due."""
        if self.instance is None or self.status != "running" or not self.order.takes_checkpoints:
            return []
        if self._saving is not None or not self.instance.caught_up:
            return []
        every = self._settings.commit_every if self._commits else self._strategy.every
        ends = self.instance.cti == OPEN
        if not (self.asked > self._kept or ends or now - self._saved_at >= every):
            return []
        self._saving_for = self.asked
        self._saving_marker = self.instance.marker
        if self._saving_marker == self._saved:
            self._kept = self.asked
            return []
        self._saved_at = now
        if self._commits:
            return self._begin_commit()
        self._notes.begin(self.spec.id, "snapshot", 0)
        snapshot = self.instance.snapshot()
        self._notes.end()
        return self._begin_checkpoint(snapshot)

    def _begin_checkpoint(self, snapshot: Snapshot) -> Sequence[Put | Get]:
        self._number += 1
        key = checkpoint_key(self.spec.id, self.order.incarnation, self._number)
        self._saving = Checkpoint(
            key, self._number, self.order.incarnation,
            snapshot.inputs, snapshot.outputs, needs_of(snapshot),
            0 if self._source is None else self._source.log_number,
        )  # fmt: skip
        return [Put(key, lambda: encode_snapshot(snapshot))]

    def stored(self, key: str, now: float, *, refused: bool) -> Sequence[Put | Get]:
        """An object is in the store; `refused`: somebody else's is."""
        if key in self._flushing:
            stream, segment = self._flushing.pop(key)
            stream.flushed(segment)
            self._flushed[stream.name] = segment.first
            self._volatile_since.pop(stream.name, None)
            return []
        if self._commit is not None:
            return self._commit_stored(key, refused=refused)
        if self._saving is not None and key == self._saving.key:
            self._note_checkpoint(self._saving, self._saving_marker)
        return []

    def _note_checkpoint(self, made: Checkpoint, marker: tuple[int, ...]) -> None:
        self._saved, self._saving = marker, None
        self._kept = max(self._kept, self._saving_for)
        self._checkpoints = [*self._checkpoints, made][-KEPT_CHECKPOINTS:]

    # --- commits -----------------------------------------------------------------------------

    def _begin_commit(self) -> Sequence[Put | Get]:
        assert isinstance(self.instance, SinkInstance)
        taken = self.instance.take()
        positions = self.instance.snapshot().inputs
        number = self._number + 1
        part = part_key(self.spec.id, self.order.incarnation, number) if taken else ""
        total = self._committed
        for _, rows in taken:
            total += digest(rows)
        count = sum(len(rows) for _, rows in taken)
        self._commit = Commit(
            number, self.order.incarnation, part, count,
            positions, f"{total.total:032x}", total.count,
        )  # fmt: skip
        key = commit_key(self.spec.id, number)
        self._saving = Checkpoint(key, number, self.order.incarnation, positions, (), positions)
        if not taken:
            return [self._put_commit()]
        return [Put(part, lambda: encode_part(taken))]

    def _put_commit(self) -> Put:
        assert self._saving is not None
        commit = self._commit
        return Put(self._saving.key, lambda: encode_record(commit), new=True)

    def _commit_stored(self, key: str, *, refused: bool) -> Sequence[Put | Get]:
        assert self._commit is not None
        assert self._saving is not None
        if key == self._commit.part:
            return [self._put_commit()]
        if refused:
            return [Get(key)]
        self._number, self._committed = self._commit.number, self._commit.digest
        self._commit = None
        self._note_checkpoint(self._saving, self._saving_marker)
        return []

    def _commit_read(self, key: str, body: bytes | None, now: float) -> Sequence[Put | Get]:
        """A commit that is there, or not, while looking for the last one."""
        restart = self.order.restart
        if body is None and restart is not None and key == restart.key:
            self.spoil(key, SnapshotCorrupt("it is not in the store"))
            return []
        if body is None:
            self._saving = self._commit = None
            self.status = "running"
            return []
        try:
            found = decode_commit(body)
        except SnapshotCorrupt as error:
            self.spoil(key, error)
            return []
        if found.incarnation > self.order.incarnation:
            self.status = "loading"  # somebody newer is at work; the manager will say so
            return []
        assert self.instance is not None
        mine = found.incarnation == self.order.incarnation and self._commit is not None
        self._number, self._committed = found.number, found.digest
        self._commit = None
        made = Checkpoint(key, found.number, found.incarnation, found.inputs, (), found.inputs)
        self._note_checkpoint(made, found.inputs)
        if mine:
            return []
        self.status = "loading"
        self.instance.load(Snapshot(found.inputs, (), {}))
        return [Get(commit_key(self.spec.id, found.number + 1))]

    # --- streams, sources --------------------------------------------------------------------

    def flush(self, now: float) -> Sequence[Put | Get]:
        """Segments that are large or old enough."""
        assert self.instance is not None
        commands: list[Put] = []
        # A tail that is too large holds the vertex back: it must not wait to be old.
        large = min(self._settings.segment_bytes, self._settings.tail_bytes)
        for stream in self.instance.streams.values():
            if stream.flushing is not None or stream.end <= stream.durable:
                continue
            since = self._volatile_since.setdefault(stream.name, now)
            old = now - since >= self._settings.flush_after or self._settings.synchronous
            if not old and stream.held_bytes < large:
                continue
            entries = stream.next_segment(self._settings.segment_bytes)
            if entries is not None and (old or stream.volatile_bytes >= large):
                commands.append(self._flush(stream, entries))
        return commands

    def _flush(self, stream: LogStream, entries: tuple[Entry, ...]) -> Put:
        total = Digest()
        for entry in entries if self._settings.check else ():
            total += digest(entry.rows)
        key = segment_key(stream.name, entries[0].seq, self.order.incarnation)
        last = entries[-1]
        segment = Segment(key, entries[0].seq, last.end, last.cti, str(total))
        stream.flushing = segment
        self._flushing[key] = (stream, segment)
        return Put(key, lambda: encode_entries(entries))

    @property
    def _source(self) -> SourceInstance | None:
        is_source = self.spec.kind == "source" and self.instance is not None
        return cast(SourceInstance, self.instance) if is_source else None

    def pull(self) -> list[HostCommand]:
        """Ask for the next chunk of a source."""
        source = self._source
        if source is None or self._pulled or self.status != "running" or not source.wants_chunk:
            return []
        self._pulled = True
        return [Pull(self.spec.id, self.order.incarnation, source.next_offset, source.log_place)]

    def take_chunk(self, chunk: object) -> None:
        self._pulled = False
        if self._source is not None:
            self._source.take_chunk(chunk)

    # --- reports -----------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        instance = self.instance
        if instance is None or self.status != "running" or not instance.done:
            return False
        if self.spec.kind == "sink":
            return self._saving is None and (not self._commits or instance.marker == self._saved)
        return True

    def _reported_status(
        self, instance: Instance
    ) -> Literal["loading", "running", "behind", "done", "failed"]:
        if self.done:
            return "done"
        return self.status if instance.caught_up or self.status != "running" else "loading"

    def report(self) -> VertexReport:
        instance = self.instance
        if instance is None or self.status == "loading":
            return VertexReport(
                self.spec.id, self.order.incarnation, self.status,
                corrupt=tuple(self._corrupt), error=self._error,
            )  # fmt: skip
        outputs = [s.end for s in instance.streams.values()]
        inputs = tuple(c.position for c in instance.cursors)
        source = self._source
        late, bad = source.turned_away if source is not None else (0, 0)
        return VertexReport(
            self.spec.id,
            self.order.incarnation,
            self._reported_status(instance),
            inputs if source is None else (source.next_offset,),
            tuple(outputs),
            instance.cti,
            instance.events,
            instance.state_rows,
            sum(c.queued_bytes for c in instance.cursors),
            late,
            bad,
            tuple(self._checkpoints),
            {name: s.segments for name, s in instance.streams.items()},
            tuple(self._corrupt),
            self._error,
            dict(self._flushed),
            self._kept,
        )
