"""The ledger: what of a job is durable, where each vertex would restart, what can be deleted.

Rules (StreamScope §4.3)
1. A row need not be made again when it is in a segment, or when no reader of its stream can ever
   ask for it. From that, the vertex's strategy says which checkpoint is *usable*.
2. A vertex restarts from its newest usable checkpoint, else from the beginning. The checkpoint says
   from which rows on the vertex then reads its input streams again; these can forget the rows
   before (low-water marks). So restarts are found for readers first: from the sinks up to the
   sources.
3. The log of a source is needed from the record on that its restart's checkpoint names.
4. Checkpoints before a vertex's restart, segments before all readers' restarts, and records of logs
   that are not needed, are garbage. The manager deletes them when a record without them is durable,
   and hosts forget rows no earlier. When the job is finished, all checkpoints, segments and logs
   are garbage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TypeVar

import msgspec

from weir.job.messages import Checkpoint
from weir.job.poison import Suspect
from weir.reliable.codec import encode_packed
from weir.reliable.log import Segment
from weir.reliable.object_names import is_ephemeral, number_of, record_key
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology

UNREAD = 2**62
"""The low-water mark of a stream that nobody reads: no row of it is needed."""


_Value = TypeVar("_Value")


class Watched(dict[str, _Value]):
    """A mapping of a ledger that notes which of its keys change, in order, for whoever watches."""

    def __init__(self, values: Mapping[str, _Value]) -> None:
        super().__init__(values)
        self._changed: list[dict[str, None]] = []

    def watch(self) -> dict[str, None]:
        """Return a set, as the keys of a dict, to which every key is added that changes."""
        self._changed.append({})
        return self._changed[-1]

    def __setitem__(self, key: str, value: _Value) -> None:
        super().__setitem__(key, value)
        for changed in self._changed:
            changed[key] = None

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        for changed in self._changed:
            changed[key] = None


def watched(values: dict[str, _Value]) -> Watched[_Value]:
    """Return a mapping of a ledger that is watched already (`watch`)."""
    assert isinstance(values, Watched)
    return values


class Ledger(msgspec.Struct, tag_field="record", tag="base"):
    """Holds what is durable of a job; the manager writes it to the store as its record."""

    epoch: int = 0
    """The number of the manager: each that begins with this store has a larger one."""
    manager: str = ""
    """Which manager wrote it: two that begin from one record must not write the same next one."""
    number: int = -1
    """The number of the record that it is, or was last, written as."""
    base: int = -1
    """The number of the record that has it as a base; see `ledger_difference.py`."""
    checkpoints: dict[str, tuple[Checkpoint, ...]] = {}
    """The checkpoints of each vertex that may still be needed, the oldest first; those of a sink
    that commits are its commits."""
    segments: dict[str, tuple[Segment, ...]] = {}
    """The segments of each stream that may still be needed, in order of their rows."""
    collected: dict[str, int] = {}
    """For each stream the number below which no row is needed; for each log the first record that
    is (`ingress_log`)."""
    incarnations: int = 0
    """How many instances were placed in this epoch."""
    finished: bool = False
    """Whether every sink has committed its last row."""
    snapshots: dict[str, int] = {}
    """How many checkpoints of each vertex were stored so far."""
    recoveries: dict[str, int] = {}
    """How often an instance of each vertex was lost, or had to begin again, so far."""
    token: str = ""
    """The job's; see `JobRecord.token`."""
    logs: dict[str, ObjectRef] = {}
    """For each source with a log, the last record of it that an instance has reported."""
    code: dict[str, str] | None = None
    """The fingerprints of the user's code that the job runs with; see `JobRecord.code`."""
    strategies: dict[str, str] = {}
    """How the vertices of each stage are recovered, as a program would say it; for comparison."""
    suspects: dict[str, tuple[Suspect, ...]] = {}
    """For each vertex the deaths in its steps that it was not cleared of; see `poison.py`."""

    def encode(self) -> bytes:
        """Encode it as a base."""
        return encode_packed(record_key(self.number), self)

    def watch(self) -> None:
        """Let all mappings be watched from now on. They are changed key by key alone."""
        for name in MAPPINGS:
            setattr(self, name, Watched(getattr(self, name)))

    def copied(self) -> Ledger:
        """Copy it; nobody watches the copy."""
        other = copy(self)
        for name in MAPPINGS:
            setattr(other, name, dict(getattr(self, name)))
        return other

    @property
    def names(self) -> frozenset[str]:
        """The checkpoints, commits and segments that the ledger refers to."""
        checkpoints = {c.key for objects in self.checkpoints.values() for c in objects}
        return frozenset(
            checkpoints | {s.key for objects in self.segments.values() for s in objects}
        )


MAPPINGS = (
    "checkpoints",
    "segments",
    "collected",
    "snapshots",
    "recoveries",
    "logs",
    "suspects",
)
"""The mappings of a ledger that change while a manager lives."""


class Restarts(msgspec.Struct, frozen=True):
    """Says where each vertex would restart, by rule 2, and which rows its readers then need."""

    checkpoint: Mapping[str, Checkpoint | None]
    """The checkpoint from which each vertex would restart; None: from the beginning."""
    needed: Mapping[str, int]
    """For each stream the first row that a restarted reader would ask for."""


def restarts(topology: Topology, strategies: Mapping[str, Strategy], ledger: Ledger) -> Restarts:
    """Find where each vertex would restart, the readers of a stream before its writer."""
    checkpoint: dict[str, Checkpoint | None] = {}
    needed: dict[str, int] = {}
    for spec in reversed(topology.order):
        durable = [
            durable_from(ledger.segments.get(stream, ()), needed.get(stream, UNREAD))
            for stream in spec.outputs
        ]
        usable = strategies[spec.id].usable(ledger.checkpoints.get(spec.id, ()), durable)
        checkpoint[spec.id] = usable
        for input, stream in enumerate(spec.inputs):
            start = usable.needs[input] if usable is not None else 0
            needed[stream] = min(needed.get(stream, UNREAD), start)
    return Restarts(checkpoint, needed)


def durable_from(segments: Iterable[Segment], start: int) -> int:
    """Find up to which row the segments reach, without a gap, from row `start` on.

    >>> a, b = ObjectRef("a"), ObjectRef("b")
    >>> durable_from([Segment(a, 0, 5, 0, ""), Segment(b, 5, 9, 0, "")], 3)
    9
    """
    for segment in segments:
        if segment.first <= start < segment.end:
            start = segment.end
    return start


def learn_checkpoints(ledger: Ledger, vertex: str, reported: Iterable[Checkpoint]) -> bool:
    """Add the checkpoints that an instance reports; say whether any was ahead of those known."""
    before = ledger.checkpoints.get(vertex, ())
    grown = list(before)
    for checkpoint in reported:
        if not grown or _is_ahead(checkpoint, grown[-1]):
            grown.append(checkpoint)
    if len(grown) == len(before):
        return False
    ledger.checkpoints[vertex] = tuple(grown)
    ledger.snapshots[vertex] = ledger.snapshots.get(vertex, 0) + len(grown) - len(before)
    return True


def _is_ahead(later: Checkpoint, earlier: Checkpoint) -> bool:
    """Say whether a checkpoint counts beside an earlier one: its positions must not be smaller,
    whichever instance took it. Of two at the same positions (claims came, and no rows) the later
    one counts, and the earlier one is garbage then."""
    mine, before = ((*c.inputs, *c.outputs, *c.needs, c.log) for c in (later, earlier))
    if mine == before:
        return (later.incarnation, later.number) > (earlier.incarnation, earlier.number)
    return all(a >= b for a, b in zip(mine, before, strict=True))


def learn_segments(ledger: Ledger, stream: str, reported: Sequence[Segment]) -> bool:
    """Add the segments that an instance reports; say whether any was new."""
    before = ledger.segments.get(stream, ())
    end = before[-1].end if before else ledger.collected.get(stream, 0)
    grown = list(before)
    for segment in reported:
        if segment.first <= end < segment.end:
            grown.append(segment)
            end = segment.end
    if len(grown) == len(before):
        return False
    ledger.segments[stream] = tuple(grown)
    return True


def learn_log(ledger: Ledger, vertex: str, end: ObjectRef | None) -> bool:
    """Note the last record of its log that a source reports; say whether that was new."""
    before = ledger.logs.get(vertex)
    if end is None or (before is not None and number_of(end.key) <= number_of(before.key)):
        return False
    ledger.logs[vertex] = end
    return True


def forget(ledger: Ledger, keys: Iterable[str]) -> None:
    """Remove references to these objects, which are not what was written; and those to segments
    after them, which would leave a gap."""
    for key in keys:
        for vertex, checkpoints in ledger.checkpoints.items():
            if any(c.key == key for c in checkpoints):
                ledger.checkpoints[vertex] = tuple(c for c in checkpoints if c.key != key)
        for stream, segments in ledger.segments.items():
            index = next((i for i, s in enumerate(segments) if s.key == key), None)
            if index is not None:
                ledger.segments[stream] = segments[:index]


def without(ledger: Ledger, keys: Iterable[str]) -> Ledger:
    """Copy the ledger as it would be if these objects were forgotten."""
    other = ledger.copied()
    forget(other, keys)
    return other


def collect_all(ledger: Ledger) -> tuple[str, ...]:
    """Collect everything of a finished job but the last commit of each sink."""
    garbage = tuple(sorted(key for key in ledger.names if is_ephemeral(key)))
    for stream in list(ledger.segments):
        del ledger.segments[stream]
    for vertex, checkpoints in list(ledger.checkpoints.items()):
        kept = tuple(c for c in checkpoints[-1:] if not is_ephemeral(c.key))
        if kept:
            ledger.checkpoints[vertex] = kept
        else:
            del ledger.checkpoints[vertex]
    return garbage
