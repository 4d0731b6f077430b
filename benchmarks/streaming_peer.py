"""The live benchmarks by Structured Streaming, on `local[2]` with Spark's defaults.

    python benchmarks/streaming_peer.py latency grep|wordcount SECONDS
    python benchmarks/streaming_peer.py throughput grep|wordcount|join|distinct DATA

Latency: rows of a socket; prints p50 and p99 in ms, measured as in `live_latency.py`. Throughput:
the Parquet files of `offline_data.py`, one file a batch; prints seconds, as the sum of what Spark
says that its batches took, so without its start. As many shuffle partitions as cores, since 200
would only cost it time. A distinct count is not allowed on a stream: rows of a window and url are
made unique, then counted.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from live_feed import RATES, free_port, percentiles, write_socket
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from weir.spark.java import java_home

WARM_UP = 15.0
"""Its code is compiled while it runs, for longer than Weir's."""


def main() -> None:
    kind, name, rest = sys.argv[1:]
    spark = start()
    if kind == "latency":
        print(*latency(spark, name, float(rest)))
    else:
        print(throughput(spark, name, Path(rest)))
    spark.stop()


def start() -> SparkSession:
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    return builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()


# --- latency -------------------------------------------------------------------------------


def latency(spark: SparkSession, name: str, seconds: float) -> tuple[float, float]:
    port = free_port()
    maker = multiprocessing.get_context("spawn").Process(
        target=write_socket, args=(port, RATES[name], seconds)
    )
    maker.start()
    time.sleep(3)  # until it listens
    read = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port)
    rows = (
        read.load().select(f.from_json("value", "t BIGINT, line STRING").alias("r")).select("r.*")
    )
    query = grep(rows) if name == "grep" else wordcount(rows, "5 seconds")
    pairs: list[np.ndarray] = []  # type: ignore[type-arg]

    def note(batch: DataFrame, number: int) -> None:
        due = batch.select("due").toArrow().column("due").to_numpy()
        pairs.append(np.stack([np.full(len(due), time.time() * 1e6), due], axis=1))

    with tempfile.TemporaryDirectory() as folder:
        writer = query.writeStream.foreachBatch(note).option("checkpointLocation", folder)
        running = writer.start()
        running.awaitTermination(int(seconds + 8))
        running.stop()
    maker.join()
    return percentiles(np.concatenate(pairs), WARM_UP)


def grep(rows: DataFrame) -> DataFrame:
    return rows.where(f.contains("line", f.lit("error"))).select(f.col("t").alias("due"), "line")


def wordcount(rows: DataFrame, width: str) -> DataFrame:
    words = timed(rows).select("at", f.explode(f.split("line", " ")).alias("word"))
    counted = words.groupBy(f.window("at", width), "word").count()
    return counted.select(f.unix_micros("window.end").alias("due"), "word", "count")


def timed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("at", f.timestamp_micros("t")).withWatermark("at", "0 seconds")


# --- throughput ----------------------------------------------------------------------------


def throughput(spark: SparkSession, name: str, data: Path) -> float:
    def read(table: str) -> DataFrame:
        first = next((data / table).glob("*.parquet"))
        known = spark.read.parquet(str(first)).schema
        stream = spark.readStream.schema(known).option("maxFilesPerTrigger", 1)
        return stream.parquet(str(data / table))

    match name:
        case "grep":
            query = grep(read("lines"))
        case "wordcount":
            query = wordcount(read("words"), "1 minute")
        case "join":
            query = join(timed(read("left")), timed(read("right")))
        case _:
            query = distinct(timed(read("clicks")))
    with tempfile.TemporaryDirectory() as folder:
        writer = query.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        writer = writer.trigger(availableNow=True).format("parquet").option("path", f"{folder}/out")
        running = writer.start()
        running.awaitTermination()
        # The last batches have no rows: they only close windows.
        took = [p.durationMs["triggerExecution"] for p in running.recentProgress]
    return sum(took) / 1e3


def join(left: DataFrame, right: DataFrame) -> DataFrame:
    a, b = left.alias("a"), right.alias("b")
    seconds = "INTERVAL {} SECONDS".format
    meet = f.expr(
        f"a.k = b.k AND a.at < b.at + {seconds(90)} "
        f"AND b.at + {seconds(30)} < a.at + {seconds(120)}"
    )
    return a.join(b, meet).select(
        "a.k", "a.v", f.col("b.v").alias("w"), "a.at", f.col("b.at").alias("bt")
    )


def distinct(clicks: DataFrame) -> DataFrame:
    windows = clicks.select(f.window("at", "30 seconds", "2 seconds").alias("w"), "url")
    once = windows.dropDuplicates(["w", "url"])
    return once.groupBy("w").count().select("w.start", "count")


if __name__ == "__main__":
    main()
