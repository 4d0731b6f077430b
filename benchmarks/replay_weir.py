"""The spam rules by Weir, in a process of their own.

    python benchmarks/replay_weir.py local|offline|rows heavy|light DATA OUT ROUNDS [BATCH]

`local` runs in this process with parallelism 1 (under `taskset` on one core), `offline` as Spark
jobs of two cores, `rows` offline with vectorisation off: handlers run row by row. Prints a JSON
object: what each round took, from opening the files to the written result. Before that a small log
is replayed, so that loops are compiled and Spark's workers are there.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from replay_measure import measured

from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.spark.session import make_session

ROOT = Path(__file__).parents[1]
APPS = {
    "heavy": ROOT / "examples/replay/spam/app.py",
    "light": ROOT / "benchmarks/replay_light_app.py",
}


def replay(
    app: App, data: Path, out: Path, kind: str, batch: int | None, **more: Path | int | None
) -> None:
    app.replay(
        logs={log: str(data / log / "*.parquet") for log in ("friendship", "message")},
        out=out,
        runner="local" if kind == "local" else "offline",
        parallelism=1 if kind == "local" else 2,
        vectorise=kind != "rows",
        batch=batch,
        fresh=True,
        **more,
    )


@contextmanager
def ready(kind: str) -> Iterator[None]:
    """A session of two cores, if Spark is to run it."""
    if kind == "local":
        yield
        return
    spark = make_session("local[2]", {"spark.driver.memory": "4g"})
    try:
        yield
    finally:
        spark.stop()


def main() -> None:
    kind, variant, folder, target, rounds, *more = sys.argv[1:]
    data, out = Path(folder), Path(target)
    batch = int(more[0]) if more else None
    app = load_app(APPS[variant])
    with ready(kind):
        for small in (data.parent / "small",) if (data.parent / "small").is_dir() else ():
            replay(app, small, out, kind, None)

        def run() -> None:
            shutil.rmtree(out, ignore_errors=True)
            replay(app, data, out, kind, batch)

        usage = measured(run, int(rounds))
    print(json.dumps(asdict(usage)))


if __name__ == "__main__":
    main()
