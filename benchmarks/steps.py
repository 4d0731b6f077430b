"""A step of 100 rows against a million live rows of state.

    python benchmarks/steps.py [--live 1000000] [--steps 2000]

Live runs hand over small entries. Printed: processor time of a step, median, 99th percentile and
largest, with as many rows held as asked for.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from pipeline import Pipeline
from workloads import A, B, as_batches

from weir.events.batch import Batch

ROWS = 100

PROGRAMS = {
    "join": f"{A} {B} Out = SELECT A.k AS k, A.v AS v, B.v AS w FROM A INNER JOIN B ON A.k = B.k;",
    "distinct count": f"{A} Out = SELECT COUNT(DISTINCT v) AS n FROM A WITH HOPPING(30s, 2s);",
    "session": f"{A} Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH SESSION(5s);",
}


def events(program: str, count: int, live: int) -> dict[str, np.ndarray]:
    """Rows of which `live` are held at once: a lifetime, window or timeout is `live` rows long."""
    rng = np.random.default_rng(1)
    # `live` rows fill 30 s of a window, or 5 s of a session's timeout.
    span = {"join": 120, "distinct count": 30, "session": 5}[program] * 1_000_000
    vs = np.arange(count, dtype=np.int64) * span // live
    lifetime = span if program == "join" else 1
    keys = live // 2 if program == "join" else 50 * live
    return {
        "vs": vs,
        "ve": vs + lifetime,
        "k": rng.integers(0, keys, count),
        "v": rng.integers(0, 50 * live, count),
    }


def measure(program: str, live: int, steps: int) -> tuple[list[float], int]:
    pipeline = Pipeline(PROGRAMS[program])
    data = events(program, 2 * live + steps * ROWS, live)
    filling = as_batches({n: c[: 2 * live] for n, c in data.items()}, 65_536)
    sources = ("A", "B") if program == "join" else ("A",)
    for i, batch in enumerate(filling):
        feed(pipeline, sources, batch, i)
    small = as_batches({n: c[2 * live :] for n, c in data.items()}, ROWS)
    seconds = []
    for i, batch in enumerate(small):
        start = time.process_time()
        feed(pipeline, sources, batch, i)
        seconds.append(time.process_time() - start)
    return seconds, pipeline.state_rows


def feed(pipeline: Pipeline, sources: tuple[str, ...], batch: Batch, number: int) -> None:
    """One entry to one source in turn; the other only learns how far time has come."""
    cti = int(batch.vs[-1])
    turn = number % len(sources)
    for i, source in enumerate(sources):
        pipeline.feed(source, batch if i == turn else None, cti)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=2_000)
    args = parser.parse_args()
    print(f"{'program':16} {'rows held':>10} {'median ms':>10} {'p99 ms':>8} {'max ms':>8}")
    for program in PROGRAMS:
        measure(program, 2_000, 20)  # compiles the loops
        seconds, held = measure(program, args.live, args.steps)
        ms = np.array(seconds) * 1e3
        median, high = np.percentile(ms, [50, 99])
        print(f"{program:16} {held:10d} {median:10.3f} {high:8.3f} {ms.max():8.3f}", flush=True)


if __name__ == "__main__":
    main()
