"""Sustained throughput of the live runner over Parquet files.

    python benchmarks/live_throughput.py [--only NAME] [--rounds 3] [--scale 1]

Weir reads the files as fast as it can, with its store, its log, its commits and a checkpoint every
3 s; counted from the first event read until all rows are committed. Printed: millions of events a
second, and with `--checkpoints` beside it the same without checkpoints.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from offline_data import events_of, write_all
from pyspark.sql import SparkSession

from weir.job.status import JobStatus
from weir.script.program import parse_program
from weir.spark.live import LiveSettings, prepare_live
from weir.spark.live_hosts import live_master
from weir.spark.session import make_session

PROGRAMS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "grep": (
        ("lines",),
        """STREAM L (t BIGINT, line STRING) FROM '{data}/lines/*.parquet' WITH (vs = t);
        Out = SELECT line FROM L WHERE CONTAINS(line, 'error');""",
    ),
    "wordcount": (
        ("words",),
        """STREAM L (t BIGINT, line STRING) FROM '{data}/words/*.parquet' WITH (vs = t);
        W = SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM L;
        Out = SELECT word, COUNT(*) AS n FROM W GROUP BY word WITH TUMBLING(1m);""",
    ),
    "join": (
        ("left", "right"),
        """STREAM A (t BIGINT, k BIGINT, v BIGINT) FROM '{data}/left/*.parquet'
          WITH (vs = t, lifetime = 2m);
        STREAM R (t BIGINT, k BIGINT, v BIGINT) FROM '{data}/right/*.parquet' WITH (vs = t);
        B = SELECT k, v FROM R WITH LIFETIME(vs + 30s, vs + 90s);
        Out = SELECT A.k AS k, A.v AS v, B.v AS w FROM A INNER JOIN B ON A.k == B.k;""",
    ),
    "distinct": (
        ("clicks",),
        """STREAM C (t BIGINT, url BIGINT) FROM '{data}/clicks/*.parquet' WITH (vs = t);
        Out = SELECT COUNT(DISTINCT url) AS n FROM C WITH HOPPING(30s, 2s);""",
    ),
}


class Timer:
    """From the first event read to the end."""

    def __init__(self) -> None:
        self.began: float | None = None

    def __call__(self, status: JobStatus) -> None:
        if self.began is None and status.events > 0:
            self.began = time.monotonic()


def weir_seconds(spark: SparkSession, program: str, strategy: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        text = f"{program} SET strategy = '{strategy}'; OUTPUT Out TO '{folder}/out.parquet';"
        live = prepare_live(
            parse_program(text), f"{folder}/store", parallelism=2, settings=LiveSettings(hosts=2)
        )
        timer = Timer()
        live.drive(spark, watch=timer)
        assert timer.began is not None
        return time.monotonic() - timer.began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--data")
    parser.add_argument("--checkpoints", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        data = Path(given.data or made)
        if given.data is None or not data.exists():
            write_all(data, given.scale)
        spark = make_session(live_master(2))
        for name, (inputs, text) in PROGRAMS.items():
            if given.only in (None, name):
                run_one(spark, name, inputs, text.format(data=data), given)
        spark.stop()


def run_one(
    spark: SparkSession,
    name: str,
    inputs: tuple[str, ...],
    text: str,
    given: argparse.Namespace,
) -> None:
    events = sum(events_of(i, given.scale) for i in inputs)
    weir_seconds(spark, text, "checkpoint(3s)")  # workers warm up
    rates, without = [], []
    for _ in range(given.rounds):
        rates.append(events / weir_seconds(spark, text, "checkpoint(3s)") / 1e6)
        if given.checkpoints:
            without.append(events / weir_seconds(spark, text, "checkpoint(1h)") / 1e6)
    line = f"{name}: {statistics.median(rates):.2f} M events/s"
    if without:
        line += f", without checkpoints {statistics.median(without):.2f}"
    print(line, flush=True)


if __name__ == "__main__":
    main()
