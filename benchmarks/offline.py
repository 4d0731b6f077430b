"""The offline runner side by side with Spark SQL, Polars and DuckDB, over the same Parquet files.

    python benchmarks/offline.py [--scale 1] [--only NAME] [--rounds 3] [--data DIR]

All in one run, each in a process of its own: Weir and Spark SQL on `local[2]` sessions as each has
them (that of Weir by `make_session`, that of Spark SQL with Spark's defaults), counted from the
job's start in a session that has run the query once; Polars and DuckDB with two threads. Printed
for each query: millions of events per second (the best round), Weir's ratio to each peer, the most
memory that a Python worker had, and what Weir and Spark SQL shuffled.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offline_data import events_of, write_all
from offline_peers import PEERS, logging_to, shuffled, timed
from offline_queries import QUERIES
from pyspark.sql import SparkSession

from weir.script.program import parse_program
from weir.spark.offline.run_offline import run_offline
from weir.spark.session import make_session


@contextmanager
def peak_memory(found: dict[str, float]) -> Iterator[None]:
    """The most memory that any Python worker, and the JVM, had meanwhile, in GiB."""
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.1):
            for kind, size in _sizes():
                found[kind] = max(found.get(kind, 0.0), size)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _sizes() -> Iterator[tuple[str, float]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            kind = "worker" if b"pyspark.daemon" in command else "jvm" if b"java" in command else ""
            if kind:
                pages = int((entry / "statm").read_text().split()[1])
                yield kind, pages * os.sysconf("SC_PAGE_SIZE") / 2**30
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = args.data or Path(scratch, "data")
        write_all(data, args.scale)
        log = Path(scratch, "log")
        spark = make_session("local[2]", logging_to(log) | {"spark.driver.memory": "4g"})
        compare(spark, data, Path(scratch), log, args)
        spark.stop()


def compare(
    spark: SparkSession, data: Path, scratch: Path, log: Path, args: argparse.Namespace
) -> None:
    print(
        f"{'query':10} {'events':>10} {'Weir M/s':>9} {'Spark SQL':>10} {'Polars':>8} {'DuckDB':>8}"
        "   ratio to each      worker, JVM GiB   shuffled MB (Weir, Spark SQL)",
        flush=True,
    )
    bytes_since = shuffled(log)
    for name, query in QUERIES.items():
        if args.only not in name:
            continue
        events = sum(events_of(i, args.scale) for i in query.inputs)
        out = scratch / "out"
        program = parse_program(f"{query.program} OUTPUT Out TO '{out}/';")
        run_offline(program, spark, directory=data)  # compiles the loops, starts the workers
        bytes_since()
        ours = timed(lambda p=program: run_offline(p, spark, directory=data), args.rounds)
        our_bytes = bytes_since() / args.rounds
        memory: dict[str, float] = {}
        with peak_memory(memory):  # in a run of its own: to look all the time takes time
            run_offline(program, spark, directory=data)
        peers = [peer_run(peer, name, data, scratch, args.rounds) for peer in PEERS]
        speeds = [events / s / 1e6 for s in (ours, *(seconds for seconds, _ in peers))]
        ratios = "  ".join(f"{speeds[0] / s:5.2f}" for s in speeds[1:])
        print(
            f"{name:10} {events:10,} {speeds[0]:9.2f} {speeds[1]:10.2f} {speeds[2]:8.2f} "
            f"{speeds[3]:8.2f}   {ratios}   "
            f"{memory.get('worker', 0):5.2f} {memory.get('jvm', 0):5.2f}   "
            f"{our_bytes / 1e6:8.1f} {peers[0][1] / 1e6:8.1f}",
            flush=True,
        )
        shutil.rmtree(out)


def peer_run(peer: str, query: str, data: Path, scratch: Path, rounds: int) -> tuple[float, float]:
    """Seconds of the best round, and bytes shuffled a round, in a process of its own."""
    if query not in PEERS[peer]:
        return float("nan"), 0.0
    here = Path(__file__).parent / "offline_peers.py"
    command = [sys.executable, here, peer, query, data, scratch / "peer.parquet", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, shuffled_bytes = map(float, done.stdout.split())
    return seconds, shuffled_bytes


if __name__ == "__main__":
    main()
