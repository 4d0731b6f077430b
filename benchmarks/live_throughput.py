"""Sustained throughput of the live runner over Parquet files, beside Structured Streaming.

    python benchmarks/live_throughput.py [--only NAME] [--rounds 5] [--scale 2] [--alone]

Weir reads the files as fast as it can, with its store, its log, its commits and a checkpoint every
3 s; counted from the last look at the job before its first event until all rows are committed.
Beside it the same without checkpoints, and Structured Streaming over a tenth of the data (see
`streaming_peer.py`). Then Grep over 1 M events of 100 bytes a second as the clock goes: how late
rows are, against the one that came soonest behind its time. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from offline_data import events_of, write_all
from pyspark.sql import SparkSession

from weir.events.batch import Batch
from weir.job.status import JobStatus
from weir.script.program import parse_program
from weir.spark.live.host_tasks import live_master
from weir.spark.live.job_setup import prepare_live
from weir.spark.live.live_settings import LiveSettings
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
    """From the last look at which no event was read to the end."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def __call__(self, status: JobStatus) -> None:
        if status.events == 0:
            self.began = time.monotonic()


def weir_seconds(
    spark: SparkSession,
    program: str,
    strategy: str,
    how: LiveSettings | None = None,
    *,
    parallelism: int = 2,
    look: Callable[[JobStatus], None] | None = None,
) -> float:
    with tempfile.TemporaryDirectory() as folder:
        text = f"{program} SET strategy = '{strategy}'; OUTPUT Out TO '{folder}/out.parquet';"
        chosen = how or LiveSettings(hosts=2)
        live = prepare_live(
            parse_program(text), f"{folder}/store", parallelism=parallelism, how=chosen
        )
        timer = Timer()

        def watch(status: JobStatus) -> None:
            timer(status)
            if look is not None:
                look(status)

        live.drive(spark, watch=watch)
        return time.monotonic() - timer.began


def peer_seconds(name: str, data: Path) -> float:
    peer = Path(__file__).parent / "streaming_peer.py"
    command = [sys.executable, peer, "throughput", name, data]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=(*PROGRAMS, "paced"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=2.0)
    parser.add_argument("--alone", action="store_true", help="without Structured Streaming")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        data, small = Path(made, "data"), Path(made, "small")
        spark = make_session(live_master(2))
        for name, (inputs, text) in PROGRAMS.items():
            if given.only in (None, name):
                write_all(data, given.scale, inputs)
                write_all(small, given.scale / 10, inputs)
                run_one(spark, name, inputs, text.format(data=data), small, given)
        if given.only in (None, "paced"):
            print(f"grep at 1 M events/s: {paced(spark, given.rounds)}", flush=True)
        spark.stop()


def run_one(
    spark: SparkSession,
    name: str,
    inputs: tuple[str, ...],
    text: str,
    small: Path,
    given: argparse.Namespace,
) -> None:
    events = sum(events_of(i, given.scale) for i in inputs)
    few = sum(events_of(i, given.scale / 10) for i in inputs)
    weir_seconds(spark, text, "checkpoint(3s)")  # workers warm up
    rates, without, theirs = [], [], []
    for _ in range(given.rounds):
        rates.append(events / weir_seconds(spark, text, "checkpoint(3s)") / 1e6)
        without.append(events / weir_seconds(spark, text, "checkpoint(1h)") / 1e6)
        if not given.alone:
            theirs.append(few / peer_seconds(name, small) / 1e6)
    rate, free = statistics.median(rates), statistics.median(without)
    line = f"{name}: {rate:.2f} M events/s, without checkpoints {free:.2f} ({rate / free - 1:+.0%})"
    if theirs:
        peer = statistics.median(theirs)
        line += f", Structured Streaming {peer:.3f} ({rate / peer:.1f} x)"
    print(line, flush=True)


PACED = """STREAM L (t BIGINT, value BIGINT, a STRING, b STRING, c STRING, d STRING)
  FROM 'rate://1000000?rows=15000000&keys=1000000000' WITH (vs = t);
Out = SELECT value, CONCAT(a, b, c, d) AS line FROM L WHERE CONTAINS(a, '77');"""


def paced(spark: SparkSession, rounds: int) -> str:
    """Rows of about 100 bytes at 1 M a second."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            text = f"{PACED} OUTPUT Out TO 'callback:';"
            settings = LiveSettings(hosts=2)
            live = prepare_live(parse_program(text), f"{folder}/store", how=settings)
            live.run(spark, callbacks={"Out": _noted(f"{folder}/notes")})
            pairs = np.frombuffer(Path(folder, "notes").read_bytes()).reshape(-1, 2)
        late = pairs[:, 0] - pairs[:, 1] / 1e6
        late = late[len(late) // 3 :]  # workers warm up
        found.append(np.percentile(late - late.min(), [50, 99]) * 1e3)
    p50, p99 = np.median(found, axis=0)
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms behind the earliest"


def _noted(path: str) -> Callable[[int, int, Batch], None]:
    """Appends (arrival, number) of every row to a file."""

    def note(place: int, seq: int, rows: Batch) -> None:
        numbers = rows.columns[0].to_numpy().astype(np.float64)
        pairs = np.stack([np.full(len(rows), time.time()), numbers], axis=1)
        with open(path, "ab") as file:
            file.write(pairs.tobytes())

    return note


if __name__ == "__main__":
    main()
