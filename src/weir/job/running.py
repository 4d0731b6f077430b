"""One instance in a host: how it begins, and what of it goes to the store when.

Rules
1. It begins from the checkpoint that it is ordered to; a sink that commits, behind the last
   commit there is (one that nobody heard of included: it looks for the next until there is none).
2. A checkpoint counts when the store has it. At most one is under way, and none before the
   instance has caught up with the one it began from.
3. A commit is two steps: the rows as a part under a name of this incarnation, then the commit,
   which is made once: whoever comes second takes over the other's positions and goes on from
   there, or stops if the other is newer. A commit that does not follow the one before it as this
   instance knows that one means that a commit was lost: it goes no further (`commits.py`).
4. A segment is written when it is large or old enough; see `log.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

import msgspec

from weir.errors import SnapshotCorrupt, WeirError
from weir.events.batch import OPEN
from weir.files.chunks import Chunk
from weir.job.commits import Commit, decode_commit, encode_part
from weir.job.messages import Checkpoint, VertexOrder, VertexReport
from weir.job.poison import Notes, Phase
from weir.job.signals import Get, HostCommand, Pull, Put
from weir.plan.strategy import Strategy
from weir.reliable.codec import (
    decode_snapshot,
    encode_entries,
    encode_record,
    encode_snapshot,
)
from weir.reliable.digest import Digest, digest
from weir.reliable.keys import checkpoint_key, commit_key, number_of, part_key, segment_key
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.replay import needs_of
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot
from weir.runtime.instance import Instance, MakeInstance, SinkInstance, SourceInstance
from weir.runtime.topology import VertexSpec

_T = TypeVar("_T")

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
        self.record = -1
        """The newest durable record; see `Orders.record`."""
        self._kept = self._saving_for = 0
        self._strategy, self._make, self._settings = strategy, make, settings
        self._checkpoints: list[Checkpoint] = []
        self._number = order.restart.number if order.restart is not None else -1
        self._saved_at = now
        self._saved: tuple[int, ...] | None = None
        self._saving_marker: tuple[int, ...] = ()
        self._saving: Checkpoint | None = None
        self._commit: Commit | None = None
        """The commit under way, and what it is as an object."""
        self._commit_body = b""
        self._last_commit: ObjectRef | None = None
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
        restart = self.order.restart
        assert restart is not None
        try:
            snapshot = decode_snapshot(key, restart.ref.check(body))
            if (snapshot.inputs, snapshot.outputs) != (restart.inputs, restart.outputs):
                raise SnapshotCorrupt(f"{key} is a snapshot at other positions than it should be")
            self._start(snapshot)
        except SnapshotCorrupt as error:
            self.spoil(key, error)
        return []

    def spoil(self, key: str, error: Exception) -> None:
        """An object is not what was written: the manager must find another way."""
        self._corrupt.append(key)
        self.status, self._error = "failed", str(error)

    def fail(self, error: str) -> None:
        self.status, self._error = "failed", error

    def noted(self, phase: Phase, do: Callable[[], _T], otherwise: _T) -> _T:
        """Do what may run the user's code, with a note of it. An error of Weir's fails the vertex;
        whatever else is raised ends the host, and the note says where."""
        self._notes.begin(self.spec.id, phase, self.order.pieces if phase == "step" else 0)
        try:
            done = do()
        except WeirError as error:
            self.fail(f"{type(error).__name__}: {error}")
            done = otherwise
        self._notes.end()
        return done

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
        snapshot = self.noted("snapshot", self.instance.snapshot, None)
        return [] if snapshot is None else self._begin_checkpoint(snapshot)

    def _begin_checkpoint(self, snapshot: Snapshot) -> Sequence[Put | Get]:
        self._number += 1
        key = checkpoint_key(self.spec.id, self.order.incarnation, self._number)
        self._saving = Checkpoint(
            ObjectRef(key), self._number, self.order.incarnation,
            snapshot.inputs, snapshot.outputs, needs_of(snapshot),
            self._first_needed,
        )  # fmt: skip
        return [Put(key, lambda: encode_snapshot(key, snapshot))]

    def stored(self, key: str, ref: ObjectRef | None, now: float) -> Sequence[Put | Get]:
        """An object is in the store, by this reference; without one somebody else's is."""
        if key in self._flushing and ref is not None:
            stream, segment = self._flushing.pop(key)
            stream.flushed(msgspec.structs.replace(segment, ref=ref))
            self._flushed[stream.name] = segment.first
            self._volatile_since.pop(stream.name, None)
            return []
        if self._commit is not None:
            return self._commit_stored(key, ref)
        if self._saving is not None and key == self._saving.key and ref is not None:
            self._note_checkpoint(ref, self._saving, self._saving_marker)
        return []

    def _note_checkpoint(self, ref: ObjectRef, made: Checkpoint, marker: tuple[int, ...]) -> None:
        self._saved, self._saving = marker, None
        self._kept = max(self._kept, self._saving_for)
        made = msgspec.structs.replace(made, ref=ref)
        self._checkpoints = [*self._checkpoints, made][-KEPT_CHECKPOINTS:]

    # --- commits -----------------------------------------------------------------------------

    def _begin_commit(self) -> Sequence[Put | Get]:
        assert isinstance(self.instance, SinkInstance)
        taken = self.instance.take()
        positions = self.instance.snapshot().inputs
        number = self._number + 1
        part = part_key(self.spec.id, self.order.incarnation, number)
        total = self._committed
        for _, rows in taken:
            total += digest(rows)
        count = sum(len(rows) for _, rows in taken)
        self._commit = Commit(
            number, self.order.incarnation, None, count,
            positions, f"{total.total:032x}", total.count, self._last_commit, self.record,
        )  # fmt: skip
        ref = ObjectRef(commit_key(self.spec.id, number))
        self._saving = Checkpoint(ref, number, self.order.incarnation, positions, (), positions)
        if not taken:
            return [self._put_commit()]
        return [Put(part, lambda: encode_part(part, taken))]

    def _put_commit(self, *, new: bool = True) -> Put:
        assert self._saving is not None
        body = self._commit_body = encode_record(self._saving.key, self._commit)
        return Put(self._saving.key, lambda: body, new=new)

    def _commit_stored(self, key: str, ref: ObjectRef | None) -> Sequence[Put | Get]:
        assert self._commit is not None
        assert self._saving is not None
        if ref is None:
            return [Get(key)]
        if key != self._saving.key:
            self._commit = msgspec.structs.replace(self._commit, part=ref)
            return [self._put_commit()]
        self._take_commit(self._commit, ref, self._saving_marker)
        return []

    def _take_commit(self, made: Commit, ref: ObjectRef, marker: tuple[int, ...]) -> None:
        """This commit is the last one there is."""
        self._number, self._committed, self._last_commit = made.number, made.digest, ref
        self._commit = None
        checkpoint = Checkpoint(ref, made.number, made.incarnation, made.inputs, (), made.inputs)
        self._note_checkpoint(ref, checkpoint, marker)

    def _commit_read(self, key: str, body: bytes | None, now: float) -> Sequence[Put | Get]:
        """A commit that is there, or not, while looking for the last one."""
        restart = self.order.restart
        if restart is not None and key == restart.key:
            try:
                body = restart.ref.check(body)
                found = decode_commit(key, body)
            except SnapshotCorrupt as error:
                self.spoil(key, error)
                return []
        elif body is None:
            return self._commit_not_there(key, new=True)
        elif self._commit is not None and body == self._commit_body:
            self._take_commit(self._commit, ObjectRef.of(key, body), self._saving_marker)
            return []
        else:
            try:
                found = decode_commit(key, body)
            except SnapshotCorrupt:
                # Nothing refers to it, as far as anybody knows: it was never written.
                return self._commit_not_there(key, new=False)
            if found.before != self._last_commit:
                last = self._last_commit.key if self._last_commit is not None else "none"
                self.spoil(key, SnapshotCorrupt(f"{key} does not follow {last} as it was made"))
                return []
        if found.incarnation > self.order.incarnation:
            self.status = "loading"  # somebody newer is at work; the manager will say so
            return []
        assert self.instance is not None
        self._take_commit(found, ObjectRef.of(key, body), found.inputs)
        self.status = "loading"
        self.instance.load(Snapshot(found.inputs, (), {}))
        return [Get(commit_key(self.spec.id, found.number + 1))]

    def _commit_not_there(self, key: str, *, new: bool) -> Sequence[Put | Get]:
        """There is no commit of this number: the last one is found, or the one under way is to be
        written again, if need be over what lies there and is no commit."""
        if self._commit is not None and self._saving is not None and key == self._saving.key:
            return [self._put_commit(new=new)]
        self._saving = self._commit = None
        self.status = "running"
        return []

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
        segment = Segment(ObjectRef(key), entries[0].seq, last.end, last.cti, str(total))
        stream.flushing = segment
        self._flushing[key] = (stream, segment)
        return Put(key, lambda: encode_entries(key, entries))

    @property
    def _source(self) -> SourceInstance | None:
        is_source = self.spec.kind == "source" and self.instance is not None
        return cast(SourceInstance, self.instance) if is_source else None

    @property
    def _first_needed(self) -> int:
        """The number of the first record of a source's log that is needed from here on."""
        record = None if self._source is None else self._source.log_record
        return 0 if record is None else number_of(record.key)

    def pull(self) -> list[HostCommand]:
        """Ask for the next chunk of a source."""
        source = self._source
        if source is None or self._pulled or self.status != "running" or not source.wants_chunk:
            return []
        self._pulled = True
        return [
            Pull(
                self.spec.id, self.order.incarnation, source.next_offset,
                source.resume, self.order.log_end,
            )
        ]  # fmt: skip

    def take_chunk(self, chunk: Chunk | None) -> None:
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
            None if source is None else source.log_record,
        )
