"""The longest time for which Weir's own code holds Python's lock.

    python benchmarks/locks.py [--events 2000000]

While the lock is held, the other threads of a host (those that report, send, receive, read and
write) stand still. A thread that sleeps again and again measures how late it wakes: over the
kernels' workloads with a snapshot in the middle, over files of all formats, and over the user's own
functions and aggregates. Of that time counts what the process computed meanwhile: the rest it had
no processor, on a machine that is not quiet. Printed: the longest wait in milliseconds, and
where the main thread was then. The goal is 200 ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pipeline import Pipeline, entries
from workloads import WORKLOADS, as_batches

import weir
from weir.reliable.codec import decode_snapshot, encode_snapshot
from weir.reliable.vertex import Snapshot

NAP = 0.001
FORMATS = ("parquet", "csv", "jsonl", "arrow")
STREAM = "STREAM A (vs BIGINT, k BIGINT, v BIGINT, s STRING) FROM 'a.{form}';"
USER = {
    "a function": "SELECT k, TWICE(v) AS w FROM A",
    "an aggregate that keeps rows": "SELECT KEPT(v) AS w FROM A WITH TUMBLING(1h)",
    "the same by key": "SELECT k, KEPT(v) AS w FROM A GROUP BY k WITH TUMBLING(1h)",
    "an aggregate with a declared state": "SELECT FOLDED(v) AS w FROM A WITH TUMBLING(1h)",
    "collect": "SELECT COLLECT(v) AS w FROM A WITH TUMBLING(1h)",
}
RULES = """
import weir

@weir.udf
def TWICE(v: int) -> int:
    return 2 * v

class Sum:
    def zero(self) -> int:
        return 0

    def add(self, state: int, v: int) -> int:
        return state + v

    def result(self, state: int) -> int:
        return state

@weir.aggregate
class KEPT(Sum):
    pass

@weir.aggregate(state="BIGINT")
class FOLDED(Sum):
    pass
"""


class Watch:
    """A thread that notes how late it wakes, and what the main thread was doing."""

    def __init__(self) -> None:
        self._longest, self._where = 0.0, ""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        while True:
            began, computed = time.monotonic(), time.process_time()
            time.sleep(NAP)
            late = min(time.monotonic() - began - NAP, time.process_time() - computed)
            if late > self._longest:
                self._longest, self._where = late, _shown(sys._current_frames().get(main))

    @contextmanager
    def over(self, name: str) -> Iterator[None]:
        self._longest, self._where = 0.0, ""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        print(f"{name:48} {took:7.1f} {1e3 * self._longest:8.1f}  {self._where}", flush=True)


def _shown(frame: FrameType | None) -> str:
    """The innermost lines of Weir's own code."""
    found = []
    while frame is not None and len(found) < 3:
        code = frame.f_code
        if "/weir/" in code.co_filename:
            found.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(found)


def kernels(watch: Watch, events: int) -> None:
    for workload in WORKLOADS:
        made = workload.make(events)
        for size in (65_536, events // 4):
            streams = {name: as_batches(columns, size) for name, columns in made.items()}
            feeds = list(entries(streams))
            first, second = Pipeline(workload.program), Pipeline(workload.program)
            half = len(feeds) // 2
            with watch.over(f"{workload.name}, entries of {size:,}"):
                for feed in feeds[:half]:
                    first.feed(*feed)
            with watch.over("  its snapshot, written and loaded"):
                for old, new in zip(first.chains, second.chains, strict=True):
                    body = bytes(encode_snapshot("s", Snapshot((), (), old.snapshot())))
                    new.load(decode_snapshot("s", body).tables)
            with watch.over("  and on to the end"):
                for feed in feeds[half:]:
                    second.feed(*feed)


def files(watch: Watch, folder: Path) -> None:
    for form in FORMATS:
        program = f"{STREAM} OUTPUT A TO '{{output}}';"
        if form != "parquet":
            wanted = program.format(form="parquet", output=f"a.{form}")
            weir.run(wanted, directory=folder)
        with watch.over(f"{form} to {form}"):
            weir.run(program.format(form=form, output=f"out.{form}"), directory=folder)


def user_code(watch: Watch, folder: Path) -> None:
    (folder / "rules.py").write_text(RULES, encoding="utf-8")
    stream = STREAM.format(form="parquet")
    for name, query in USER.items():
        with watch.over(name):
            text = f"IMPORT 'rules.py'; {stream} Out = {query}; OUTPUT Out TO 'out.jsonl';"
            weir.run(text, directory=folder)


def write_rows(folder: Path, events: int) -> None:
    rng = np.random.default_rng(1)
    texts = pa.array([f"text of {n}" for n in range(1000)])
    table = {
        "vs": np.arange(events, dtype=np.int64) * 100,
        "k": rng.integers(0, 10_000, events),
        "v": rng.integers(0, 1_000_000, events),
        "s": texts.take(pa.array(rng.integers(0, 1000, events))),
    }
    pq.write_table(pa.table(table), folder / "a.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    args = parser.parse_args()
    watch = Watch()
    print(f"{'':48} {'seconds':>7} {'wait ms':>8}")
    for workload in WORKLOADS:  # compiles the loops
        made = workload.make(4096)
        Pipeline(workload.program).run({k: as_batches(v, 512) for k, v in made.items()})
    kernels(watch, args.events)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_rows(folder, args.events)
        files(watch, folder)
        user_code(watch, folder)


if __name__ == "__main__":
    main()
