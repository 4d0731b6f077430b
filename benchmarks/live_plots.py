"""Two plots of the live runner, after StreamScope's Figures 14 and 15.

    python benchmarks/live_plots.py [batches] [strategies] [--seconds 15] [--out docs/figures]

batches     Latency against batch size: Grep at 10 000 events a second of a second process that
            sends 10, 30, 100, … of them together; once with the log as it is, which is written
            behind the rows' backs, and once with rows that are readable only when durable.
strategies  The three strategies through one failure: counts of 200 ms by word at 2 000 events a
            second; 10 s after the first result the host that counts is killed (`kill -9`). Drawn is
            how late each result came.

Each writes a PNG and the figures as CSV beside it.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from live_feed import RATES, percentiles
from live_latency import CASES, weir_round
from pyspark.sql import SparkSession

from weir.job.settings import HostSettings
from weir.job.status import JobStatus
from weir.spark.live.host_tasks import live_master
from weir.spark.live.live_settings import LiveSettings
from weir.spark.session import make_session

mpl.use("Agg")
from matplotlib import pyplot as plt

BURSTS = (1, 3, 10, 30, 100, 300)
STRATEGIES = ("checkpoint(3s)", "replay", "replicate(2)")
HOSTS = 3
KILL_AFTER = 10.0
WINDOW = 200_000
COUNTS = """SET strategy = '{strategy}';
STREAM L (t BIGINT, line STRING) FROM '{{source}}' WITH (vs = t);
W = SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM L;
Out = SELECT word, COUNT(*) AS n FROM W GROUP BY word WITH TUMBLING(200ms);"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plots", nargs="*", choices=["batches", "strategies", []])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    spark = make_session(live_master(HOSTS))
    if "batches" in given.plots or not given.plots:
        batches(spark, given.seconds, given.out)
    if "strategies" in given.plots or not given.plots:
        strategies(spark, given.out)
    spark.stop()


# --- latency against batch size ------------------------------------------------------------


def batches(spark: SparkSession, seconds: float, out: Path) -> None:
    rows = []
    for synchronous in (False, True):
        kind = "synchronous" if synchronous else "asynchronous"
        settings = LiveSettings(hosts=1, host=HostSettings(synchronous=synchronous))
        for bursts in BURSTS:
            pairs = weir_round(
                spark,
                CASES["grep"].program,
                RATES["grep"],
                seconds,
                bursts=bursts,
                settings=settings,
            )
            size = bursts * RATES["grep"] // 1000
            rows.append((kind, size, *percentiles(pairs)))
            print(
                "{} log, batches of {}: p50 {:.2f} ms, p99 {:.2f} ms".format(*rows[-1]), flush=True
            )
    save(out / "latency-by-batch.csv", ("log", "batch", "p50_ms", "p99_ms"), rows)
    figure, axes = plt.subplots(figsize=(6, 4))
    for kind, colour in (("asynchronous", "tab:blue"), ("synchronous", "tab:orange")):
        of = [row for row in rows if row[0] == kind]
        sizes = [row[1] for row in of]
        axes.plot(sizes, [row[2] for row in of], "o-", color=colour, label=f"{kind} log, p50")
        axes.plot(sizes, [row[3] for row in of], "o--", color=colour, label=f"{kind} log, p99")
    axes.set(xscale="log", yscale="log", xlabel="events sent together", ylabel="latency, ms")
    axes.set_title("Grep, 10 000 events/s")
    finish(figure, axes, out / "latency-by-batch.png")


# --- the three strategies through one failure ----------------------------------------------


class Killer:
    """Kills the host of a vertex that counts, some seconds after results began."""

    def __init__(self) -> None:
        self._began: float | None = None
        self.killed_at: float | None = None

    def __call__(self, status: JobStatus) -> None:
        if self._began is None and status.events:
            self._began = time.time()
        if self._began is None or self.killed_at or time.time() < self._began + KILL_AFTER:
            return
        counting = {v.host for v in status.vertices if v.kind == "inner"}
        others = {v.host for v in status.vertices if v.kind != "inner"}
        hosts = sorted(
            (h for h in status.hosts if h.id in counting), key=lambda h: (h.id in others, h.id)
        )
        os.kill(hosts[0].pid, signal.SIGKILL)
        self.killed_at = time.time()


def strategies(spark: SparkSession, out: Path) -> None:
    rows = []
    figure, axes = plt.subplots(figsize=(6, 4))
    for strategy in STRATEGIES:
        killer = Killer()
        pairs = weir_round(
            spark,
            COUNTS.format(strategy=strategy),
            2_000,
            25,
            window=WINDOW,
            settings=LiveSettings(hosts=HOSTS),
            look=killer,
        )
        assert killer.killed_at is not None
        found = np.unique(pairs, axis=0)  # one point of all words of a window
        at = found[:, 1] / 1e6 - killer.killed_at
        late = (found[:, 0] - found[:, 1]) / 1e3
        near = (at > -5) & (at < 12)
        rows += [
            (strategy, f"{a:.3f}", f"{b:.2f}") for a, b in zip(at[near], late[near], strict=True)
        ]
        axes.plot(at[near], late[near], ".-", label=strategy)
        gap = np.sort(found[found[:, 0] > killer.killed_at * 1e6, 0])[0] / 1e6 - killer.killed_at
        worst = late[(at > -1) & (at < 8)].max()
        print(
            f"{strategy}: first result {gap:.2f} s after the kill, worst {worst:.0f} ms", flush=True
        )
    save(out / "strategies.csv", ("strategy", "window_end_s_after_kill", "late_ms"), rows)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set(yscale="log", xlabel="window's end, s after the kill", ylabel="result after that, ms")
    axes.set_title("Counts of 200 ms, the host that counts is killed")
    finish(figure, axes, out / "strategies.png")


def save(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def finish(figure, axes, path: Path) -> None:  # type: ignore[no-untyped-def]
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
