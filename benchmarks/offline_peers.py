"""The offline queries by Polars and DuckDB, in one process with two threads.

    python benchmarks/offline_peers.py polars|duckdb QUERY DATA OUT ROUNDS

Prints the seconds of the best round, from opening the files to the written result.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "2"

import duckdb
import polars as pl

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

POLARS: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "grep": polars_grep,
    "wordcount": polars_wordcount,
    "join": polars_join,
    "distinct": polars_distinct,
}
PEERS = {"polars": POLARS, "duckdb": DUCKDB}


class _Files(dict[str, str]):
    """Every name as a scan of its files."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self._data = data

    def __missing__(self, name: str) -> str:
        return f"read_parquet('{self._data}/{name}/*.parquet')"


def main() -> None:
    peer, query, data, out, rounds = sys.argv[1:]
    best = float("inf")
    for _ in range(int(rounds)):
        start = time.perf_counter()
        if peer == "polars":
            POLARS[query](Path(data)).sink_parquet(out)
        else:
            connection = duckdb.connect()
            connection.execute("SET threads = 2")
            text = DUCKDB[query].format_map(_Files(Path(data)))
            connection.execute(f"COPY ({text}) TO '{out}' (FORMAT parquet)")
        best = min(best, time.perf_counter() - start)
    print(best)


if __name__ == "__main__":
    main()
