"""The answers of Nexmark's queries are those of DuckDB, over other events than the page's."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from examples.nexmark_answers import ANSWERS

NEXMARK = Path(__file__).parents[2] / "examples" / "nexmark"
TIMES = {
    "person": ["dateTime"],
    "auction": ["dateTime", "expires"],
    "bid": ["dateTime"],
    "side": ["since"],
}


def in_utc(rows: pa.Table) -> pa.Table:
    """The rows with their times as DuckDB's TIMESTAMP, which is in no zone."""
    plain = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(plain))


@pytest.fixture(scope="module")
def log(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("nexmark")
    generate = runpy.run_path(str(NEXMARK / "generate.py"))["generate"]
    generate(folder / "data", events=2000, seed=7)
    with duckdb.connect() as db:
        for name, times in TIMES.items():
            made = ", ".join(f"{time}::TIMESTAMP AS {time}" for time in times)
            rows = f"read_json('{folder}/data/{name}.jsonl')"
            db.execute(f"CREATE TABLE {name} AS SELECT * REPLACE ({made}) FROM {rows}")
        yield folder, db


def test_persons_auctions_and_bids_are_1_to_3_to_46(log) -> None:
    _, db = log
    counts = [
        db.sql(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        for name in ("person", "auction", "bid")
    ]
    assert counts == [40, 120, 1840]


@pytest.mark.parametrize("query", ANSWERS)
def test_duckdb_says_the_same(query: int, log) -> None:
    folder, db = log
    weir.run(NEXMARK / f"q{query}.weir", directory=folder)
    db.register("out", in_utc(pq.read_table(folder / "out" / f"q{query}.parquet")))
    ours, theirs = ANSWERS[query]
    assert db.sql(theirs).fetchall()
    assert db.sql(f"({ours}) EXCEPT ALL ({theirs})").fetchall() == []
    assert db.sql(f"({theirs}) EXCEPT ALL ({ours})").fetchall() == []
