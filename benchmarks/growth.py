"""Does the cost of an event grow with the events before it?

    python benchmarks/growth.py [--events 20000000] [--only NAME]

Events per second of processor time over the first and the last tenth of one long run, after a
warm-up of 4 M events that fills windows and lifetimes: from then on as much goes as comes. A
machine's speed may change by a third from one minute to the next, so the two are taken side by
side: when the long run comes to its last tenth, a second one, just warmed up, goes through its
first, an entry of one after an entry of the other. The tenths of the long run stand behind.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"

import argparse
import time
from itertools import pairwise

import numpy as np
from pipeline import Pipeline, entries
from workloads import WORKLOADS, Workload, as_batches

from weir.events.batch import OPEN, Batch

WARM_UP = 4_000_000


Feeds = list[tuple[str, Batch, int]]


def measured(workload: Workload, events: int) -> tuple[list[float], float]:
    """Events per second in each tenth, and in the first one of a run beside the last."""
    Pipeline(workload.program).run({k: as_batches(v, 512) for k, v in workload.make(2048).items()})
    streams = {k: as_batches(v, 65_536) for k, v in workload.make(WARM_UP + events).items()}
    # The end of the stream gives out all that is held, and is left out.
    feeds = [feed for feed in entries(streams) if feed[2] != OPEN]
    warming = sum(np.cumsum([len(batch) for _, batch, _ in feeds]) <= WARM_UP)
    cuts = np.linspace(warming, len(feeds), 11).astype(int).tolist()
    old, young = Pipeline(workload.program), Pipeline(workload.program)
    for feed in feeds[:warming]:
        old.feed(*feed)
    speeds = [speed([old], [feeds[a:b]])[0] for a, b in pairwise(cuts[:-1])]
    for feed in feeds[:warming]:
        young.feed(*feed)
    last, first = speed([old, young], [feeds[cuts[-2] : cuts[-1]], feeds[cuts[0] : cuts[1]]])
    return [*speeds, last], first


def speed(pipelines: list[Pipeline], feeds: list[Feeds]) -> list[float]:
    """Events per second of each pipeline, which take turns entry by entry."""
    seconds, counts = [0.0] * len(pipelines), [0] * len(pipelines)
    for turn in zip(*feeds, strict=False):
        for number, (pipeline, feed) in enumerate(zip(pipelines, turn, strict=True)):
            start = time.process_time()
            pipeline.feed(*feed)
            seconds[number] += time.process_time() - start
            counts[number] += len(feed[1])
    return [count / second for count, second in zip(counts, seconds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print(f"{'workload':32} {'first M/s':>10} {'last M/s':>10} {'last/first':>10}  all tenths")
    for workload in WORKLOADS:
        if args.only in workload.name:
            tenths, first = measured(workload, args.events)
            last = tenths[-1]
            figures = f"{first / 1e6:10.2f} {last / 1e6:10.2f} {last / first:10.2f}"
            shown = " ".join(f"{t / 1e6:.3g}" for t in tenths)
            print(f"{workload.name:32} {figures}  {shown}", flush=True)


if __name__ == "__main__":
    main()
