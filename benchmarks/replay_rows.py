"""Row-by-row handlers against the user's own loop, on one core.

    python benchmarks/replay_rows.py [EVENTS] [ROUNDS] [CASE …]

For each app of `replay_rows_apps`, the same log (Parquet, one file) is worked off by the local
runner, in this process with parallelism 1, and by the plain loop of `replay_rows_loop.py`. The two
take turns; the best CPU time of each counts.

    loop   runs the app's file, reads the log, makes events, calls the handlers; emits are in a list
    weir   loads and plans the app, reads the log, runs; emits are Arrow batches in memory
    ratio  loop / weir

Neither has the start of the process, imports, or (a run on a small log goes first) the compilation
of loops. What was emitted is compared.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from replay_rows_loop import App, run_plainly

from weir.events.batch import Batch
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.local.runner import LocalRun
from weir.runtime.outputs import output_schema
from weir.runtime.partitions import open_partitions
from weir.runtime.programs import program_of
from weir.testing import batch_rows

APPS = Path(__file__).parent / "replay_rows_apps"
CASES = {
    "ring": ("a backtest's ring", 0.7),
    "road": ("Linear Road", 0.7),
    "stages": ("keys that code tells", 0.7),
    "lists": ("LIST states", 0.5),
    "structs": ("a STRUCT state", 0.5),
    "serial": ("app.serial", 0.5),
}
"""What each app stands for, and the ratio that is wanted."""
Emits = dict[str, Counter[tuple[Any, ...]]]
"""Rows as their values in order of the fields' names, with how often they came."""


# --- logs ----------------------------------------------------------------------------------------


def ticks(events: int) -> dict[str, list[Any]]:
    draw = random.Random(1)
    symbols = [f"S{n}" for n in range(500)]
    prices = dict.fromkeys(symbols, 100.0)
    rows = []
    for at in range(events):
        symbol = draw.choice(symbols)
        prices[symbol] *= 1 + draw.gauss(0, 0.004)
        rows.append((symbol, round(prices[symbol], 2), draw.randrange(1, 500), at))
    return _columns(("symbol", "price", "size", "at"), rows)


def reports(events: int) -> dict[str, list[Any]]:
    draw = random.Random(2)
    position = {car: draw.randrange(100_000) for car in range(2000)}
    rows = []
    for at in range(events):
        car = draw.randrange(2000)
        speed = 0 if car % 200 == 3 else draw.choice((20, 30, 35, 55, 60))
        position[car] = (position[car] + speed * 8) % 100_000
        seg = position[car] // 1000
        rows.append((car, speed, draw.randrange(5), seg, position[car], at))
    return _columns(("car", "speed", "lane", "seg", "pos", "at"), rows)


def readings(events: int) -> dict[str, list[Any]]:
    draw = random.Random(3)
    rows = []
    for at in range(events):
        error = draw.choice(("E1", "E2", "E3")) if draw.random() < 0.1 else None
        value = draw.gauss(50, 10) + (60 if draw.random() < 0.01 else 0)
        rows.append((draw.randrange(1000), value, error, at))
    return _columns(("sensor", "value", "error", "at"), rows)


def transfers(events: int) -> dict[str, list[Any]]:
    draw = random.Random(4)
    rows = [
        (at, draw.randrange(5000), draw.randrange(5000), draw.randint(100, 60_000), at)
        for at in range(events)
    ]
    return _columns(("id", "source", "target", "cents", "at"), rows)


def lines(events: int) -> dict[str, list[Any]]:
    draw = random.Random(5)
    rows = []
    for at in range(events):
        status = 503 if draw.random() < 0.15 else 200
        text = f"service-{draw.randrange(200)} {status} {draw.randrange(5000)}ms"
        rows.append((f"h{at % 9}", text if draw.random() < 0.97 else "Traceback", at))
    return _columns(("host", "text", "at"), rows)


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


LOGS: dict[str, Callable[[int], dict[str, list[Any]]]] = {
    "ring": ticks,
    "road": reports,
    "stages": lines,
    "lists": readings,
    "structs": readings,
    "serial": transfers,
}


# --- both sides ----------------------------------------------------------------------------------


def run_weir(path: Path, log: Path) -> list[tuple[str, list[Batch], Any]]:
    """Load, plan and run an app; return what it emits."""
    app = load_app(path)
    (event,) = app.event_types
    compiled = compile_app(app, paths={event: str(log)})
    program = program_of([stream.to("", name=name) for name, stream in compiled.emitted.items()])
    came: list[list[Batch]] = [[] for _ in program.outputs]
    emits = [lambda _, rows, to=batches: to.append(rows) for batches in came]
    LocalRun(program, open_partitions(program, "", look=False), emits).run()
    shapes = map(output_schema, program.outputs)
    return list(zip(compiled.emitted, came, shapes, strict=True))


def emits_of_weir(came: list[tuple[str, list[Batch], Any]]) -> Emits:
    found: Emits = {}
    for name, batches, shape in came:
        rows = [row for batch in batches for row in batch_rows(batch, shape)]
        names = sorted(shape.names)
        found[name] = Counter(tuple(row[n] for n in names) for row in rows)
    return {name: rows for name, rows in found.items() if rows}


def emits_of_loop(app: App) -> Emits:
    found: Emits = {}
    for name, fields in app.emitted:
        found.setdefault(name, Counter())[tuple(fields[n] for n in sorted(fields))] += 1
    return found


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    before = time.process_time()
    result = run()
    return time.process_time() - before, result


def compare(case: str, events: int, rounds: int, folder: Path) -> tuple[float, float]:
    """Return the best CPU times of the loop and of Weir."""
    path = APPS / f"{case}.py"
    small, log = folder / f"{case}_small.parquet", folder / f"{case}.parquet"
    pq.write_table(pa.table(LOGS[case](2000)), small)
    pq.write_table(pa.table(LOGS[case](events)), log)
    assert emits_of_weir(run_weir(path, small)) == emits_of_loop(run_plainly(path, small)), case
    loop, weir = [], []
    for number in range(rounds):
        seconds, plain = timed(lambda: run_plainly(path, log))
        loop.append(seconds)
        seconds, came = timed(lambda: run_weir(path, log))
        weir.append(seconds)
        if number == 0:
            assert emits_of_weir(came) == emits_of_loop(plain), f"{case}: other emits"
    return min(loop), min(weir)


def main() -> None:
    numbers = [int(arg) for arg in sys.argv[1:] if arg.isdigit()]
    events, rounds = (*numbers, *(200_000, 3)[len(numbers) :])
    cases = [arg for arg in sys.argv[1:] if not arg.isdigit()] or list(CASES)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    print(f"{events} events, one core, CPU seconds, best of {rounds}")
    print(f"{'':24} {'loop':>7} {'weir':>7} {'ratio':>7} {'wanted':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            loop, weir = compare(case, events, rounds, Path(folder))
            name, wanted = CASES[case]
            print(f"{name:24} {loop:7.3f} {weir:7.3f} {loop / weir:7.2f} {wanted:7.2f}", flush=True)


if __name__ == "__main__":
    main()
