"""Two hosts have one link: their threads and sockets do not grow with the parallelism."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import weir
from weir.runtime.reports import Progress
from weir.spark.live.run_live import LiveProgress

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc"),
]

HOSTS = 2
PROGRAM = """
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://8000?rows=40000&keys=500' WITH (vs = t);
Sums = SELECT k, SUM(value) AS s FROM R GROUP BY k WITH TUMBLING(1s);
Kinds = SELECT s, COUNT(*) AS n FROM Sums GROUP BY s WITH TUMBLING(2s);
OUTPUT Kinds TO 'kinds.jsonl';
"""


def sockets(pid: int) -> int:
    files = Path(f"/proc/{pid}/fd").iterdir()
    return sum(str(file.readlink()).startswith("socket:") for file in files)


def test_threads_and_sockets_of_hosts_at_a_parallelism_of_24(
    spark: SparkSession, tmp_path: Path
) -> None:
    weir.run(PROGRAM, directory=tmp_path)
    wanted = (tmp_path / "kinds.jsonl").read_bytes()
    (tmp_path / "kinds.jsonl").unlink()
    threads: Counter[int] = Counter()
    open_sockets: Counter[int] = Counter()

    def look(progress: Progress) -> None:
        assert isinstance(progress, LiveProgress)
        for host in progress.status.hosts:
            try:
                running = len(list(Path(f"/proc/{host.pid}/task").iterdir()))
                open_sockets[host.pid] = max(open_sockets[host.pid], sockets(host.pid))
            except FileNotFoundError:
                continue  # it has just ended
            threads[host.pid] = max(threads[host.pid], running)

    weir.run_live(
        PROGRAM,
        tmp_path / "store",
        spark,
        directory=tmp_path,
        parallelism=24,
        hosts=HOSTS,
        progress=look,
    )
    assert (tmp_path / "kinds.jsonl").read_bytes() == wanted
    assert len(threads) == HOSTS
    assert max(threads.values()) <= 32 + 2 * HOSTS, threads
    assert max(open_sockets.values()) <= 32 + 2 * HOSTS, open_sockets
