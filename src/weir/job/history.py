"""The history of a job's figures, for onlookers: rates, state, unread rows and delays over time.

Rules
1. A sample is taken of every status that is written. Samples are merged until they span `every`
   seconds; when there are `MOST`, each two become one, and `every` doubles. So the history of a job
   of any length has a bounded size, and its past is coarser the longer the job has run.
2. Rates are of the rows read since the sample before. Of samples that are merged, rates are means,
   delays are counted together, and of rows that wait or are kept the largest number counts.
3. A driver that goes on with a job goes on with its history; the time between is a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from weir.errors import SnapshotCorrupt
from weir.job.delays import LAST_BUCKET, added
from weir.job.plan_drawing import DrawnPlan
from weir.job.status import JobStatus, VertexStatus
from weir.reliable.codec import decode_record
from weir.reliable.object_names import HISTORY
from weir.reliable.store import Store

MOST = 240
"""So many samples are kept at most."""
EVERY = 1.0
"""Seconds that the first samples span."""


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


class HistoryKeeper:
    """Keeps the history of a job, by the module's rules."""

    def __init__(self, plan: DrawnPlan, earlier: History | None = None) -> None:
        self._plan = plan
        self._stage_of = {v.id: v.stage for v in plan.vertices if v.kind != "sink"}
        self._output_of = {v.id: v.stage for v in plan.vertices if v.kind == "sink"}
        lengths = (len(plan.stages), len(plan.outputs))
        fits = earlier is not None and all(_lengths(s) == lengths for s in earlier.samples)
        begun = earlier if earlier is not None and fits else History()
        self._every, self._samples = begun.every, list(begun.samples)
        self._open: list[Sample] = []
        """Samples that together do not span `every` seconds yet."""
        self._last: float | None = None
        """The time of the last sample."""
        self._counted: dict[str, Mapping[int, int]] = {}
        """The delays of each sink that samples have."""
        self._events: dict[tuple[str, int], int] = {}
        """How many rows each instance had read at the last sample, by vertex and place."""

    def take(self, status: JobStatus) -> None:
        """Take a sample of a status."""
        now = status.time
        seconds = EVERY if self._last is None else now - self._last
        self._last = now
        if seconds <= 0:
            return  # the clock was set back
        self._open.append(self._sample(status, seconds))
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

    def _sample(self, status: JobStatus, seconds: float) -> Sample:
        stages, outputs = len(self._plan.stages), len(self._plan.outputs)
        rates, state, waiting = [0.0] * stages, [0] * stages, [0] * stages
        written = [0.0] * outputs
        counted: list[dict[int, int]] = [{} for _ in range(outputs)]
        unread = unread_rows(self._plan, status.vertices)
        events = 0.0
        for number, v in enumerate(status.vertices):
            if (stage := self._stage_of.get(v.id)) is not None:
                rate = self._new_events(v, number, status.epoch) / seconds
                rates[stage] += rate
                state[stage] += v.state_rows
                waiting[stage] += unread.get(v.id, 0)
                events += rate if v.kind == "source" else 0.0
            elif (output := self._output_of.get(v.id)) is not None:
                written[output] += self._new_events(v, number, status.epoch) / seconds
                counted[output] = self._new_delays(v)
        return Sample(
            time=round(status.time, 3),
            seconds=round(seconds, 3),
            events=round(events, 1),
            hosts=len(status.hosts),
            rates=tuple(round(r, 1) for r in rates),
            unread=tuple(waiting),
            state=tuple(state),
            written=tuple(round(r, 1) for r in written),
            delays=tuple(counted),
        )

    def _new_events(self, v: VertexStatus, number: int, epoch: int) -> int:
        """Count the rows that an instance has read since the last sample. One that was placed again
        counts from 0; a source goes on from its checkpoint, and reads rows again. Where that
        is it says when it has loaded it; under the first driver it is the beginning."""
        if v.kind == "source" and not v.is_told:
            if epoch == 1:
                self._events.setdefault((v.id, number), 0)
            return 0
        before = self._events.get((v.id, number))
        self._events[v.id, number] = v.events
        if before is None:
            return 0
        return v.events - before if v.events >= before else 0 if v.kind == "source" else v.events

    def _new_delays(self, sink: VertexStatus) -> dict[int, int]:
        """Count the delays since the last sample: a status counts all of them."""
        before, self._counted[sink.id] = self._counted.get(sink.id, {}), sink.delays
        counts = {b: n - before.get(b, 0) for b, n in sink.delays.items()}
        return {b: n for b, n in counts.items() if n > 0}


def unread_rows(plan: DrawnPlan, vertices: Sequence[VertexStatus]) -> dict[str, int]:
    """Count the rows that were written for each vertex and that it has not read yet: of a stream of
    which it reads a part, its share of them."""
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
        streams = enumerate(zip(spec.inputs, v.inputs, strict=False))
        count = sum(
            round(max(0, ends.get(s, at) - at) * spec.share(input)) for input, (s, at) in streams
        )
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
        time=last.time,
        seconds=round(seconds, 3),
        events=mean([s.events for s in samples]),
        hosts=last.hosts,
        rates=tuple(mean(rates) for rates in each("rates")),
        unread=tuple(int(max(rows)) for rows in each("unread")),
        state=tuple(int(max(rows)) for rows in each("state")),
        written=tuple(mean(rates) for rates in each("written")),
        delays=tuple(added(c) for c in zip(*(s.delays for s in samples), strict=True)),
    )


def _lengths(sample: Sample) -> tuple[int, int] | None:
    """Say for how many stages and outputs a sample has figures; None if its parts differ."""
    stages = {len(sample.rates), len(sample.unread), len(sample.state)}
    outputs = {len(sample.written), len(sample.delays)}
    return (stages.pop(), outputs.pop()) if len(stages) == len(outputs) == 1 else None


def all_delays(history: History) -> list[dict[int, int]]:
    """Count the delays of each output over all of a history."""
    return [added(c) for c in zip(*(s.delays for s in history.samples), strict=True)]


_decoder = msgspec.json.Decoder(History)


def read_history(store: Store) -> History | None:
    """Read the history of a store's job; None where none is kept. Its samples are of one plan, and
    can be merged."""
    body = store.get(HISTORY)
    if body is None:
        return None
    history = decode_record(HISTORY, body, _decoder)
    lengths = {_lengths(s) for s in history.samples}
    buckets = {b for s in history.samples for counts in s.delays for b in counts}
    if (
        None in lengths
        or len(lengths) > 1
        or not all(s.seconds > 0 for s in history.samples)
        or not all(0 <= b <= LAST_BUCKET for b in buckets)
        or history.every <= 0
    ):
        raise SnapshotCorrupt(f"{HISTORY} does not hold what it should: its samples differ")
    return history
