"""Latency of the live runner, event by event, from a second process to the sink.

    python benchmarks/live_latency.py [--seconds 20] [--rounds 5] [--source tail|tcp]

Grep: another process makes 10 000 events a second in steps of a millisecond, each with the time at
which it was made; the sink's callback notes when each arrives. WordCount: 1 000 events a second of
ten words, windows of 5 s; counted from the window's close to the arrival of its result. Medians of
the rounds are printed; the first seconds of each round, while workers warm up, are left out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.events.batch import Batch
from weir.job.status import JobStatus
from weir.script.program import parse_program
from weir.spark.live import LiveSettings, prepare_live
from weir.spark.live_hosts import live_master
from weir.spark.session import make_session

WARM_UP = 5.0
WORDS = [f"word{i}" for i in range(1000)]


@dataclass(frozen=True)
class Case:
    name: str
    rate: int
    program: str
    window: int = 0


CASES = (
    Case(
        "grep",
        10_000,
        """STREAM L (t BIGINT, line STRING) FROM '{source}' WITH (vs = t);
        Out = SELECT t AS made, line FROM L WHERE CONTAINS(line, 'error');""",
    ),
    Case(
        "wordcount 5 s",
        1_000,
        """STREAM L (t BIGINT, line STRING) FROM '{source}' WITH (vs = t);
        W = SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM L;
        Out = SELECT word, COUNT(*) AS n FROM W GROUP BY word WITH TUMBLING(5s);""",
        5_000_000,
    ),
)


def lines(rate: int, seconds: float):  # type: ignore[no-untyped-def]
    """Texts of a millisecond's events, as time goes."""
    rng = np.random.default_rng(1)
    began, made = time.time(), 0
    while (passed := time.time() - began) < seconds:
        due = int(passed * rate)
        if due > made:
            now = int(time.time() * 1e6)
            words = rng.integers(0, len(WORDS), (due - made, 10))
            texts = (" ".join(WORDS[w] for w in row) + " error" for row in words)
            yield "".join(f'{{"t":{now},"line":"{text}"}}\n' for text in texts).encode()
            made = due
        time.sleep(0.001)


def write_file(path: str, rate: int, seconds: float) -> None:
    with open(path, "ab", buffering=0) as file:
        for data in lines(rate, seconds):
            file.write(data)


def write_socket(port: int, rate: int, seconds: float) -> None:
    with socket.create_server(("127.0.0.1", port)) as server:
        connection, _ = server.accept()
        with connection:
            for data in lines(rate, seconds):
                connection.sendall(data)


def noted(path: str, window: int):  # type: ignore[no-untyped-def]
    """A callback that appends (arrival, when it could have come) of every row to a file."""

    def note(place: int, seq: int, rows: Batch) -> None:
        now = time.time() * 1e6
        due = rows.ve if window else rows.columns[0].to_numpy()
        pairs = np.stack([np.full(len(rows), now), due.astype(np.float64)], axis=1)
        with open(path, "ab") as file:
            file.write(pairs.tobytes())

    return note


def run_round(spark, case: Case, kind: str, seconds: float) -> np.ndarray:  # type: ignore[no-untyped-def,type-arg]
    with tempfile.TemporaryDirectory() as folder:
        data, notes = f"{folder}/in.jsonl", f"{folder}/notes"
        Path(data).touch()
        if kind == "tail":
            source, target, arguments = f"tail://{data}", write_file, (data,)
        else:
            port = _free_port()
            source, target, arguments = f"tcp://127.0.0.1:{port}?until=eof", write_socket, (port,)
        text = case.program.format(source=source) + "OUTPUT Out TO 'callback:';"
        live = prepare_live(parse_program(text), f"{folder}/store", settings=LiveSettings(hosts=1))
        maker = multiprocessing.Process(target=target, args=(*arguments, case.rate, seconds))
        callbacks = {"Out": noted(notes, case.window)}
        until = [float("inf")]

        def watch(status: JobStatus) -> None:
            if status.state == "running" and maker.pid is None:
                maker.start()
                until[0] = time.monotonic() + seconds + 2

        live.run(spark, callbacks=callbacks, watch=watch, stop=lambda: time.monotonic() > until[0])
        maker.join()
        pairs = np.frombuffer(Path(notes).read_bytes()).reshape(-1, 2)
        pairs = pairs[pairs[:, 1] > pairs[0, 1] + WARM_UP * 1e6]
        return (pairs[:, 0] - pairs[:, 1]) / 1e3


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--source", choices=["tail", "tcp"], default="tail")
    given = parser.parse_args()
    spark = make_session(live_master(1))
    for case in CASES:
        found = [run_round(spark, case, given.source, given.seconds) for _ in range(given.rounds)]
        p50, p99 = (
            statistics.median(float(np.percentile(ms, p)) for ms in found) for p in (50, 99)
        )
        rows = sum(map(len, found))
        print(f"{case.name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms ({rows} rows)", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
