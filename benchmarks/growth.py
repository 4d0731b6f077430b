"""Does the cost of an event grow with the events before it?

    python benchmarks/growth.py [--events 20000000] [--only NAME]

Events per second of processor time over the first and the last tenth of one long run, after a
warm-up of 4 M events that fills windows and lifetimes: from then on as much goes as comes. All ten
tenths stand behind: on a noisy machine two of them alone say little, a trend would show.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"

import argparse
import time
from statistics import harmonic_mean

from pipeline import Pipeline, entries
from workloads import WORKLOADS, Workload, as_batches

from weir.events.batch import OPEN

WARM_UP = 4_000_000


def tenths(workload: Workload, events: int) -> list[list[float]]:
    """Events per second of each entry, by tenths."""
    Pipeline(workload.program).run({k: as_batches(v, 512) for k, v in workload.make(2048).items()})
    streams = {k: as_batches(v, 65_536) for k, v in workload.make(WARM_UP + events).items()}
    pipeline = Pipeline(workload.program)
    speeds: list[list[float]] = [[] for _ in range(10)]
    done = -WARM_UP
    for name, batch, cti in entries(streams):
        tenth = min(done * 10 // events, 9)
        if done < 0 or cti == OPEN:  # the end of the stream gives out all that is held
            pipeline.feed(name, batch, cti)
            done += len(batch)
            continue
        start = time.process_time()
        pipeline.feed(name, batch, cti)
        speeds[tenth].append(len(batch) / (time.process_time() - start))
        done += len(batch)
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print(f"{'workload':32} {'first M/s':>10} {'last M/s':>10} {'last/first':>10}  all tenths")
    for workload in WORKLOADS:
        if args.only in workload.name:
            tenth = [harmonic_mean(speeds) / 1e6 for speeds in tenths(workload, args.events)]
            first, last = tenth[0], tenth[-1]
            figures = f"{first:10.2f} {last:10.2f} {last / first:10.2f}"
            print(
                f"{workload.name:32} {figures}  {' '.join(f'{t:.3g}' for t in tenth)}", flush=True
            )


if __name__ == "__main__":
    main()
