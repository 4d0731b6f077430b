"""`weir.testing.check`: one answer passes in every way, and each kind of another one is found."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weir
from weir.script import parse_program
from weir.testing import AnswersDiffer, Checked, check, with_output
from weir.testing.counterexamples import counterexample
from weir.testing.trials import GivenProgram, first_answer
from weir.testing.ways import kill_points

ROWS = [{"vs": i, "k": "abc"[i % 3], "v": i} for i in range(12)]
STREAM = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.jsonl';\n"
Rows = Sequence[Mapping[str, object]]
QUICK: dict[str, Any] = {"kills": 0, "worlds": 0, "another_process": False}


def found(folder: Path, code: str, query: str, rows: Rows = ROWS, **options: Any) -> AnswersDiffer:
    """What is said about a query that uses this code."""
    (folder / "mine.py").write_text(f"import weir\n{code}", "utf-8")
    text = f"IMPORT 'mine.py';\n{STREAM}Out = {query};\n"
    with pytest.raises(AnswersDiffer) as caught:
        check(text, {"A": rows}, directory=folder, **{**QUICK, **options})
    return caught.value


def rows_of(error: AnswersDiffer) -> int:
    return sum(len(part) for parts in error.inputs.values() for part in parts)


def test_one_answer_passes_in_every_way() -> None:
    text = STREAM + "Out = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(6);"
    checked = check(text, {"A": [ROWS[:7], ROWS[3:]]}, kills=3, worlds=1)
    assert len(checked.rows["Out"]) == 6 and not checked.left_out
    told = "\n".join(checked.ways)
    for what in (
        "once more",
        "1 row",
        "parallelism 3",
        "restarted",
        "written again",
        "another process",
        "killed at durable step",
        "cluster with faults (seed 1)",
    ):
        assert what in told


def test_a_function_that_counts_its_calls(tmp_path: Path) -> None:
    code = "calls = []\n@weir.udf\ndef number(v: int) -> int:\n"
    code += "    calls.append(v)\n    return len(calls)\n"
    error = found(tmp_path, code, "SELECT number(v) AS n FROM A")
    assert error.way == "run once more" and rows_of(error) == 1
    assert "with 1 of 12 rows:\n  A: {'vs': " in str(error) and "number" in error.difference
    text = f"IMPORT 'mine.py';\n{STREAM}Out = SELECT number(v) AS n FROM A;"
    with pytest.raises(AnswersDiffer):  # what it says can be given to `check` again
        check(text, error.inputs, directory=tmp_path, **QUICK)
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.__dict__) == (str(error), error.__dict__)


def test_a_vectorised_function_that_sees_its_batch(tmp_path: Path) -> None:
    code = "import pyarrow as pa\n"
    code += "@weir.udf(args=['BIGINT'], result='BIGINT', vectorised=True)\n"
    code += "def beside(v):\n    return pa.array([len(v)] * len(v), pa.int64())\n"
    error = found(tmp_path, code, "SELECT beside(v) AS n FROM A")
    assert error.way == "in batches of 1 row" and rows_of(error) == 2
    assert "  - {'vs': " in str(error) and "  + {'vs': " in str(error)


def test_an_operator_with_state_that_is_not_declared(tmp_path: Path) -> None:
    """In an object that nobody can look into: what shows is refused before."""
    code = """
import itertools
@weir.operator(columns={"n": "BIGINT"})
class Count:
    last: int
    def __init__(self):
        self.last, self.seen = 0, itertools.count(1)
    def on_event(self, event, ctx):
        self.last = event.vs
        ctx.emit(n=next(self.seen), ve=event.ve)
"""
    error = found(tmp_path, code, "PROCESS A USING Count()")
    assert "every vertex restarted after step " in error.way and rows_of(error) == 2
    assert "declared state" in str(error)


def test_the_hash_of_a_string_is_another_in_another_process(tmp_path: Path) -> None:
    code = "@weir.udf\ndef place(k: str) -> int:\n    return hash(k)\n"
    error = found(tmp_path, code, "SELECT place(k) AS h FROM A", another_process=True)
    assert "in another process (PYTHONHASHSEED=" in error.way and rows_of(error) == 1


def test_what_is_kept_in_globals_is_found_where_nothing_was_called_before(tmp_path: Path) -> None:
    """A cache that stays as it is agrees with itself, however often it is asked again."""
    code = "seen = {}\n@weir.udf\ndef sticky(n: int, k: str) -> str:\n"
    code += "    return seen.setdefault(n, k)\n"
    query = "SELECT k, sticky(n % 2, k) AS s FROM (\n"
    query += "    SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(10))"
    # So many keys that the vertex that runs first does not have the first row of all.
    rows = [{"vs": i, "k": "abcdef"[i % 6], "v": i} for i in range(12)]
    error = found(tmp_path, code, query, rows, another_process=True)
    assert error.way.startswith("in another process, with parallelism 3, in batches")
    assert "keeps something in globals" in str(error)


def test_state_that_outlives_a_killed_process_is_found_in_the_simulator(tmp_path: Path) -> None:
    """It starts again with each run, so runs without a fault agree."""
    code = """
last = {}
@weir.operator(columns={"n": "BIGINT"})
class Count:
    n: int = 0
    def on_event(self, event, ctx):
        if event.v == 0:
            last["seen"] = -1
        again = event.v <= last["seen"]
        last["seen"] = max(last["seen"], event.v)
        ctx.emit(n=-1 if again else event.v, ve=event.ve)
"""
    (tmp_path / "mine.py").write_text(f"import weir\n{code}", "utf-8")
    text = f"IMPORT 'mine.py';\n{STREAM}Out = PROCESS A USING Count();\n"
    program = parse_program(text, directory=tmp_path)
    trial = GivenProgram(with_output(program, "Out"), {"A": (ROWS,)})
    first = first_answer(trial)
    plain, *killed = kill_points(trial, None)
    assert plain.differs(trial, first) is None
    way = next(way for way in killed if way.differs(trial, first))
    error = counterexample(trial, way, way.differs(trial, first))
    assert "killed at durable step" in error.way and 0 < rows_of(error) < len(ROWS)


def test_a_simulated_job_is_compared_with_the_first_answer() -> None:
    """The simulator alone compares its runs with one of its own."""
    program = with_output(parse_program(STREAM + "Out = SELECT v FROM A;"), "Out")
    trial = GivenProgram(program, {"A": (ROWS,)})
    first = first_answer(trial)
    plain = next(iter(kill_points(trial, 1)))
    assert plain.differs(trial, first) is None
    assert "digest" in plain.differs(trial, replace(first, digests=("another",)))


def test_streams_outputs_and_files_are_checked(tmp_path: Path) -> None:
    a = weir.stream("A", {"vs": "BIGINT", "k": "STRING", "v": "BIGINT"}, "a.jsonl", vs="vs")
    kept = a.where("v > 9").select("v")
    wanted = [{"vs": 10, "ve": 11, "v": 10}, {"vs": 11, "ve": 12, "v": 11}]
    assert check(kept, {"A": ROWS}, **QUICK).rows == {"Out": wanted}
    assert check([kept.to("kept.csv", name="K")], {"A": ROWS}, **QUICK).rows == {"K": wanted}
    path = tmp_path / "p.weir"
    path.write_text(STREAM + "B = SELECT v FROM A WHERE v > 9; OUTPUT B TO 'b.csv';", "utf-8")
    assert check(path, {"A": ROWS}, **QUICK).rows == {"B": wanted}


def app() -> weir.App:
    made = weir.App("counts")
    message = made.events("message", "id BIGINT, k BIGINT, ts BIGINT", vs="ts")
    n = made.state("n", default=0)

    @made.on(message)
    def judge(e: Any) -> None:
        n.add(e.k, 1)
        if n.get(e.k) > 2:
            made.emit("many", id=e.id)

    return made


def test_an_app_is_checked_with_its_final_states() -> None:
    log = [{"id": i, "k": i % 2, "ts": i} for i in range(7)]
    checked = check(app(), {"message": log}, **QUICK | {"kills": 1})
    assert [row["id"] for row in checked.rows["many"]] == [4, 5, 6]
    assert len(checked.rows["n.state"]) == 2


def test_what_cannot_travel_is_said() -> None:
    @weir.udf
    def local(v: int) -> int:
        return v

    a = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    called = a.select(n=weir.call(local, weir.col("v")))
    with pytest.warns(weir.PlanWarning, match="not checked: in another process") as told:
        checked = check(called, {"A": [{"vs": 1, "v": 1}]}, kills=0, worlds=0)
    assert "in another process" in checked.left_out[0] and "local" in checked.left_out[0]
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(called, {"A": [{"vs": 1, "v": 1}]}, **QUICK)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({}, {}, "no rows for A"),
        ({"A": ROWS, "B": []}, {}, "unknown input `B`"),
        ({"A": ROWS}, {"runners": ()}, "`runners` is empty"),
        ({"A": ROWS}, {"runners": ("spark",)}, "unknown runner `spark`"),
        ({"A": ROWS}, {"cuts": (0,)}, "cut must be None or a number"),
        ({"A": ROWS}, {"parallelism": ()}, "is empty"),
        ({"A": ROWS}, {"stream": "C"}, "no stream `C`"),
    ],
)
def test_what_is_given_is_checked(
    inputs: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(weir.PlanError, match=message):
        check(STREAM + "Out = SELECT v FROM A;", inputs, **{**QUICK, **options})


def test_an_error_of_the_program_is_that_error() -> None:
    with pytest.raises(weir.WeirError, match="division"):
        check(STREAM + "Out = SELECT 1 // v AS w FROM A;", {"A": ROWS}, **QUICK)


def test_the_plugin_loads_nothing_and_gives_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import weir\n@weir.udf\ndef twice(v: int) -> int:\n    return 2 * v\n", "utf-8"
    )
    (tmp_path / "test_mine.py").write_text(
        f"""
import sys
TEXT = \"\"\"IMPORT 'mine.py'; {STREAM} Out = SELECT twice(v) AS w FROM A;\"\"\"

def test_first():
    assert "weir.pytest_plugin" in sys.modules
    assert not {{"numpy", "numba", "pyarrow"}} & {{*sys.modules}}

def test_one_answer(weir_check):
    rows = [{{"vs": 1, "k": "a", "v": 4}}]
    checked = weir_check(TEXT, {{"A": rows}}, kills=0, worlds=0, another_process=False)
    assert checked.rows["Out"] == [{{"vs": 1, "ve": 2, "w": 8}}]
""",
        "utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "weir.pytest_plugin"]
    command += ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(weir.__file__).parents[1])}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ran.returncode == 0 and "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_what_is_checked_is_typed() -> None:
    checked: Checked = check(STREAM + "Out = SELECT v FROM A;", {"A": []}, **QUICK)
    assert checked.rows == {"Out": []}
