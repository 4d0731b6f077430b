"""The offline queries by Spark SQL with two cores, Polars and DuckDB with two threads.

    python benchmarks/offline_peers.py spark|polars|duckdb QUERY DATA OUT ROUNDS

Prints the seconds of the best round, from opening the files to the written result, and how many
bytes a round wrote to shuffles. Spark runs the query once before it is timed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "2"

import duckdb
import polars as pl
from pyspark.sql import SparkSession

from weir.spark.java import java_home

MINUTE, SECOND = 60_000_000, 1_000_000


def _scan(data: Path, name: str) -> pl.LazyFrame:
    return pl.scan_parquet(data / name / "*.parquet")


def polars_grep(data: Path) -> pl.LazyFrame:
    found = _scan(data, "lines").filter(pl.col("line").str.contains("error", literal=True))
    return found.select(vs="t", ve=pl.col("t") + 1, line="line")


def polars_wordcount(data: Path) -> pl.LazyFrame:
    words = _scan(data, "words").select(m=pl.col("t") // MINUTE, word=pl.col("line").str.split(" "))
    return words.explode("word").group_by("m", "word").len()


def polars_join(data: Path) -> pl.LazyFrame:
    left, right = _scan(data, "left"), _scan(data, "right")
    met = left.join(right, on="k").filter(
        (pl.col("t") < pl.col("t_right") + 90 * SECOND)
        & (pl.col("t_right") + 30 * SECOND < pl.col("t") + 120 * SECOND)
    )
    return met.select(
        vs=pl.max_horizontal("t", pl.col("t_right") + 30 * SECOND),
        ve=pl.min_horizontal(pl.col("t") + 120 * SECOND, pl.col("t_right") + 90 * SECOND),
        k="k",
        v="v",
        w="v_right",
    )


def polars_distinct(data: Path) -> pl.LazyFrame:
    panes = _scan(data, "clicks").select(pane=pl.col("t") // (2 * SECOND), url="url").unique()
    windows = panes.with_columns(w=pl.int_ranges(pl.col("pane") - 14, pl.col("pane") + 1))
    return windows.explode("w").group_by("w").agg(n=pl.col("url").n_unique())


DUCKDB = {
    "grep": "SELECT t AS vs, t + 1 AS ve, line FROM {lines} WHERE contains(line, 'error')",
    "wordcount": """SELECT m, word, count(*) AS n
        FROM (SELECT t // 60000000 AS m, unnest(string_split(line, ' ')) AS word FROM {words})
        GROUP BY m, word""",
    "join": """SELECT greatest(a.t, b.t + 30000000) AS vs,
          least(a.t + 120000000, b.t + 90000000) AS ve, a.k AS k, a.v AS v, b.v AS w
        FROM {left} a JOIN {right} b ON a.k = b.k
          AND a.t < b.t + 90000000 AND b.t + 30000000 < a.t + 120000000""",
    "distinct": """SELECT w, count(DISTINCT url) AS n FROM (
          SELECT url, unnest(range(p - 14, p + 1)) AS w
          FROM (SELECT DISTINCT t // 2000000 AS p, url FROM {clicks})) GROUP BY w""",
}

_PANES = "SELECT p AS pane, url FROM (SELECT DISTINCT t div 2000000 AS p, url FROM clicks)"
_SUMS = "SELECT t div 60000000 AS m, k, count(*) AS n, sum(v) AS s FROM {} GROUP BY 1, 2"

SPARK = {
    "grep": "SELECT t AS vs, t + 1 AS ve, line FROM lines WHERE contains(line, 'error')",
    "wordcount": """SELECT m * 60000000 AS vs, m * 60000000 + 60000000 AS ve, word, count(*) AS n
        FROM (SELECT t div 60000000 AS m, explode(split(line, ' ')) AS word FROM words)
        GROUP BY m, word""",
    "join": """SELECT greatest(a.t, b.t + 30000000) AS vs,
          least(a.t + 120000000, b.t + 90000000) AS ve, a.k AS k, a.v AS v, b.v AS w
        FROM left a JOIN right b ON a.k = b.k
          AND a.t < b.t + 90000000 AND b.t + 30000000 < a.t + 120000000""",
    "distinct": f"""SELECT w * 2000000 AS vs, w * 2000000 + 30000000 AS ve,
          count(DISTINCT url) AS n
        FROM (SELECT url, explode(sequence(pane - 14, pane)) AS w FROM ({_PANES})) GROUP BY w""",
    "uniform": _SUMS.format("uniform"),
    "skewed": _SUMS.format("skewed"),
}

POLARS: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "grep": polars_grep,
    "wordcount": polars_wordcount,
    "join": polars_join,
    "distinct": polars_distinct,
}
PEERS = {"spark": SPARK, "polars": POLARS, "duckdb": DUCKDB}


class _Files(dict[str, str]):
    """Every name as a scan of its files."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self._data = data

    def __missing__(self, name: str) -> str:
        return f"read_parquet('{self._data}/{name}/*.parquet')"


def logging_to(log: Path) -> dict[str, str]:
    """The settings of a session whose events `shuffled` reads."""
    log.mkdir()
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{log}",
        "spark.eventLog.compress": "false",
    }


def shuffled(log: Path) -> Callable[[], int]:
    """How many bytes were written to shuffles since the last call, by Spark's event log."""
    seen = 0

    def since() -> int:
        nonlocal seen
        total = 0
        for file in log.rglob("*"):
            if file.is_file():
                for line in file.read_text().splitlines():
                    if '"SparkListenerTaskEnd"' in line:
                        metrics = json.loads(line).get("Task Metrics") or {}
                        written = metrics.get("Shuffle Write Metrics", {})
                        total += written.get("Shuffle Bytes Written", 0)
        new, seen = total - seen, total
        return new

    return since


def timed(run: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def run_spark(query: str, data: Path, out: str, rounds: int) -> tuple[float, float]:
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
        for key, value in logging_to(log).items():
            builder = builder.config(key, value)
        builder = builder.config("spark.ui.enabled", "false")
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        for table in data.iterdir():
            spark.read.parquet(str(table)).createOrReplaceTempView(table.name)
        native = spark.sql(SPARK[query])
        native.write.mode("overwrite").parquet(out)
        bytes_since = shuffled(log)
        bytes_since()
        seconds = timed(lambda: native.write.mode("overwrite").parquet(out), rounds)
        written = bytes_since() / rounds
        spark.stop()
    return seconds, written


def run_duckdb(query: str, data: Path, out: str) -> None:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    text = DUCKDB[query].format_map(_Files(data))
    connection.execute(f"COPY ({text}) TO '{out}' (FORMAT parquet)")


def main() -> None:
    peer, query, folder, out, count = sys.argv[1:]
    data, rounds, written = Path(folder), int(count), 0.0
    if peer == "spark":
        seconds, written = run_spark(query, data, f"{out}.spark", rounds)
    elif peer == "polars":
        seconds = timed(lambda: POLARS[query](data).sink_parquet(out), rounds)
    else:
        seconds = timed(lambda: run_duckdb(query, data, out), rounds)
    print(seconds, written)


if __name__ == "__main__":
    main()
