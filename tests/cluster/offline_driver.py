"""A driver of offline jobs, on a machine of a cluster or as a client of its Spark Connect server.

    python offline_driver.py MASTER FOLDER PROGRAM… [--conf NAME=VALUE]… [--frames]

Runs the programs one after the other in one session, each over FOLDER. With `--frames`, the clicks
there go through weir.from_spark and to_spark too, into `frames.parquet`. Every line that it prints
is a JSON object: how far a program is (`share`, from 0 to 1), or its seconds and its digests.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import weir
from weir.runtime.reports import Progress
from weir.spark.session import make_session


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("master")
    parser.add_argument("folder", type=Path)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--frames", action="store_true")
    given = parser.parse_args()
    spark = make_session(given.master, dict(pair.split("=", 1) for pair in given.conf))
    for program in given.programs:
        run(spark, program, given.folder)
    if given.frames:
        frames(spark, given.folder)
    spark.stop()


def say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def run(spark: SparkSession, program: Path, folder: Path) -> None:
    def tell(progress: Progress) -> None:
        say(program=program.stem, share=progress.read / max(progress.size, 1))

    began = time.monotonic()
    report = weir.run_offline(program, spark, directory=folder, progress=tell)
    seconds = time.monotonic() - began
    digests = {output.name: output.digest for output in report.outputs}
    say(program=program.stem, seconds=seconds, digests=digests)


def frames(spark: SparkSession, folder: Path) -> None:
    """Count clicks from a DataFrame to a DataFrame."""
    clicks = weir.from_spark(spark.read.parquet(f"file://{folder}/clicks"), vs="t")
    pq.write_table(click_counts(clicks).to_spark(spark).toArrow(), folder / "frames.parquet")


def click_counts(clicks: weir.Stream) -> weir.Stream:
    """Count clicks by address and minute."""
    return clicks.group_by("url").window(weir.tumbling("1m")).agg(n=weir.count())


if __name__ == "__main__":
    main()
