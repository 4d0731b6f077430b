"""Does the cost of an event grow with the events before it?

    python benchmarks/growth.py [--events 20000000] [--only NAME]

Events per second of processor time over the first and the last tenth of one long run, after a
warm-up of 4 M events that fills windows and lifetimes: from then on as much goes as comes.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"

import argparse
import time

from pipeline import Pipeline, entries
from workloads import WORKLOADS, Workload, as_batches

from weir.events.batch import OPEN

WARM_UP = 4_000_000


def tenths(workload: Workload, events: int) -> tuple[float, float]:
    """Events per second of the first and of the last tenth."""
    Pipeline(workload.program).run({k: as_batches(v, 512) for k, v in workload.make(2048).items()})
    streams = {k: as_batches(v, 65_536) for k, v in workload.make(WARM_UP + events).items()}
    pipeline = Pipeline(workload.program)
    spent = [0.0] * 10
    counted = [0] * 10
    done = -WARM_UP
    for name, batch, cti in entries(streams):
        tenth = min(done * 10 // events, 9)
        if done < 0 or cti == OPEN:  # the end of the stream gives out all that is held
            pipeline.feed(name, batch, cti)
            done += len(batch)
            continue
        start = time.process_time()
        pipeline.feed(name, batch, cti)
        spent[tenth] += time.process_time() - start
        counted[tenth] += len(batch)
        done += len(batch)
    return counted[0] / spent[0], counted[-1] / spent[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print(f"{'workload':32} {'first M/s':>10} {'last M/s':>10} {'last/first':>10}")
    for workload in WORKLOADS:
        if args.only in workload.name:
            first, last = tenths(workload, args.events)
            print(
                f"{workload.name:32} {first / 1e6:10.2f} {last / 1e6:10.2f} {last / first:10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
