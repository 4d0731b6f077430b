"""The plots of the ReStream paper's evaluation, for Weir: Figures 5 and 7, and two of our own.

The paper's Figure 6, throughput by the number of hosts, is not here: it needs several machines.

    python benchmarks/replay.py --analyze [--events 1_000_000] [--data DIR]

replay-error       Figure 5: how far the spam that micro-batches find is off the serial loop's, by
                   batch size; beside it replays in batches of the same sizes (of the smaller ones
                   as many as `MOST_BATCHES`), which must find the loop's rows every time.
replay-batches     Ours: throughput against the batch size, local and offline.
replay-chains      Ours: the critical path of a batch, by the power law's exponent and the hosts.
replay-alpha       Figure 7: throughput against the power law's exponent, with the model of
                   Equation 1 fitted to it.

REPLAY_FIGURES="error chains" draws some of them. Throughput is by the clock, the best of two
rounds, the second in opposite order: it needs a machine without other work. On one that has other
work, REPLAY_BY=cpu takes the processor time by the number of cores in place of the clock; that does
not see a core that waits for the other. Each plot is written as PNG, with the figures as CSV beside
it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from replay import SMALL, generated
from replay_critical import critical_path, fitted, modelled
from replay_measure import measured
from replay_micro import spam_by_micro_batches
from replay_peers import python_loop
from replay_weir import APPS, ready, replay

from weir.handlers.api.app_file import load_app

mpl.use("Agg")
from matplotlib import pyplot as plt

OUT = Path(__file__).parents[1] / "docs" / "figures"
ALPHAS = (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
HOSTS = (2, 4, 8, 16)
PER_HOST = 10_000
"""Events of a batch for each host, as in the paper."""
MICRO = (1, 10, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
MOST_BATCHES = 30
BY = os.environ.get("REPLAY_BY", "clock")
RATE = "million events/s" if BY == "clock" else "million events/s, by processor time"
SPAM_APP = load_app(APPS["heavy"])


def draw_all(data: Path, scratch: Path, events: int) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    small = generated(data / "small", SMALL, "--files", "2")
    wanted = os.environ.get("REPLAY_FIGURES", "error chains batches alpha").split()
    found(small, scratch, "local", None)  # compiles the loops
    if "error" in wanted:
        error(data, scratch, events)
    if "chains" in wanted:
        chains(data, events)
    if not {"alpha", "batches"} & set(wanted):
        return
    with ready("offline"):
        found(small, scratch, "offline", None)  # starts Spark's workers
        if "alpha" in wanted:
            alpha(data, scratch, events)
        if "batches" in wanted:
            batches(data, scratch, events)


def found(log: Path, scratch: Path, kind: str, batch: int | None) -> float:
    """Replay a log: millions of events a second."""
    usage = measured(lambda: replay(SPAM_APP, log, scratch / "replayed", kind, batch), 1)
    events = sum(pq.read_metadata(path).num_rows for path in log.rglob("*.parquet"))
    cores = 1 if kind == "local" else 2
    return events / (usage.seconds[0] if BY == "clock" else usage.cpu[0] / cores) / 1e6


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
        table = pq.read_table(serial)
        right = set(table.column("message").to_pylist())
        for size in MICRO:
            judged = spam_by_micro_batches(log, size)
            net = 100 * (len(judged) - len(right)) / len(right)
            gross = 100 * len(judged ^ right) / len(right)
            count, ours = judged_by_replay(log, scratch, size, table)
            rows.append((value, size, f"{net:.3f}", f"{gross:.3f}", count, f"{ours:.3f}"))
            print(f"{value:5} {size:9,} {net:9.2f} {gross:19.2f} {ours:9.2f}", flush=True)
    names = (
        "alpha",
        "batch",
        "error_percent",
        "judged_otherwise_percent",
        "replayed_events",
        "replay_error_percent",
    )
    save(OUT / "replay-error.csv", names, rows)
    draw_error(rows)


def judged_by_replay(log: Path, scratch: Path, size: int, serial: pa.Table) -> tuple[int, float]:
    """Replay in batches of this size: of how many events, and how many percent of the spam were
    judged otherwise, which must be none. Of small batches there are `MOST_BATCHES`, from the middle
    of the log on, over the state of what lies before them."""
    times = np.sort(
        np.concatenate([pq.read_table(p, columns=["ts"])["ts"] for p in log.rglob("*.parquet")])
    )
    first, last = 0, len(times)
    out, before = scratch / "replayed", scratch / "before"
    part: dict[str, Path | int | None] = {}
    if size * MOST_BATCHES < len(times):
        first = int(np.searchsorted(times, times[len(times) // 2]))
        last = min(first + size * MOST_BATCHES, len(times) - 1)
        replay(SPAM_APP, log, out, "local", None, end=int(times[first]), state_out=before)
        part = {"state_in": before, "end": int(times[last])}
        within = (pc.field("vs") >= int(times[first])) & (pc.field("vs") < int(times[last]))
        serial = serial.filter(within)
    replay(SPAM_APP, log, out, "local", size, **part)
    ours = set(pq.read_table(out / "spam.parquet").column("message").to_pylist())
    wrong = ours ^ set(serial.column("message").to_pylist())
    if wrong:
        raise SystemExit(f"the replay by batches of {size} judged {len(wrong)} messages otherwise")
    return last - first, 100 * len(wrong) / max(len(serial), 1)


def draw_error(rows: Sequence[Sequence[object]]) -> None:
    figure, axes = plt.subplots(figsize=(6, 4))
    for value, colour in ((2.0, "tab:blue"), (3.0, "tab:orange")):
        of = [[float(str(x)) for x in row] for row in rows if float(str(row[0])) == value]
        label = f"micro-batches, α = {value}"
        axes.plot([r[1] for r in of], [r[3] for r in of], "o-", color=colour, label=label)
    replayed = sorted({(float(str(r[1])), float(str(r[5]))) for r in rows})
    axes.plot(*zip(*replayed, strict=True), "s-", color="tab:green", label="replay, both α")
    axes.set(xscale="log", xlabel="events a batch", ylabel="messages judged wrongly, % of the spam")
    axes.set_title("State of earlier batches only, against replay")
    finish(figure, axes, OUT / "replay-error.png")


# --- throughput by batch size ----------------------------------------------------------------


def batches(data: Path, scratch: Path, events: int) -> None:
    """Throughput by batch size."""
    log = alpha_log(data, 2.0, events)
    sizes = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n < events] + [events]
    rows = []
    print(f"\nThroughput against the batch size, {events:,} events")
    print(f"{'batch':>10} {'local M/s':>10} {'offline M/s':>12}")
    for size in sizes:
        # Offline each batch is a job of some tenths of a second.
        kinds = ("local", "offline") if events / size <= 10 else ("local",)
        speeds = [max(found(log, scratch, kind, size) for _ in range(2)) for kind in kinds]
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
        ylabel=RATE,
        ylim=(0, None),
    )
    axes.set_title("Throughput against the batch size")
    finish(figure, axes, OUT / "replay-batches.png")


# --- Figure 7 ------------------------------------------------------------------------------


def chains(data: Path, events: int) -> None:
    """The critical path of batches, by the power law's exponent."""
    hosts = [h for h in HOSTS if h * PER_HOST <= events]
    rows = [
        (value, *(critical_path(alpha_log(data, value, events), PER_HOST * h) for h in hosts))
        for value in ALPHAS
    ]
    print(f"\nCritical path a batch of h × {PER_HOST:,} events")
    for value, *paths in rows:
        lengths = "  ".join(f"h={h}: {c:,.0f}" for h, c in zip(hosts, paths, strict=True))
        print(f"{value:5} {lengths}")
    names = ("alpha", *(f"critical_path_{h}_hosts" for h in hosts))
    save(OUT / "replay-chains.csv", names, [(v, *(f"{c:.1f}" for c in p)) for v, *p in rows])
    figure, axes = plt.subplots(figsize=(6, 4))
    for number, h in enumerate(hosts):
        axes.plot(ALPHAS, [row[1 + number] for row in rows], "o-", label=f"batches of {h} × 10 000")
    axes.set(xlabel="α", yscale="log", ylabel="critical path, events")
    axes.set_title("The longest chain of dependent events in a batch")
    finish(figure, axes, OUT / "replay-chains.png")


def alpha(data: Path, scratch: Path, events: int) -> None:
    """Throughput by the power law's exponent, and Equation 1."""
    best: dict[tuple[float, str], float] = {}
    for values in (ALPHAS, ALPHAS[::-1]):
        for value in values:
            for kind in ("local", "offline"):
                speed = found(alpha_log(data, value, events), scratch, kind, None)
                best[value, kind] = max(best.get((value, kind), 0.0), speed)
    paths = np.array([critical_path(alpha_log(data, v, events), 2 * PER_HOST) for v in ALPHAS])
    local, offline = (np.array([best[v, k] for v in ALPHAS]) for k in ("local", "offline"))
    two = np.full(len(ALPHAS), 2.0)
    a, factor, quality = fitted(two, paths, PER_HOST, offline)
    print(f"\nFigure 7: throughput against alpha, {events:,} events")
    for row in zip(ALPHAS, local, offline, paths, strict=True):
        print("{:5} local {:.3f} M/s, offline {:.3f} M/s, critical path {:,.0f}".format(*row))
    print(f"Equation 1 at two cores: a = {a:.3g}, R² = {quality:.2f} (the paper: a = 1.85)")
    rows = [(v, f"{x:.4f}", f"{y:.4f}") for v, x, y in zip(ALPHAS, local, offline, strict=True)]
    save(OUT / "replay-alpha.csv", ("alpha", "local_m_s", "offline_m_s"), rows)
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(ALPHAS, offline, "o", color="tab:blue", label="offline, two cores")
    axes.plot(ALPHAS, local, "s", color="tab:orange", label="local, one core")
    model = factor * modelled(two, paths, PER_HOST, a)
    axes.plot(ALPHAS, model, "-", color="tab:blue", label=f"Equation 1, a = {a:.2g}")
    axes.set(xlabel="α", ylabel=RATE, ylim=(0, None), title="Throughput")
    finish(figure, axes, OUT / "replay-alpha.png")


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
