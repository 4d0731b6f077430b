"""What the control plane of a live job costs: the manager and the hosts' reports, by size.

    python benchmarks/control.py [--sizes 10x10x10 10x32x32 48x67x200] [--rounds 2] [--seconds 3]

A size is stages × vertices in each × hosts; every stage reads the one before it by a hash. The
machines are those of a live job (`job/manager.py`, `job/host.py`), with their messages and records
encoded and decoded as they are there; only time, the network and the store are made up, and
vertices that read a row of each input and write a row to each output take the place of kernels. In
steady flow every stream gets rows all the time, is flushed every 0.5 s, and every vertex is
checkpointed every 10 s. After `--seconds` of that, rounds are measured: each host reports once, and
gets its orders. A live host does so every 0.05 s.

Printed for each size, for one round: the manager's processor time, a host's, the bytes of reports
and of orders; then the last record, the processor time until one lost host's vertices are placed
and ordered elsewhere, that of a new manager from the record to its first orders, and what this
process holds at most.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa

from weir.events.batch import START, Batch
from weir.job.host import Host
from weir.job.ledger import Ledger, decode_ledger
from weir.job.manager import Manager
from weir.job.messages import Report, decode_orders, decode_report
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.signals import (
    Answer,
    HostCommand,
    ManagerCommand,
    OrdersArrived,
    Put,
    Reported,
    Stored,
)
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import CheckpointStrategy
from weir.reliable.stream import Entry
from weir.reliable.vertex import See, Snapshot
from weir.reliable.views import Layout, layout_of, view_of_part
from weir.runtime.instance import Instance, SinkInstance, make_cursors
from weir.runtime.topology import OutletSpec, Topology, VertexSpec, stream_name, vertex_name, wire

STEP = 0.25
"""Seconds of the made-up clock between two steps of a vertex."""
CHECKPOINTS = 10.0
SIZE = 1000
"""Bytes that an object is said to have."""


def job_of(stages: int, vertices: int) -> Topology:
    """Wire a job in which every vertex of a stage reads all vertices of the one before it."""
    specs = []
    split = layout_of([((0,), vertices)])
    for stage in range(stages):
        last = stage == stages - 1
        for index in range(vertices):
            name = vertex_name(stage, index)
            before = [vertex_name(stage - 1, w) for w in range(vertices)] if stage else []
            inputs = tuple(stream_name(writer) for writer in before)
            specs.append(
                VertexSpec(
                    id=name,
                    kind="inner",
                    stage=stage,
                    index=index,
                    inputs=inputs,
                    ports=(0,) * len(inputs),
                    outlets=(OutletSpec(stream_name(name), Layout() if last else split),),
                    views=(view_of_part((0,), index, vertices),) * len(inputs),
                )
            )
    ends = tuple(stream_name(vertex_name(stages - 1, v)) for v in range(vertices))
    sink = VertexSpec(
        id=vertex_name("sink", 0),
        kind="sink",
        stage=0,
        index=0,
        inputs=ends,
        ports=(0,) * len(ends),
    )
    return wire([*specs, sink])


def row(seq: int) -> Batch:
    return Batch(np.array([seq]), np.array([seq + 1]), (pa.array([seq]),))


class Steady:
    """An instance that reads one row of each input and writes one to each output in a step."""

    def __init__(
        self, spec: VertexSpec, segments: Mapping[str, Sequence[Segment]], start: Snapshot | None
    ) -> None:
        self.spec, self.cti, self.events, self.state_rows = spec, START, 0, 1000
        self.done, self.caught_up = False, True
        self.cursors: tuple[Cursor, ...] = make_cursors(spec)
        starts = (0,) * len(spec.outputs) if start is None else start.outputs
        self.streams = {
            name: LogStream(name, segments.get(name, ()), at, spec.layout(name))
            for name, at in zip(spec.outputs, starts, strict=True)
        }
        self.steps = 0
        """How many steps it may still take."""

    @property
    def marker(self) -> tuple[int, ...]:
        return (self.events, *(cursor.position for cursor in self.cursors))

    def watch(self, see: See, pieces: int) -> None:
        """Nobody looks at made-up rows."""

    def work(self) -> bool:
        if not self.steps:
            return False
        self.steps -= 1
        self.events += 1
        self.cti = self.events
        for cursor in self.cursors:
            if cursor.near is None:
                cursor.arrive(Entry(cursor.wanted, row(self.events), self.cti))
            cursor.read_next(cursor.reader)
        for stream in self.streams.values():
            stream.write(Entry(stream.end, row(self.events), self.cti))
        return True

    def snapshot(self) -> Snapshot:
        ends = tuple(stream.end for stream in self.streams.values())
        return Snapshot(tuple(cursor.position for cursor in self.cursors), ends, {})

    def load(self, snapshot: Snapshot) -> None:
        for cursor, seq in zip(self.cursors, snapshot.inputs, strict=True):
            cursor.register(cursor.reader, seq)


def make(
    spec: VertexSpec, segments: Mapping[str, Sequence[Segment]], start: Snapshot | None
) -> Instance:
    if spec.kind == "sink":
        return SinkInstance(spec, lambda partition, first, rows: None)
    return Steady(spec, segments, start)


@dataclass
class Costs:
    """`Costs` are processor seconds and bytes of one round of messages."""

    manager: float = 0.0
    host: float = 0.0
    reports: int = 0
    orders: int = 0


@dataclass
class Job:
    """The machines of a job, over a store that does at once what it is asked."""

    topology: Topology
    hosts: int
    ledger: Ledger = field(default_factory=Ledger)
    now: float = 0.0
    record: bytes = b""
    """The last record."""

    def __post_init__(self) -> None:
        settings = ManagerSettings(hosts=self.hosts, patience=0.0)
        self.strategies = {v.id: CheckpointStrategy(CHECKPOINTS) for v in self.topology.order}
        self.manager = Manager(
            self.topology, self.strategies, self.ledger, settings, self.now, name=f"{self.now}"
        )
        self.machines = [
            Host(f"h{slot}", self.topology, self.strategies, make, HostSettings())
            for slot in range(self.hosts)
        ]
        self._kept(self.manager.tick(self.now))

    # --- the store ---------------------------------------------------------------------------

    def _kept(self, commands: Sequence[ManagerCommand]) -> list[Answer]:
        """Store what the manager asks for; return its answers to hosts."""
        answers = [command for command in commands if isinstance(command, Answer)]
        for command in commands:
            if isinstance(command, Put):
                body = bytes(command.encode())
                if command.new:
                    self.record = body
                ref = ObjectRef.of(command.key, body)
                answers += self._kept(self.manager.handle(Stored(ref), self.now))
        return answers

    def _stored(self, host: Host, commands: Sequence[HostCommand]) -> None:
        for command in commands:
            if isinstance(command, Put):
                ref = ObjectRef(command.key, 0, SIZE, SIZE, "0" * 32)
                self._stored(host, host.handle(Stored(ref), self.now))

    # --- messages ----------------------------------------------------------------------------

    def round(self) -> Costs:
        """Let each host report once, and obey what it is answered."""
        costs = Costs()
        for slot, host in enumerate(self.machines):
            began = time.process_time()
            report = host.report(f"address-of-{slot}", slot, slot, f"machine-{slot}")
            sent = msgspec.msgpack.encode(report)
            reported = time.process_time()
            answers = self.hear(decode_report(sent))
            bodies = [msgspec.msgpack.encode(answer.orders) for answer in answers]
            answered = time.process_time()
            for body in bodies:
                self._stored(host, host.handle(OrdersArrived(decode_orders(body)), self.now))
            costs.host += reported - began + time.process_time() - answered
            costs.manager += answered - reported
            costs.reports += len(sent)
            costs.orders += sum(map(len, bodies))
        began = time.process_time()
        self._kept(self.manager.tick(self.now))
        costs.manager += time.process_time() - began
        return costs

    def hear(self, report: Report) -> list[Answer]:
        return self._kept(self.manager.handle(Reported(report), self.now))

    def flow(self, seconds: float) -> None:
        """Let rows flow for so long, by the made-up clock; hosts report once a step."""
        end = self.now + seconds
        while self.now < end:
            self.now += STEP
            for host in self.machines:
                for running in host.running.values():
                    if isinstance(running.instance, Steady):
                        running.instance.steps = 1
                for _ in range(2):
                    _, commands = host.work(self.now)
                    self._stored(host, commands)
            self.round()


def lost(job: Job) -> float:
    """Lose a host; return the processor seconds until the others have orders for its vertices."""
    gone = job.machines.pop()
    began = time.process_time()
    job.manager.lose(gone.session, job.now, "it is switched off")
    spent = time.process_time() - began
    for _ in range(2):  # the record may be due first
        spent += job.round().manager
    assert not any(p.session is None for p in job.manager.placements)
    return spent


def resumed(job: Job) -> float:
    """Return the processor seconds of a new manager, from the record to its first orders."""
    reports = [host.report(f"a{n}", n, n, f"m{n}") for n, host in enumerate(job.machines)]
    began = time.process_time()
    ledger = decode_ledger(f"records/{job.ledger.number:012}", job.record)
    next_job = Job(job.topology, job.hosts, ledger, job.now + 1)
    answers: list[Answer] = []
    for report in reports:
        answers += next_job.hear(report)
    return time.process_time() - began


def measure(stages: int, vertices: int, hosts: int, seconds: float, rounds: int) -> Iterator[str]:
    topology = job_of(stages, vertices)
    yield f"{stages} x {vertices} on {hosts}, {len(topology.streams):,} streams"
    job = Job(topology, hosts)
    job.round()
    job.flow(seconds)
    costs = [job.round() for _ in range(rounds)]
    best = min(costs, key=lambda c: c.manager)
    yield f"  manager, a round      {best.manager:10.4f} s CPU"
    yield f"  a host, a round       {best.host / hosts * 1e3:10.3f} ms CPU"
    yield f"  reports, a round      {best.reports / 1e6:10.3f} MB"
    yield f"  orders, a round       {best.orders / 1e6:10.3f} MB"
    yield f"  the last record       {len(job.record) / 1e6:10.3f} MB"
    yield f"  a host lost           {lost(job):10.4f} s CPU"
    yield f"  a new manager         {resumed(job):10.4f} s CPU"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"  resident, all machines{peak:10.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["10x10x10", "10x32x32", "48x67x200"])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    for size in chosen.sizes:
        for line in measure(*map(int, size.split("x")), chosen.seconds, chosen.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
