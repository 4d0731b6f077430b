"""The driver of `live_machines.py`, which runs on the head of its cluster.

    python live_machines_driver.py {latency,throughput} MASTER PLACES [--conf NAME=VALUE]… …

PLACES is how hosts lie: `host` (one), `machine` (two on one machine) or `machines` (one on each of
two). Prints a JSON list of the rounds: [p50, p99] in ms, or millions of events a second.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from live_feed import RATES, percentiles
from live_latency import CASES, weir_round
from live_throughput import weir_seconds
from pyspark.sql import SparkSession

from weir.job.status import JobStatus
from weir.spark.live.host_tasks import live_settings
from weir.spark.live.live_settings import LiveSettings
from weir.spark.live.tls import read_tls
from weir.spark.session import make_session

HOSTS = {"host": 1, "machine": 2, "machines": 2}
CORES = {"host": 1, "machine": 2, "machines": 1}
"""The cores of an executor, by which Spark spreads hosts as they are to lie."""
TWO_STAGES = """STREAM C (t BIGINT, k BIGINT, v DOUBLE) FROM '{data}/*.parquet' WITH (vs = t);
Sums = SELECT k, COUNT(*) AS n, SUM(v) AS s FROM C GROUP BY k WITH TUMBLING(1m);
Out = SELECT k, n, s FROM Sums WHERE n > 5;"""


class Placing:
    """Sees where the vertices of a job run."""

    def __init__(self, places: str) -> None:
        self._wanted = {"host": (1, 1), "machine": (2, 1), "machines": (2, 2)}[places]

    def __call__(self, status: JobStatus) -> None:
        """Fail unless source and reader lie as they are to lie."""
        if status.state != "running" or not status.events:
            return
        machines: Mapping[str | None, str] = {h.id: h.machine for h in status.hosts}
        first, second = sorted(status.vertices, key=lambda v: (v.kind != "source", v.id))[:2]
        hosts = {first.host, second.host}
        found = len(hosts), len({machines.get(host, "") for host in hosts})
        assert found == self._wanted, f"hosts and machines are {found}, not {self._wanted}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["latency", "throughput"])
    parser.add_argument("master")
    parser.add_argument("places", choices=list(HOSTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--events", type=int)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tls", nargs=2, type=Path)
    given = parser.parse_args()
    hosts = HOSTS[given.places]
    settings = live_settings(
        given.master,
        {"spark.cores.max": str(hosts), "spark.executor.cores": str(CORES[given.places])},
    )
    spark = make_session(given.master, settings)
    how = LiveSettings(hosts=hosts, tls=read_tls(*given.tls) if given.tls else None)
    found = latencies(spark, how, given) if given.what == "latency" else rates(spark, how, given)
    print(json.dumps(found))
    spark.stop()


def latencies(
    spark: SparkSession, how: LiveSettings, given: argparse.Namespace
) -> list[tuple[float, float]]:
    look = Placing(given.places)
    program, rate = CASES["grep"].program, RATES["grep"]
    return [
        percentiles(weir_round(spark, program, rate, given.seconds, settings=how, look=look))
        for _ in range(given.rounds)
    ]


def rates(spark: SparkSession, how: LiveSettings, given: argparse.Namespace) -> list[float]:
    text = TWO_STAGES.format(data=given.data)
    look = Placing(given.places)

    def rate() -> float:
        seconds = weir_seconds(spark, text, "checkpoint(3s)", how, parallelism=1, look=look)
        return given.events / seconds / 1e6

    rate()  # workers warm up
    return [rate() for _ in range(given.rounds)]


if __name__ == "__main__":
    main()
