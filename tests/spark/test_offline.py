"""The offline runner gives what the local one gives, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weir.conform.cases import ConformanceCase, Outcome, Trial, check_cases, read_cases, run_locally
from weir.errors import DeterminismViolation, InputError, OperatorFailed, PlanError, RunError
from weir.local.file_run import run_files
from weir.plan.program import Program
from weir.runtime.reports import Progress
from weir.script.program import parse_program
from weir.spark.offline import progress
from weir.spark.offline.run_offline import run_offline, run_programs
from weir.spark.offline.trials import run_trials

pytestmark = pytest.mark.xdist_group("spark")

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"


def written_to(program: Program, folder: Path) -> Program:
    outputs = tuple(replace(o, path=f"{folder}/{o.path}") for o in program.outputs)
    return replace(program, outputs=outputs)


@pytest.mark.parametrize(("cut", "parallelism"), [(None, 2), (3, 3)])
def test_golden_programs(
    spark: SparkSession, tmp_path: Path, cut: int | None, parallelism: int
) -> None:
    paths = sorted((GOLDEN / "programs").glob("*.weir"))
    programs = {p.stem: parse_program(p.read_text("utf-8"), directory=p.parent) for p in paths}
    moved = [written_to(program, tmp_path / name) for name, program in programs.items()]
    run_programs(moved, spark, directory=GOLDEN, cut=cut, parallelism=parallelism, tasks=8)
    for name, program in programs.items():
        for output in program.outputs:
            came = (tmp_path / name / output.path).read_text("utf-8").replace(str(GOLDEN), "")
            assert came == (GOLDEN / "expected" / name / output.path).read_text("utf-8"), name


def one_of_each_kind() -> list[ConformanceCase]:
    """The edges, a fifth of the algebra, and two random cases of each kind."""
    folder = TESTS / "conformance"
    cases = [*read_cases(folder / "edges.jsonl"), *list(read_cases(folder / "algebra.jsonl"))[::5]]
    kinds: dict[str, list[ConformanceCase]] = {}
    for case in read_cases(folder / "random.jsonl"):
        kinds.setdefault(case.id.partition("/")[0], []).append(case)
    return [*cases, *(case for of_kind in kinds.values() for case in of_kind[:2])]


def test_conformance_with_the_checksums_of_the_local_runner(spark: SparkSession) -> None:
    """Not only the answers: every stream between vertices has the same rows in the same order."""

    def compared(trials: Sequence[Trial]) -> list[Outcome]:
        outcomes = run_trials(spark, trials)
        for local, here in zip(run_locally(trials), outcomes, strict=True):
            assert (local.error is None) == (here.error is None)
            for stream, checksum in here.checksums.items():
                assert local.checksums[stream] == checksum
        return outcomes

    cases = one_of_each_kind()
    assert len(cases) > 80
    verdicts = list(check_cases(cases, (3,), (3,), compared))
    assert [v for v in verdicts if not v.passed] == []


def test_conformance_tells_how_far_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.01)
    told: list[Progress] = []
    program = "Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(10);"
    inputs = {"A": [[{"vs": 1, "k": 1}, {"vs": 2, "k": 1}]]}
    cases = [
        ConformanceCase(str(n), program, inputs, {}, [{"vs": 0, "ve": 10, "k": 1, "n": 2}], None)
        for n in range(20)
    ]
    on_spark = partial(run_trials, spark, progress=told.append)
    verdicts = list(check_cases(cases, (1, None), (2,), on_spark))
    assert [v for v in verdicts if not v.passed] == []
    assert all(p.stage.startswith(("cut 1 (1 of 2)", "cut none (2 of 2)")) for p in told)
    known = [p for p in told if p.size]
    assert [p.read for p in known] == sorted(p.read for p in known)
    assert known[-1].stage == "cut none (2 of 2), running wave 1 of 1"
    assert known[-1].size / 2 < known[-1].read <= known[-1].size
    assert 40 < known[-1].events <= 80


DIAMOND = """
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a-*.jsonl' WITH (late = 'drop', bad = 'skip');
Big = SELECT k, v FROM A WHERE v > 3;
Sums = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(10);
Both = SELECT Big.k AS k, Big.v AS v, Sums.s AS s FROM Big INNER JOIN Sums ON Big.k == Sums.k;
Most = SELECT MAX(s) AS m FROM Sums WITH TUMBLING(20);
OUTPUT Big TO 'big/';
OUTPUT Sums TO 'sums.parquet';
OUTPUT Both TO 'both.csv';
OUTPUT Most TO 'most.arrow';
OUTPUT LATE OF A TO 'late.jsonl';
OUTPUT BAD OF A TO 'bad.jsonl';
"""


def make_inputs(folder: Path) -> None:
    for part in range(3):
        rows = [f'{{"vs": {t}, "k": {t * 7 % 5}, "v": {t % 11}}}' for t in range(part, 200, 3)]
        rows.insert(40, '{"vs": 1, "k": 0, "v": 0}')
        rows.insert(50, '{"vs": "no time", "k": 0, "v": 0}')
        (folder / f"a-{part}.jsonl").write_text("\n".join(rows), "utf-8")


def test_many_outputs_in_one_job(spark: SparkSession, tmp_path: Path) -> None:
    """A diamond: a stage read at once and two waves later, folders, late and bad rows."""
    make_inputs(tmp_path)
    program = parse_program(DIAMOND)
    there = run_files(written_to(program, tmp_path / "local"), directory=tmp_path, parallelism=2)
    here = run_offline(
        written_to(program, tmp_path / "spark"), spark, directory=tmp_path, parallelism=2
    )
    assert [o.digest for o in here.outputs] == [o.digest for o in there.outputs]
    assert here.inputs == there.inputs and here.events == there.events == 200
    files = sorted(p.relative_to(tmp_path / "local") for p in (tmp_path / "local").rglob("*"))
    assert files == sorted(
        p.relative_to(tmp_path / "spark") for p in (tmp_path / "spark").rglob("*")
    )
    for file in files:
        if (tmp_path / "local" / file).is_file():
            came = (tmp_path / "spark" / file).read_bytes()
            assert came == (tmp_path / "local" / file).read_bytes(), file


def test_empty_outputs_are_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": 1}\n', "utf-8")
    program = parse_program(
        """STREAM A (vs BIGINT, k BIGINT) FROM 'a.jsonl';
        None_ = SELECT k, COUNT(*) AS n FROM A WHERE k > 1 GROUP BY k WITH TUMBLING(5);
        OUTPUT None_ TO 'none.csv'; OUTPUT None_ TO 'none/';"""
    )
    report = run_offline(written_to(program, tmp_path), spark, directory=tmp_path, parallelism=2)
    assert [o.rows for o in report.outputs] == [0, 0]
    assert (tmp_path / "none.csv").read_text("utf-8") == "vs,ve,k,n\n"
    assert len(list((tmp_path / "none").glob("*.parquet"))) == 2


def test_a_users_error_names_function_and_event(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": 4}\n{"vs": 2, "k": 0}\n', "utf-8")
    (tmp_path / "mine.py").write_text(
        "import weir\n\n@weir.udf(args=['BIGINT'], result='BIGINT')\n"
        "def share(k):\n    return 12 // k\n",
        "utf-8",
    )
    program = parse_program(
        """IMPORT 'mine.py'; STREAM A (vs BIGINT, k BIGINT) FROM 'a.jsonl';
        Out = SELECT share(k) AS s FROM A; OUTPUT Out TO 'out.jsonl';""",
        directory=tmp_path,
    )
    with pytest.raises(OperatorFailed, match=r"share.*mine.py:5.*ZeroDivisionError"):
        run_offline(written_to(program, tmp_path), spark, directory=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "mine.py"]


TELLS_AND_FAILS = """
import os, time, uuid, weir

@weir.udf(args=["BIGINT"], result="BIGINT")
def share(k):
    if k == 0:
        open(os.path.join({folder!r}, uuid.uuid4().hex), "w").close()
    if k == 9:
        time.sleep(300)
    return 12 // k
"""


def test_an_error_ends_the_job_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Spark, which would run the task four times, does not; and what else runs is stopped."""
    tries = tmp_path / "tries"
    tries.mkdir()
    (tmp_path / "mine.py").write_text(TELLS_AND_FAILS.format(folder=str(tries)), "utf-8")
    for part, k in enumerate((0, 9)):
        (tmp_path / f"a-{part}.jsonl").write_text(f'{{"vs": 1, "k": {k}}}\n', "utf-8")
    program = parse_program(
        """IMPORT 'mine.py'; STREAM A (vs BIGINT, k BIGINT) FROM 'a-*.jsonl';
        Out = SELECT share(k) AS s FROM A; OUTPUT Out TO 'out.jsonl';""",
        directory=tmp_path,
    )
    began = time.monotonic()
    with pytest.raises(OperatorFailed, match=r"share.*ZeroDivisionError"):
        run_offline(written_to(program, tmp_path), spark, directory=tmp_path)
    assert time.monotonic() - began < 200
    assert len(list(tries.iterdir())) == 1
    assert not (tmp_path / "out.jsonl").exists()


UNSTEADY = """
import weir

@weir.udf(args=["BIGINT"], result="BIGINT")
def unsteady(v):
    return v + hash(str(v)) % 1000
"""


def test_check_runs_twice_and_compares(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(UNSTEADY, "utf-8")
    make_inputs(tmp_path)
    plain = parse_program(DIAMOND)
    there = run_files(written_to(plain, tmp_path / "local"), directory=tmp_path)
    here = run_offline(
        written_to(plain, tmp_path / "spark"), spark, directory=tmp_path, check=True, cut=30
    )
    assert [o.digest for o in here.outputs] == [o.digest for o in there.outputs]
    assert here.events == there.events

    text = f"IMPORT 'mine.py'; {DIAMOND}".replace("SUM(v)", "SUM(unsteady(v))")
    program = written_to(parse_program(text, directory=tmp_path), tmp_path / "unsteady")
    told = (
        r"stream \d\.\d/\d, written by vertex \d\.\d \(.*unsteady.*\): "
        r"row \d+ was another row, in a second run it is \{'vs': "
    )
    with pytest.raises(DeterminismViolation, match=told):
        run_offline(program, spark, directory=tmp_path, check=True)
    assert not list((tmp_path / "unsteady").iterdir())


def test_a_wrong_row_names_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": 4}\n{"vs": 2, "k": "x"}\n', "utf-8")
    program = parse_program(
        "STREAM A (vs BIGINT, k BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'out.jsonl';"
    )
    with pytest.raises(InputError, match=r"a\.jsonl, line 2, column k"):
        run_offline(written_to(program, tmp_path), spark, directory=tmp_path)


def test_outputs_are_checked_before_anything_runs(spark: SparkSession) -> None:
    program = parse_program("STREAM A (vs BIGINT) FROM 'none.jsonl'; OUTPUT A TO 'out.xls';")
    with pytest.raises(PlanError, match="unknown output format"):
        run_offline(program, spark)


def test_a_function_that_ends_its_worker_is_one_message(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "k": 4}\n', "utf-8")
    (tmp_path / "mine.py").write_text(
        "import os, weir\n\n@weir.udf(args=['BIGINT'], result='BIGINT')\n"
        "def leave(k):\n    os._exit(3)\n",
        "utf-8",
    )
    program = parse_program(
        """IMPORT 'mine.py'; STREAM A (vs BIGINT, k BIGINT) FROM 'a.jsonl';
        Out = SELECT leave(k) AS s FROM A; OUTPUT Out TO 'out.jsonl';""",
        directory=tmp_path,
    )
    with pytest.raises(RunError, match=r"a Python worker died .* stage 0 \(.*leave.*\): does") as e:
        run_offline(written_to(program, tmp_path), spark, directory=tmp_path)
    assert "\n" not in str(e.value)
