"""The offline runner side by side with Spark SQL, Polars and DuckDB, over the same Parquet files.

    python benchmarks/offline.py [--scale 1] [--only NAME] [--rounds 3] [--data DIR]

All in one run: Weir and Spark SQL on one `local[2]` session, counted from the job's start; Polars
and DuckDB in a process of their own with two threads. Printed for each query: millions of events
per second (the best round), Weir's ratio to each peer, the most memory that a Python worker had,
and what Weir and Spark SQL shuffled.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from offline_data import events_of, write_all
from offline_peers import PEERS
from pyspark.sql import SparkSession

from weir.script.program import parse_program
from weir.spark.offline import run_offline
from weir.spark.session import make_session


@dataclass(frozen=True, slots=True)
class Query:
    """A query by name: what it reads, by Weir and by Spark SQL."""

    inputs: tuple[str, ...]
    program: str
    sql: str


PANES = """SELECT p AS pane, url FROM (SELECT DISTINCT t div 2000000 AS p, url FROM clicks)"""

QUERIES = {
    "grep": Query(
        ("lines",),
        """STREAM L (t BIGINT, line STRING) FROM 'lines/*.parquet' WITH (vs = t);
        Out = SELECT line FROM L WHERE CONTAINS(line, 'error');""",
        "SELECT t AS vs, t + 1 AS ve, line FROM lines WHERE contains(line, 'error')",
    ),
    "wordcount": Query(
        ("words",),
        """STREAM L (t BIGINT, line STRING) FROM 'words/*.parquet' WITH (vs = t);
        W = SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM L;
        Out = SELECT word, COUNT(*) AS n FROM W GROUP BY word WITH TUMBLING(1m);""",
        """SELECT m * 60000000 AS vs, m * 60000000 + 60000000 AS ve, word, count(*) AS n
        FROM (SELECT t div 60000000 AS m, explode(split(line, ' ')) AS word FROM words)
        GROUP BY m, word""",
    ),
    "join": Query(
        ("left", "right"),
        """STREAM A (t BIGINT, k BIGINT, v BIGINT) FROM 'left/*.parquet'
          WITH (vs = t, lifetime = 2m);
        STREAM R (t BIGINT, k BIGINT, v BIGINT) FROM 'right/*.parquet' WITH (vs = t);
        B = SELECT k, v FROM R WITH LIFETIME(vs + 30s, vs + 90s);
        Out = SELECT A.k AS k, A.v AS v, B.v AS w FROM A INNER JOIN B ON A.k == B.k;""",
        """SELECT greatest(a.t, b.t + 30000000) AS vs, least(a.t + 120000000, b.t + 90000000) AS ve,
          a.k AS k, a.v AS v, b.v AS w
        FROM left a JOIN right b ON a.k = b.k
          AND a.t < b.t + 90000000 AND b.t + 30000000 < a.t + 120000000""",
    ),
    "distinct": Query(
        ("clicks",),
        """STREAM C (t BIGINT, url BIGINT) FROM 'clicks/*.parquet' WITH (vs = t);
        Out = SELECT COUNT(DISTINCT url) AS n FROM C WITH HOPPING(30s, 2s);""",
        f"""SELECT w * 2000000 AS vs, w * 2000000 + 30000000 AS ve, count(DISTINCT url) AS n
        FROM (SELECT url, explode(sequence(pane - 14, pane)) AS w FROM ({PANES})) GROUP BY w""",
    ),
    "uniform": Query(
        ("uniform",),
        """STREAM C (t BIGINT, k BIGINT, v DOUBLE) FROM 'uniform/*.parquet' WITH (vs = t);
        Out = SELECT k, COUNT(*) AS n, SUM(v) AS s FROM C GROUP BY k WITH TUMBLING(1m);""",
        """SELECT t div 60000000 AS m, k, count(*) AS n, sum(v) AS s FROM uniform GROUP BY 1, 2""",
    ),
    "skewed": Query(
        ("skewed",),
        """STREAM C (t BIGINT, k BIGINT, v DOUBLE) FROM 'skewed/*.parquet' WITH (vs = t);
        Out = SELECT k, COUNT(*) AS n, SUM(v) AS s FROM C GROUP BY k WITH TUMBLING(1m);""",
        """SELECT t div 60000000 AS m, k, count(*) AS n, sum(v) AS s FROM skewed GROUP BY 1, 2""",
    ),
}


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


def shuffled(log: Path) -> Callable[[], int]:
    """How many bytes were written to shuffles since the last call, by Spark's event log."""
    seen = 0

    def since() -> int:
        nonlocal seen
        total = 0
        for file in log.rglob("*"):
            if file.is_file():
                for line in file.read_text().splitlines():
                    if '"SparkListenerTaskEnd"' in line:
                        metrics = json.loads(line).get("Task Metrics") or {}
                        written = metrics.get("Shuffle Write Metrics", {})
                        total += written.get("Shuffle Bytes Written", 0)
        new, seen = total - seen, total
        return new

    return since


def timed(run: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


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
        log.mkdir()
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file:{log}",
            "spark.eventLog.logBlockUpdates.enabled": "false",
            "spark.eventLog.compress": "false",
            "spark.driver.memory": "4g",
        }
        spark = make_session("local[2]", settings)
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
        for table in query.inputs:
            spark.read.parquet(str(data / table)).createOrReplaceTempView(table)
        out = scratch / "out"
        program = parse_program(f"{query.program} OUTPUT Out TO '{out}/';")
        run_offline(program, spark, directory=data)  # compiles the loops, starts the workers
        bytes_since()
        memory: dict[str, float] = {}
        with peak_memory(memory):
            ours = timed(lambda p=program: run_offline(p, spark, directory=data), args.rounds)
        our_bytes = bytes_since() / args.rounds
        native = spark.sql(query.sql)
        theirs = timed(
            lambda n=native: n.write.mode("overwrite").parquet(str(scratch / "native")),
            args.rounds,
        )
        their_bytes = bytes_since() / args.rounds
        peers = {
            peer: _peer(peer, name, data, scratch, args.rounds) for peer in ("polars", "duckdb")
        }
        speeds = [events / s / 1e6 for s in (ours, theirs, *peers.values())]
        ratios = "  ".join(f"{speeds[0] / s:5.2f}" for s in speeds[1:])
        print(
            f"{name:10} {events:10,} {speeds[0]:9.2f} {speeds[1]:10.2f} {speeds[2]:8.2f} "
            f"{speeds[3]:8.2f}   {ratios}   "
            f"{memory.get('worker', 0):5.2f} {memory.get('jvm', 0):5.2f}   "
            f"{our_bytes / 1e6:8.1f} {their_bytes / 1e6:8.1f}",
            flush=True,
        )
        shutil.rmtree(out)


def _peer(peer: str, query: str, data: Path, scratch: Path, rounds: int) -> float:
    """Seconds of the best round, in a process of its own."""
    if query not in PEERS[peer]:
        return float("nan")
    here = Path(__file__).parent / "offline_peers.py"
    command = [sys.executable, here, peer, query, data, scratch / "peer.parquet", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
