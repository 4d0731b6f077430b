"""A large job on one machine: 100 M events of 100 bytes, half of them on one key.

    python benchmarks/large.py [--events 100000000] [--data DIR]

Prints the time, events per second, the digests, and the most memory that a Python worker and the
JVM had. It needs about 10 GB of disk for its data, and is not part of `make bench`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from offline import peak_memory
from offline_data import random_lines

from weir.script.program import parse_program
from weir.spark.offline.run_offline import run_offline
from weir.spark.session import make_session

FILE_EVENTS = 2_000_000

PROGRAM = """
STREAM L (t BIGINT, k BIGINT, line STRING) FROM 'large/*.parquet' WITH (vs = t);
Errors = SELECT k, line FROM L WHERE CONTAINS(line, 'error');
PerKey = SELECT k, COUNT(*) AS n, MAX(line) AS last FROM L GROUP BY k WITH TUMBLING(1m);
Busy = SELECT COUNT(*) AS n FROM L WITH HOPPING(5m, 1m);
OUTPUT Errors TO '{out}/errors/';
OUTPUT PerKey TO '{out}/per-key/';
OUTPUT Busy TO '{out}/busy.csv';
"""


def write_data(folder: Path, events: int) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    for number in range(events // FILE_EVENTS):
        keys = np.where(rng.random(FILE_EVENTS) < 0.5, 0, rng.integers(0, 100_000, FILE_EVENTS))
        start = number * FILE_EVENTS
        vs = (start + np.arange(FILE_EVENTS, dtype=np.int64)) * 100
        table = pa.table({"t": vs, "k": keys, "line": random_lines(rng, FILE_EVENTS, 84)})
        pq.write_table(table, folder / f"part-{number:03}.parquet", compression="snappy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--data", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = args.data or Path(scratch)
        if not (data / "large").is_dir():
            write_data(data / "large", args.events)
        spark = make_session("local[2]", {"spark.driver.memory": "4g"})
        memory: dict[str, float] = {}
        start = time.perf_counter()
        with peak_memory(memory):
            report = run_offline(
                parse_program(PROGRAM.format(out=f"{scratch}/out")), spark, directory=data
            )
        seconds = time.perf_counter() - start
        spark.stop()
        print(
            f"{report.events:,} events in {seconds:.0f} s: {report.events / seconds:,.0f} a second"
        )
        for output in report.outputs:
            print(f"{output.name}: {output.rows:,} rows, digest {output.digest}")
        print(f"largest worker {memory['worker']:.2f} GiB, JVM {memory['jvm']:.2f} GiB")


if __name__ == "__main__":
    main()
