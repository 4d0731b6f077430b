"""What the data plane of a host costs when vertices have nothing to do but to know the time.

    python benchmarks/data_plane.py [--sizes 16x2 16x67 16x201] [--claims 20 100] [--seconds 5]

A size is readers × writers: one host runs the writers, which are sources, another one the readers,
which count by a key, so each reads all writers. The machines, the vertices and the messages are
those of a live job (`job/host.py`, `spark/live/link_messages.py`), with what is said encoded and
decoded; the clock is made up, and a message takes no time. Each source claims a time so often a
second, and there are no rows.

Printed for each: the cores that the readers' host takes and those of the writers', how many claims
and messages go to the readers' host a second, and how many bytes each claim has on the wire. The
goal is 0.2 cores for 16 x 67.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weir.files.chunks import Chunk
from weir.job.host import Host
from weir.job.messages import Orders, ServedBy, VertexOrder
from weir.job.settings import HostSettings
from weir.job.signals import (
    Arrived,
    ChunkRead,
    Connect,
    Deliver,
    HostCommand,
    HostSignal,
    MakeRoom,
    OrdersArrived,
    Subscribed,
)
from weir.reliable.strategies import CheckpointStrategy
from weir.runtime.instance_factory import InstanceMaker
from weir.runtime.program_plan import plan_program
from weir.script.program import parse_program
from weir.spark.live.link_messages import Bring, Outgoing, pack_message, read_rows, read_words

PROGRAM = """STREAM L (t BIGINT, k BIGINT, v BIGINT) FROM 'l.csv' WITH (vs = t);
Out = SELECT k, COUNT(*) AS n FROM L GROUP BY k WITH TUMBLING(1ms); OUTPUT Out TO 'o.csv';"""
TURN = 0.001
"""Seconds of the made-up clock between two looks at what comes."""
ROUNDS = 20
"""So many turns of a host may follow each other without time passing."""


@dataclass
class Machine:
    """A host, and the processor seconds that it took."""

    host: Host
    seconds: float = 0.0
    waiting: list[HostCommand] = field(default_factory=list)

    def handle(self, signals: Sequence[HostSignal], now: float) -> None:
        began = time.process_time()
        for signal in signals:
            self.waiting += self.host.handle(signal, now)
        self.seconds += time.process_time() - began

    def work(self, now: float) -> None:
        """Work as a live host's loop does: when something came, or is due."""
        began = time.process_time()
        for _ in range(ROUNDS):
            progressed, commands = self.host.work(now)
            self.waiting += commands
            if not progressed:
                break
        self.seconds += time.process_time() - began

    def take(self) -> list[HostCommand]:
        taken, self.waiting = self.waiting, []
        return taken


class Pair:
    """A host of writers and a host of readers, and what they say to each other."""

    def __init__(self, readers: int, writers: int) -> None:
        planned = plan_program(parse_program(PROGRAM), readers)
        names = [f"l{n}" for n in range(writers)]
        topology = planned.topology({"L": names})
        strategies = {v.id: CheckpointStrategy(1e9) for v in topology.order}
        make = InstanceMaker(planned.stages, {"L": names}, strategies=strategies)
        settings = HostSettings(flush_interval=1e9)
        self.writer, self.reader = (
            Machine(Host(name, topology, strategies, make, settings)) for name in "wr"
        )
        self.claims = self.messages = self.bytes = 0
        self.sources = [v.id for v in topology.sources]
        self._inputs: dict[int, Connect] = {}
        served = {
            stream: (ServedBy("w", "w", 1),) for v in topology.sources for stream in v.outputs
        }
        inner = [v for v in topology.order if v.kind == "inner"]
        for machine, vertices in ((self.writer, topology.sources), (self.reader, inner)):
            orders = tuple(
                VertexOrder(
                    vertex=v.id,
                    incarnation=1,
                    restart=None,
                    writes_log=True,
                    takes_checkpoints=True,
                    segments={},
                    collect={},
                    inputs={s: served[s] for s in v.inputs},
                    floors={},
                )
                for v in vertices
            )
            machine.handle([OrdersArrived(Orders(1, 1, machine.host.session, orders))], 0.0)
        schema = pa.schema([(c, pa.int64()) for c in "tkv"])
        self._nothing = pa.RecordBatch.from_pylist([], schema=schema)

    def claim(self, cti: int, now: float) -> None:
        """Let all sources claim a time."""
        none, zero = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        chunk = Chunk(self._nothing, none, 0, cti_times=np.array([cti]), cti_indexes=zero)
        self.writer.handle([ChunkRead(source, 1, chunk) for source in self.sources], now)

    def turn(self, now: float) -> None:
        """Let both hosts work, and carry what they say."""
        self.writer.work(now)
        self._to_reader(now)
        self.reader.work(now)
        for command in self.reader.take():
            match command:
                case Connect(connection=connection, stream=stream, seq=seq, credit=credit):
                    self._inputs[connection] = command
                    asked = Subscribed(str(connection), stream, seq, credit)
                    self.writer.handle([asked], now)
                case MakeRoom():
                    raise AssertionError("there are no rows")
                case _:
                    continue

    def _to_reader(self, now: float) -> None:
        entries: list[Outgoing] = [
            (int(c.subscription), c.entry, c.size)
            for c in self.writer.take()
            if isinstance(c, Deliver)
        ]
        if not entries:
            return
        began = time.process_time()
        words, body = pack_message((), entries)
        self.writer.seconds += time.process_time() - began
        self.claims, self.messages = self.claims + len(entries), self.messages + 1
        self.bytes += len(words) + len(body)
        began = time.process_time()
        for word in read_words(words, len(body)):
            assert isinstance(word, Bring)
            asked = self._inputs[word.subscription]
            arrived = Arrived(
                vertex=asked.vertex,
                input=asked.input,
                connection=word.subscription,
                entry=read_rows(word, pa.py_buffer(b""), (pa.int64(),) * 2),
                size=word.size,
            )
            self.reader.waiting += self.reader.host.handle(arrived, now)
        self.reader.seconds += time.process_time() - began


def measure(readers: int, writers: int, claims: int, seconds: float) -> str:
    pair = Pair(readers, writers)
    now, every = 0.0, 1 / claims
    for _ in range(20):
        now += TURN
        pair.turn(now)
    for machine in (pair.writer, pair.reader):
        machine.seconds = 0.0
    pair.claims = pair.messages = pair.bytes = 0
    began, due, cti = now, now, 0
    while now < began + seconds:
        now += TURN
        if now >= due:
            due, cti = due + every, cti + 1000
            pair.claim(cti, now)
        pair.turn(now)
    reached = min(r.instance.cti for r in pair.reader.host.running.values() if r.instance)
    assert reached > 0, "the readers know no time"
    return (
        f"{f'{readers} x {writers}':>10}{claims:8}{pair.reader.seconds / seconds:10.3f}"
        f"{pair.writer.seconds / seconds:10.3f}{pair.claims / seconds:12,.0f}"
        f"{pair.messages / seconds:10,.0f}{pair.bytes / max(pair.claims, 1):8.1f}"
    )


def lines(sizes: Sequence[str], claims: Sequence[int], seconds: float) -> Iterator[str]:
    yield (
        f"{'size':>10}{'claims':>8}{'readers':>10}{'writers':>10}{'claims/s':>12}"
        f"{'messages':>10}{'bytes':>8}"
    )
    for size in sizes:
        readers, writers = map(int, size.split("x"))
        for each in claims:
            yield measure(readers, writers, each, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["16x2", "16x67", "16x201"])
    parser.add_argument("--claims", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--seconds", type=float, default=5.0)
    chosen = parser.parse_args()
    for line in lines(chosen.sizes, chosen.claims, chosen.seconds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
