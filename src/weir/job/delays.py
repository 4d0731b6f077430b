"""Delays: how long after its sources an output has reached an event time.

Rules
1. A host marks when each of its sources and sinks has reached which event time, by its own clock;
   a report says what that clock shows when it is sent. So clocks of machines need not agree; what
   a report takes to the manager is in the delay.
2. The delay of a sink at an event time is the time from when the last of its sources had reached it
   until the sink had: all rows up to then are there, and not committed yet. Windows that overlap
   are not a delay: when one has ended, which is the earliest moment for its rows, the sink has
   reached the beginning of the next. So the sources' time that counts is later, by what `holds`
   says. What other operators hold back (sessions, say) follows from the data, and counts.
3. The first mark at an event time counts. What is computed again after a loss reaches earlier times
   again: these are not marks. So a recovery shows as the delay of the rows that it held up.
   The end of a source is always marked, and so is where one stands that goes on from a checkpoint:
   an input that has ended is waited for by nobody.
4. Up to its first mark, a source may have come before that mark and no later. A delay counts where
   that makes no difference, since another source came later still.
5. Delays are counted in buckets, `BUCKETS` to a factor of ten, so that counts of any times can be
   added, and any percentile is right to about 12 %.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from weir.events.batch import OPEN, START
from weir.runtime.topology import Topology

EventTimeMark: TypeAlias = tuple[int, float]
"""An event time, and when it was reached."""
MARK_EVERY = 0.002
"""Seconds between two marks of a vertex, at least."""
MOST_MARKS = 1024
"""So many marks of a vertex are reported at most: of two seconds, about."""
BUCKETS = 20
"""See rule 5."""
_LEAST, _LONGEST = 1e-4, 1e6
"""Seconds: shorter and longer delays count as these."""
_KEPT = 8192
"""So many marks of a source, and of a sink that waits for marks of sources, are kept."""


class ReachedMarks:
    """Notes when one instance has reached which event time."""

    def __init__(self) -> None:
        self.recent: deque[EventTimeMark] = deque(maxlen=MOST_MARKS)
        self._heard = -math.inf
        """Marks up to this moment were heard of."""

    @property
    def unheard(self) -> tuple[EventTimeMark, ...]:
        """The marks that were not heard of yet."""
        return tuple(mark for mark in self.recent if mark[1] > self._heard)

    def hear(self, at: float) -> None:
        """Take in that all marks up to this moment were heard of."""
        self._heard = at

    def note(self, cti: int, now: float) -> None:
        """Take in that an event time is reached."""
        if cti == START:
            return
        if self.recent:
            last, since = self.recent[-1][0], now - self.recent[-1][1]
            if cti <= last or (cti != OPEN and since < MARK_EVERY):
                return
        self.recent.append((cti, now))


class Delays:
    """Counts the delays of all sinks, by the module's rules."""

    def __init__(self, topology: Topology, holds: Mapping[int, int]) -> None:
        """`holds` has, for stages whose windows overlap, how many ticks what they have written all
        rows of is behind what they have read (`plan.holds.overlaps`)."""
        above: dict[str, frozenset[str]] = {}
        """The sources that each vertex reads, through others too."""
        held: dict[str, int] = {}
        """How many ticks each vertex is behind its sources, on the longest way from them."""
        for spec in topology.order:
            read = {topology.writer_of(stream).id for stream in spec.inputs}
            own = {spec.id} if spec.kind == "source" else set[str]()
            above[spec.id] = frozenset(own.union(*(above.get(v, frozenset()) for v in read)))
            before = max((held.get(v, 0) for v in read), default=0)
            held[spec.id] = before + (0 if spec.kind == "sink" else holds.get(spec.stage, 0))
        self._held = held
        self._sources_of = {sink.id: sorted(above[sink.id]) for sink in topology.sinks}
        self._reached: dict[str, tuple[list[int], list[float]]] = {
            source.id: ([], []) for source in topology.sources
        }
        """The marks of each source: event times, and when they were reached first."""
        self._waiting: dict[str, deque[EventTimeMark]] = {
            sink.id: deque(maxlen=_KEPT) for sink in topology.sinks
        }
        """The marks of each sink that wait for those of its sources."""
        self._last = dict.fromkeys(self._waiting, START)
        """The event time of the last mark of each sink."""
        self.counts: dict[str, dict[int, int]] = {sink: {} for sink in self._waiting}
        """How many delays of each sink fell into which bucket so far."""

    def take(self, vertex: str, marks: Iterable[EventTimeMark], shift: float) -> None:
        """Take in the marks of a source or a sink; `shift` makes their times the manager's."""
        if vertex in self._reached:
            times, moments = self._reached[vertex]
            for cti, at in marks:
                if not times or cti > times[-1]:
                    times.append(cti)
                    moments.append(at + shift)
            if len(times) > 2 * _KEPT:
                del times[:_KEPT], moments[:_KEPT]
            for sink, sources in self._sources_of.items():
                if vertex in sources:
                    self._measure(sink)
        elif vertex in self._waiting:
            for cti, at in marks:
                if cti > self._last[vertex]:
                    self._last[vertex] = cti
                    self._waiting[vertex].append((cti, at + shift))
            self._measure(vertex)

    def _measure(self, sink: str) -> None:
        """Count the delays of all marks of a sink for which those of its sources are there."""
        waiting, counts = self._waiting[sink], self.counts[sink]
        while waiting:
            cti, at = waiting[0]
            until = min(cti + self._held[sink], OPEN)
            places = {s: bisect_left(self._reached[s][0], until) for s in self._sources_of[sink]}
            if any(place == len(self._reached[s][0]) for s, place in places.items()):
                return  # a source has reached it too, and will say so
            waiting.popleft()
            moments = {s: self._reached[s][1][place] for s, place in places.items()}
            last_source = max((moments[s] for s, place in places.items() if place), default=None)
            # The others may have come earlier than their first mark; see rule 4.
            if last_source is not None and last_source >= max(moments.values()):
                bucket = bucket_of(at - last_source)
                counts[bucket] = counts.get(bucket, 0) + 1


# --- buckets ---------------------------------------------------------------------------------


def bucket_of(seconds: float) -> int:
    """Number the bucket that a delay falls into.

    >>> [bucket_of(s) for s in (0.0, 0.0001, 0.001, 0.0011, 1.0)]
    [0, 0, 20, 21, 80]
    """
    return math.ceil(round(BUCKETS * math.log10(min(max(seconds, _LEAST), _LONGEST) / _LEAST), 6))


LAST_BUCKET = bucket_of(_LONGEST)


def bucket_end(bucket: int) -> float:
    """Return the longest delay, in seconds, that falls into a bucket.

    >>> bucket_end(20), bucket_end(80)
    (0.001, 1.0)
    """
    return round(_LEAST * 10 ** (bucket / BUCKETS), 6)


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the delay that this share of all counted ones does not exceed; None of none.

    >>> percentile({20: 98, 80: 2}, 0.5), percentile({20: 98, 80: 2}, 0.99), percentile({}, 0.5)
    (0.001, 1.0, None)
    """
    threshold = share * sum(counts.values())
    so_far = 0
    for bucket in sorted(counts):
        so_far += counts[bucket]
        if so_far >= threshold:
            return bucket_end(bucket)
    return None


def added(counts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Add counts of delays."""
    total: dict[int, int] = {}
    for some in counts:
        for bucket, count in some.items():
            total[bucket] = total.get(bucket, 0) + count
    return total
