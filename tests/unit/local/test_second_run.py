"""The second run of `--check` is unlike the first in all that user code could depend on."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import weir
from weir.errors import DeterminismViolation, OperatorFailed, RunError
from weir.local.file_run import run_files
from weir.local.runner import LocalRun
from weir.local.second_run import (
    differences_here,
    kept_traces,
    other_environment,
    second_differences,
)
from weir.plan.program import Program
from weir.runtime.partitions import open_partitions
from weir.script import parse_program

RULES = """
import itertools, os, time, weir
calls = []
TABLE = {k: n for n, k in enumerate({f"k{i}" for i in range(10)})}

@weir.udf
def hashed(k: str) -> int: return hash(k) % 1000
@weir.udf
def ordered(k: str) -> str: return ",".join({k, k + "1", k + "2", k + "3"})
@weir.udf
def tabled(k: str) -> int: return TABLE[k]
@weir.udf
def zone(k: str) -> str: return time.strftime("%H:%M", time.localtime(0))
@weir.udf
def process(k: str) -> int: return os.getpid()
@weir.udf
def address(k: str) -> int: return id(calls) % 2**40
@weir.udf
def counted(k: str) -> int:
    calls.append(k)
    return len(calls)
@weir.udf(args=["STRING"], result="BIGINT", vectorised=True)
def batches(k):
    import pyarrow as pa
    calls.append(k)
    return pa.array([len(calls)] * len(k))

@weir.udf
def steady(k: str) -> int: return len(k)

@weir.udf
def rarely(k: str) -> int: return 1 + (k == "k5" and "WEIR_EXTRA_CALLS" in os.environ)

@weir.aggregate
class Counts:
    made = 0
    def zero(self) -> int: return 0
    def add(self, state: int, k: str) -> int:
        Counts_made.append(k)
        return len(Counts_made)
    def result(self, state: int) -> int: return state
Counts_made = []

@weir.operator(columns={"n": "BIGINT"})
class Hidden:
    def __init__(self): self.n = itertools.count()
    def on_event(self, event, ctx):
        ctx.emit(n=next(self.n))

@weir.operator(columns={"n": "BIGINT"})
class Global:
    def on_event(self, event, ctx):
        calls.append(1)
        ctx.emit(n=len(calls))

@weir.udf
def dies(k: str) -> int:
    if "WEIR_EXTRA_CALLS" in os.environ: os._exit(3)
    return 1
@weir.udf
def fails(k: str) -> int: return 1 // ("WEIR_EXTRA_CALLS" not in os.environ)

def half(path, data):
    with open(path, "wb") as file: file.write(data[: len(data) // 2])
    os.kill(os.getpid(), 9)
@weir.udf
def killed(k: str) -> int:
    import pathlib
    if "WEIR_EXTRA_CALLS" in os.environ: pathlib.Path.write_bytes = half
    return 1
"""
FUNCTIONS = (
    "hashed",
    "ordered",
    "tabled",
    "zone",
    "process",
    "address",
    "counted",
    "batches",
    "steady",
)
QUERIES = {name: f"SELECT {name}(k) AS v FROM A" for name in FUNCTIONS} | {
    "aggregate": "SELECT Counts(k) AS v FROM A WITH TUMBLING(5)",
    "hidden": "REDUCE A ON k USING Hidden()",
    "global": "PROCESS A USING Global()",
}


def program_of(folder: Path, queries: dict[str, str]) -> Program:
    (folder / "rules.py").write_text(RULES, encoding="utf-8")
    rows = "".join(f'{{"vs": {i}, "k": "k{i % 7}"}}\n' for i in range(60))
    (folder / "a.jsonl").write_text(rows, encoding="utf-8")
    text = "IMPORT 'rules.py'; STREAM A (vs BIGINT, k STRING) FROM 'a.jsonl'; "
    for name, query in queries.items():
        text += f"S_{name} = {query}; OUTPUT S_{name} TO '{name}.csv'; "
    return parse_program(text, directory=folder)


def test_dependence_on_the_process_is_found(tmp_path: Path) -> None:
    program = program_of(tmp_path, QUERIES)
    with kept_traces() as kept:
        run = LocalRun(
            program,
            open_partitions(program, tmp_path),
            [lambda v, rows: None] * len(QUERIES),
            cut=9,
            traces=kept,
        )
        run.run()
        kept.close()
        again = second_differences(program, tmp_path, kept.folder, cut=6, parallelism=1)
    other = {difference.stream for difference in again}
    assert other <= run.streams.keys()
    outputs = zip(run.plan.sinks, run.topology.sinks, strict=True)
    same = {sink.output.name for sink, spec in outputs if other.isdisjoint(spec.inputs)}
    assert same == {"S_steady"}


def test_the_first_stream_and_its_first_row_are_named(tmp_path: Path) -> None:
    """Streams behind it have other rows too, because of it."""
    query = "SELECT k, SUM(rarely(k)) AS n FROM A GROUP BY k WITH TUMBLING(100)"
    program = program_of(tmp_path, {"rarely": query})
    with pytest.raises(DeterminismViolation) as caught:
        run_files(program, directory=tmp_path, check=True, cut=7)
    text = str(caught.value)
    assert text.startswith("stream 0.0/0, written by vertex 0.0 (Source A FROM 'a.jsonl'")
    assert "rarely(k)" in text.partition("): row 5 was another row, in a second run it is ")[0]
    assert re.search(r"\{'vs': 5, 've': 6, 'k': 'k5', '[^']+': 2\}; is a user function", text)


def test_a_second_run_that_ends_by_itself(tmp_path: Path) -> None:
    program = program_of(tmp_path, {"dies": "SELECT dies(k) AS v FROM A"})
    with pytest.raises(RunError, match="second run died: exit code 3"):
        run_files(program, directory=tmp_path, check=True)
    assert not (tmp_path / "dies.csv").exists()


def test_a_second_run_that_is_killed_while_it_answers(tmp_path: Path) -> None:
    program = program_of(tmp_path, {"killed": "SELECT killed(k) AS v FROM A"})
    with pytest.raises(RunError, match="second run died: signal 9"):
        run_files(program, directory=tmp_path, check=True)


def test_an_error_of_the_second_run_is_told(tmp_path: Path) -> None:
    program = program_of(tmp_path, {"fails": "SELECT fails(k) AS v FROM A"})
    with pytest.raises(OperatorFailed, match=r"fails .*ZeroDivisionError"):
        run_files(program, directory=tmp_path, check=True)


def test_without_a_text_it_is_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "v": 1}\n{"vs": 2, "v": 2}\n', encoding="utf-8")
    calls: list[int] = []

    @weir.udf
    def counted(v: int) -> int:
        calls.append(v)
        return len(calls)

    stream = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    made = stream.select(n=weir.call(counted, weir.col("v")))
    with pytest.raises(DeterminismViolation):
        weir.collect(made, directory=tmp_path, check=True)
    assert "WEIR_EXTRA_CALLS" not in os.environ


def test_the_environment_is_another() -> None:
    mine = {"PYTHONHASHSEED": "1", "TZ": "UTC"}
    other = other_environment(mine)
    assert all(mine.get(name) != value for name, value in other.items())
    assert other_environment({})["PYTHONHASHSEED"] == "1"


def test_more_calls_and_restarts_change_no_answer(tmp_path: Path) -> None:
    program = program_of(tmp_path, {"steady": "SELECT k, COUNT(*) AS n FROM A GROUP BY k"})
    partitions = open_partitions(program, tmp_path)
    with kept_traces() as kept:
        run = LocalRun(program, partitions, [lambda v, rows: None], parallelism=2, traces=kept)
        run.run()
        kept.close()
        for cut in (1, 7, 100):
            assert differences_here(program, partitions, kept.folder, cut, 2) == []
