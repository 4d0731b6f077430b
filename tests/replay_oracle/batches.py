"""Random apps in batches, with the state carried from one to the next by tables: logs in files,
`app.replay(batch=…)`, and what lies in the folders then.

python -m replay_oracle.batches --programs 20                       on Spark, batches of 1 and 7
python -m replay_oracle.batches --programs 500 --runner local       in this process
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from replay_oracle.differences import Verdict, compared, right_answer
from replay_oracle.engine import cells_of, emitted_row, event_times, failure_of
from replay_oracle.loop import AppFailed, Comparable, Loop
from replay_oracle.programs import Case, draw_case
from weir.errors import PlanError, ScriptError, WeirError
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.spark.session import session

BATCHES = (1, 7)
MOST_ROWS = 8


def judge_batches(
    case: Case, batch: int, spark: SparkSession | None = None, *, check: bool = True
) -> Verdict:
    """Replay a case in batches of so many events, on Spark if there is a session; of every second
    case only what is before some time."""
    to = _end(case) if case.seed % 2 else None
    right = right_answer(case, to=to)
    with tempfile.TemporaryDirectory(prefix="weir-oracle-") as name:
        folder = Path(name)
        try:
            came: Comparable | AppFailed = _replayed(case, batch, to, folder, spark, check)
        except (PlanError, ScriptError) as error:
            return Verdict("refused", str(error))
        except WeirError as error:
            came = failure_of(error)
    return compared(right, came)


def _end(case: Case) -> int:
    """Draw a `--to`: at an event, behind it, or far behind all of them."""
    rng = random.Random(f"to {case.seed}")
    times = event_times(Loop(case.source), case.logs)
    return rng.choice(times or [0]) + rng.choice((0, 1, 3, 10, 100))


def _replayed(
    case: Case, batch: int, to: int | None, folder: Path, spark: SparkSession | None, check: bool
) -> Comparable:
    (folder / "app.py").write_text(case.source, encoding="utf-8")
    app = load_app(folder / "app.py")
    report = app.replay(
        logs=_written_logs(app, case, folder),
        out=folder / "out",
        state_out=folder / "state",
        params=case.params,
        batch=batch,
        check=check,
        end=to,
        runner="local" if spark is None else "offline",
        spark=spark,
        parallelism=1 + case.seed % 3,
    )
    handled = {event.name for handler in app.handlers.values() for event in handler.events}
    loop = Loop(case.source)
    times = event_times(loop, {n: case.logs[n] if n in handled else () for n in case.logs})
    events = sum(to is None or vs < to for vs in times)
    assert report.batches == max(1, -(-events // batch)), f"{report.batches} for {events} events"
    emits = {n: Counter(map(emitted_row, rows)) for n, rows in _tables(folder / "out").items()}
    states = _tables(folder / "state")
    if to is not None:
        _check_none_ended(loop, states, to)
    cells = cells_of(states, case.source, case.logs, to)
    return {name: rows for name, rows in emits.items() if rows}, cells


def _check_none_ended(loop: Loop, states: Mapping[str, list[dict[str, object]]], to: int) -> None:
    """Fail if a saved cell or merge has ended as of `--to`: it must not be there."""
    for name, kind in loop.store.kinds.items():
        span = kind.last if kind.last is not None else kind.expires
        for row in states.get(name, []):
            assert span is None or to < row["vs"] + span, f"{name} has ended by {to}: {row}"  # type: ignore[operator]


def _written_logs(app: App, case: Case, folder: Path) -> Mapping[str, str]:
    """Write each partition to a file of its own."""
    paths = {}
    for name, partitions in case.logs.items():
        shape = pa.schema(app.event_types[name].columns)
        (folder / name).mkdir()
        for number, rows in enumerate(partitions):
            table = pa.Table.from_pylist(rows, schema=shape)
            pq.write_table(table, folder / name / f"{number}.parquet")
        paths[name] = str(folder / name / "*.parquet")
    return paths


def _tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {path.stem: pq.read_table(path).to_pylist() for path in folder.glob("*.parquet")}


def judge_programs(programs: int, start: int, spark: SparkSession | None = None) -> dict[str, int]:
    """Replay so many programs that are not refused, in batches of each size; print what is
    wrong, and return how many runs came to what."""
    counts: Counter[str] = Counter()
    taken = 0
    for seed in count(start):
        if taken == programs:
            return dict(counts)
        case = draw_case(seed, MOST_ROWS)
        for batch in BATCHES:
            verdict = judge_batches(case, batch, spark)
            counts[verdict.kind] += 1
            if verdict.kind == "refused":
                break
            if verdict.kind != "same":
                print(f"seed {seed}, batches of {batch}: {verdict.text}\n", flush=True)
        else:
            taken += 1
    raise AssertionError


def main() -> int:
    parser = argparse.ArgumentParser(prog="replay_oracle.batches", description=__doc__)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--runner", choices=("local", "offline"), default="offline")
    args = parser.parse_args()
    if args.runner == "local":
        counts = judge_programs(args.programs, args.start)
    else:
        with session() as spark:
            counts = judge_programs(args.programs, args.start, spark)
    print(counts)
    return 1 if counts.keys() - {"same", "refused"} else 0


if __name__ == "__main__":
    sys.exit(main())
