"""The manager's records: a ledger as a base, and differences that lead from one record to the next.

Rules
1. A record is a base, which has the whole ledger, or the difference to the record that it names
   (`before`). The ledger at a record is that of its base with all differences since, in order.
2. The first record of a manager is a base, and so is the first of a finished job. Another base
   follows when the differences since the last have more than `SHARE` of its size (and `LEAST`
   bytes), or when there are `most`: a manager that resumes reads at most twice a base, and few
   objects.
3. Checkpoints of a vertex, and segments of a stream, go at the ends of their lists. A difference
   says how many go in front, how many stay, and which come after them.
4. A difference that does not fit the record it names is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import msgspec

from weir.errors import SnapshotCorrupt
from weir.job.ledger import MAPPINGS, Ledger, watched
from weir.job.messages import Checkpoint
from weir.job.poison import Suspect
from weir.reliable.codec import decode_packed, encode_packed
from weir.reliable.log import Segment
from weir.reliable.object_names import number_of, record_key
from weir.reliable.objects import ObjectRef

SHARE, LEAST = 1.0, 16 << 10
"""See rule 2."""

_Value = TypeVar("_Value")
_Object = TypeVar("_Object", bound="Checkpoint | Segment")
CheckpointSlide: TypeAlias = tuple[int, int, tuple[Checkpoint, ...]]
SegmentSlide: TypeAlias = tuple[int, int, tuple[Segment, ...]]
"""How many go in front, how many of the others stay, and what comes after them; see rule 3."""


class LedgerDifference(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="record", tag="change"
):
    """What has changed in a ledger since the record before; see `Ledger` for what is what."""

    number: int
    before: int
    """The number of the record that it is the difference to."""
    base: int
    """The number of the base that it leads back to."""
    epoch: int
    manager: str
    incarnations: int
    finished: bool = False
    checkpoints: dict[str, CheckpointSlide] = {}
    segments: dict[str, SegmentSlide] = {}
    collected: dict[str, int] = {}
    snapshots: dict[str, int] = {}
    recoveries: dict[str, int] = {}
    logs: dict[str, ObjectRef] = {}
    suspects: dict[str, tuple[Suspect, ...]] = {}
    """The deaths that now count against a vertex; none: it was cleared."""

    def apply_to(self, ledger: Ledger) -> None:
        """Take a ledger from the record before to this one."""
        if (ledger.number, ledger.base) != (self.before, self.base):
            raise SnapshotCorrupt(
                f"{record_key(self.number)} is a difference to record {self.before} of base "
                f"{self.base}, not to record {ledger.number} of base {ledger.base}"
            )
        ledger.number, ledger.epoch, ledger.manager = self.number, self.epoch, self.manager
        ledger.incarnations, ledger.finished = self.incarnations, self.finished
        for vertex, checkpoints in self.checkpoints.items():
            ledger.checkpoints[vertex] = self._slid(ledger.checkpoints, vertex, *checkpoints)
        for stream, segments in self.segments.items():
            ledger.segments[stream] = self._slid(ledger.segments, stream, *segments)
        for name in ("collected", "snapshots", "recoveries", "logs", "suspects"):
            getattr(ledger, name).update(getattr(self, name))
        for vertex in [v for v, suspects in self.suspects.items() if not suspects]:
            del ledger.suspects[vertex]

    def _slid(
        self,
        objects: Mapping[str, tuple[_Object, ...]],
        name: str,
        dropped: int,
        kept: int,
        added: tuple[_Object, ...],
    ) -> tuple[_Object, ...]:
        before = objects.get(name, ())
        if not 0 <= dropped <= dropped + kept <= len(before):
            raise SnapshotCorrupt(
                f"{record_key(self.number)} keeps {kept} of {len(before)} objects of {name} after "
                f"{dropped}: it is not the difference to record {self.before}"
            )
        return (*before[dropped : dropped + kept], *added)


@dataclass(frozen=True, slots=True)
class Record:
    """The next record of a ledger, and the base that it leads back to."""

    key: str
    base: int
    body: bytes
    left: tuple[str, ...]
    """The objects that the record before refers to, and this one does not."""
    collected: Mapping[str, int]
    """What is collected by this record and was not by the one before; see `Ledger.collected`."""


class RecordMaker:
    """Makes the records of a ledger that is watched, by the module's rules."""

    def __init__(self, ledger: Ledger, most: int) -> None:
        """See rule 2 for `most`."""
        self._ledger, self._most = ledger, most
        self._changed = {name: watched(getattr(ledger, name)).watch() for name in MAPPINGS}
        """What has changed since the last record, by mapping."""
        self._checkpoints, self._segments = dict(ledger.checkpoints), dict(ledger.segments)
        """What the last record says."""
        self._base_size = self._since = 0
        """The bytes of the last base, and of the differences since."""
        self._count = 0
        """How many differences there are since."""
        self._base_is_due = True

    @property
    def left(self) -> set[str]:
        """The objects that the last record refers to, and the ledger perhaps no more."""
        checkpoints = (self._checkpoints.get(v, ()) for v in self._changed["checkpoints"])
        segments = (self._segments.get(s, ()) for s in self._changed["segments"])
        keys = {c.key for objects in checkpoints for c in objects}
        return keys | {s.key for objects in segments for s in objects}

    def instead_of(self, record: Record) -> Record:
        """Make the record after one that was not written, in its place; it is a base."""
        self._base_is_due = True
        made = self.next_record()
        collected = {**record.collected, **made.collected}
        return replace(made, left=(*record.left, *made.left), collected=collected)

    def next_record(self) -> Record:
        """Make the next record; the ledger gets its number."""
        ledger, before = self._ledger, self._ledger.number
        ledger.number += 1
        left: list[str] = []
        difference = LedgerDifference(
            number=ledger.number,
            before=before,
            base=ledger.base,
            epoch=ledger.epoch,
            manager=ledger.manager,
            incarnations=ledger.incarnations,
            finished=ledger.finished,
            checkpoints=self._slides("checkpoints", self._checkpoints, ledger.checkpoints, left),
            segments=self._slides("segments", self._segments, ledger.segments, left),
            collected=self._values("collected", ledger.collected),
            snapshots=self._values("snapshots", ledger.snapshots),
            recoveries=self._values("recoveries", ledger.recoveries),
            logs=self._values("logs", ledger.logs),
            suspects={v: ledger.suspects.get(v, ()) for v in self._changed["suspects"]},
        )
        for changed in self._changed.values():
            changed.clear()
        body = self._body(difference)
        return Record(
            key=record_key(ledger.number),
            base=ledger.base,
            body=body,
            left=tuple(left),
            collected=difference.collected,
        )

    def _body(self, difference: LedgerDifference) -> bytes:
        ledger = self._ledger
        if not (self._base_is_due or ledger.finished):
            body = encode_packed(record_key(ledger.number), difference)
            self._since, self._count = self._since + len(body), self._count + 1
            if self._count <= self._most and self._since <= max(self._base_size * SHARE, LEAST):
                return body
        ledger.base = ledger.number
        body = ledger.encode()
        self._base_size, self._since, self._count = len(body), 0, 0
        self._base_is_due = False
        return body

    def _values(self, name: str, now: Mapping[str, _Value]) -> dict[str, _Value]:
        return {key: now[key] for key in self._changed[name] if key in now}

    def _slides(
        self,
        name: str,
        before: dict[str, tuple[_Object, ...]],
        now: Mapping[str, tuple[_Object, ...]],
        left: list[str],
    ) -> dict[str, tuple[int, int, tuple[_Object, ...]]]:
        """Find how these lists have changed, and bring `before` up to date; add to `left` the
        objects that are there no more."""
        slides = {}
        for key in self._changed[name]:
            old, new = before.get(key, ()), now.get(key, ())
            if old != new or key not in before:
                dropped, kept = _common(old, new)
                slides[key] = dropped, kept, new[kept:]
                gone = (*old[:dropped], *old[dropped + kept :])
                left += [o.key for o in gone if o not in new]
            before[key] = new
        return slides


def _common(old: Sequence[_Object], new: Sequence[_Object]) -> tuple[int, int]:
    """Find how many of the old go in front, and how many of the others stay in front of the new."""
    if not new or new[0] not in old:
        return len(old), 0
    dropped = old.index(new[0])
    kept = 0
    for one, other in zip(old[dropped:], new, strict=False):
        if one is not other and one != other:
            break
        kept += 1
    return dropped, kept


_decoder: msgspec.json.Decoder[Ledger | LedgerDifference] = msgspec.json.Decoder(
    Ledger | LedgerDifference
)


def decode_written(key: str, body: bytes) -> Ledger | LedgerDifference:
    """Decode the record of this name; SnapshotCorrupt when the object is not that record."""
    record = decode_packed(key, body, _decoder)
    if record.number != number_of(key):
        raise SnapshotCorrupt(f"{key} says that it is record {record.number}")
    return record
