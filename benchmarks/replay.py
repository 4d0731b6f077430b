"""Replay of the ReStream paper's spam rules, side by side with a loop, Spark and Polars.

    python benchmarks/replay.py [--events 10_000_000] [--rounds 3] [--data DIR] [--only abcdef]
        [--variants heavy light] [--out FILE.csv]
    python benchmarks/replay.py --analyze [--events 1_000_000]

(a) an optimised loop of plain Python; (b) Spark's window functions, two cores; (c) Weir offline,
two cores; (d) Weir offline with vectorisation off: handlers row by row; (e) the rules by hand in
Polars, with one thread and with two; (f) Weir local, on one core. Each runs in a process of its
own over the same Parquet files and writes the spam it found as Parquet; all must find the same
rows. Rounds go round: each contender runs once, then each again.

Printed for each: events a second (the best round) and its ratio to (a), processor time, and the
most memory that its processes had together. Ratios of goals are printed twice: by the clock, and by
processor time, which other work on the machine changes less. `--analyze` draws the paper's
Figures 5 to 7 (`replay_figures.py`).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replay_measure import fingerprint

HERE = Path(__file__).parent
GENERATE = HERE.parent / "examples" / "replay" / "spam" / "generate.py"
FILES = 8
SMALL = 100_000


@dataclass(frozen=True)
class Contender:
    """Who runs: a module of this folder, its first argument, and where it may run."""

    title: str
    module: str
    kind: str
    threads: int = 2
    pinned: bool = False

    def command(self, variant: str, data: Path, out: Path, *more: object) -> list[str]:
        pin = ["taskset", "-c", "1"] if self.pinned else []
        arguments = (HERE / f"{self.module}.py", self.kind, variant, data, out, 1, *more)
        return [*pin, sys.executable, "-W", "ignore", *map(str, arguments)]


CONTENDERS = {
    "a": Contender("Python loop", "replay_peers", "python", pinned=True),
    "b": Contender("Spark, window functions", "replay_peers", "spark"),
    "c": Contender("Weir offline, 2 cores", "replay_weir", "offline"),
    "d": Contender("Weir offline, row by row", "replay_weir", "rows"),
    "e1": Contender("Polars, 1 thread", "replay_peers", "polars", threads=1, pinned=True),
    "e2": Contender("Polars, 2 threads", "replay_peers", "polars"),
    "f": Contender("Weir local, 1 core", "replay_weir", "local", threads=1, pinned=True),
}


@dataclass
class Result:
    """What the rounds of a contender took, and what it found."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: int = 0
    jvm: int = 0
    rows: int = 0
    hash: str = ""


def run_once(who: Contender, variant: str, data: Path, scratch: Path, *more: object) -> Result:
    """One round in a process of its own; the rows are counted, then removed."""
    out = scratch / f"{who.module}-{who.kind}"
    path = (
        out if who.module == "replay_weir" or who.kind == "spark" else out.with_suffix(".parquet")
    )
    threads = str(who.threads)
    environment = os.environ | {"POLARS_MAX_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        who.command(variant, data, path, *more),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{who.title} failed:\n{done.stderr[-4000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    rows, found = fingerprint(path / "spam.parquet" if who.module == "replay_weir" else path)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return Result(told["seconds"], told["cpu"], told["peak"], told["jvm"], rows, found)


def compare(
    variant: str, names: Sequence[str], data: Path, scratch: Path, rounds: int
) -> dict[str, Result]:
    """All rounds of all contenders; an error if two of them found other rows."""
    results = {name: Result() for name in names}
    for number in range(rounds):
        for name, total in results.items():
            one = run_once(CONTENDERS[name], variant, data, scratch)
            total.seconds += one.seconds
            total.cpu += one.cpu
            if one.peak > total.peak:
                total.peak, total.jvm = one.peak, one.jvm
            total.rows, total.hash = one.rows, one.hash
            print(
                f"  {variant}, round {number + 1}: {name} {one.seconds[0]:.2f} s,"
                f" CPU {one.cpu[0]:.1f} s, {one.peak / 2**30:.2f} GiB, {one.rows} rows {one.hash}",
                file=sys.stderr,
                flush=True,
            )
    found = {(r.rows, r.hash) for r in results.values()}
    if len(found) > 1:
        raise SystemExit(
            f"they found other rows: { {n: (r.rows, r.hash) for n, r in results.items()} }"
        )
    return results


def show(variant: str, events: int, results: dict[str, Result]) -> list[tuple[object, ...]]:
    """Print the table, and the goals; return its rows."""
    speed = {name: events / min(r.seconds) / 1e6 for name, r in results.items()}
    any_result = next(iter(results.values()))
    print(f"\n{variant}: {events:,} events, {any_result.rows:,} spam, rows {any_result.hash}")
    print(f"{'':3} {'':25} {'M events/s':>10} {'× (a)':>7} {'CPU s':>8} {'GiB':>6} {'of JVM':>7}")
    lines = []
    for name, r in results.items():
        ratio = speed[name] / speed["a"] if "a" in speed else float("nan")
        line = (speed[name], ratio, min(r.cpu), r.peak / 2**30, r.jvm / 2**30)
        print(
            "{:3} {:25} {:10.3f} {:7.2f} {:8.1f} {:6.2f} {:7.2f}".format(
                name, CONTENDERS[name].title, *line
            )
        )
        lines.append((variant, events, name, CONTENDERS[name].title, *(f"{x:.4g}" for x in line)))
    for what, over, goal in (
        ("c", "a", 3),
        ("c", "b", 5),
        ("f", "e1", 0.5),
        ("d", "a", 0.7),
        ("f", "a", 1),
        ("c", "e1", None),
        ("c", "e2", None),
    ):
        if what in speed and over in speed:
            wanted = f"(goal {goal})" if goal is not None else "(printed)"
            cpu = min(results[over].cpu) / min(results[what].cpu)
            print(f"    {what} / {over} = {speed[what] / speed[over]:.2f} {wanted}, CPU {cpu:.2f}")
    if "c" in results and "b" in results:
        less = results["c"].peak / results["b"].peak
        print(f"    memory of c / b = {less:.2f} (goal: below 1)")
    return lines


def generated(folder: Path, events: int, *more: str) -> Path:
    """The logs, made unless they are there."""
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = [sys.executable, GENERATE, partial, "--events", str(events), *more]
        subprocess.run([str(c) for c in command], check=True)
        partial.rename(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--only", nargs="*", choices=[*CONTENDERS], default=[*CONTENDERS])
    parser.add_argument("--variants", nargs="*", default=["heavy", "light"])
    parser.add_argument("--analyze", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.data or Path(temporary, "data")
        folder.mkdir(parents=True, exist_ok=True)
        if args.analyze:
            from replay_figures import draw_all

            draw_all(folder, Path(temporary), args.events)
            return
        generated(folder / "small", SMALL, "--files", "2")
        data = generated(folder / str(args.events), args.events, "--files", str(FILES))
        lines: list[tuple[object, ...]] = []
        for variant in args.variants:
            results = compare(variant, args.only, data, Path(temporary), args.rounds)
            lines += show(variant, args.events, results)
        if args.out is not None:
            save_table(args.out, lines)


def save_table(path: Path, lines: Sequence[Sequence[object]]) -> None:
    names = (
        "variant",
        "events",
        "id",
        "contender",
        "m_events_s",
        "ratio",
        "cpu_s",
        "gib",
        "jvm_gib",
    )
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *lines])


if __name__ == "__main__":
    main()
