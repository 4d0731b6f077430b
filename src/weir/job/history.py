"""The history of a job's figures, for onlookers: rates, state, unread rows and delays over time.

Rules
1. A sample is taken of every status that is written. Samples are merged until they span `every`
   seconds; when there are `MOST`, each two become one, and `every` doubles. So the history of a job
   of any length has a bounded size, and its past is coarser the longer the job has run.
2. Rates of merged samples are means over their time, delays are counted together, and of rows that
   wait or are kept the largest number counts.
3. Delays are counted in buckets, `BUCKETS` to a factor of ten, so that they can be merged and any
   percentile is right to about 12 %.
4. A driver that goes on with a job goes on with its history; the time between is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from weir.job.drawn_plan import DrawnPlan
from weir.job.status import JobStatus, VertexStatus
from weir.reliable.codec import decode_record
from weir.reliable.keys import HISTORY
from weir.reliable.store import Store

MOST = 240
"""So many samples are kept at most."""
EVERY = 1.0
"""Seconds that the first samples span."""
BUCKETS = 20
"""See rule 3."""
_LEAST, _LONGEST = 1e-4, 1e6
"""Seconds: shorter and longer delays count as these."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """What was so in the `seconds` before a `time` (since 1970). `rates` (events a second),
    `unread` (rows before a stage) and `state` (rows) have a number for each stage, `written` (rows
    a second) and `delays` (counts by bucket) one for each output."""

    time: float
    seconds: float
    events: float
    hosts: int
    rates: tuple[float, ...]
    unread: tuple[int, ...]
    state: tuple[int, ...]
    written: tuple[float, ...]
    delays: tuple[dict[int, int], ...]


class History(msgspec.Struct, frozen=True):
    """The samples of a job, in order, each of about `every` seconds."""

    every: float = EVERY
    samples: tuple[Sample, ...] = ()


def bucket_of(seconds: float) -> int:
    """Number the bucket that a delay falls into.

    >>> [bucket_of(s) for s in (0.0, 0.0001, 0.001, 0.0011, 1.0)]
    [0, 0, 20, 21, 80]
    """
    return math.ceil(round(BUCKETS * math.log10(min(max(seconds, _LEAST), _LONGEST) / _LEAST), 6))


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
    wanted = share * sum(counts.values())
    so_far = 0
    for bucket in sorted(counts):
        so_far += counts[bucket]
        if so_far >= wanted:
            return bucket_end(bucket)
    return None


def counted_delays(delays: Iterable[float]) -> dict[int, int]:
    """Count delays, in seconds, by bucket."""
    counts: dict[int, int] = {}
    for seconds in delays:
        bucket = bucket_of(seconds)
        counts[bucket] = counts.get(bucket, 0) + 1
    return counts


class HistoryKeeper:
    """Keeps the history of a job, by the module's rules."""

    def __init__(self, plan: DrawnPlan, known: History | None = None) -> None:
        self._plan = plan
        self._stage_of = {v.id: v.stage for v in plan.vertices if v.kind != "sink"}
        self._output_of = {v.id: v.stage for v in plan.vertices if v.kind == "sink"}
        fits = known is not None and all(
            (len(s.rates), len(s.delays)) == (len(plan.stages), len(plan.outputs))
            for s in known.samples
        )
        begun = known if known is not None and fits else History()
        self._every, self._samples = begun.every, list(begun.samples)
        self._open: list[Sample] = []
        """Samples that together do not span `every` seconds yet."""
        self._last: float | None = None
        """The time of the last sample."""

    def take(self, status: JobStatus, delays: Mapping[str, Mapping[int, int]]) -> None:
        """Take a sample of a status; `delays` has those of each sink since the last one."""
        now = status.time
        seconds = EVERY if self._last is None else now - self._last
        self._last = now
        if seconds <= 0:
            return  # the clock was set back
        self._open.append(self._sample(status, delays, seconds))
        if sum(s.seconds for s in self._open) < self._every - EVERY / 2:
            return
        self._samples.append(merged(self._open))
        self._open = []
        if len(self._samples) >= MOST:
            pairs = (self._samples[i : i + 2] for i in range(0, len(self._samples), 2))
            self._samples = [merged(pair) for pair in pairs]
            self._every *= 2

    @property
    def history(self) -> History:
        left = (merged(self._open),) if self._open else ()
        return History(self._every, (*self._samples, *left))

    def _sample(
        self, status: JobStatus, delays: Mapping[str, Mapping[int, int]], seconds: float
    ) -> Sample:
        stages, outputs = len(self._plan.stages), len(self._plan.outputs)
        rates, state, waiting = [0.0] * stages, [0] * stages, [0] * stages
        written = [0.0] * outputs
        counted: list[dict[int, int]] = [{} for _ in range(outputs)]
        unread = unread_rows(self._plan, status.vertices)
        events = 0.0
        for v in status.vertices:
            if (stage := self._stage_of.get(v.id)) is not None:
                rates[stage] += v.events_per_second
                state[stage] += v.state_rows
                waiting[stage] += unread.get(v.id, 0)
                events += v.events_per_second if v.kind == "source" else 0.0
            elif (output := self._output_of.get(v.id)) is not None:
                written[output] += v.events_per_second
        for sink, found in delays.items():
            if (output := self._output_of.get(sink)) is not None:
                counted[output] = dict(found)
        return Sample(
            round(status.time, 3), round(seconds, 3), round(events, 1), len(status.hosts),
            tuple(round(r, 1) for r in rates), tuple(waiting), tuple(state),
            tuple(round(r, 1) for r in written), tuple(counted),
        )  # fmt: skip


def unread_rows(plan: DrawnPlan, vertices: Sequence[VertexStatus]) -> dict[str, int]:
    """Count the rows that were written for each vertex and that it has not read yet."""
    specs = {v.id: v for v in plan.vertices}
    ends: dict[str, int] = {}
    for v in vertices:
        spec = specs.get(v.id)
        if spec is not None:
            for stream, end in zip(spec.outputs, v.outputs, strict=False):
                ends[stream] = max(ends.get(stream, 0), end)
    unread: dict[str, int] = {}
    for v in vertices:
        spec = specs.get(v.id)
        if spec is None or v.kind == "source":
            continue
        streams = zip(spec.inputs, v.inputs, strict=False)
        count = sum(max(0, ends.get(s, at) - at) for s, at in streams)
        unread[v.id] = min(unread.get(v.id, count), count)  # of copies, the one that is ahead
    return unread


def merged(samples: Sequence[Sample]) -> Sample:
    """Merge samples that follow one another; see rule 2."""
    if len(samples) == 1:
        return samples[0]
    last, seconds = samples[-1], sum(s.seconds for s in samples)

    def mean(values: Sequence[float]) -> float:
        weighed = (v * s.seconds for v, s in zip(values, samples, strict=True))
        return round(sum(weighed) / seconds, 1)

    def each(name: str) -> Iterable[tuple[float, ...]]:
        return zip(*(getattr(s, name) for s in samples), strict=True)

    return Sample(
        last.time, round(seconds, 3), mean([s.events for s in samples]), last.hosts,
        tuple(mean(rates) for rates in each("rates")),
        tuple(int(max(rows)) for rows in each("unread")),
        tuple(int(max(rows)) for rows in each("state")),
        tuple(mean(rates) for rates in each("written")),
        tuple(_together(c) for c in zip(*(s.delays for s in samples), strict=True)),
    )  # fmt: skip


def _together(counts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for some in counts:
        for bucket, count in some.items():
            total[bucket] = total.get(bucket, 0) + count
    return total


def all_delays(history: History) -> list[dict[int, int]]:
    """Count the delays of each output over all of a history."""
    return [_together(c) for c in zip(*(s.delays for s in history.samples), strict=True)]


_decoder = msgspec.json.Decoder(History)


def read_history(store: Store) -> History | None:
    """Read the history of a store's job; None where none is kept."""
    body = store.get(HISTORY)
    return None if body is None else decode_record(HISTORY, body, _decoder)
