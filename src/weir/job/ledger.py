"""What is durable of a job, from where each vertex would restart, and what nobody needs.

Rules (StreamScope §4.3)
1. A row can be had without its vertex when it is in a segment, or below what any reader of the
   stream can ever ask for. Which checkpoint is *usable* with that, the vertex's strategy says.
2. A vertex restarts from its newest usable checkpoint, else from the beginning. What it then reads
   again is what its readers' restarts ask for: sinks first, then upwards (low-water marks).
3. The log of a source is needed from the record on that its restart says.
4. Checkpoints before a vertex's restart, segments before all readers' restarts, and
   records of logs that are not needed, are garbage.
   They are deleted when a record without them is durable, and hosts forget rows no earlier. When
   the job is finished all of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy

import msgspec

from weir.errors import SnapshotCorrupt
from weir.job.messages import Checkpoint
from weir.job.poison import Suspect
from weir.reliable.codec import decode_record, encode_record
from weir.reliable.keys import ingress_key, ingress_log, is_ephemeral, number_of, record_key
from weir.reliable.log import Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology

UNREAD = 2**62
"""The low-water mark of a stream that nobody reads."""


class Ledger(msgspec.Struct):
    """What is durable of a job, as the manager's records keep it."""

    epoch: int = 0
    manager: str = ""
    """Which manager wrote it: two that begin from one record must not write the same next one."""
    number: int = -1
    checkpoints: dict[str, tuple[Checkpoint, ...]] = {}
    segments: dict[str, tuple[Segment, ...]] = {}
    collected: dict[str, int] = {}
    incarnations: int = 0
    finished: bool = False
    snapshots: dict[str, int] = {}
    """How many of each vertex were stored so far."""
    recoveries: dict[str, int] = {}
    """How often each vertex was placed anew so far."""
    token: str = ""
    """The job's; see `JobRecord.token`."""
    logs: dict[str, ObjectRef] = {}
    """Of each source with a log, the last record that anybody has told of."""
    code: dict[str, str] | None = None
    """The fingerprints of the user's code that it runs with; see `JobRecord.code`."""
    strategies: dict[str, str] = {}
    """How the vertices of each stage are recovered, as a program would say it; for comparison."""
    suspects: dict[str, tuple[Suspect, ...]] = {}
    """Deaths in steps of each vertex that it was not cleared of; see `poison.py`."""

    def encode(self) -> bytes:
        return encode_record(record_key(self.number), self)

    @property
    def names(self) -> frozenset[str]:
        """The objects that it relies on."""
        checkpoints = {c.key for found in self.checkpoints.values() for c in found}
        return frozenset(checkpoints | {s.key for found in self.segments.values() for s in found})


_decoder = msgspec.json.Decoder(Ledger)


def decode_ledger(key: str, body: bytes) -> Ledger:
    found = decode_record(key, body, _decoder)
    if found.number != number_of(key):
        raise SnapshotCorrupt(f"{key} says that it is record {found.number}")
    return found


class Restarts(msgspec.Struct, frozen=True):
    """Rule 2: where each vertex would restart, and what each stream must keep from."""

    checkpoint: Mapping[str, Checkpoint | None]
    needed: Mapping[str, int]


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
    """How far the segments reach without a gap from a row on.

    >>> a, b = ObjectRef("a"), ObjectRef("b")
    >>> durable_from([Segment(a, 0, 5, 0, ""), Segment(b, 5, 9, 0, "")], 3)
    9
    """
    for segment in segments:
        if segment.first <= start < segment.end:
            start = segment.end
    return start


def learn_checkpoints(ledger: Ledger, vertex: str, made: Iterable[Checkpoint]) -> bool:
    """Checkpoints that an instance reports; whether any was ahead of those known."""
    known = ledger.checkpoints.get(vertex, ())
    grown = list(known)
    for checkpoint in made:
        if not grown or _is_ahead(checkpoint, grown[-1]):
            grown.append(checkpoint)
    if len(grown) == len(known):
        return False
    ledger.checkpoints[vertex] = tuple(grown)
    ledger.snapshots[vertex] = ledger.snapshots.get(vertex, 0) + len(grown) - len(known)
    return True


def _is_ahead(later: Checkpoint, earlier: Checkpoint) -> bool:
    """Positions only move forward, whoever took the checkpoint. Of two at the same positions
    (claims came, and no rows) the later replaces the earlier, which is then garbage."""
    mine, before = ((*c.inputs, *c.outputs, *c.needs, c.log) for c in (later, earlier))
    if mine == before:
        return (later.incarnation, later.number) > (earlier.incarnation, earlier.number)
    return all(a >= b for a, b in zip(mine, before, strict=True))


def learn_segments(ledger: Ledger, stream: str, found: Sequence[Segment]) -> bool:
    """Segments that an instance reports; whether any was new."""
    known = ledger.segments.get(stream, ())
    end = known[-1].end if known else ledger.collected.get(stream, 0)
    grown = list(known)
    for segment in found:
        if segment.first <= end < segment.end:
            grown.append(segment)
            end = segment.end
    if len(grown) == len(known):
        return False
    ledger.segments[stream] = tuple(grown)
    return True


def learn_log(ledger: Ledger, vertex: str, end: ObjectRef | None) -> bool:
    """The last record of its log that a source knows of; whether it is ahead of the one known."""
    known = ledger.logs.get(vertex)
    if end is None or (known is not None and number_of(end.key) <= number_of(known.key)):
        return False
    ledger.logs[vertex] = end
    return True


def forget(ledger: Ledger, keys: Iterable[str]) -> None:
    """These objects are not what was written: nothing may rely on them, nor on segments behind
    them, which no longer touch."""
    for key in keys:
        for vertex, checkpoints in ledger.checkpoints.items():
            ledger.checkpoints[vertex] = tuple(c for c in checkpoints if c.key != key)
        for stream, segments in ledger.segments.items():
            index = next((i for i, s in enumerate(segments) if s.key == key), None)
            if index is not None:
                ledger.segments[stream] = segments[:index]


def without(ledger: Ledger, keys: Iterable[str]) -> Ledger:
    """The ledger as it would be if these objects were forgotten."""
    other = copy(ledger)
    other.checkpoints, other.segments = dict(other.checkpoints), dict(other.segments)
    forget(other, keys)
    return other


def collect(
    topology: Topology, strategies: Mapping[str, Strategy], ledger: Ledger
) -> tuple[str, ...]:
    """Take what nobody needs out of the ledger; the objects to delete once that is durable."""
    if ledger.finished:
        return _collect_all(ledger)
    found = restarts(topology, strategies, ledger)
    garbage: list[str] = []
    for vertex, checkpoints in ledger.checkpoints.items():
        usable = found.checkpoint[vertex]
        start = checkpoints.index(usable) if usable is not None else 0
        garbage += [c.key for c in checkpoints[:start] if is_ephemeral(c.key)]
        ledger.checkpoints[vertex] = checkpoints[start:]
    for stream, segments in ledger.segments.items():
        needed = found.needed.get(stream, UNREAD)
        garbage += [s.key for s in segments if s.end <= needed]
        ledger.segments[stream] = tuple(s for s in segments if s.end > needed)
    for stream, needed in found.needed.items():
        ledger.collected[stream] = max(ledger.collected.get(stream, 0), needed)
    return (*garbage, *_collect_logs(found, ledger))


def _collect_logs(found: Restarts, ledger: Ledger) -> Iterator[str]:
    """Records of logs that no restart needs, in the order in which they must be deleted."""
    for vertex, usable in found.checkpoint.items():
        log = ingress_log(vertex)
        first, needed = ledger.collected.get(log, 0), 0 if usable is None else usable.log
        if needed > first:
            ledger.collected[log] = needed
            yield from (ingress_key(vertex, number) for number in range(first, needed))


def _collect_all(ledger: Ledger) -> tuple[str, ...]:
    """The job is finished: only the last commits of its sinks are left to name."""
    garbage = tuple(sorted(key for key in ledger.names if is_ephemeral(key)))
    ledger.segments = {}
    ledger.checkpoints = {
        vertex: kept
        for vertex, found in ledger.checkpoints.items()
        if (kept := tuple(c for c in found[-1:] if not is_ephemeral(c.key)))
    }
    return garbage
