"""How large a live job's store becomes: 100 M events through windows by key and a filter.

    python benchmarks/live_store.py [--events 100000000] [--rate 2000000]

The job takes a checkpoint every 3 s. Now and then its store is looked at: all bytes in it, those of
the newest checkpoint of each vertex (the live state) and those of stream segments that a reader
which restarts there would still ask for (the unread tail). Printed are the sizes after every tenth,
and the largest ratio of the first to the other two together (goal: 2). What is not of `make bench`
either: it takes a minute or two.
"""

from __future__ import annotations

import argparse
import tempfile
import time

from weir.files.object_store import ObjectStore
from weir.job.record_reader import last_record
from weir.job.status import JobStatus
from weir.script.program import parse_program
from weir.spark.live.host_tasks import live_master
from weir.spark.live.job_setup import prepare_live
from weir.spark.live.live_settings import LiveSettings
from weir.spark.session import make_session

PROGRAM = """SET strategy = 'checkpoint(3s)';
STREAM L (t BIGINT, value BIGINT, k BIGINT, x DOUBLE)
  FROM 'rate://{rate}?rows={events}&keys=200000' WITH (vs = t);
Sums = SELECT k, COUNT(*) AS n, SUM(x) AS s FROM L GROUP BY k WITH HOPPING(4s, 2s);
Rare = SELECT k, n FROM Sums WHERE n > 60;
OUTPUT Rare TO 'callback:';"""


class Looks:
    """Sizes of a store, as the job goes."""

    def __init__(self, place: str, events: int) -> None:
        self._place, self._events = place, events
        self._told = 0
        self._looked = 0.0
        self.worst = 0.0

    def __call__(self, status: JobStatus) -> None:
        if time.monotonic() < self._looked + 1 or status.events < self._events // 20:
            return
        self._looked = time.monotonic()
        store = ObjectStore(self._place)
        ledger = last_record(store)
        sizes = dict(store.sizes())
        if ledger is None:
            return
        newest = [c[-1].key for c in ledger.checkpoints.values() if c]
        segments = [s.key for found in ledger.segments.values() for s in found]
        if any(key not in sizes for key in (*newest, *segments)):
            return  # a newer record stands there by now
        state, tail = (sum(sizes[key] for key in keys) for keys in (newest, segments))
        total = sum(sizes.values())
        self.worst = max(self.worst, total / max(state + tail, 1))
        tenth = 10 * status.events // self._events
        if tenth > self._told:
            self._told = tenth
            print(
                f"{status.events:12,} events: {total / 1e6:7.1f} MB, live state "
                f"{state / 1e6:.1f}, unread tail {tail / 1e6:.1f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--rate", type=int, default=2_000_000)
    given = parser.parse_args()
    spark = make_session(live_master(2))
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/store"
        program = parse_program(PROGRAM.format(rate=given.rate, events=given.events))
        live = prepare_live(program, place, parallelism=2, how=LiveSettings(hosts=2))
        looks = Looks(place, given.events)
        began = time.monotonic()
        live.run(spark, callbacks={"Rare": lambda place, seq, rows: None}, watch=looks)
        left = sum(size for _, size in ObjectStore(place).sizes())
        print(f"at the end {left / 1e6:.1f} MB, after {time.monotonic() - began:.0f} s")
        print(f"largest ratio to live state and unread tail together: {looks.worst:.2f}")
    spark.stop()


if __name__ == "__main__":
    main()
