"""`weir.run_live`: callbacks, stopping and going on, TLS; the answer of `weir.run`."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weir
from certificates import certificate
from weir.loops.code_cache import Code
from weir.loops.loop import Loop, packed
from weir.runtime.reports import RunReport
from weir.spark.live.run_live import LiveProgress

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
    seen: list[LiveProgress] = []
    told = tmp_path / "told"
    cert, key = certificate(tmp_path, "job")

    def run(*, resume: bool, stop: Callable[[], bool] | None = None) -> object:
        return weir.run_live(
            PROGRAM + CALLBACK,
            tmp_path / "store",
            spark,
            directory=tmp_path,
            hosts=1,
            resume=resume,
            callbacks={"Sums": writing(told)},
            progress=seen.append,
            stop=stop,
            tls=(cert, key),
        )

    assert run(resume=False, stop=lambda: bool(seen) and seen[-1].events > 8000) is None
    assert seen[-1].status.hosts[0].address.startswith("grpc+tls://")
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


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('{"t": 20, "v": "n/a"}', "column v: wanted BIGINT"),
        ('{"t": 3, "v": 20}', "late: the event"),
    ],
)
def test_a_job_that_a_row_ended_goes_on_when_the_row_is_fixed(
    spark: SparkSession, tmp_path: Path, wrong: str, told: str
) -> None:
    program = "STREAM A (t BIGINT, v BIGINT) FROM 'a.jsonl' WITH (vs = t, unit = 'tick');\n"
    program += "B = SELECT v FROM A; OUTPUT B TO 'b.csv';"
    rows = [f'{{"t": {t}, "v": {t}}}' for t in range(40)]
    path, store = tmp_path / "a.jsonl", tmp_path / "store"
    path.write_text("\n".join(rows), encoding="utf-8")
    wanted = weir.run(program, directory=tmp_path).outputs[0].digest
    path.write_text("\n".join([*rows[:20], wrong, *rows[21:]]), encoding="utf-8")
    for resume in (False, True):  # it ends there again, as long as the row is what it was
        with pytest.raises(weir.WeirError, match=rf"a\.jsonl, line 21, .*{told}"):
            weir.run_live(program, store, spark, directory=tmp_path, hosts=1, resume=resume)
    path.write_text("\n".join(rows), encoding="utf-8")
    done = weir.run_live(program, store, spark, directory=tmp_path, hosts=1, resume=True)
    assert done is not None and done.outputs[0].digest == wanted


def test_what_is_wrong_is_said_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(weir.PlanError, match="no output for the callback of Other"):
        weir.run_live(PROGRAM, tmp_path / "s", spark, callbacks={"Other": print})
    assert not (tmp_path / "s").exists()
    with pytest.raises(weir.PlanError, match=r"has no function; weir\.run_live"):
        weir.run_live(PROGRAM + CALLBACK, tmp_path / "s", spark, directory=tmp_path)
    assert not (tmp_path / "s").exists()
    with pytest.raises(weir.RunError, match="there is no store"):
        weir.run_live(PROGRAM, tmp_path / "t", spark, directory=tmp_path, resume=True)
    assert not (tmp_path / "t").exists()
    (tmp_path / "t").mkdir()
    with pytest.raises(weir.RunError, match="holds no job to resume"):
        weir.run_live(PROGRAM, tmp_path / "t", spark, directory=tmp_path, resume=True)
    with pytest.raises(weir.PlanError, match="for TLS"):
        weir.run_live(PROGRAM, tmp_path / "t", spark, tls=("no.crt", "no.key"))


def test_hosts_get_the_driver_s_code(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers whose folder for code is another one, and empty, stand for another machine."""
    there = tmp_path / "there"
    monkeypatch.setitem(spark.sparkContext.environment, "WEIR_CACHE", str(there))
    sent: list[Code] = []

    def recording(loops: list[Loop]) -> Code:
        sent.append(packed(loops))
        return sent[-1]

    # What is on disk may change meanwhile: other tests compile loops, too.
    monkeypatch.setattr("weir.spark.live.loop_search.packed", recording)
    weir.run_live(SHORT, tmp_path / "store", spark, directory=tmp_path, hosts=2)
    (code,) = sent
    assert code.files
    assert {p.name: p.read_bytes() for p in (there / code.kind).iterdir()} == code.files


SHORT = PROGRAM.replace("4000?rows=24000", "20000?rows=2000")


def test_an_output_that_cannot_be_written_is_written_by_resuming(
    spark: SparkSession, tmp_path: Path
) -> None:
    program = SHORT.replace("'sums.csv'", "'out/sums.csv'")
    (tmp_path / "out").touch()

    def run(*, resume: bool) -> RunReport | None:
        return weir.run_live(
            program, tmp_path / "store", spark, directory=tmp_path, hosts=1, resume=resume
        )

    with pytest.raises(weir.RunError, match=r"cannot write .*all rows are committed .*--resume"):
        run(resume=False)
    committed = weir.read_committed(str(tmp_path / "store"), "Sums")
    assert committed.finished and committed.rows > 0
    (tmp_path / "out").unlink()
    report = run(resume=True)
    assert report is not None and (report.events, report.inputs) == (0, ())
    weir.run(SHORT, directory=tmp_path)
    assert (tmp_path / "out" / "sums.csv").read_bytes() == (tmp_path / "sums.csv").read_bytes()


def test_a_callback_that_fails_ends_the_job(spark: SparkSession, tmp_path: Path) -> None:
    def failing(partition: int, seq: int, rows: pa.RecordBatch) -> None:
        raise OSError("nobody answers")

    with pytest.raises(weir.RunError, match=r"of Sums failed on .*OSError: nobody answers"):
        weir.run_live(
            SHORT + CALLBACK,
            tmp_path / "store",
            spark,
            directory=tmp_path,
            hosts=1,
            callbacks={"Sums": failing},
        )
    assert not (tmp_path / "sums.csv").exists()


def test_a_source_that_lost_rows_ends_the_job(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"t": {t}, "v": {t}}}\n' for t in range(100)), "utf-8")
    program = """
        STREAM A (t BIGINT, v BIGINT) FROM 'tail://a.jsonl' WITH (vs = t);
        OUTPUT A TO 'out.csv';
    """
    seen: list[LiveProgress] = []

    def run(*, resume: bool) -> object:
        return weir.run_live(
            program,
            tmp_path / "store",
            spark,
            directory=tmp_path,
            hosts=1,
            resume=resume,
            progress=seen.append,
            stop=lambda: not resume and bool(seen) and seen[-1].events == 100,
        )

    assert run(resume=False) is None
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(weir.RunError, match=r"a\.jsonl: it was truncated, and 100 rows"):
        run(resume=True)
    path.write_bytes(whole)
    (tmp_path / "a.jsonl.end").touch()
    assert run(resume=True) is not None
    assert weir.read_committed(str(tmp_path / "store"), "A").rows == 100
