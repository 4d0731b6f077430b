"""`check` of a live job: user code that gives other rows elsewhere is found before files appear."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import weir
from weir.files.object_store import ObjectStore
from weir.job.output_reader import manifests
from weir.job.status import read_status
from weir.runtime.reports import OnProgress, Progress

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = """
IMPORT 'rules.py';
STREAM A (t BIGINT, k STRING) FROM 'a.jsonl' WITH (vs = t);
Out = SELECT k, {function}(k) AS v FROM A;
OUTPUT Out TO 'out.csv';
"""
RULES = """
import os
from weir import udf

@udf
def steady(k: str) -> int:
    return len(k)

@udf
def hashed(k: str) -> int:
    return hash(k) % 1000

@udf
def by_process(k: str) -> int:  # the same in both runs behind the job, and another in its hosts
    return 1 if "WEIR_RUNS_LIVE" in os.environ else 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.py").write_text(RULES, "utf-8")
    rows = [f'{{"t": {t}, "k": "k{t % 7}"}}\n' for t in range(100)]
    (tmp_path / "a.jsonl").write_text("".join(rows), "utf-8")
    return tmp_path


def run(
    folder: Path,
    spark: SparkSession,
    function: str,
    store: str = "store",
    progress: OnProgress | None = None,
    *,
    resume: bool = False,
) -> object:
    return weir.run_live(
        PROGRAM.format(function=function),
        folder / store,
        spark,
        directory=folder,
        hosts=1,
        parallelism=2,
        check=not resume,
        progress=progress,
        resume=resume,
    )


def test_steady_code_passes(folder: Path, spark: SparkSession) -> None:
    seen: list[Progress] = []
    assert run(folder, spark, "steady", progress=seen.append) is not None
    assert (seen[-1].stage, seen[-1].events) == ("checking", 100)
    came = (folder / "out.csv").read_bytes()
    weir.run(PROGRAM.format(function="steady"), directory=folder)
    assert (folder / "out.csv").read_bytes() == came


def test_code_that_depends_on_its_process_is_found(folder: Path, spark: SparkSession) -> None:
    with pytest.raises(weir.WeirError, match=r"vertex 0\.0 .*hashed.*in a second run it is"):
        run(folder, spark, "hashed")
    assert not (folder / "out.csv").exists()


def test_a_live_job_that_answers_otherwise_is_found(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = spark.sparkContext.environment
    monkeypatch.setitem(environment, "WEIR_RUNS_LIVE", "1")
    with pytest.raises(weir.WeirError, match=r"OUTPUT Out: the live job gave other rows") as told:
        run(folder, spark, "by_process")
    assert "-" in str(told.value) and "first difference at" in str(told.value)
    with pytest.raises(weir.WeirError, match="the live job gave other rows"):
        run(folder, spark, "by_process", resume=True)
    assert not (folder / "out.csv").exists()
    store = ObjectStore(str(folder / "store"))
    status = read_status(store)
    assert status is not None and (status.state, status.error) == ("failed", str(told.value))
    assert {v.status for v in status.vertices} == {"done"}
    assert not manifests(store)[0].finished
    monkeypatch.setenv("WEIR_RUNS_LIVE", "1")
    assert run(folder, spark, "by_process", resume=True) is not None
    assert (folder / "out.csv").exists()
    status = read_status(store)
    assert status is not None and (status.state, status.error) == ("finished", "")
    assert manifests(store)[0].finished


def test_inputs_must_end(folder: Path, spark: SparkSession) -> None:
    program = PROGRAM.format(function="steady").replace("'a.jsonl'", "'tail://a.jsonl'")
    with pytest.raises(weir.PlanError, match=r"again, and 'tail://a\.jsonl' has no end"):
        weir.run_live(program, folder / "store", spark, directory=folder, check=True)
    assert not (folder / "store" / "job").exists()
