"""The kernel benchmarks: programs over generated events, and how a batch engine does the same.

Every workload has a Weir program, events that fit it, and the same query by Polars or DuckDB
over the whole batch at once, on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from weir.events.batch import Batch

SECOND = 1_000_000
MINUTE = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Workload:
    """A program, events for its streams (columns by name), and the peers' whole-batch queries."""

    name: str
    program: str
    make: Callable[[int], dict[str, dict[str, np.ndarray]]]
    peers: dict[str, Callable[[dict[str, pa.Table]], int]]
    """Each gives the number of result rows."""


def _stream(name: str, columns: str) -> str:
    return (
        f"STREAM {name} (vs BIGINT, ve BIGINT, {columns}) FROM '{name}.arrow' WITH (vs=vs, ve=ve);"
    )


def _points(n: int, seed: int, keys: int, per_second: int = 100_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    vs = np.arange(n, dtype=np.int64) * (SECOND // per_second)
    return {
        "vs": vs,
        "ve": vs + 1,
        "k": rng.integers(0, keys, n),
        "v": rng.integers(0, 1000, n),
    }


def _grep(tables: dict[str, pa.Table]) -> int:
    frame = pl.from_arrow(tables["A"])
    return (
        frame.lazy()
        .filter(pl.col("v") >= 900)
        .select("vs", "ve", "k", (pl.col("v") * 2 + 1).alias("w"))
        .collect()
        .height
    )


def _tumbling(tables: dict[str, pa.Table]) -> int:
    frame = pl.from_arrow(tables["A"])
    return (
        frame.lazy()
        .group_by((pl.col("vs") // MINUTE).alias("w"), "k")
        .agg(pl.len().alias("n"))
        .collect()
        .height
    )


def _hopping_polars(tables: dict[str, pa.Table]) -> int:
    frame = pl.from_arrow(tables["A"]).lazy()
    # Each event is in 15 windows; distinct first, so that fewer rows are multiplied.
    panes = frame.select((pl.col("vs") // (2 * SECOND)).alias("p"), "v").unique()
    windows = panes.with_columns(pl.int_ranges(pl.col("p") - 14, pl.col("p") + 1).alias("w"))
    return windows.explode("w").group_by("w").agg(pl.col("v").n_unique()).collect().height


def _join_duckdb(tables: dict[str, pa.Table]) -> int:
    con = duckdb.connect(config={"threads": 1})
    con.register("a", tables["A"])
    con.register("b", tables["B"])
    query = """SELECT greatest(a.vs, b.vs) AS vs, least(a.ve, b.ve) AS ve, a.k, a.v, b.v AS w
               FROM a JOIN b ON a.k = b.k AND a.vs < b.ve AND b.vs < a.ve"""
    return con.execute(query).to_arrow_table().num_rows


def _join_polars(tables: dict[str, pa.Table]) -> int:
    a, b = pl.from_arrow(tables["A"]).lazy(), pl.from_arrow(tables["B"]).lazy()
    pairs = a.join(b, on="k", suffix="_b").filter(
        (pl.col("vs") < pl.col("ve_b")) & (pl.col("vs_b") < pl.col("ve"))
    )
    return (
        pairs.select(
            pl.max_horizontal("vs", "vs_b"), pl.min_horizontal("ve", "ve_b"), "k", "v", "v_b"
        )
        .collect()
        .height
    )


def _snapshot_polars(tables: dict[str, pa.Table]) -> int:
    frame = pl.from_arrow(tables["A"]).lazy()
    starts = frame.select("k", pl.col("vs").alias("t"), "v", pl.lit(1).alias("n"))
    ends = frame.select("k", pl.col("ve").alias("t"), -pl.col("v"), pl.lit(-1).alias("n"))
    cells = (
        pl.concat([starts, ends])
        .group_by("k", "t")
        .agg(pl.col("v").sum(), pl.col("n").sum())
        .sort("k", "t")
        .with_columns(
            pl.col("v").cum_sum().over("k").alias("s"),
            pl.col("n").cum_sum().over("k").alias("c"),
            pl.col("t").shift(-1).over("k").alias("ve"),
        )
        .filter(pl.col("c") > 0)
    )
    return cells.select("t", "ve", "k", "s").collect().height


def _session_polars(tables: dict[str, pa.Table]) -> int:
    frame = pl.from_arrow(tables["A"]).lazy().sort("k", "vs")
    gap = (pl.col("vs") - pl.col("vs").shift(1)).over("k") >= 5 * SECOND
    return (
        frame.with_columns(gap.fill_null(True).cast(pl.Int64).cum_sum().alias("s"))
        .group_by("s")
        .agg(pl.col("vs").min(), pl.col("vs").max().alias("last"), pl.col("k").first(), pl.len())
        .collect()
        .height
    )


def _intervals(n: int, seed: int, keys: int, lifetime: int) -> dict[str, np.ndarray]:
    events = _points(n, seed, keys)
    return {**events, "ve": events["vs"] + lifetime}


def _two_sides(n: int) -> dict[str, dict[str, np.ndarray]]:
    half = n // 2
    left = _intervals(half, 1, 100_000, 2 * MINUTE)
    right = _intervals(half, 2, 100_000, 2 * MINUTE)
    # Spread in time so that a row meets a handful of the other side.
    for side in (left, right):
        side["vs"] = side["vs"] * 40
        side["ve"] = side["vs"] + 2 * MINUTE
    return {"A": left, "B": right}


A = _stream("A", "k BIGINT, v BIGINT")
B = _stream("B", "k BIGINT, v BIGINT")

WORKLOADS = (
    Workload(
        "filter + projection",
        f"{A} Out = SELECT k, v * 2 + 1 AS w FROM A WHERE v >= 900;",
        lambda n: {"A": _points(n, 0, 10_000)},
        {"Polars": _grep},
    ),
    Workload(
        "tumbling count by key",
        f"{A} Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(1m);",
        lambda n: {"A": _points(n, 0, 10_000)},
        {"Polars": _tumbling},
    ),
    Workload(
        "hopping 30s/2s distinct count",
        f"{A} Out = SELECT COUNT(DISTINCT v) AS n FROM A WITH HOPPING(30s, 2s);",
        lambda n: {
            "A": {**_points(n, 0, 10_000), "v": np.random.default_rng(3).integers(0, 1_000_000, n)}
        },
        {"Polars": _hopping_polars},
    ),
    Workload(
        "temporal inner join",
        f"{A} {B} Out = SELECT A.k AS k, A.v AS v, B.v AS w FROM A INNER JOIN B ON A.k = B.k;",
        _two_sides,
        {"Polars": _join_polars, "DuckDB": _join_duckdb},
    ),
    Workload(
        "snapshot sum",
        f"{A} Out = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH SNAPSHOT;",
        lambda n: {"A": _intervals(n, 0, 10_000, 10 * SECOND)},
        {"Polars": _snapshot_polars},
    ),
    Workload(
        "session",
        f"{A} Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH SESSION(5s);",
        lambda n: {"A": {**_points(n, 0, 100_000)}},
        {"Polars": _session_polars},
    ),
)


def as_batches(columns: dict[str, np.ndarray], size: int) -> list[Batch]:
    """Entries of this many events."""
    n = len(columns["vs"])
    payload = [pa.array(values) for name, values in columns.items() if name not in ("vs", "ve")]
    return [
        Batch(
            columns["vs"][i : i + size],
            columns["ve"][i : i + size],
            tuple(c.slice(i, size) for c in payload),
        )
        for i in range(0, n, size)
    ]
