"""Spark reads what a live job has committed: `format("weir")`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import weir
from committed_job import Job, rows
from weir.spark import data_source
from weir.spark.data_source import CommittedSource

pytestmark = pytest.mark.xdist_group("spark")


def test_committed_rows_are_a_table_and_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    job, store = Job(tmp_path), str(tmp_path / "store")

    def follow() -> list[tuple[object, ...]]:
        """Let a streaming query go on from its checkpoint; return all that it has written."""
        query = (
            spark.readStream.format("weir")
            .option("output", "B")
            .load(store)
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "followed"), format="json")
        )
        query.awaitTermination()
        written = spark.read.schema("vs LONG, ve LONG, v LONG").json(str(tmp_path / "followed"))
        return sorted(map(tuple, written.collect()))

    job.commit(rows(3, 1))
    job.commit(rows())
    job.commit(rows(7))
    assert follow() == [(1, 2, 1), (3, 4, 3), (7, 8, 7)]
    job.commit(rows(2, 9))
    job.finish(names_last=True)
    found = [(1, 2, 1), (2, 3, 2), (3, 4, 3), (7, 8, 7), (9, 10, 9)]
    assert follow() == found

    table = spark.read.format("weir").load(store)
    assert table.schema.simpleString() == "struct<vs:bigint,ve:bigint,v:bigint>"
    assert sorted(map(tuple, table.collect())) == found
    since = spark.read.format("weir").options(output="B", since=3).load(store)
    assert sorted(map(tuple, since.collect())) == [(2, 3, 2), (9, 10, 9)]
    with pytest.raises(PySparkException, match="there is no store"):
        spark.read.format("weir").load(str(tmp_path / "nowhere"))


def test_what_options_ask_for(tmp_path: Path) -> None:
    job = Job(tmp_path)
    store = str(tmp_path / "store")
    assert CommittedSource({"path": store}).schema().names == ["vs", "ve", "v"]
    bad = CommittedSource({"path": store, "kind": "bad"}).schema()
    assert bad.names == ["file", "offset", "line", "column", "row", "reason"]
    for options, said in [
        ({"output": "Other"}, "Other"),
        (
            {"kind": "late"},
            r'which output\? \.option\("output", NAME\); the job has B, bad rows of A',
        ),
        ({"kind": "worst"}, "no kind `worst`; there are rows, late, bad"),
        ({"since": "-1"}, "`since` counts commits"),
        ({"outputs": "B"}, "no option `outputs`"),
    ]:
        with pytest.raises(weir.WeirError, match=said):
            CommittedSource({"path": store, **options}).schema()
    with pytest.raises(weir.WeirError, match="which job"):
        CommittedSource({})
    with pytest.raises(weir.WeirError, match=r"leave \.schema"):
        CommittedSource({"path": store}).reader(bad)
    job.commit(rows(1))
    ahead = CommittedSource({"path": store, "since": "5"})
    reader = ahead.reader(ahead.schema())
    with pytest.raises(weir.WeirError, match="no commit 4"):
        reader.partitions()


def test_large_outputs_are_read_by_several_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_source, "PARTITION_ROWS", 3)
    job = Job(tmp_path)
    for batch in (rows(1), rows(2, 3), rows(4, 5, 6), rows(7)):
        job.commit(batch)
    source = CommittedSource({"path": str(tmp_path / "store")})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    read = [[v for r in reader.read(p) for v in r.column("v").to_pylist()] for p in parts]
    assert read == [[1, 2, 3], [4, 5, 6], [7]]


def test_a_query_is_a_transform_of_dataframes(spark: SparkSession) -> None:
    rows = [(1, "x", 2), (4, "y", 5), (3, "x", 7)]
    frame = spark.createDataFrame(rows, "t long, k string, v long")
    sums = weir.spark_transform(
        lambda stream: stream.group_by("k").window(weir.tumbling(10)).agg(s=weir.col("v").sum()),
        vs="t",
    )
    assert frame.transform(sums).where("s > 5").collect() == [(0, 10, "x", 9)]
