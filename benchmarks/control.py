"""What the control plane of a live job costs: the manager and the hosts' reports, by size.

    python benchmarks/control.py [--sizes 10x32x20 48x67x200] [--streams vertex|pair]
                                 [--warm 12] [--seconds 10]

A size is stages × vertices in each × hosts; every stage reads the one before it by a hash. With
`--streams vertex` each vertex writes one stream, which all readers share; with `pair`, one for each
reader, as live jobs do. The machines are those of a live job (`job/manager.py`, `job/host.py`),
with their messages and records encoded and decoded as they are there; only time, the network and
the store are made up, and vertices that read a row of each input and write a row to each output
take the place of kernels. In steady flow every stream gets rows all the time, is flushed every
0.5 s, and every vertex is checkpointed about every 10 s. Hosts report when there is something to
say, at most every 0.05 s.

Printed for each size, for a second of steady flow: the manager's processor time, the bytes of
messages and of records; then the processor time of a host for one report, that until one lost
host's vertices are placed and ordered elsewhere, and that of a new manager, in a process of its
own, from the records to its first orders, with what that process holds at most.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from weir.events.batch import START, Batch
from weir.job.host import Host
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.messages import Report, decode_orders, decode_report
from weir.job.record_reader import last_record
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.signals import (
    Answer,
    Delete,
    HostCommand,
    ManagerCommand,
    OrdersArrived,
    Put,
    Reported,
    Stored,
)
from weir.reliable.cursor import STEP_ROWS, Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body, ObjectExists
from weir.reliable.strategies import CheckpointStrategy
from weir.reliable.stream import Entry
from weir.reliable.vertex import See, Snapshot
from weir.reliable.views import StreamLayout, layout_of, view_of_part
from weir.runtime.instance import Instance, make_cursors
from weir.runtime.topology import OutletSpec, Topology, VertexSpec, stream_name, vertex_name, wire

TICK, STEP = 0.05, 0.25
"""Seconds of the made-up clock between two turns of a host, and between two steps of a vertex."""
CHECKPOINTS = 10.0
SETTINGS = HostSettings(flush_interval=STEP)
"""A step writes to a stream, and one later it is flushed: two flushes a second."""
SIZE = 1000
"""Bytes that an object is said to have."""


def job_of(stages: int, vertices: int, streams: str) -> Topology:
    """Wire a job in which every vertex of a stage reads all vertices of the one before it."""

    split = layout_of([((0,), vertices)])

    def read(stage: int, index: int) -> tuple[str, ...]:
        names = (stream_name(vertex_name(stage, w)) for w in range(vertices))
        return tuple(f"{name}.{index}" if streams == "pair" else name for name in names)

    def outlets(name: str, *, last: bool) -> tuple[OutletSpec, ...]:
        if last or streams == "vertex":
            return (OutletSpec(stream_name(name), StreamLayout() if last else split),)
        return tuple(OutletSpec(f"{stream_name(name)}.{part}") for part in range(vertices))

    specs = []
    for stage in range(stages):
        last = stage == stages - 1
        for index in range(vertices):
            name = vertex_name(stage, index)
            view = view_of_part((0,), index, vertices) if streams == "vertex" else None
            inputs = read(stage - 1, index) if stage else ()
            specs.append(
                VertexSpec(
                    id=name,
                    kind="inner",
                    stage=stage,
                    index=index,
                    inputs=inputs,
                    ports=(0,) * len(inputs),
                    outlets=outlets(name, last=last),
                    views=(view,) * len(inputs),
                )
            )
    return wire(specs)


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

    @property
    def marker(self) -> tuple[int, ...]:
        return (self.events, *(cursor.position for cursor in self.cursors))

    def watch(self, see: See, pieces: int) -> None:
        """Nobody looks at made-up rows."""

    def work(self) -> bool:
        self.events += 1
        self.cti = self.events
        for cursor in self.cursors:
            if cursor.near is not None:
                cursor.read_next(cursor.reader)
            else:  # as if a row had arrived, which is not what is measured
                cursor.position = cursor._next_number = cursor.position + 1
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
    return Steady(spec, segments, start)


class Memory:
    """A store in memory, for the manager's records."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        if new and key in self.objects:
            raise ObjectExists(key)
        self.objects[key] = bytes(body)

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)

    def list(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))


@dataclass
class Costs:
    """`Costs` are processor seconds, bytes and numbers of messages, in some time."""

    manager: float = 0.0
    host: float = 0.0
    obeying: float = 0.0
    reports: int = 0
    report_bytes: int = 0
    order_bytes: int = 0
    record_bytes: int = 0


@dataclass
class Job:
    """The machines of a job, over a store that does at once what it is asked."""

    topology: Topology
    hosts: int
    ledger: Ledger = field(default_factory=Ledger)
    now: float = 0.0
    records: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.costs, self.chance = Costs(), random.Random(1)
        self.strategies = {
            v.id: CheckpointStrategy(CHECKPOINTS * (0.75 + self.chance.random() / 2))
            for v in self.topology.order
        }
        self.manager = Manager(
            self.topology,
            self.strategies,
            self.ledger,
            ManagerSettings(hosts=self.hosts, patience=60.0),
            self.now,
            name=f"{self.now}",
        )
        self.machines = [
            Host(f"h{slot}", self.topology, self.strategies, make, SETTINGS)
            for slot in range(self.hosts)
        ]
        self._turn = 0
        self.tick()

    # --- the store ---------------------------------------------------------------------------

    def _kept(self, commands: Sequence[ManagerCommand]) -> list[Answer]:
        """Store what the manager asks for; return its answers to hosts."""
        answers = [command for command in commands if isinstance(command, Answer)]
        for command in commands:
            if isinstance(command, Delete):
                for key in command.keys:
                    self.records.pop(key, None)
            elif isinstance(command, Put):
                body = bytes(command.encode())
                self.records[command.key] = body
                self.costs.record_bytes += len(body)
                ref = ObjectRef.of(command.key, body)
                answers += self._kept(self.manager.handle(Stored(ref), self.now))
        return answers

    def _stored(self, host: Host, commands: Sequence[HostCommand]) -> None:
        for command in commands:
            if isinstance(command, Put):
                seal = f"{self.chance.getrandbits(128):032x}"
                ref = ObjectRef(command.key, 0, SIZE, SIZE, seal)
                self._stored(host, host.handle(Stored(ref), self.now))

    # --- messages ----------------------------------------------------------------------------

    def round(self) -> None:
        """Let each host report for which it is time, and obey what it is answered."""
        costs = self.costs
        for slot, host in enumerate(self.machines):
            began = time.process_time()
            is_due = host.is_report_due(self.now)
            if is_due:
                address, machine = f"grpc+tls://10.0.0.{slot}:40{slot}", f"machine-{slot}"
                report = host.report(self.now, address, slot, slot, machine)
                sent = msgspec.msgpack.encode(report)
            reported = time.process_time()
            costs.host += reported - began
            if not is_due:
                continue
            answers = self.hear(decode_report(sent))
            bodies = [msgspec.msgpack.encode(answer.orders) for answer in answers]
            answered = time.process_time()
            for body in bodies:
                self._stored(host, host.handle(OrdersArrived(decode_orders(body)), self.now))
            costs.obeying += time.process_time() - answered
            costs.manager += answered - reported
            costs.reports += 1
            costs.report_bytes += len(sent)
            costs.order_bytes += sum(map(len, bodies))

    def tick(self) -> None:
        began = time.process_time()
        for _ in range(3):
            self._kept(self.manager.tick(self.now))
        self.costs.manager += time.process_time() - began

    def hear(self, report: Report) -> list[Answer]:
        return self._kept(self.manager.handle(Reported(report), self.now))

    def flow(self, seconds: float) -> Costs:
        """Let rows flow for so long, by the made-up clock; return what that costs."""
        self.costs = Costs()
        turns = round(seconds / TICK)
        phases = round(STEP / TICK)
        for _ in range(turns):
            self._turn += 1
            self.now += TICK
            for host in self.machines:
                for number, (name, running) in enumerate(host.running.items()):
                    due = (number + self._turn) % phases == 0
                    if due and isinstance(running.instance, Steady):
                        running.instance.steps = 1
                        host.note(name, STEP_ROWS)
                _, commands = host.work(self.now)
                self._stored(host, commands)
            self.round()
            self.tick()
        return self.costs


def lost(job: Job) -> float:
    """Lose a host; return the processor seconds until the others have orders for its vertices."""
    gone = job.machines.pop()
    job.costs = Costs()
    began = time.process_time()
    job.manager.lose(gone.session, job.now, "it is switched off")
    spent = time.process_time() - began
    for _ in range(2):  # the record may be due first
        job.round()
        job.tick()
    assert not any(p.session is None for p in job.manager.placements)
    return spent + job.costs.manager


def resumed(job: Job, size: Sequence[str]) -> str:
    """Start a manager in a process of its own, from the records; return what that says."""
    for host in job.machines:  # it is told everything
        host.handle(OrdersArrived(decode_orders(msgspec.msgpack.encode(_stranger(host)))), job.now)
    reports = [host.report(job.now, f"a{n}", n, n, f"m{n}") for n, host in enumerate(job.machines)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        path.write_bytes(msgspec.msgpack.encode((job.records, reports)))
        child = [sys.executable, __file__, "--resume", str(path), *size]
        return subprocess.run(child, check=True, capture_output=True, text=True).stdout


def _stranger(host: Host) -> object:
    """Orders of a later manager, which has nothing of the host's yet."""
    return {"epoch": 99, "number": 1, "session": host.session, "since": 1, "upto": 1}


def resume(path: str, topology: Topology) -> Iterator[str]:
    """Be the new manager of a job with these records, and take in its hosts' reports."""
    body = Path(path).read_bytes()
    decoder = msgspec.msgpack.Decoder(tuple[dict[str, bytes], tuple[msgspec.Raw, ...]])
    records, reports = decoder.decode(body)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.process_time()
    ledger = last_record(Memory(records))
    assert ledger is not None
    read = time.process_time() - began
    ledger.epoch = 100
    job = Job(topology, 1, ledger, 1.0, dict(records))
    answers: list[Answer] = []
    for report in reports:
        answers += job.hear(decode_report(report))
    size = sum(len(msgspec.msgpack.encode(answer.orders)) for answer in answers)
    spent = time.process_time() - began
    yield f"  a new manager         {spent:10.2f} s CPU ({read:.2f} to read the records)"
    yield f"  its first orders      {size / 1e6:10.2f} MB"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"  its memory            {peak:10.0f} MB ({before:.0f} with the topology alone)"


def measure(size: str, streams: str, warm: float, seconds: float) -> Iterator[str]:
    stages, vertices, hosts = map(int, size.split("x"))
    topology = job_of(stages, vertices, streams)
    count = len(topology.vertices)
    yield f"{size}: {count:,} vertices, {len(topology.streams):,} streams"
    job = Job(topology, hosts)
    for _ in range(3):
        job.round()
        job.tick()
    job.flow(warm)
    costs = job.flow(seconds)
    records = sum(map(len, job.records.values())) / 1e6
    messages = costs.report_bytes + costs.order_bytes
    yield f"  manager               {costs.manager / seconds:10.3f} cores"
    yield f"  messages              {messages / seconds / 1e6:10.3f} MB/s"
    yield f"    reports             {costs.report_bytes / seconds / 1e6:10.3f} MB/s"
    yield f"    orders              {costs.order_bytes / seconds / 1e6:10.3f} MB/s"
    yield f"    of each             {costs.reports / seconds:10.0f} a second"
    yield f"  records               {costs.record_bytes / seconds / 1e6:10.3f} MB/s"
    yield f"  records in the store  {records:10.3f} MB"
    yield f"  a host, a report      {costs.host / costs.reports * 1e3:10.3f} ms CPU"
    yield f"  and its answer        {costs.obeying / costs.reports * 1e3:10.3f} ms CPU"
    yield f"  a host lost           {lost(job):10.3f} s CPU"
    yield resumed(job, ["--sizes", size, "--streams", streams]).rstrip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["10x32x20", "48x67x200"])
    parser.add_argument("--streams", choices=["vertex", "pair"], default="vertex")
    parser.add_argument("--warm", type=float, default=12.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    for size in chosen.sizes:
        stages, vertices, _ = map(int, size.split("x"))
        lines = (
            resume(chosen.resume, job_of(stages, vertices, chosen.streams))
            if chosen.resume
            else measure(size, chosen.streams, chosen.warm, chosen.seconds)
        )
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
