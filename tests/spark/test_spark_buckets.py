"""Both runners on Spark over objects in buckets: the bytes of the local runner, and no shared
folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import weir
from buckets import Bucket, new_bucket
from weir import cli
from weir.errors import DeterminismViolation, InputError
from weir.spark.offline import run_offline as offline

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = """
    STREAM A (vs BIGINT, k STRING, v BIGINT) FROM '{source}';
    Sums = SELECT k, SUM(v) AS total FROM A GROUP BY k WITH TUMBLING(10);
    OUTPUT Sums TO '{output}';
    OUTPUT A TO '{copy}';
"""


UNSTEADY = """
import weir

@weir.udf(args=["BIGINT"], result="BIGINT")
def unsteady(v):
    return v + hash(str(v)) % 1000
"""


@pytest.fixture
def bucket(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket with three objects; workers know it by their own environment."""
    with new_bucket(monkeypatch) as made:
        for part in range(3):
            rows = (f'{{"vs": {i}, "k": "{"ab"[i % 2]}", "v": {i}}}\n' for i in range(part, 900, 3))
            made.put(f"in/{part}.jsonl", "".join(rows))
        for name, value in made.environment.items():
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        yield made


def program(bucket: Bucket, folder: str) -> str:
    return PROGRAM.format(
        source=f"{bucket.url}/in/*.jsonl",
        output=f"{bucket.url}/{folder}/sums.parquet",
        copy=f"{bucket.url}/{folder}/copy.csv",
    )


def objects(bucket: Bucket, folder: str) -> dict[str, bytes]:
    keys = [key for key in bucket.names() if key.startswith(f"{folder}/")]
    return {key.removeprefix(f"{folder}/"): bucket.get(key) for key in keys}


def test_offline(spark: SparkSession, bucket: Bucket) -> None:
    local = weir.run(program(bucket, "local"))
    report = weir.run_offline(program(bucket, "offline"), spark)
    assert [o.digest for o in report.outputs] == [o.digest for o in local.outputs]
    wanted = objects(bucket, "local")
    assert len(wanted) == 4 and objects(bucket, "offline") == wanted
    bucket.put("in/3.jsonl", "nonsense\n")
    with pytest.raises(InputError, match=r"in/3\.jsonl, line 1"):
        weir.run_offline(program(bucket, "offline"), spark)
    assert objects(bucket, "offline") == wanted


def test_offline_is_checked_without_a_folder_that_all_workers_see(
    spark: SparkSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(offline, "is_local", lambda spark: False)
    weir.run_offline(program(bucket, "checked"), spark, check=True)
    weir.run(program(bucket, "local"))
    assert objects(bucket, "checked") == objects(bucket, "local")
    (tmp_path / "mine.py").write_text(UNSTEADY, "utf-8")
    text = f"IMPORT 'mine.py'; {program(bucket, 'unsteady')}".replace("SUM(v)", "SUM(unsteady(v))")
    with pytest.raises(DeterminismViolation, match="was another row, in a second run it is"):
        weir.run_offline(text, spark, directory=tmp_path, check=True)
    assert objects(bucket, "unsteady") == {}, "nothing is put, and nothing is left beside"


def test_live(spark: SparkSession, bucket: Bucket) -> None:
    """The store is in the bucket too."""
    weir.run(program(bucket, "local"))
    report = weir.run_live(program(bucket, "live"), f"{bucket.url}/job", spark, hosts=1)
    assert report is not None
    assert objects(bucket, "live") == objects(bucket, "local")
    arguments = ["read", f"{bucket.url}/job", "Sums", "--to", f"{bucket.url}/read/sums.parquet"]
    assert CliRunner().invoke(cli.app, arguments).exit_code == 0
    assert objects(bucket, "read").items() <= objects(bucket, "local").items()
