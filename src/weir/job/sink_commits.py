"""The commits of one sink: they make its rows permanent, and say where it continues.

Rules
1. A sink that commits begins after the last commit in the store, even if the manager never heard
   of that one: it reads the next number until there is no commit under it.
2. A sink commits in two steps. It writes the rows as a part under a name of its incarnation, then
   the commit, which can be made only once. If another instance has made the commit of that number
   first, this one goes on from the positions of the other's commit, or stops if the other is a
   newer incarnation.
3. If a commit refers to another commit before it than the one that this instance knows, a commit
   was lost: the sink goes no further (`commit_log.py`).
4. A sink whose rows are handed on at once commits nothing: it takes checkpoints of its positions
   (`hosted_instance.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weir.errors import SnapshotCorrupt
from weir.job.commit_log import Commit, decode_commit, encode_part
from weir.job.messages import Checkpoint, VertexOrder
from weir.job.signals import Get, Put
from weir.reliable.codec import encode_record
from weir.reliable.digest import Digest, digest
from weir.reliable.object_names import commit_key, part_key
from weir.reliable.objects import ObjectRef
from weir.reliable.vertex import Snapshot
from weir.runtime.instance import SinkInstance


class SinkCommits:
    """Makes and follows the commits of one instance of a sink, by the module's rules."""

    def __init__(self, sink: SinkInstance, order: VertexOrder) -> None:
        self._sink, self._incarnation, self._restart = sink, order.incarnation, order.restart
        self.is_ready = False
        """Whether the last commit is found: the sink may go on after it."""
        self.last: Checkpoint | None = None
        """The last commit in the store that this instance has made or read, as it is reported."""
        self._last_commit: ObjectRef | None = None
        """Which object that is."""
        self._committed = Digest()
        """The digest of all rows up to it."""
        self._commit: Commit | None = None
        """The commit under way."""
        self._commit_body = b""
        """The commit under way as it was last put."""

    @property
    def is_under_way(self) -> bool:
        """Whether a commit is being made."""
        return self._commit is not None

    # --- finding the last commit -------------------------------------------------------------

    def find_last(self) -> Get:
        """Ask for the commit to begin from; `loaded` then looks for later ones."""
        return Get(self._key(0 if self._restart is None else self._restart.number))

    def loaded(self, key: str, body: bytes | None) -> Sequence[Put | Get]:
        """Take in what lies under the name of a commit: the sink looks for the last one, or for the
        one that kept it from making its own. SnapshotCorrupt, if it can go no further."""
        if self._restart is not None and key == self._restart.key:
            body = self._restart.ref.check(body)
            return self._follow(decode_commit(key, body), ObjectRef.of(key, body))
        if body is None:
            return self._not_there(key, new=True)
        if self._commit is not None and body == self._commit_body:
            self._take(self._commit, ObjectRef.of(key, body))
            return []
        try:
            commit = decode_commit(key, body)
        except SnapshotCorrupt:
            # Nothing refers to it, as far as anybody knows: it was never written.
            return self._not_there(key, new=False)
        if commit.before != self._last_commit:
            last = self._last_commit.key if self._last_commit is not None else "none"
            raise SnapshotCorrupt(f"{key} does not follow {last} as it was made")
        return self._follow(commit, ObjectRef.of(key, body))

    def _follow(self, commit: Commit, ref: ObjectRef) -> Sequence[Put | Get]:
        """Go on after a commit of another incarnation, and look for the next."""
        self.is_ready = False
        if commit.incarnation > self._incarnation:
            return []  # somebody newer is at work; the manager will say so
        self._take(commit, ref)
        self._sink.load(Snapshot(commit.inputs, (), {}))
        return [Get(self._key(commit.number + 1))]

    def _not_there(self, key: str, *, new: bool) -> Sequence[Put | Get]:
        """Take in that there is no commit of this number. If it is the one under way, write it
        again (if not `new`, over what lies there and is no commit); else the last one is found."""
        if self._commit is not None and key == self._key(self._commit.number):
            return [self._put_commit(self._commit, new=new)]
        self._commit = None
        self.is_ready = True
        return []

    # --- committing --------------------------------------------------------------------------

    def begin(self, record: int) -> Sequence[Put | Get]:
        """Commit the rows that wait; `record` is the newest durable record."""
        waiting = self._sink.take()
        number = 0 if self.last is None else self.last.number + 1
        total = self._committed
        for _, rows in waiting:
            total += digest(rows)
        self._commit = Commit(
            number=number,
            incarnation=self._incarnation,
            part=None,
            rows=sum(len(rows) for _, rows in waiting),
            inputs=self._sink.snapshot().inputs,
            total=f"{total.total:032x}",
            count=total.count,
            before=self._last_commit,
            record=record,
        )
        if not waiting:
            return [self._put_commit(self._commit)]
        part = part_key(self._sink.spec.id, self._incarnation, number)
        return [Put(part, lambda: encode_part(part, waiting))]

    def stored(self, key: str, ref: ObjectRef | None) -> Sequence[Put | Get]:
        """Take in that the part or the commit under way is in the store, by this reference; None:
        an object of that name was there already."""
        if self._commit is None:
            return []
        if ref is None:
            return [Get(key)]
        if key != self._key(self._commit.number):
            self._commit = msgspec.structs.replace(self._commit, part=ref)
            return [self._put_commit(self._commit)]
        self._take(self._commit, ref)
        return []

    def _put_commit(self, commit: Commit, *, new: bool = True) -> Put:
        key = self._key(commit.number)
        body = self._commit_body = encode_record(key, commit)
        return Put(key, lambda: body, new=new)

    def _take(self, commit: Commit, ref: ObjectRef) -> None:
        """Take in that this commit is the last one in the store."""
        self._committed, self._last_commit, self._commit = commit.digest, ref, None
        self.last = Checkpoint(
            ref=ref,
            number=commit.number,
            incarnation=commit.incarnation,
            inputs=commit.inputs,
            outputs=(),
            needs=commit.inputs,
        )

    def _key(self, number: int) -> str:
        return commit_key(self._sink.spec.id, number)
