"""Kernels on one core against Polars and DuckDB over the whole batch at once.

    python benchmarks/kernels.py [--events 5000000] [--only NAME]

Ratios are Weir's speed over the peer's, both on one thread, in one run, by processor time; the best
of three.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # before Polars is imported

import argparse
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from workloads import WORKLOADS, Workload, as_batches

from weir.events.batch import OPEN, Batch, empty_batch
from weir.plan.nodes import schema
from weir.plan.rewrites import rewrite
from weir.plan.stages import cut_stages
from weir.reliable.chain import Chain
from weir.script import parse_program
from weir.testing import with_output


class Pipeline:
    """The stages of a program in one chain of vertices, without streams in between."""

    def __init__(self, text: str) -> None:
        program = rewrite(with_output(parse_program(text), "Out"))
        self._plan = cut_stages(program)
        self._chains = []
        for stage in self._plan.stages:
            ports = [i for i, port in enumerate(stage.ports) for _ in port.links]
            self._chains.append(Chain(stage, self._plan.origins, ports or [0]))
        self._sources = {
            stage.operators[0].name: stage.number for stage in self._plan.stages if not stage.ports
        }
        self._types = {
            stage.operators[0].name: schema(stage.operators[0]).types
            for stage in self._plan.stages
            if not stage.ports
        }
        self.rows = 0

    def feed(self, source: str, batch: Batch | None, cti: int) -> None:
        batch = empty_batch(self._types[source]) if batch is None else batch
        self._push(self._sources[source], 0, batch, cti)

    def _push(self, stage: int, stream: int, batch: Batch, cti: int) -> None:
        chain = self._chains[stage]
        chain.push(stream, batch, cti)
        rows, out = chain.pull()
        readers = [
            (reader.number, place)
            for reader in self._plan.stages
            for place, link in enumerate(l for port in reader.ports for l in port.links)
            if link.stage == stage
        ]
        if not readers:
            self.rows += 0 if rows is None else len(rows)
        for reader, place in readers:
            self._push(reader, place, chain.empty() if rows is None else rows, out)

    @property
    def state_rows(self) -> int:
        return sum(chain.state_rows for chain in self._chains)


def entries(streams: dict[str, list[Batch]]) -> Iterator[tuple[str, Batch, int]]:
    """Entries of all streams in order of time, each with the CTI behind it."""
    flat = [
        (batch, name, following.vs[0] if following is not None else None)
        for name, batches in streams.items()
        for batch, following in zip(batches, [*batches[1:], None], strict=True)
    ]
    for batch, name, cti in sorted(flat, key=lambda e: int(e[0].vs[0])):
        yield name, batch, OPEN if cti is None else int(cti)


def run_weir(pipeline: Pipeline, streams: dict[str, list[Batch]]) -> int:
    for name, batch, cti in entries(streams):
        pipeline.feed(name, batch, cti)
    return pipeline.rows


def best(make: Callable[[], Callable[[], int]], times: int) -> tuple[float, int]:
    """The fastest of some runs, without what making them ready takes."""
    seconds, rows = [], 0
    for _ in range(times):
        run = make()
        start = time.process_time()
        rows = run()
        seconds.append(time.process_time() - start)
    return min(seconds), rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    print(f"{'workload':32} {'Weir M/s':>9} {'peer M/s':>9} {'ratio':>6}  peer, rows out")
    for workload in WORKLOADS:
        if args.only not in workload.name:
            continue
        small = {k: as_batches(v, 512) for k, v in workload.make(2048).items()}
        run_weir(Pipeline(workload.program), small)  # compiles the loops
        data = workload.make(args.events)
        streams = {name: as_batches(columns, 65_536) for name, columns in data.items()}
        tables = {name: pa.table(columns) for name, columns in data.items()}

        def weir() -> Callable[[], int]:
            pipeline = Pipeline(workload.program)
            return lambda: run_weir(pipeline, streams)

        seconds, rows = best(weir, args.times)
        for name, peer in workload.peers.items():
            peer_seconds, peer_rows = best(lambda: lambda: peer(tables), args.times)
            mine, theirs = args.events / seconds / 1e6, args.events / peer_seconds / 1e6
            note = "" if rows == peer_rows else f" (peer has {peer_rows} rows)"
            print(
                f"{workload.name:32} {mine:9.2f} {theirs:9.2f} {mine / theirs:6.2f}  {name}, {rows}{note}",
                flush=True,
            )


if __name__ == "__main__":
    main()
