"""`weir.run_live`: callbacks, stopping and going on, TLS; the answer of `weir.run`."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weir
from certificates import certificate
from weir.job.status import JobStatus

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = """
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://4000?rows=24000&keys=5' WITH (vs = t);
Sums = SELECT k, SUM(value) AS s FROM R GROUP BY k WITH TUMBLING(1s);
OUTPUT Sums TO 'sums.csv';
"""
CALLBACK = "OUTPUT Sums TO 'callback:';"


def writing(path: Path) -> Callable[[int, int, pa.RecordBatch], None]:
    def write(partition: int, seq: int, rows: pa.RecordBatch) -> None:
        with path.open("a", encoding="utf-8") as file:
            for place, row in enumerate(rows.to_pylist()):
                file.write(f"{partition} {seq + place} {row['vs']} {row['k']} {row['s']}\n")

    return write


def test_callbacks_stopping_and_going_on_over_tls(spark: SparkSession, tmp_path: Path) -> None:
    local = weir.run(PROGRAM, directory=tmp_path)
    wanted = (tmp_path / "sums.csv").read_bytes()
    (tmp_path / "sums.csv").unlink()
    seen: list[JobStatus] = []
    told = tmp_path / "told"
    cert, key = certificate(tmp_path, "job")

    def run(*, resume: bool, stop: Callable[[], bool] | None = None) -> object:
        return weir.run_live(
            PROGRAM + CALLBACK, tmp_path / "store", spark, directory=tmp_path, hosts=1,
            resume=resume, callbacks={"Sums": writing(told)}, watch=seen.append, stop=stop,
            tls=(cert, key),
        )  # fmt: skip

    assert run(resume=False, stop=lambda: bool(seen) and seen[-1].events > 8000) is None
    assert seen[-1].hosts[0].address.startswith("grpc+tls://")
    assert not (tmp_path / "sums.csv").exists()
    done = run(resume=True)
    assert done is not None
    assert (tmp_path / "sums.csv").read_bytes() == wanted
    found = weir.read_committed(str(tmp_path / "store"), "Sums")
    assert found.digest == local.outputs[0].digest
    rows = {tuple(map(int, line.split())) for line in told.read_text("utf-8").splitlines()}
    assert {(vs, k, s) for _, _, vs, k, s in rows} == {
        (row["vs"], row["k"], row["s"]) for row in found.table.to_pylist()
    }
    assert len({(partition, seq) for partition, seq, *_ in rows}) == len(rows)


def test_what_is_wrong_is_said_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(weir.PlanError, match="no output for the callback of Other"):
        weir.run_live(PROGRAM, tmp_path / "s", spark, callbacks={"Other": print})
    assert not (tmp_path / "s").exists()
    with pytest.raises(weir.PlanError, match=r"has no function; weir\.run_live"):
        weir.run_live(PROGRAM + CALLBACK, tmp_path / "s", spark, directory=tmp_path)
    assert not (tmp_path / "s").exists()
    with pytest.raises(weir.RunError, match="holds no job to resume"):
        weir.run_live(PROGRAM, tmp_path / "t", spark, directory=tmp_path, resume=True)
    with pytest.raises(weir.PlanError, match="for TLS"):
        weir.run_live(PROGRAM, tmp_path / "t", spark, tls=("no.crt", "no.key"))
