"""DataFrames as sources and as results."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import weir
from weir.errors import InputError, PlanError
from weir.plan.program import Output, Program
from weir.spark.offline.frames import from_spark
from weir.spark.offline.run_offline import run_offline

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def clicks(spark: SparkSession) -> DataFrame:
    rows = [(NOON + timedelta(seconds=t), f"u{t % 3}", t) for t in range(100)]
    return spark.createDataFrame(rows, "at timestamp, user string, n int").repartition(5)


def test_a_dataframe_through_windows_into_a_dataframe(spark: SparkSession) -> None:
    stream = from_spark(clicks(spark), vs="at")
    counts = stream.group_by("user").window(weir.tumbling("1m")).agg(s=weir.col("n").sum())
    made = counts.to_spark(spark)
    assert isinstance(made, DataFrame)
    assert made.schema.simpleString() == "struct<vs:timestamp,ve:timestamp,user:string,s:bigint>"
    wanted = clicks(spark).groupBy(f.window("at", "1 minute").start.alias("vs"), "user")
    expected = wanted.agg(f.sum("n").alias("s")).select("vs", "user", "s")
    assert sorted(made.select("vs", "user", "s").collect()) == sorted(expected.collect())


def test_order_does_not_depend_on_spark_s_partitions(spark: SparkSession) -> None:
    rows = [(1, 7, "b"), (1, 7, "a"), (2, 5, "d"), (1, 5, "c"), (9, 11, "e")]
    for parts in (1, 4):
        frame = spark.createDataFrame(rows, "t long, e long, k string").repartition(parts)
        stream = from_spark(frame, vs="t", ve="e")
        kept = stream.window(weir.tumbling(10)).agg(k=weir.col("k").collect())
        made = [tuple(row) for row in kept.to_spark(spark).collect()]
        assert sorted(made) == [(0, 10, ["c", "a", "b", "d", "e"]), (10, 20, ["e"])]


def test_every_type_goes_in_and_comes_out(spark: SparkSession) -> None:
    frame = spark.sql(
        """SELECT 5L AS t, 1Y AS a, 2S AS b, 3 AS c, 4L AS d, 1.5F AS e, 2.5D AS g, true AS h,
        'x' AS i, X'00FF' AS j, DATE'2026-01-02' AS k, TIMESTAMP_NTZ'2026-01-02 03:04:05' AS l,
        1.25BD AS m, array(1, null) AS n, named_struct('p', TIMESTAMP'2026-01-02 03:04:05Z') AS o"""
    )
    (row,) = from_spark(frame, vs="t").to_spark(spark).collect()
    (wanted,) = frame.collect()
    assert (row.vs, row.ve) == (5, 6)
    for name in "abcdeghijkmno":
        assert row[name] == wanted[name], name
    assert row.l == datetime(2026, 1, 2, 3, 4, 5)


def test_a_join_of_a_dataframe_and_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "ve": 9, "k": 1}\n', "utf-8")
    files = weir.stream("A", {"vs": "BIGINT", "ve": "BIGINT", "k": "BIGINT"}, "a.jsonl", vs="vs")
    frame = from_spark(spark.createDataFrame([(3, 1), (4, 2)], "t long, k long"), vs="t", name="B")
    both = files.join(frame, weir.col("A.k") == weir.col("B.k")).select(k="A.k")
    made = both.to_spark(spark, directory=tmp_path)
    assert [tuple(row) for row in made.collect()] == [(3, 4, 1)]


def test_a_dataframe_to_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    stream = from_spark(clicks(spark), vs="at")
    output = Output("Out", stream.select("n").node, f"{tmp_path}/out/")
    report = run_offline(Program((stream.node,), (), (output,)), spark)
    assert report.outputs[0].rows == 100 and report.events == 100
    assert spark.read.parquet(f"{tmp_path}/out").count() == 100


def test_what_a_dataframe_cannot_be(spark: SparkSession) -> None:
    with pytest.raises(PlanError, match="column `m` of the DataFrame is map<int,int>"):
        from_spark(spark.sql("SELECT 1L AS t, map(1, 2) AS m"), vs="t")
    with pytest.raises(PlanError, match="`vs` must be BIGINT or TIMESTAMP"):
        from_spark(spark.sql("SELECT 'x' AS t"), vs="t")
    with pytest.raises(PlanError, match="which only Spark reads"):
        weir.collect(from_spark(clicks(spark), vs="at"))


def test_a_start_that_is_null_is_told(spark: SparkSession, tmp_path: Path) -> None:
    stream = from_spark(spark.sql("SELECT CAST(NULL AS LONG) AS t, 1 AS v"), vs="t", name="Rows")
    output = Output("Out", stream.node, f"{tmp_path}/out.csv")
    with pytest.raises(InputError, match="DataFrame Rows, column t: a start must be a time"):
        run_offline(Program((stream.node,), (), (output,)), spark)


def test_two_dataframes_are_two(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, "x")], "t long, `a.b` string")
    two = spark.createDataFrame([(2, "y")], "t long, `a.b` string")
    both = from_spark(one, vs="t").union(from_spark(two, vs="t"))
    assert sorted(both.to_spark(spark).collect()) == [(1, 2, 1, "x"), (2, 3, 2, "y")]
    same = from_spark(one, vs="t", name="X").union(from_spark(two, vs="t", name="X"))
    with pytest.raises(PlanError, match="2 inputs are called X"):
        same.to_spark(spark)


def test_columns_that_nobody_needs_are_not_read(spark: SparkSession) -> None:
    made = from_spark(clicks(spark), vs="at").select("n").to_spark(spark)
    assert isinstance(made, DataFrame)
    assert made.count() == 100


def test_an_error_in_a_lazy_dataframe_begins_with_our_message(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": 4}\n{"vs": 2, "k": "x"}\n', "utf-8")
    rows = weir.stream("A", {"vs": "BIGINT", "k": "BIGINT"}, "a.jsonl", vs="vs")
    made = rows.to_spark(spark, directory=tmp_path)
    with pytest.raises(PySparkException) as raised:
        made.collect()
    said = str(raised.value).splitlines()
    assert said[1].startswith(f"weir.errors.InputError: {tmp_path}/a.jsonl, line 2, column k: ")
    assert not [line for line in said if "Traceback" in line]
