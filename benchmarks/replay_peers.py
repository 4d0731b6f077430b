"""The spam rules by a plain Python loop, by Polars and by Spark's window functions.

    python benchmarks/replay_peers.py python|polars|spark heavy|light DATA OUT ROUNDS

Each reads the same Parquet files and writes the spam found as Parquet (`vs`, `ve`, `message`,
`sender`); prints a JSON object: what each round took (`replay_measure.py`), from opening the files
to the written result. `heavy` looks for e-mail addresses in the content; `light` reads no content,
a test of a number takes the place of the search: what is left is the work on state.

Equal instants: friendships come before messages, messages in the order of their ids. So a message
sees the friendships of its own instant.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from replay_measure import Usage, measured

EMAIL = r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+\.[a-zA-Z]+"
SPAM = pa.schema([(name, pa.int64()) for name in ("vs", "ve", "message", "sender")])


def parts(data: Path, log: str) -> list[Path]:
    return sorted((data / log).glob("*.parquet"))


# --- the loop ------------------------------------------------------------------------------


def python_loop(data: Path, variant: str, out: Path) -> None:
    """One loop over columns as Python lists, file by file; keys are numbers or shared strings."""
    found: list[tuple[int, int, int]] = []
    emit = found.append
    friends: set[int] = set()
    befriend = friends.add
    friend_msgs: defaultdict[int, int] = defaultdict(int)
    nonfriend_msgs: defaultdict[int, int] = defaultdict(int)
    ip_msgs: defaultdict[str, int] = defaultdict(int)
    ip_email_msgs: defaultdict[str, int] = defaultdict(int)
    search = re.compile(EMAIL).search
    heavy = variant == "heavy"
    pairs, times = _friendships(data)
    begun = 0  # the friendships that are in `friends`
    for path in parts(data, "message"):
        for event, pair, sender, ip, ts, content in _messages(path, heavy):
            while times[begun] <= ts:
                befriend(pairs[begun])
                begun += 1
            if pair in friends:
                friend_msgs[sender] += 1
            else:
                nonfriend_msgs[sender] += 1
            ip_msgs[ip] += 1
            if search(content) if heavy else content:
                ip_email_msgs[ip] += 1
            if (
                nonfriend_msgs[sender] > 2 * friend_msgs[sender]
                and ip_email_msgs[ip] > 0.2 * ip_msgs[ip]
            ):
                emit((ts, event, sender))
    write_found(found, out)


def _friendships(data: Path) -> tuple[list[int], list[int]]:
    """Each friendship as one number, and its time; a last one that never comes."""
    pairs: list[int] = []
    times: list[int] = []
    for path in parts(data, "friendship"):
        table = pq.read_table(path)
        a, b, ts = (table.column(n).to_numpy() for n in ("a", "b", "ts"))
        pairs += ((a << 32) | b).tolist()
        times += ts.tolist()
    return pairs, [*times, sys.maxsize]


def _messages(path: Path, heavy: bool):  # type: ignore[no-untyped-def]
    """Rows of (id, sender and recipient in one number, sender, ip, time, content)."""
    columns = ["id", "sender", "recipient", "ip", "ts"] + ["content"] * heavy
    for batch in pq.ParquetFile(path, read_dictionary=["ip"]).iter_batches(
        1 << 17, columns=columns
    ):
        column = dict(zip(batch.schema.names, batch.columns, strict=True))
        sender = column["sender"].to_numpy()
        recipient = column["recipient"].to_numpy()
        ips = column["ip"].dictionary.to_pylist()  # equal addresses are one object
        yield from zip(
            column["id"].to_numpy().tolist(),
            ((sender << 32) | recipient).tolist(),
            sender.tolist(),
            map(ips.__getitem__, column["ip"].indices.to_numpy().tolist()),
            column["ts"].to_numpy().tolist(),
            column["content"].to_pylist() if heavy else (recipient % 4 == 0).tolist(),
            strict=True,
        )


def write_found(found: list[tuple[int, int, int]], out: Path) -> None:
    array = np.array(found, dtype=np.int64).reshape(-1, 3)
    columns = (array[:, 0], array[:, 0] + 1, array[:, 1], array[:, 2])
    pq.write_table(pa.table(dict(zip(SPAM.names, columns, strict=True))), out)


# --- Polars --------------------------------------------------------------------------------


def polars_query(data: Path, variant: str, out: Path) -> None:
    import polars as pl

    friendships = pl.scan_parquet(data / "friendship" / "*.parquet")
    first = friendships.group_by("a", "b").agg(since=pl.col("ts").min())
    email = pl.col("content").str.contains(EMAIL)
    messages = pl.scan_parquet(data / "message" / "*.parquet").select(
        "id",
        "sender",
        "recipient",
        "ip",
        "ts",
        email=email if variant == "heavy" else pl.col("recipient") % 4 == 0,
    )
    known = messages.join(
        first,
        left_on=["sender", "recipient"],
        right_on=["a", "b"],
        how="left",
        maintain_order="left",
    ).with_columns(friend=(pl.col("since") <= pl.col("ts")).fill_null(False))
    counted = known.select(
        "id",
        "sender",
        "ts",
        friends=pl.col("friend").cum_sum().over("sender"),
        strangers=(~pl.col("friend")).cum_sum().over("sender"),
        emails=pl.col("email").cum_sum().over("ip"),
        sent=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("ip"),
    )
    found = counted.filter(
        (pl.col("strangers").cast(pl.Int64) > 2 * pl.col("friends").cast(pl.Int64))
        & (pl.col("emails") > 0.2 * pl.col("sent"))
    )
    found.select(
        vs="ts", ve=pl.col("ts") + 1, message="id", sender="sender"
    ).collect().write_parquet(out)


# --- Spark ---------------------------------------------------------------------------------

SPARK_QUERY = """
WITH first AS (SELECT a, b, min(ts) AS since FROM friendship GROUP BY a, b),
known AS (
  SELECT id, sender, ip, ts, {email} AS email, coalesce(since <= ts, false) AS friend
  FROM message LEFT JOIN first ON sender = a AND recipient = b),
by_sender AS (
  SELECT id, sender, ip, ts, email,
    sum(CASE WHEN friend THEN 1 ELSE 0 END) OVER s AS friends,
    sum(CASE WHEN friend THEN 0 ELSE 1 END) OVER s AS strangers
  FROM known
  WINDOW s AS (PARTITION BY sender ORDER BY ts, id ROWS UNBOUNDED PRECEDING)),
by_ip AS (
  SELECT id, sender, ts, friends, strangers,
    sum(CASE WHEN email THEN 1 ELSE 0 END) OVER i AS emails,
    count(*) OVER i AS sent
  FROM by_sender
  WINDOW i AS (PARTITION BY ip ORDER BY ts, id ROWS UNBOUNDED PRECEDING))
SELECT ts AS vs, ts + 1 AS ve, id AS message, sender
FROM by_ip WHERE strangers > 2 * friends AND emails > 0.2D * sent
"""


def spark_rounds(data: Path, variant: str, out: Path, rounds: int) -> Usage:
    """The same session as in `offline_peers.py`: Spark's defaults, two cores, 4 GB."""
    from pyspark.sql import SparkSession

    from weir.spark.java import java_home

    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    email = f"content RLIKE '{EMAIL}'" if variant == "heavy" else "recipient % 4 = 0"
    query = SPARK_QUERY.format(email=email.replace("\\", "\\\\"))

    def run(folder: Path) -> None:
        for log in ("friendship", "message"):
            spark.read.parquet(str(folder / log)).createOrReplaceTempView(log)
        spark.sql(query).write.mode("overwrite").parquet(str(out))

    # A small log starts Spark's threads and compiles the query: not counted, as for Weir.
    for _ in range(3):
        run(data.parent / "small")
    usage = measured(lambda: run(data), rounds)
    spark.stop()
    return usage


# --- all -----------------------------------------------------------------------------------


def main() -> None:
    peer, variant, folder, target, count = sys.argv[1:]
    data, out, rounds = Path(folder), Path(target), int(count)
    if peer == "spark":
        usage = spark_rounds(data, variant, out, rounds)
    else:
        run = {"python": python_loop, "polars": polars_query}[peer]
        usage = measured(lambda: run(data, variant, out), rounds)
    print(json.dumps(asdict(usage)))


if __name__ == "__main__":
    main()
