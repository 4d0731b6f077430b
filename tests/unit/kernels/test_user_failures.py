"""What the user's code raises reaches the user as `OperatorFailed`, with line and event."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from weir.errors import OperatorFailed
from weir.script import parse_program
from weir.testing import run_program, with_output

RULES = """
import json
from typing import Any
import weir

@weir.udf
def risky(v: int) -> int:
    if v == 13:
        raise ValueError("unlucky")        # line 9
    return v

@weir.udf
def wrong_type(v: int) -> int:
    return "text" if v == 13 else v        # named by where the function begins, line 12

@weir.udf
def inside_a_library(v: int) -> int:
    return json.loads("{" if v == 13 else "1")   # line 18

@weir.udf(args=["BIGINT"], result="BIGINT", vectorised=True)
def risky_arrays(values: Any) -> Any:
    if 13 in values.to_pylist():
        raise ValueError("unlucky")        # line 23
    return values

@weir.aggregate
class Adds:
    def zero(self) -> int:
        return 0
    def add(self, state: int, v: int) -> int:
        if v == 13:
            raise ValueError("unlucky")    # line 32
        return state + v
    def result(self, state: int) -> int:
        return state

@weir.aggregate
class Results:
    def zero(self) -> int:
        return 0
    def add(self, state: int, v: int) -> int:
        return state + v
    def result(self, state: int) -> int:
        return json.loads("{")             # line 44

@weir.aggregate
class TooLarge:
    def zero(self) -> int:
        return 0
    def add(self, state: int, v: int) -> int:
        return 2**70
    def result(self, state: int) -> int:   # line 52
        return state

@weir.aggregate
class CannotBegin:
    def __init__(self) -> None:
        raise ValueError("unlucky")        # line 58
    def zero(self) -> int:
        return 0
    def add(self, state: int, v: int) -> int:
        return 0
    def result(self, state: int) -> int:
        return 0

@weir.operator(columns={"v": "BIGINT"})
class OnEvent:
    def on_event(self, event: Any, ctx: Any) -> None:
        if event.v == 13:
            raise ValueError("unlucky")    # line 70

@weir.operator(columns={"v": "BIGINT"})
class NoSuchColumn:
    def on_event(self, event: Any, ctx: Any) -> None:
        if event.v == 13:
            event.nonsense                 # line 76

@weir.operator(columns={"v": "BIGINT"})
class OnTime:
    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.set_timer(event.vs + 2)
    def on_time(self, time: int, ctx: Any) -> None:
        if time == 15:
            raise ValueError("unlucky")    # line 84

@weir.operator(columns={"v": "BIGINT"})
class EmitsThePast:
    def on_event(self, event: Any, ctx: Any) -> None:
        if event.v == 13:
            ctx.emit(vs=0, v=1)            # line 90

@weir.operator(columns={"v": "BIGINT"})
class EmitsText:
    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.emit(v="text")                 # line 95

@weir.operator(columns={"v": "BIGINT"})
class EmitsTooMuch:
    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.emit(v=1, w=2)                 # line 100

@weir.operator(columns={"v": "BIGINT"})
class BadArguments:
    def __init__(self, wait: int) -> None:
        self.wait = 1 // wait              # line 105
    def on_event(self, event: Any, ctx: Any) -> None:
        pass
"""

CASES = {
    "risky": ("SELECT risky(v) AS w FROM A", "risky", 9, "ValueError: unlucky"),
    "wrong_type": ("SELECT wrong_type(v) AS w FROM A", "wrong_type", 12, "BIGINT"),
    "library": (
        "SELECT inside_a_library(v) AS w FROM A",
        "inside_a_library",
        18,
        "JSONDecodeError",
    ),
    "arrays": ("SELECT risky_arrays(v) AS w FROM A", "risky_arrays", 23, "ValueError: unlucky"),
    "where": ("SELECT v FROM A WHERE risky(v) > 0", "risky", 9, "ValueError: unlucky"),
    "add": ("SELECT Adds(v) AS w FROM A WITH TUMBLING(50)", "Adds.add", 32, "ValueError"),
    "result": ("SELECT Results(v) AS w FROM A WITH TUMBLING(50)", "Results.result", 44, "JSON"),
    "too_large": ("SELECT TooLarge(v) AS w FROM A WITH TUMBLING(50)", "TooLarge.result", 52, "INT"),
    "begin": ("SELECT CannotBegin(v) AS w FROM A WITH TUMBLING(5)", "CannotBegin", 58, "unlucky"),
    "on_event": ("PROCESS A USING OnEvent()", "OnEvent.on_event", 70, "ValueError: unlucky"),
    "column": ("PROCESS A USING NoSuchColumn()", "NoSuchColumn.on_event", 76, "no column nonsense"),
    "on_time": ("REDUCE A ON v USING OnTime()", "OnTime.on_time", 84, "ValueError: unlucky"),
    "past": ("PROCESS A USING EmitsThePast()", "EmitsThePast.on_event", 90, "before the current"),
    "text": ("PROCESS A USING EmitsText()", "EmitsText", 95, "column v"),
    "too_much": ("PROCESS A USING EmitsTooMuch()", "EmitsTooMuch", 100, "['w']"),
    "arguments": ("PROCESS A USING BadArguments(0)", "BadArguments.__init__", 105, "ZeroDivision"),
}
ROWS = [{"vs": v, "v": v} for v in range(20)]
NAMES_THE_EVENT = {
    "add",
    "risky",
    "wrong_type",
    "library",
    "arrays",
    "where",
    "on_event",
    "column",
    "past",
}


def _failure(query: str, directory: Path, **how: object) -> OperatorFailed:
    (directory / "rules.py").write_text(RULES.lstrip("\n"))
    text = f"IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl'; Out = {query};"
    program = with_output(parse_program(text, directory=directory), "Out")
    with pytest.raises(OperatorFailed) as caught:
        run_program(program, {"A": [ROWS]}, **how)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_the_failure_says_where_and_why(name: str, tmp_path: Path) -> None:
    query, function, line, cause = CASES[name]
    error = _failure(query, tmp_path)
    assert error.function.startswith(function)
    assert error.file == str(tmp_path / "rules.py")
    # The text above begins with an empty line, which the file lacks.
    assert error.line == line - 1
    assert cause in error.cause
    assert f"rules.py:{line - 1}" in str(error)
    if name in NAMES_THE_EVENT:
        assert "13" in str(error.event)
        assert not any(str(v) in str(error.event) for v in (11, 12))


@pytest.mark.parametrize("name", CASES)
def test_the_failure_crosses_processes(name: str, tmp_path: Path) -> None:
    error = _failure(CASES[name][0], tmp_path)
    back = pickle.loads(pickle.dumps(error))
    assert str(back) == str(error)
    assert (back.function, back.file, back.line) == (error.function, error.file, error.line)
    assert str(back.event) == str(error.event) and back.cause == error.cause


@pytest.mark.parametrize("name", ["risky", "arrays", "add", "on_event", "on_time"])
@pytest.mark.parametrize("cut", [1, 3])
def test_the_failure_is_the_same_under_any_cut(name: str, cut: int, tmp_path: Path) -> None:
    query = CASES[name][0]
    whole, parts = _failure(query, tmp_path), _failure(query, tmp_path, cut=cut)
    assert str(whole) == str(parts)


def test_the_cause_is_chained(tmp_path: Path) -> None:
    error = _failure(CASES["library"][0], tmp_path)
    causes: list[BaseException] = []
    current: BaseException | None = error
    while current is not None:
        causes.append(current)
        current = current.__cause__ or current.__context__
    assert any(isinstance(c, json.JSONDecodeError) for c in causes)
