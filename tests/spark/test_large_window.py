"""One window of two million rows that the user's own Python folds, live: no host is lost by it.

With WEIR_NIGHT set, for it takes minutes. It prints the time, the memory of the hosts, and for how
long other threads of a host waited for Python's lock while it computed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import weir
from weir.runtime.reports import Progress
from weir.spark.live.run_live import LiveProgress

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif("WEIR_NIGHT" not in os.environ, reason="takes minutes: make night"),
]

ROWS = 2_000_000
RULES = """
import heapq, os, threading, time
import weir

def watch():
    longest = 0.0
    while True:
        began, computed = time.monotonic(), time.process_time()
        time.sleep(0.002)
        waited = min(time.monotonic() - began, time.process_time() - computed)
        if waited > longest:
            longest = waited
            with open({folder!r} + f"/waited-{{os.getpid()}}", "w") as file:
                file.write(str(longest))

def note():
    if not any(t.name == "watch" for t in threading.enumerate()):
        threading.Thread(target=watch, name="watch", daemon=True).start()

@weir.aggregate({declared})
class TOP10:
    def zero(self) -> list:
        note()
        return []

    def add(self, state, price: int) -> list:
        if len(state) < 10:
            heapq.heappush(state, price)
        elif price > state[0]:
            heapq.heapreplace(state, price)
        return state

    def result(self, state) -> str:
        return str(sorted(state))
"""
PROGRAM = """
IMPORT 'rules.py';
STREAM Bid (t TIMESTAMP, auction BIGINT, price BIGINT) FROM 'bid.parquet' WITH (vs = t);
Top = SELECT TOP10(price) AS top FROM Bid WITH TUMBLING(1h);
PerAuction = SELECT auction, TOP10(price) AS top FROM Bid GROUP BY auction WITH TUMBLING(1h);
OUTPUT Top TO 'top.csv';
OUTPUT PerAuction TO 'per-auction.csv';
"""
OUTPUTS = ("top.csv", "per-auction.csv")


@pytest.mark.parametrize("declared", ["", "state='LIST(BIGINT)'"])
def test_it_costs_no_host(
    spark: SparkSession, tmp_path: Path, declared: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.py").write_text(RULES.format(folder=str(tmp_path), declared=declared))
    numbers = pa.array(range(ROWS))
    table = {
        "t": pc.multiply(numbers, 1000).cast(pa.timestamp("us")),
        "auction": pa.array([n * 2_654_435_761 % 1000 for n in range(ROWS)]),
        "price": pa.array([n * 2_654_435_761 % 4_294_967_291 for n in range(ROWS)]),
    }
    pq.write_table(pa.table(table), tmp_path / "bid.parquet")
    weir.run(PROGRAM, directory=tmp_path)
    wanted = [(tmp_path / name).read_bytes() for name in OUTPUTS]
    memory: dict[int, int] = {}
    seen: list[LiveProgress] = []

    def look(progress: Progress) -> None:
        assert isinstance(progress, LiveProgress)
        seen.append(progress)
        for host in progress.status.hosts:
            memory[host.pid] = max(memory.get(host.pid, 0), peak_memory(host.pid))

    began = time.monotonic()
    store = tmp_path / "store"
    assert weir.run_live(PROGRAM, store, spark, directory=tmp_path, progress=look) is not None
    took = time.monotonic() - began
    assert [(tmp_path / name).read_bytes() for name in OUTPUTS] == wanted
    assert seen[-1].status.recoveries == 0
    waited = [float(p.read_text("utf-8")) for p in tmp_path.glob("waited-*")]
    steps = max(v.step_seconds or 0.0 for p in seen for v in p.status.vertices)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{declared or 'no state declared'}: {took:.1f} s, longest step {steps:.1f} s, hosts "
            f"with {max(memory.values()) / 1e6:.0f} MB, lock held up to {max(waited):.3f} s\n"
        )


def peak_memory(pid: int) -> int:
    """The most bytes that a process has had; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)
