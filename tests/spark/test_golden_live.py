"""The golden programs as live jobs, straight or stopped midway and gone on: the same bytes.

Every program runs in one of the two ways; with WEIR_NIGHT set, in both.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import weir
from weir.conform.cases import check_cases, read_cases
from weir.runtime.reports import Progress
from weir.script.program import parse_program
from weir.spark.live.trials import run_live_trials

pytestmark = pytest.mark.xdist_group("spark")

FOLDER = Path(__file__).parents[1] / "golden"
PROGRAMS = sorted((FOLDER / "programs").glob("*.weir"))


WAYS = [
    pytest.param(path, stopped, id=f"{path.stem}-{'stopped' if stopped else 'straight'}")
    for number, path in enumerate(PROGRAMS)
    for stopped in (False, True)
    if "WEIR_NIGHT" in os.environ or stopped == bool(number % 2)
]


@pytest.mark.parametrize(("path", "stopped"), WAYS)
def test_outputs(path: Path, stopped: bool, spark: SparkSession, tmp_path: Path) -> None:
    program = parse_program(path.read_text(encoding="utf-8"), directory=path.parent)
    outputs = tuple(replace(o, path=str(tmp_path / o.path)) for o in program.outputs)
    seen: list[Progress] = []

    def run(*, resume: bool, stop: bool) -> object:
        return weir.run_live(
            replace(program, outputs=outputs),
            tmp_path / "store",
            spark,
            directory=FOLDER,
            hosts=1,
            cut=1,
            parallelism=3,
            resume=resume,
            progress=seen.append,
            stop=lambda: stop and bool(seen) and seen[-1].events > 0,
        )

    if run(resume=False, stop=stopped) is None:
        assert run(resume=True, stop=False) is not None
    for output in program.outputs:
        came = (tmp_path / output.path).read_text(encoding="utf-8").replace(str(FOLDER), "")
        wanted = (FOLDER / "expected" / path.stem / output.path).read_text(encoding="utf-8")
        assert came == wanted


def test_cases_with_known_answers(spark: SparkSession) -> None:
    cases = list(read_cases(FOLDER.parent / "conformance" / "edges.jsonl"))
    live = partial(run_live_trials, spark, hosts=1)
    verdicts = list(check_cases(cases, (1,), (3,), live))
    assert len(verdicts) == len(cases) > 20
    assert [v for v in verdicts if not v.passed] == []
