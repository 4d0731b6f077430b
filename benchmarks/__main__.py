"""All benchmarks, one after the other: `make bench` (about an hour on a quiet machine).

Each runs in a process of its own, so that none warms caches for the next.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PARTS = {
    "Kernels on one core, against whole batches by Polars and DuckDB (goal: ratio 0.5)": "kernels",
    "Cost per event, first and last tenth of 20 M events (goal: last/first 0.9)": "growth",
    "A step of 100 rows against 1 M live rows (goal: 2 ms)": "steps",
    "The longest hold of Python's lock by Weir's own code (goal: 200 ms)": "locks",
    "Offline on Spark, against Spark SQL, Polars and DuckDB (goal: 1 and 0.5)": "offline",
    "Replay of 10 M events, against a Python loop, Spark and Polars (goal: 3, 5, 0.5)": "replay",
    "Latency live, against Structured Streaming (goal: 2 / 10 ms, 20 / 50 ms)": "live_latency",
    "Throughput live, against Structured Streaming (goal: 1, 0.5 M/s)": "live_throughput",
    "Throughput live between two machines, with TLS and without (goal: 0.7)": "live_machines",
    "Latency by batch size, and three strategies through a failure (docs/figures)": "live_plots",
}


def main() -> None:
    for title, part in PARTS.items():
        print(f"\n{title}", flush=True)
        subprocess.run([sys.executable, "-W", "ignore", FOLDER / f"{part}.py"], check=True)


if __name__ == "__main__":
    main()
