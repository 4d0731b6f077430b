"""Latency of the live runner, event by event, from a second process to the sink.

    python benchmarks/live_latency.py [--seconds 20] [--rounds 5] [--source tail|tcp] [--alone]

Grep: another process makes 10 000 events a second in steps of a millisecond, each with the time at
which it was made; the sink's callback notes when each arrives. WordCount: 1 000 events a second of
ten words, windows of 5 s; counted from the window's close to the arrival of its result. Structured
Streaming does the same beside it, from a socket. Medians of the rounds are printed; the first
seconds of each round, while workers warm up, are left out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from live_feed import RATES, free_port, percentiles, write_file, write_socket
from pyspark.sql import SparkSession

from weir.events.batch import Batch
from weir.job.status import JobStatus
from weir.script.program import parse_program
from weir.spark.live.host_tasks import live_master
from weir.spark.live.job_setup import prepare_live
from weir.spark.live.live_settings import LiveSettings
from weir.spark.session import make_session


@dataclass(frozen=True)
class Case:
    program: str
    window: int = 0


CASES = {
    "grep": Case(
        """STREAM L (t BIGINT, line STRING) FROM '{source}' WITH (vs = t);
        Out = SELECT t AS made, line FROM L WHERE CONTAINS(line, 'error');""",
    ),
    "wordcount": Case(
        """STREAM L (t BIGINT, line STRING) FROM '{source}' WITH (vs = t);
        W = SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM L;
        Out = SELECT word, COUNT(*) AS n FROM W GROUP BY word WITH TUMBLING(5s);""",
        5_000_000,
    ),
}


def noted(path: str, window: int):  # type: ignore[no-untyped-def]
    """A callback that appends (arrival, when it could have come) of every row to a file."""

    def note(place: int, seq: int, rows: Batch) -> None:
        now = time.time() * 1e6
        due = rows.ve if window else rows.columns[0].to_numpy()
        pairs = np.stack([np.full(len(rows), now), due.astype(np.float64)], axis=1)
        with open(path, "ab") as file:
            file.write(pairs.tobytes())

    return note


def weir_round(
    spark: SparkSession,
    program: str,
    rate: int,
    seconds: float,
    *,
    window: int = 0,
    kind: str = "tail",
    bursts: int = 1,
    settings: LiveSettings | None = None,
    look: Callable[[JobStatus], None] | None = None,
) -> np.ndarray:  # type: ignore[type-arg]
    """When each row came, and when it could have come, in microseconds since 1970."""
    with tempfile.TemporaryDirectory() as folder:
        data, notes = f"{folder}/in.jsonl", f"{folder}/notes"
        Path(data).touch()
        source, target, place = f"tail://{data}", write_file, data
        if kind == "tcp":
            port = free_port()
            source, target, place = f"tcp://127.0.0.1:{port}?until=eof", write_socket, port
        text = program.format(source=source) + "OUTPUT Out TO 'callback:';"
        chosen = settings or LiveSettings(hosts=1)
        live = prepare_live(parse_program(text), f"{folder}/store", how=chosen)
        # Not a fork of this process, whose threads (of Spark, of Arrow) would be missing in it.
        maker = multiprocessing.get_context("spawn").Process(
            target=target, args=(place, rate, seconds, bursts)
        )
        until = [float("inf")]

        def watch(status: JobStatus) -> None:
            if status.state == "running" and maker.pid is None:
                maker.start()
                until[0] = time.monotonic() + seconds + 2
            if look is not None and maker.pid is not None:
                look(status)

        live.run(
            spark,
            callbacks={"Out": noted(notes, window)},
            watch=watch,
            stop=lambda: time.monotonic() > until[0],
        )
        maker.join()
        return np.frombuffer(Path(notes).read_bytes()).reshape(-1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--source", choices=["tail", "tcp"], default="tail")
    parser.add_argument("--alone", action="store_true", help="without Structured Streaming")
    given = parser.parse_args()
    spark = make_session(live_master(1))
    for name, case in CASES.items():
        ours, theirs = [], []
        for _ in range(given.rounds):
            pairs = weir_round(
                spark,
                case.program,
                RATES[name],
                given.seconds,
                window=case.window,
                kind=given.source,
            )
            ours.append(percentiles(pairs))
            if not given.alone:
                theirs.append(peer_round(name, given.seconds))
        peer = f"; Structured Streaming {medians(theirs)}" if theirs else ""
        print(f"{name}: {medians(ours)}{peer}", flush=True)
    spark.stop()


def peer_round(name: str, seconds: float) -> tuple[float, float]:
    peer = Path(__file__).parent / "streaming_peer.py"
    command = [sys.executable, peer, "latency", name, str(seconds + 10)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    p50, p99 = map(float, done.stdout.split())
    return p50, p99


def medians(rounds: Sequence[tuple[float, float]]) -> str:
    p50, p99 = (statistics.median(found) for found in zip(*rounds, strict=True))
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


if __name__ == "__main__":
    main()
