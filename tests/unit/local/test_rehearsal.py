"""Rehearsals: they reach the loops that a program needs, and nothing of the user's."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from weir.events.types import parse_type
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.local import rehearsal
from weir.local.rehearsal import FEW, MANY, rehearse, rehearsed, value_of
from weir.loops.code_cache import PACKAGE
from weir.runtime.programs import program_of
from weir.script.program import parse_program
from weir.simulator.workloads import make_workload, workload_names

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, f DOUBLE) FROM 'a.jsonl';
STREAM B (vs BIGINT, ve BIGINT, k STRING, w BIGINT) FROM 'b.jsonl';
"""
PROGRAMS = {
    "join": "SELECT A.k AS k, B.w AS w FROM A LEFT OUTER JOIN B ON A.k = B.k WHERE A.v > 10",
    "windows": "SELECT k, SUM(f) AS s, MAX(v) AS m FROM A WHERE v % 2 = 0 GROUP BY k"
    " WITH HOPPING(6, 2)",
    "top": "SELECT k, QUANTILE_DISC(v, 0.9) AS q FROM A GROUP BY k WITH TUMBLING(7)"
    " ORDER BY q DESC LIMIT 2",
}
RUN = """
import json, sys
from pathlib import Path
from weir.loops.code_cache import used
from weir.local.file_run import run_files
from weir.local.rehearsal import rehearse
from weir.script.program import parse_program

folder = Path(sys.argv[2])
program = parse_program(sys.argv[1], directory=folder)
assert rehearse(program) == []
before = set(used())
for name, column in (("a", "v"), ("b", "w")):
    rows = [
        {"vs": i // 3, "ve": i // 3 + 5, "k": f"k{i % 70}", column: i, "f": i / 7}
        for i in range(500)
    ]
    text = "".join(json.dumps({n: v for n, v in r.items() if n != "f" or name == "a"}) + chr(10)
                   for r in rows)
    (folder / f"{name}.jsonl").write_text(text)
run_files(program, directory=folder, parallelism=2)
print(sorted(f"{n.module}.{n.name} {n.args}" for n in set(used()) - before))
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_rehearsed_has_all_loops(name: str, tmp_path: Path) -> None:
    """In a process of its own: here other tests have used most loops already."""
    text = f"{INPUTS} Out = {PROGRAMS[name]}; OUTPUT Out TO 'out.jsonl';"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, text, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.parametrize("name", workload_names())
def test_made_up_rows_suit_every_operator(name: str) -> None:
    assert rehearse(make_workload(name, 1).program) == []


CODE = """
import weir

@weir.udf
def shout(text: str) -> str:
    raise SystemExit("called")

@weir.aggregate
class Both:
    def zero(self) -> int:
        raise SystemExit("called")
    def add(self, state: int, value: int) -> int:
        raise SystemExit("called")
    def result(self, state: int) -> int:
        raise SystemExit("called")

@weir.operator(columns={"n": "BIGINT", "tags": "LIST(STRING)"}, state={"n": "BIGINT"})
class Numbered:
    def __init__(self, step):
        raise SystemExit("called")
    def on_event(self, event, ctx):
        raise SystemExit("called")
"""


def test_the_user_s_code_is_not_called(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    text = f"""
        IMPORT 'code.py';
        {INPUTS}
        Loud = SELECT shout(k) AS k, v FROM A WHERE shout(k) = 'X';
        Sums = SELECT k, Both(v) AS b FROM Loud GROUP BY k WITH TUMBLING(5);
        Rows = REDUCE A ON k USING Numbered(3);
        OUTPUT Sums TO 'sums.csv';
        OUTPUT Rows TO '/nowhere/rows.parquet';
    """
    assert rehearse(parse_program(text, directory=tmp_path)) == []
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".pyc"] in (
        ["code.py"],
        ["code.py", "__pycache__"],
        ["__pycache__", "code.py"],
    )


HANDLERS = """
import weir

app = weir.App("loud")
a = app.events("A", "vs BIGINT, k STRING, v BIGINT", vs="vs")
seen = app.state("seen", default=0)
kept = app.state("kept", default=0)

def shout(n):
    raise SystemExit("called")

@app.on(a)
def keep(e):
    kept.merge(e.k, lambda n: shout(n))

@app.on(a)
def ring(e):
    if seen.get(e.k) < shout(e.v):
        seen.add(e.k, 1)
        app.emit("first", k=e.k)
"""


def test_the_code_of_handlers_is_not_called(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(HANDLERS, encoding="utf-8")
    compiled = compile_app(load_app(tmp_path / "app.py"), final=True)
    streams = {**compiled.emitted, **compiled.final}
    program = program_of([s.to(f"{n}.jsonl", name=n) for n, s in streams.items()])
    assert rehearse(program) == []


def test_rows_pass_filters_that_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{INPUTS} Out = SELECT k FROM A WHERE k = 'not made up'; OUTPUT Out TO 'out.jsonl';"
    written = []
    finish = rehearsal.OutputWriter.finish
    monkeypatch.setattr(
        rehearsal.OutputWriter,
        "finish",
        lambda self, digest: written.append(digest.count) or finish(self, digest),
    )
    assert rehearse(parse_program(text)) == []
    assert written and all(written)


def test_errors_of_made_up_rows_are_returned() -> None:
    text = f"{INPUTS} Out = SELECT CAST(k || 'x' AS BIGINT) AS n FROM A; OUTPUT Out TO 'o.jsonl';"
    errors = rehearse(parse_program(text))
    assert errors and all("CAST" in str(e) or "BIGINT" in str(e) for e in errors)


@pytest.mark.parametrize(
    "name",
    [
        "INT",
        "DOUBLE",
        "BOOLEAN",
        "BINARY",
        "TIMESTAMP",
        "DATE",
        "DECIMAL(3, 2)",
        "DECIMAL(1, 0)",
        "LIST(DECIMAL(10, 2))",
        "STRUCT(a INT, b LIST(STRING))",
    ],
)
def test_values_are_made_up_for_every_type(name: str) -> None:
    dtype = parse_type(name)
    for numbers in (FEW, MANY):
        column = pa.array([value_of(dtype, i) for i in numbers], dtype)
        assert 0 < column.null_count < len(column)


def test_what_a_program_needs_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path))
    program = parse_program(f"{INPUTS} OUTPUT A TO 'a.csv';")
    found = rehearsed(program)
    assert any(need.name == "sum_halves" for need in found.needs)
    monkeypatch.setattr(rehearsal, "rehearse", lambda program: 1 / 0)
    assert rehearsed(program) == found
    assert rehearsed(parse_program(f"{INPUTS} OUTPUT A TO 'other.parquet';")) == found
    with pytest.raises(ZeroDivisionError):
        rehearsed(parse_program(f"{INPUTS} OUTPUT B TO 'b.csv';"))


def test_only_what_a_program_uses_itself_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have used more loops in this process."""
    monkeypatch.setattr(rehearsal, "remembered", lambda name: None)
    joins, plain = (
        parse_program(f"{INPUTS} Out = {text}; OUTPUT Out TO 'o.csv';")
        for text in (PROGRAMS["join"], "SELECT k FROM A")
    )
    more = set(rehearsed(joins).needs)
    fewer = set(rehearsed(plain).needs)
    assert "insert_pairs" in {need.name for need in more - fewer}
    assert set(rehearsed(joins).needs) == more
