"""A sink in a host: turns its rows into commits, which are permanent.

Rules
1. A sink that commits begins after the last commit in the store, even if the manager never heard
   of that one: it reads the next number until there is no commit under it.
2. A sink commits in two steps. It writes the rows as a part under a name of its incarnation, then
   the commit, which can be made only once. If another instance has made the commit of that number
   first, this one goes on from the positions of the other's commit, or stops if the other is a
   newer incarnation.
3. If a commit refers to another commit before it than the one that this instance knows, a commit
   was lost: the sink goes no further (`commit_log.py`).
4. A sink whose rows are handed on at once commits nothing: it takes checkpoints of its positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weir.errors import SnapshotCorrupt
from weir.job.commit_log import Commit, decode_commit, encode_part
from weir.job.hosted_instance import Running
from weir.job.messages import Checkpoint
from weir.job.signals import Get, Put
from weir.reliable.codec import encode_record
from weir.reliable.digest import Digest, digest
from weir.reliable.keys import commit_key, part_key
from weir.reliable.objects import ObjectRef
from weir.reliable.vertex import Snapshot
from weir.runtime.instance import SinkInstance


class RunningSink(Running):
    """Runs an instance of a sink, by the module's rules."""

    _commit: Commit | None = None
    """The commit under way."""
    _commit_body = b""
    """The commit under way as it was last put."""
    _last_commit: ObjectRef | None = None
    """The last commit in the store that this instance has made or read."""
    _committed = Digest()
    """The digest of all rows up to that commit."""

    # --- beginning ---------------------------------------------------------------------------

    def begin(self) -> Sequence[Put | Get]:
        """Ask for the commit to begin from; a sink that does not commit begins at once."""
        restart = self.order.restart
        self.instance = self._make(self.spec, {}, None)
        if self._commits:
            return [Get(commit_key(self.spec.id, max(self._number, 0)))]
        if restart is not None:
            self.instance.load(Snapshot(restart.inputs, (), {}))
        self.status = "running"
        return []

    @property
    def _commits(self) -> bool:
        return isinstance(self.instance, SinkInstance) and self.instance.commits

    def loaded(self, key: str, body: bytes | None) -> Sequence[Put | Get]:
        """Take in what lies under the name of a commit: the sink looks for the last one, or for the
        one that kept it from making its own."""
        restart = self.order.restart
        if restart is not None and key == restart.key:
            try:
                body = restart.ref.check(body)
                commit = decode_commit(key, body)
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
                commit = decode_commit(key, body)
            except SnapshotCorrupt:
                # Nothing refers to it, as far as anybody knows: it was never written.
                return self._commit_not_there(key, new=False)
            if commit.before != self._last_commit:
                last = self._last_commit.key if self._last_commit is not None else "none"
                self.spoil(key, SnapshotCorrupt(f"{key} does not follow {last} as it was made"))
                return []
        return self._follow(commit, ObjectRef.of(key, body))

    def _follow(self, commit: Commit, ref: ObjectRef) -> Sequence[Put | Get]:
        """Go on after a commit of another incarnation, and look for the next."""
        if commit.incarnation > self.order.incarnation:
            self.status = "loading"  # somebody newer is at work; the manager will say so
            return []
        assert self.instance is not None
        self._take_commit(commit, ref, commit.inputs)
        self.status = "loading"
        self.instance.load(Snapshot(commit.inputs, (), {}))
        return [Get(commit_key(self.spec.id, commit.number + 1))]

    def _commit_not_there(self, key: str, *, new: bool) -> Sequence[Put | Get]:
        """Take in that there is no commit of this number. If it is the one under way, write it
        again (if not `new`, over what lies there and is no commit); else the last one is found."""
        if self._commit is not None and self._saving is not None and key == self._saving.key:
            return [self._put_commit(new=new)]
        self._saving = self._commit = None
        self.status = "running"
        return []

    # --- committing --------------------------------------------------------------------------

    def _is_due(self, seconds: float) -> bool:
        if self._commits:
            return seconds >= self._settings.commit_interval
        return super()._is_due(seconds)

    def _save(self) -> Sequence[Put | Get]:
        return self._begin_commit() if self._commits else super()._save()

    def _begin_commit(self) -> Sequence[Put | Get]:
        assert isinstance(self.instance, SinkInstance)
        waiting = self.instance.take()
        positions = self.instance.snapshot().inputs
        number = self._number + 1
        part = part_key(self.spec.id, self.order.incarnation, number)
        total = self._committed
        for _, rows in waiting:
            total += digest(rows)
        count = sum(len(rows) for _, rows in waiting)
        self._commit = Commit(
            number, self.order.incarnation, None, count,
            positions, f"{total.total:032x}", total.count, self._last_commit, self.record,
        )  # fmt: skip
        ref = ObjectRef(commit_key(self.spec.id, number))
        self._saving = Checkpoint(ref, number, self.order.incarnation, positions, (), positions)
        if not waiting:
            return [self._put_commit()]
        return [Put(part, lambda: encode_part(part, waiting))]

    def _put_commit(self, *, new: bool = True) -> Put:
        assert self._saving is not None
        body = self._commit_body = encode_record(self._saving.key, self._commit)
        return Put(self._saving.key, lambda: body, new=new)

    def _save_stored(self, key: str, ref: ObjectRef | None) -> Sequence[Put | Get]:
        if self._commit is None:
            return super()._save_stored(key, ref)
        assert self._saving is not None
        if ref is None:
            return [Get(key)]
        if key != self._saving.key:
            self._commit = msgspec.structs.replace(self._commit, part=ref)
            return [self._put_commit()]
        self._take_commit(self._commit, ref, self._saving_marker)
        return []

    def _take_commit(self, commit: Commit, ref: ObjectRef, marker: tuple[int, ...]) -> None:
        """Take in that this commit is the last one in the store, and report it."""
        self._number, self._committed, self._last_commit = commit.number, commit.digest, ref
        self._commit = None
        checkpoint = Checkpoint(
            ref, commit.number, commit.incarnation, commit.inputs, (), commit.inputs
        )
        self._note_checkpoint(ref, checkpoint, marker)

    @property
    def done(self) -> bool:
        if not super().done or self._saving is not None or self.instance is None:
            return False
        return not self._commits or self.instance.marker == self._saved
