"""The kernels of two trees of Weir side by side: what a change costs.

    git worktree add /tmp/before main
    python benchmarks/two_trees.py /tmp/before . [--rounds 6] [--runs 8] [--only NAME]

Each tree runs in a process of its own; they take turns, run by run, so that a busy machine is busy
for both. Each round begins with new processes: where memory lies makes one some percent faster than
the next. Processor time: the best run of each tree, and the median of the ratios of neighbouring
runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median


def serve(events: int) -> None:
    """Run the workloads that stdin names, each line once; the first of a name gets it ready."""
    from pipeline import Pipeline
    from workloads import WORKLOADS, as_batches

    ready = ""
    for line in sys.stdin:
        workload = next(w for w in WORKLOADS if w.name == line.strip())
        if ready != workload.name:
            small = {k: as_batches(v, 512) for k, v in workload.make(2048).items()}
            Pipeline(workload.program).run(small)  # compiles the loops
            made = workload.make(events)
            streams = {name: as_batches(columns, 65_536) for name, columns in made.items()}
            ready = workload.name
        pipeline = Pipeline(workload.program)
        start = time.process_time()
        pipeline.run(streams)
        print(time.process_time() - start, flush=True)


class Tree:
    """A tree's benchmarks in a process of their own, with its own `weir`."""

    def __init__(self, root: Path, events: int) -> None:
        paths = [str(root.resolve() / name) for name in ("src", "benchmarks")]
        # By this file: an old tree may not have it.
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--events", str(events)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"},
        )

    def seconds(self, workload: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(workload, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def compare(
    roots: Sequence[Path], workload: str, events: int, runs: int
) -> list[tuple[float, float]]:
    """Return the seconds of both trees, run by run; each goes first in half of them."""
    trees = [Tree(root, events) for root in roots]
    pairs = []
    for run in range(runs + 1):
        order = trees if run % 2 else trees[::-1]
        found = {tree: tree.seconds(workload) for tree in order}
        pairs.append((found[trees[0]], found[trees[1]]))
    for tree in trees:
        tree.close()
    return pairs[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runs", type=int, default=8, help="of each round")
    parser.add_argument("--only", default="")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.events)
        return
    from workloads import WORKLOADS

    print(f"{'workload':32} {'before M/s':>10} {'after M/s':>10} {'best':>7} {'median':>7}")
    ratios = []
    for workload in (w.name for w in WORKLOADS if args.only in w.name):
        pairs = [
            pair
            for _ in range(args.rounds)
            for pair in compare(args.trees, workload, args.events, args.runs)
        ]
        before, after = (min(side) for side in zip(*pairs, strict=True))
        ratios.append((after / before, median(b / a for a, b in pairs)))
        speeds = " ".join(f"{args.events / seconds / 1e6:10.2f}" for seconds in (before, after))
        print(f"{workload:32} {speeds} {_percent(ratios[-1])}", flush=True)
    means = [geometric_mean(side) for side in zip(*ratios, strict=True)]
    print(f"{'geometric mean':32} {'':21} {_percent(means)}")


def _percent(ratios: Sequence[float]) -> str:
    return " ".join(f"{100 * (ratio - 1):+6.1f}%" for ratio in ratios)


if __name__ == "__main__":
    main()
