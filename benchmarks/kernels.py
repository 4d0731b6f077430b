"""Kernels on one core against Polars and DuckDB over the whole batch at once.

    python benchmarks/kernels.py [--events 5000000] [--only NAME]

Ratios are Weir's speed over the peer's, both on one thread, in one run, by processor time; the best
of three. Weir gets entries of 64 k events and emits in its total order; the peers get everything at
once and need not sort.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # before Polars is imported

import argparse
import time
from collections.abc import Callable

import pyarrow as pa
from pipeline import Pipeline
from workloads import WORKLOADS, Workload, as_batches


def best(make: Callable[[], Callable[[], int]], times: int) -> tuple[float, int]:
    """The fastest of some runs, without what making them ready takes; rows out."""
    seconds, rows = [], 0
    for _ in range(times):
        run = make()
        start = time.process_time()
        rows = run()
        seconds.append(time.process_time() - start)
    return min(seconds), rows


def compare(workload: Workload, events: int, times: int) -> None:
    small = {k: as_batches(v, 512) for k, v in workload.make(2048).items()}
    Pipeline(workload.program).run(small)  # compiles the loops
    data = workload.make(events)
    streams = {name: as_batches(columns, 65_536) for name, columns in data.items()}
    tables = {name: pa.table(columns) for name, columns in data.items()}

    def weir() -> Callable[[], int]:
        pipeline = Pipeline(workload.program)
        return lambda: pipeline.run(streams)

    seconds, rows = best(weir, times)
    mine = events / seconds / 1e6
    for name, peer in workload.peers.items():
        peer_seconds, peer_rows = best(lambda peer=peer: lambda: peer(tables), times)
        theirs = events / peer_seconds / 1e6
        note = "" if rows == peer_rows else f" (peer has {peer_rows})"
        figures = f"{mine:9.2f} {theirs:9.2f} {mine / theirs:6.2f}"
        print(f"{workload.name:32} {figures}  {name}, {rows} rows{note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    print(f"{'workload':32} {'Weir M/s':>9} {'peer M/s':>9} {'ratio':>6}  peer, result")
    for workload in WORKLOADS:
        if args.only in workload.name:
            compare(workload, args.events, args.times)


if __name__ == "__main__":
    main()
