"""One instance in a host: how it begins, and what it writes to the store, and when.

Rules
1. An instance begins from the checkpoint that its order names; a sink that commits, from its last
   commit (`sink_commits.py`).
2. It takes a checkpoint when the vertex's strategy says so, when the manager asks all instances for
   one, and at the end. The checkpoint counts when the store has it. At most one is under way, and
   none before the instance has caught up with the one it began from.
3. Its streams are written to the store in segments (`segment_flush.py`).
4. Whatever may run the user's code is noted before it is done (`poison.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from weir.errors import SnapshotCorrupt, WeirError
from weir.events.batch import OPEN
from weir.files.chunks import Chunk
from weir.job.delays import ReachedMarks
from weir.job.messages import (
    KEPT_CHECKPOINTS,
    Checkpoint,
    Figures,
    HeldBy,
    Status,
    VertexOrder,
    VertexReport,
)
from weir.job.poison import Notes, Phase
from weir.job.segment_flush import SegmentFlush, StreamSegment
from weir.job.settings import HostSettings
from weir.job.signals import Get, HostCommand, Pull, Put
from weir.job.sink_commits import SinkCommits
from weir.reliable.codec import decode_snapshot, encode_snapshot
from weir.reliable.object_names import checkpoint_key, number_of
from weir.reliable.objects import ObjectRef
from weir.reliable.rebuildable_vertex import needs_of
from weir.reliable.strategies import Strategy
from weir.reliable.vertex import Snapshot
from weir.runtime.instance import Instance, MakeInstance, SinkInstance, SourceInstance
from weir.runtime.topology import VertexSpec

_T = TypeVar("_T")

KEEP_EVERY = 0.05
"""Seconds until it is asked again whether a checkpoint or a commit is due."""
FactKey: TypeAlias = tuple[str, int, str]
"""A vertex, an incarnation, and the name of an object that it has stored."""
Fact: TypeAlias = "Checkpoint | StreamSegment | None"
"""What a host reports of that object; None: the status of the instance has changed."""


class Running:
    """Runs an instance of a vertex, by the module's rules."""

    def __init__(
        self,
        spec: VertexSpec,
        order: VertexOrder,
        strategy: Strategy,
        make: MakeInstance,
        settings: HostSettings,
        now: float,
        notes: Notes,
        say: Callable[[FactKey, Fact], None],
    ) -> None:
        """`say` takes what is stored, as a fact of the host."""
        self._notes, self._say = notes, say
        self.spec, self.order = spec, order
        self.instance: Instance | None = None
        """The instance, once it is made: of one with a checkpoint, when that is loaded."""
        self._source: SourceInstance | None = None
        """The instance, if it is a source."""
        self._commits: SinkCommits | None = None
        """The commits of the instance, if it is a sink that commits: they stand for checkpoints."""
        self.status: Literal["loading", "running", "behind", "failed"] = "loading"
        """See `VertexReport.status`."""
        self.asked = 0
        """The last request for a checkpoint of all instances; see `Orders.checkpoint`."""
        self.record = -1
        """The newest durable record; see `Orders.record`."""
        self.held = False
        """Whether it is a sink that waits; see `Orders.held`."""
        self._kept = self._saving_for = 0
        """The last such request that is done, and the one that the checkpoint under way is for."""
        self._strategy, self._make, self._settings = strategy, make, settings
        self._checkpoints: list[Checkpoint] = []
        """The last checkpoints that this instance has stored."""
        self._number = order.restart.number if order.restart is not None else -1
        """The number of the last checkpoint."""
        self._saved_at = now
        """When the last checkpoint was begun."""
        self._saved: tuple[int, ...] | None = None
        """The instance's marker at the last checkpoint that was stored, or that it began from."""
        self._saving_marker: tuple[int, ...] = ()
        """The instance's marker at the checkpoint under way."""
        self._saving: Checkpoint | None = None
        """The checkpoint under way."""
        self._flush = SegmentFlush(order.incarnation, settings)
        self._pulled = False
        """Whether a source has asked for a chunk and not got it yet."""
        self.keep_at = now
        """When to look again for what is to be stored, if nothing happens before."""
        self.waits: str | None = None
        """What keeps anything from coming to a source, if anything does; see `SourceWaits`."""
        self.marks = ReachedMarks()
        """When the instance has reached which event time."""
        self._corrupt: list[str] = []
        """Objects that could not be read."""
        self._error: str | None = None
        """Why the instance has failed, or is behind, if it is."""

    # --- beginning ---------------------------------------------------------------------------

    def begin(self) -> Sequence[Put | Get]:
        """Ask the store for the checkpoint to begin from, or begin without one."""
        if self.spec.kind == "sink":
            return self._begin_sink()
        restart = self.order.restart
        if restart is not None:
            return [Get(restart.key)]
        self._start(None)
        return []

    def _begin_sink(self) -> Sequence[Get]:
        """Ask for the commit to begin from; a sink that does not commit begins at once."""
        restart = self.order.restart
        sink = self.instance = self._make(self.spec, {}, None)
        if isinstance(sink, SinkInstance) and sink.commits:
            self._commits = SinkCommits(sink, self.order)
            return [self._commits.find_last()]
        if restart is not None:
            sink.load(Snapshot(restart.inputs, (), {}))
        self.status = "running"
        return []

    def _start(self, snapshot: Snapshot | None) -> None:
        self.instance = self._make(self.spec, self.order.segments, snapshot)
        if self.spec.kind == "source":
            assert isinstance(self.instance, SourceInstance)
            self._source = self.instance
        self._saved = self.instance.marker if snapshot is not None else None
        self.status = "running"

    def loaded(self, key: str, body: bytes | None) -> Sequence[Put | Get]:
        """Take in the checkpoint or the commit that was asked for."""
        try:
            if self._commits is not None:
                return self._loaded_commit(self._commits, key, body)
            restart = self.order.restart
            assert restart is not None
            snapshot = decode_snapshot(key, restart.ref.check(body))
            if (snapshot.inputs, snapshot.outputs) != (restart.inputs, restart.outputs):
                raise SnapshotCorrupt(f"{key} is a snapshot at other positions than it should be")
            self._start(snapshot)
        except SnapshotCorrupt as error:
            self.spoil(key, error)
        return []

    def _loaded_commit(
        self, commits: SinkCommits, key: str, body: bytes | None
    ) -> Sequence[Put | Get]:
        commands = commits.loaded(key, body)
        self._note_commit(commits)
        if self.status in ("loading", "running"):
            self.status = "running" if commits.is_ready else "loading"
        return commands

    def spoil(self, key: str, error: Exception) -> None:
        """Fail because an object is not what was written; the manager finds another way to restart
        the vertex."""
        self._corrupt.append(key)
        self.status, self._error = "failed", str(error)

    def fail(self, error: str) -> None:
        """Fail with this error; the manager ends the job."""
        self.status, self._error = "failed", error

    def noted(self, phase: Phase, do: Callable[[], _T], otherwise: _T) -> _T:
        """Note what is about to be done, then do it: it may run the user's code. A WeirError fails
        the instance (and `otherwise` is returned); any other exception ends the host, and the note
        says in which step."""
        self._notes.begin(self.spec.id, phase, self.order.pieces if phase == "step" else 0)
        try:
            done = do()
        except WeirError as error:
            self.fail(f"{type(error).__name__}: {error}")
            done = otherwise
        self._notes.end()
        return done

    def fall_behind(self, why: str) -> None:
        """Take in that rows or records that the instance needs are gone: another instance of the
        vertex is ahead of it, or the store has lost them."""
        self.status, self._error = "behind", why

    def check_floors(self) -> None:
        """See whether rows that this instance still needs are gone; see `VertexOrder.floors`."""
        if self.instance is None or self.status != "running":
            return
        for cursor in self.instance.cursors:
            has = cursor.position if cursor.near is not None else cursor.wanted
            if has < self.order.floors.get(cursor.stream, 0):
                self.status = "behind"

    # --- checkpoints -------------------------------------------------------------------------

    def keep(self, now: float) -> Sequence[Put | Get]:
        """Begin a checkpoint or a commit, if one is due."""
        if not self.order.writes_log:
            self.keep_at = math.inf
        if self.instance is None or self.status != "running" or not self.order.takes_checkpoints:
            return []
        if self.held:
            self._kept = self.asked  # it has done nothing that could be kept
            return []
        if self._is_saving or not self.instance.caught_up:
            return []
        ends = self.instance.cti == OPEN
        if not (self.asked > self._kept or ends or self._is_due(now - self._saved_at)):
            self.keep_at = min(self.keep_at, now + KEEP_EVERY)
            return []
        self._saving_for = self.asked
        self._saving_marker = self.instance.marker
        if self._saving_marker == self._saved:
            self._kept = self.asked
            return []
        self._saved_at = now
        return self._save()

    @property
    def _is_saving(self) -> bool:
        """Whether a checkpoint or a commit is under way."""
        return self._saving is not None or (
            self._commits is not None and self._commits.is_under_way
        )

    def _is_due(self, seconds: float) -> bool:
        if self._commits is not None:
            return seconds >= self._settings.commit_interval
        return self._strategy.is_due(seconds)

    def _save(self) -> Sequence[Put | Get]:
        assert self.instance is not None
        if self._commits is not None:
            return self._commits.begin(self.record)
        snapshot = self.noted("snapshot", self.instance.snapshot, None)
        return [] if snapshot is None else self._begin_checkpoint(snapshot)

    def _begin_checkpoint(self, snapshot: Snapshot) -> Sequence[Put | Get]:
        self._number += 1
        key = checkpoint_key(self.spec.id, self.order.incarnation, self._number)
        self._saving = Checkpoint(
            ref=ObjectRef(key),
            number=self._number,
            incarnation=self.order.incarnation,
            inputs=snapshot.inputs,
            outputs=snapshot.outputs,
            needs=needs_of(snapshot),
            log=self._first_needed,
        )
        return [Put(key, lambda: encode_snapshot(key, snapshot))]

    def stored(self, key: str, ref: ObjectRef | None) -> Sequence[Put | Get]:
        """Take in that an object is in the store, by this reference; None: an object of that name
        was there already."""
        if ref is not None and (stored := self._flush.stored(key, ref)) is not None:
            self._say((self.spec.id, self.order.incarnation, key), stored)
            return []
        if self._commits is not None:
            commands = self._commits.stored(key, ref)
            self._note_commit(self._commits)
            return commands
        if self._saving is not None and key == self._saving.key and ref is not None:
            saved = msgspec.structs.replace(self._saving, ref=ref)
            self._saving = None
            self._note_checkpoint(saved, self._saving_marker)
        return []

    def _note_commit(self, commits: SinkCommits) -> None:
        """Note the last commit, if it is another one than before."""
        if commits.last is not None and commits.last not in self._checkpoints[-1:]:
            self._note_checkpoint(commits.last, commits.last.inputs)

    def _note_checkpoint(self, checkpoint: Checkpoint, marker: tuple[int, ...]) -> None:
        self._saved = marker
        self._kept = max(self._kept, self._saving_for)
        self._checkpoints = [*self._checkpoints, checkpoint][-KEPT_CHECKPOINTS:]
        self._say((self.spec.id, self.order.incarnation, checkpoint.key), checkpoint)

    # --- streams, sources --------------------------------------------------------------------

    def flush(self, now: float) -> Sequence[Put | Get]:
        """Write the segments that are large or old enough."""
        assert self.instance is not None
        puts = self._flush.flush(self.instance.streams.values(), now)
        self.keep_at = self._flush.next_due
        return puts

    @property
    def _first_needed(self) -> int:
        """The number of the first record of a source's log that is needed from here on."""
        record = None if self._source is None else self._source.log_record
        return 0 if record is None else number_of(record.key)

    @property
    def wants_chunk(self) -> bool:
        """Whether it is a source that should ask for its next chunk."""
        source = self._source
        return (
            source is not None
            and not self._pulled
            and self.status == "running"
            and source.wants_chunk
        )

    def pull(self) -> list[HostCommand]:
        """Ask for the next chunk of a source."""
        source = self._source
        if source is None or not self.wants_chunk:
            return []
        self._pulled = True
        return [
            Pull(
                vertex=self.spec.id,
                incarnation=self.order.incarnation,
                offset=source.next_offset,
                resume=source.resume,
                log_end=self.order.log_end,
            )
        ]

    def take_chunk(self, chunk: Chunk | None) -> None:
        """Hand a source the chunk that it asked for; None: there is no more."""
        self._pulled = False
        if self._source is not None:
            self._source.take_chunk(chunk)

    # --- reports -----------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether it has nothing more to do."""
        instance = self.instance
        if instance is None or self.status != "running" or not instance.done:
            return False
        if self.spec.kind != "sink":
            return True
        is_kept = self._commits is None or instance.marker == self._saved
        return is_kept and not self._is_saving

    def _reported_status(self, instance: Instance) -> Status:
        if self.done:
            return "done"
        return self.status if instance.caught_up or self.status != "running" else "loading"

    def report(self) -> VertexReport:
        """Report the status of the instance."""
        instance, source = self.instance, self._source
        return VertexReport(
            vertex=self.spec.id,
            incarnation=self.order.incarnation,
            status=self.status if instance is None else self._reported_status(instance),
            corrupt=tuple(self._corrupt),
            error=self._error,
            kept=self._kept,
            log_end=None if source is None else source.log_record,
            waits=self.waits,
        )

    def whole_report(self) -> VertexReport:
        """Report the status of the instance and all that is stored of it."""
        if self.instance is None:
            return self.report()
        return msgspec.structs.replace(
            self.report(),
            checkpoints=tuple(self._checkpoints),
            segments={name: s.segments for name, s in self.instance.streams.items()},
            flushed=dict(self._flush.flushed),
        )

    def figures(self, held: HeldBy | None) -> Figures:
        """Report how far the instance is; `held` is what holds it up by back pressure."""
        instance, source = self.instance, self._source
        if instance is None or self.status == "loading":
            return Figures()
        late, bad = source.turned_away if source is not None else (0, 0)
        positions = tuple(c.position for c in instance.cursors)
        return Figures(
            inputs=positions if source is None else (source.next_offset,),
            outputs=tuple(s.end for s in instance.streams.values()),
            cti=instance.cti,
            events=instance.events,
            state_rows=instance.state_rows,
            queued_bytes=sum(c.queued_bytes for c in instance.cursors),
            late=late,
            bad=bad,
            held=held,
            marks=self.marks.unheard,
        )
