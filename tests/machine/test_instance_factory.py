"""Instances of a real program: one that is made from a snapshot goes on as the other would have."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from weir.events.batch import OPEN, START, empty_batch
from weir.ingress.source_machine import Resume
from weir.plan.strategy import NamedStrategy
from weir.reliable.codec import decode_snapshot, encode_snapshot
from weir.reliable.digest import row_hashes
from weir.reliable.log import LogStream
from weir.reliable.object_names import ingress_key
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import CheckpointStrategy
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot
from weir.runtime.instance import Instance, SourceInstance
from weir.runtime.instance_factory import InstanceMaker
from weir.runtime.program_plan import plan_program
from weir.runtime.topology import VertexSpec
from weir.simulator.processes import SimulatedJob
from weir.simulator.simulate import draw_job
from weir.simulator.workloads import Workload, make_workload


def one_partition(name: str) -> Workload:
    made = make_workload(name, 3)
    return Workload(name, made.program, {n: p[:1] for n, p in made.partitions.items()})


class Pair:
    """A source and the vertex that reads it."""

    def __init__(
        self, job: SimulatedJob, source: Snapshot | None = None, inner: Snapshot | None = None
    ) -> None:
        self.specs: tuple[VertexSpec, ...] = tuple(
            v for v in job.topology.order if v.kind != "sink"
        )
        made: list[Instance] = [
            job.make(spec, {}, snapshot)
            for spec, snapshot in zip(self.specs, (source, inner), strict=True)
        ]
        self.source, self.inner = made
        assert isinstance(self.source, SourceInstance)
        for cursor in self.inner.cursors:
            cursor.attach(self.source.streams[cursor.stream])
        self._partition = job.partitions[self.specs[0].id]

    @property
    def out(self) -> LogStream:
        return next(iter(self.inner.streams.values()))

    def drive(self, most: int | None = None) -> None:
        """Read so many chunks, or all that are left."""
        source = self.source
        assert isinstance(source, SourceInstance)
        chunks = [*self._partition.chunks(5, source.next_offset), None]
        for chunk in chunks[:most]:
            source.take_chunk(chunk)
            while source.work() or self.inner.work():
                pass

    def snapshots(self) -> tuple[Snapshot, Snapshot]:
        source, inner = (
            decode_snapshot("s", bytes(encode_snapshot("s", i.snapshot())))
            for i in (self.source, self.inner)
        )
        return source, inner


def written(stream: LogStream, start: int) -> list[tuple[int, ...]]:
    stream.register("test", start)
    found: list[tuple[int, ...]] = []
    while (entry := stream.read_next("test")) is not None:
        found += zip(*(words.tolist() for words in row_hashes(entry.rows)), strict=True)
    return found


@pytest.mark.parametrize("name", ["tumbling", "stitch", "user_operator", "turned_away"])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_instance_goes_on_from_its_snapshot(name: str, after: int) -> None:
    job = draw_job(one_partition(name), 1, np.random.default_rng(0), NamedStrategy())
    first = Pair(job)
    first.drive(after)
    source, inner = first.snapshots()
    second = Pair(job, source, inner)
    for old, new in ((first.source, second.source), (first.inner, second.inner)):
        assert (new.cti, new.state_rows) == (old.cti, old.state_rows)
        assert new.snapshot().inputs == old.snapshot().inputs
        assert new.snapshot().outputs == old.snapshot().outputs
    # A reader at the end learns how far the stream is, without another row.
    second.out.register("claim", second.out.end)
    claim = second.out.read_next("claim")
    assert (claim.cti if claim is not None else START) == first.inner.cti
    first.drive()
    second.drive()
    start = inner.outputs[0]
    rest = written(first.out, start)
    assert rest and written(second.out, start) == rest
    assert second.out.end == first.out.end and second.inner.done
    for stream in first.source.streams:
        assert second.source.streams[stream].end == first.source.streams[stream].end


def test_a_source_that_had_ended_says_so_again() -> None:
    job = draw_job(one_partition("turned_away"), 1, np.random.default_rng(0), NamedStrategy())
    ended = Pair(job)
    ended.drive()
    again = Pair(job, *ended.snapshots())
    spec = again.source.spec
    assert spec.late or spec.bad
    for stream in again.source.streams.values():
        stream.register("claim", stream.end)
        claim = stream.read_next("claim")
        assert claim is not None and claim.cti == OPEN


def test_a_snapshot_says_where_the_source_is_in_its_log() -> None:
    job = draw_job(one_partition("tumbling"), 1, np.random.default_rng(0), NamedStrategy())
    pair = Pair(job)
    source = pair.source
    assert isinstance(source, SourceInstance)
    assert (source.resume, source.log_record) == (None, None)
    (chunk, other, *_) = job.partitions[pair.specs[0].id].chunks(5)
    record = ObjectRef(ingress_key("0.0", 7), 0, 9, 9, "ab")
    resume = msgspec.msgpack.encode(Resume(record, b"only the connector can read it"))
    source.take_chunk(replace(chunk, resume=resume))
    source.work()
    source.take_chunk(other)  # not of the log: it stays where it was
    source.work()
    again = job.make(pair.specs[0], {}, pair.snapshots()[0])
    assert isinstance(again, SourceInstance)
    assert (again.resume, again.log_record) == (resume, record)
    assert again.events == source.events == 10


def waiting_rows(ahead_rows: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """A vertex over two partitions, of which the second is read first: how many rows wait in it
    after each chunk of that one, and all that it writes."""
    workload = make_workload("stitch", 3)
    planned = plan_program(workload.program)
    partitions = workload.partitions["A"][:2]
    specs = planned.topology({"A": partitions}).order
    make = InstanceMaker(
        planned.stages,
        {"A": [p.name for p in partitions]},
        strategies={spec.id: CheckpointStrategy() for spec in specs},
        ahead_rows=ahead_rows,
    )
    *sources, inner = (make(spec, {}, None) for spec in specs if spec.kind != "sink")
    for cursor, source in zip(inner.cursors, sources, strict=True):
        cursor.attach(source.streams[cursor.stream])
    waiting = []
    for source, partition in reversed(list(zip(sources, partitions, strict=True))):
        assert isinstance(source, SourceInstance)
        for chunk in [*partition.chunks(5, 0), None]:
            source.take_chunk(chunk)
            while source.work() or inner.work():
                pass
            if source is sources[1]:
                waiting.append(inner.state_rows)
    assert inner.done
    return waiting, written(next(iter(inner.streams.values())), 0)


@pytest.mark.parametrize("kind", ["checkpoint", "replay"])
@pytest.mark.parametrize("name", ["with_its_own_windows", "several_outputs", "inner_join"])
def test_a_claim_needs_no_columns(name: str, kind: str) -> None:
    job = draw_job(make_workload(name, 3), 2, np.random.default_rng(0), NamedStrategy(kind))
    for spec in job.topology.order:
        if spec.kind == "inner":
            inner = job.make(spec, {}, None)
            assert all(c.arrive(Entry(0, empty_batch(()), 7)) for c in inner.cursors)
            assert inner.work()
            assert inner.cti > START


def test_what_is_ahead_waits_in_its_stream() -> None:
    all_wait, rows = waiting_rows(1000)
    few_wait, same = waiting_rows(10)
    assert same == rows
    assert max(all_wait) > max(few_wait) == 15, "ten, and a step's more"
