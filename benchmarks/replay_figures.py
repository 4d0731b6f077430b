"""The plots of the ReStream paper's evaluation, for Weir: Figures 5, 6 and 7.

    python benchmarks/replay.py --analyze [--events 1_000_000] [--data DIR]

replay-error       Figure 5: how far the spam that micro-batches find is off the serial loop's, by
                   batch size; beside it the replay with batches of that size (but no more than
                   ten of them), which finds the same rows every time.
replay-batches     Figure 6: throughput against the batch size, local and offline.
replay-alpha       Figure 7: throughput against the power law's exponent, with the critical path a
                   batch and the model of Equation 1 fitted; and chains for more hosts.

Throughput is events for each second of processor time and core, so that other work on the machine
decides little. Each plot is written as PNG, with the figures as CSV beside it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow.parquet as pq
from replay import SMALL, generated
from replay_critical import critical_path, fitted, modelled
from replay_measure import fingerprint, measured
from replay_micro import spam_by_micro_batches
from replay_peers import python_loop
from replay_weir import APPS, ready, replay

from weir.handlers.loading import load_app

mpl.use("Agg")
from matplotlib import pyplot as plt

OUT = Path(__file__).parents[1] / "docs" / "figures"
ALPHAS = (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
HOSTS = (2, 4, 8, 16, 32)
PER_HOST = 10_000
"""Events of a batch for each host, as in the paper."""
MICRO = (100, 1_000, 10_000, 30_000, 100_000)
CORES = {"local": 1, "offline": 2}
SPAM_APP = load_app(APPS["heavy"])


def draw_all(data: Path, scratch: Path, events: int) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    small = generated(data / "small", SMALL, "--files", "2")
    wanted = os.environ.get("REPLAY_FIGURES", "error batches alpha").split()
    found(small, scratch, "local", None)  # compiles the loops
    if "error" in wanted:
        error(data, scratch, events)
    with ready("offline"):
        found(small, scratch, "offline", None)  # starts Spark's workers
        if "alpha" in wanted:
            alpha(data, scratch, events)
        if "batches" in wanted:
            batches(data, scratch, events)


def found(log: Path, scratch: Path, kind: str, batch: int | None) -> tuple[float, tuple[int, str]]:
    """Replay a log: millions of events for each second of a core, and what was found."""
    out = scratch / "replayed"
    usage = measured(lambda: replay(SPAM_APP, log, out, kind, batch), 1)
    events = sum(pq.read_metadata(path).num_rows for path in log.rglob("*.parquet"))
    return CORES[kind] * events / usage.cpu[0] / 1e6, fingerprint(out / "spam.parquet")


# --- Figure 5 ------------------------------------------------------------------------------


def error(data: Path, scratch: Path, events: int) -> None:
    """Micro-batches against the serial loop, and the replay at the same batch sizes."""
    rows = []
    print(f"\nFigure 5: spam found by micro-batches and by replay, {events:,} events a log")
    print(f"{'alpha':>5} {'batch':>9} {'error %':>9} {'judged otherwise %':>19} {'replay %':>9}")
    for value in (2.0, 3.0):
        log = alpha_log(data, value, events)
        serial = scratch / "serial.parquet"
        python_loop(log, "heavy", serial)
        right = set(pq.read_table(serial).column("message").to_pylist())
        wanted = fingerprint(serial)
        for size in MICRO:
            judged = spam_by_micro_batches(log, size)
            net = 100 * (len(judged) - len(right)) / len(right)
            gross = 100 * len(judged ^ right) / len(right)
            _, again = found(log, scratch, "local", max(size, events // 10))
            ours = 100 * (again[0] - len(right)) / len(right)
            if again != wanted:
                raise SystemExit(f"the replay by batches of {size} found other rows")
            rows.append((value, size, f"{net:.3f}", f"{gross:.3f}", f"{ours:.3f}"))
            print(f"{value:5} {size:9,} {net:9.2f} {gross:19.2f} {ours:9.2f}", flush=True)
    names = ("alpha", "batch", "error_percent", "judged_otherwise_percent", "replay_error_percent")
    save(OUT / "replay-error.csv", names, rows)
    figure, axes = plt.subplots(figsize=(6, 4))
    for value, colour in ((2.0, "tab:blue"), (3.0, "tab:orange")):
        of = [row for row in rows if row[0] == value]
        sizes = [row[1] for row in of]
        label = f"micro-batches, α = {value}"
        axes.plot(sizes, [float(r[3]) for r in of], "o-", color=colour, label=label)
    axes.plot(MICRO, [0.0] * len(MICRO), "s-", color="tab:green", label="replay, any α")
    axes.set(xscale="log", xlabel="events a batch", ylabel="messages judged wrongly, % of the spam")
    axes.set_title("State of earlier batches only, against replay")
    finish(figure, axes, OUT / "replay-error.png")


# --- Figure 6 ------------------------------------------------------------------------------


def batches(data: Path, scratch: Path, events: int) -> None:
    """Throughput by batch size."""
    log = alpha_log(data, 2.0, events)
    sizes = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n < events] + [events]
    rows = []
    print(f"\nFigure 6: throughput against the batch size, {events:,} events")
    print(f"{'batch':>10} {'local M/s':>10} {'offline M/s':>12}")
    for size in sizes:
        # Offline each batch is a job of some tenths of a second.
        kinds = ("local", "offline") if events / size <= 10 else ("local",)
        speeds = [found(log, scratch, kind, size)[0] for kind in kinds]
        speeds += [float("nan")] * (2 - len(speeds))
        rows.append((size, *(f"{s:.4f}" for s in speeds)))
        print(f"{size:10,} {speeds[0]:10.3f} {speeds[1]:12.3f}", flush=True)
    save(OUT / "replay-batches.csv", ("batch", "local_m_s", "offline_m_s"), rows)
    figure, axes = plt.subplots(figsize=(6, 4))
    for column, title in ((1, "local, one core"), (2, "offline, two cores")):
        axes.plot(sizes, [float(r[column]) for r in rows], "o-", label=title)
    axes.set(
        xscale="log",
        xlabel="events a batch",
        ylabel="million events/s of processor time",
        ylim=(0, None),
    )
    axes.set_title("Throughput against the batch size")
    finish(figure, axes, OUT / "replay-batches.png")


# --- Figure 7 ------------------------------------------------------------------------------


def alpha(data: Path, scratch: Path, events: int) -> None:
    """Throughput by the power law's exponent, critical paths, and Equation 1."""
    rows = []
    print(f"\nFigure 7: throughput and critical path against alpha, {events:,} events")
    print(
        f"{'alpha':>5} {'local M/s':>10} {'offline M/s':>12}   critical path a batch of h × 10 000"
    )
    for value in ALPHAS:
        log = alpha_log(data, value, events)
        speeds = [found(log, scratch, kind, None)[0] for kind in ("local", "offline")]
        paths = [critical_path(log, PER_HOST * h) for h in HOSTS]
        rows.append((value, *speeds, *paths))
        lengths = "  ".join(f"h={h}: {c:,.0f}" for h, c in zip(HOSTS, paths, strict=True))
        print(f"{value:5} {speeds[0]:10.3f} {speeds[1]:12.3f}   {lengths}", flush=True)
    names = ("alpha", "local_m_s", "offline_m_s", *(f"critical_path_{h}_hosts" for h in HOSTS))
    table = [(r[0], *(f"{x:.4f}" for x in r[1:3]), *(f"{x:.1f}" for x in r[3:])) for r in rows]
    save(OUT / "replay-alpha.csv", names, table)
    table_of = np.array(rows)
    two = np.full(len(table_of), 2.0)
    a, factor, quality = fitted(two, table_of[:, 3], PER_HOST, table_of[:, 2])
    print(f"Equation 1 at two cores: a = {a:.3g}, R² = {quality:.2f} (the paper: a = 1.85)")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.plot(ALPHAS, table_of[:, 2], "o", color="tab:blue", label="offline, two cores")
    left.plot(ALPHAS, table_of[:, 1], "s", color="tab:orange", label="local, one core")
    model = factor * modelled(two, table_of[:, 3], PER_HOST, a)
    left.plot(ALPHAS, model, "-", color="tab:blue", label=f"Equation 1, a = {a:.2g}")
    left.set(
        xlabel="α", ylabel="million events/s of processor time", ylim=(0, None), title="Throughput"
    )
    for number, hosts in enumerate(HOSTS):
        right.plot(
            ALPHAS, table_of[:, 3 + number] / (PER_HOST * hosts), "o-", label=f"{hosts} hosts"
        )
    right.set(xlabel="α", yscale="log", ylabel="critical path / events of a batch")
    right.set_title(f"Chains within batches of {PER_HOST:,} a host")
    left.grid(True, alpha=0.3)
    left.legend(fontsize=8)
    finish(figure, right, OUT / "replay-alpha.png")


# --- all -----------------------------------------------------------------------------------


def alpha_log(data: Path, value: float, events: int) -> Path:
    return generated(
        data / f"alpha-{value}-{events}", events, "--alpha", str(value), "--files", "4"
    )


def save(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])


def finish(figure, axes, path: Path) -> None:  # type: ignore[no-untyped-def]
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


if __name__ == "__main__":
    raise SystemExit(__doc__)
