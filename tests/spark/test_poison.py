"""A row that kills its host ends a real job; a step that takes long does not."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import weir
from weir.spark.live.run_live import LiveProgress

pytestmark = pytest.mark.xdist_group("spark")

RULES = """
import ctypes, os
import weir

@weir.udf
def f(v: int) -> int:
    if v == 1234 and not os.path.exists({mended!r}):
        {harm}
    return v
"""
PROGRAM = """
IMPORT 'rules.py';
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.csv';
Out = SELECT k, f(v) AS v FROM A;
OUTPUT Out TO 'out.csv';
"""


def prepared(folder: Path, harm: str) -> tuple[Path, bytes]:
    """The file that mends the function, and what it then writes."""
    mended = folder / "mended"
    (folder / "rules.py").write_text(RULES.format(mended=str(mended), harm=harm), "utf-8")
    rows = "".join(f"{t},{t % 7},{t}\n" for t in range(3000))
    (folder / "a.csv").write_text(f"vs,k,v\n{rows}", "utf-8")
    (folder / "p.weir").write_text(PROGRAM, "utf-8")
    mended.touch()
    weir.run(PROGRAM, directory=folder)
    mended.unlink()
    wanted = (folder / "out.csv").read_bytes()
    (folder / "out.csv").unlink()
    return mended, wanted


def test_a_function_that_exits_on_one_row_ends_the_job(spark: SparkSession, tmp_path: Path) -> None:
    mended, wanted = prepared(tmp_path, "os._exit(3)")

    def run(*, resume: bool) -> object:
        return weir.run_live(
            PROGRAM, tmp_path / "store", spark, directory=tmp_path, hosts=1, resume=resume
        )

    message = (
        r"vertex 0\.0, STREAM A FROM '.*a\.csv'; Project .*f\(v\) AS v, killed its host 3 times at "
        r"row 1234 of input 0 \(2, 1234\): exit code 3; everything is kept"
    )
    with pytest.raises(weir.RunError, match=message):
        run(resume=False)
    mended.touch()
    assert run(resume=True) is not None
    assert (tmp_path / "out.csv").read_bytes() == wanted


def test_a_step_that_holds_the_lock_for_long_is_shown_and_no_death(
    spark: SparkSession, tmp_path: Path
) -> None:
    _, wanted = prepared(tmp_path, "ctypes.PyDLL(None).sleep(3)")
    seen: list[LiveProgress] = []
    done = weir.run_live(
        PROGRAM, tmp_path / "store", spark, directory=tmp_path, hosts=1, progress=seen.append
    )
    assert done is not None and (tmp_path / "out.csv").read_bytes() == wanted
    assert seen[-1].status.recoveries == 0
    assert any(", 0.0 at one step for " in s.stage for s in seen)
    steps = [v for s in seen for v in s.status.vertices if (v.step_seconds or 0.0) > 2.0]
    assert steps and steps[-1].id == "0.0" and steps[-1].step_rows.startswith("at rows 0 to ")
