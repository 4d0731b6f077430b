"""Failures of kernels name the event, or the window and the group."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from weir.errors import OperatorFailed, RunError
from weir.events.types import DOUBLE
from weir.kernels.aggregates.exact_loops import MAX_VALUES
from weir.kernels.aggregates.moments import FloatMoment
from weir.kernels.expressions.evaluation import RowFailure
from weir.script import parse_program
from weir.testing import run_program, with_output

RULES = """
from typing import Any
import weir

class Sums:
    def zero(self) -> int:
        return 0
    def add(self, state: int, v: int) -> int:
        return state + 1 // (13 - v) + v
    def remove(self, state: int, v: int) -> int:
        return state - 1 // (14 - v) - v
    def merge(self, a: int, b: int) -> int:
        return a + b
    def result(self, state: int) -> Any:
        return "text" if state == 8 else state + 0 * (1 // (7 - state))

class NoZero(Sums):
    def zero(self) -> int:
        return 1 // 0

class Counts:
    def zero(self) -> int:
        return 0
    def add(self, state: int) -> int:
        return state + 1
    def remove(self, state: int) -> int:
        return state - 1
    def merge(self, a: int, b: int) -> int:
        return a + b
    def result(self, state: int) -> int:
        return state

def both(cls: type) -> list[Any]:
    args = [] if cls is Counts else ["BIGINT"]
    folded = type(f"Folded{cls.__name__}", (cls,), {})
    kept = type(f"Kept{cls.__name__}", (cls,), {})
    return [weir.aggregate(args=args, result="BIGINT")(folded),
            weir.aggregate(args=args, result="BIGINT", exact=True)(kept)]

FoldedSums, KeptSums = both(Sums)
FoldedNoZero, KeptNoZero = both(NoZero)
FoldedCounts, KeptCounts = both(Counts)

@weir.operator(columns={"v": "BIGINT"})
class Waits:
    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.set_timer(event.vs + 5)

@weir.operator(columns={"v": "BIGINT"})
class Emits:
    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.emit(ve=event.vs + 9, v="text" if event.v == 13 else event.v)
"""
STREAM = """IMPORT 'rules.py'; STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, d DECIMAL(38, 0))
    FROM 'a.jsonl' WITH (delay = {});"""
WINDOWS = ["TUMBLING(10)", "HOPPING(10, 5)", "SESSION(5)", "COUNT(1)", "SNAPSHOT"]

Row = dict[str, object]
Failure = Callable[..., RunError]


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., object]:
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")

    def parse(query: str, delay: int = 0) -> object:
        text = f"{STREAM.format(delay)} Out = {query};"
        return with_output(parse_program(text, directory=tmp_path), "Out")

    return parse


@pytest.fixture
def failure(program: Callable[..., object]) -> Failure:
    """The error of a query; with a long delay all windows end in one step."""

    def run(query: str, rows: list[Row], *, delay: int = 0, **how: object) -> RunError:
        with pytest.raises(RunError) as caught:
            run_program(program(query, delay), {"A": [rows]}, **how)  # type: ignore[arg-type]
        return caught.value

    return run


def row(vs: int, v: int, k: str = "b", ve: int | None = 0, d: int = 0) -> Row:
    return {"vs": vs, "ve": vs + 1 if ve == 0 else ve, "k": k, "v": v, "d": Decimal(d)}


def event_of(error: RunError) -> object:
    assert isinstance(error, OperatorFailed)
    return error.event


# --- the user's aggregates -------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", ["Folded", "Kept"])
@pytest.mark.parametrize("cut", [None, 1])
def test_adding_names_the_event(failure: Failure, window: str, kind: str, cut: int | None) -> None:
    rows = [row(1, 1), row(2, 2, "a"), row(3, 13), row(30, 2)]
    query = f"SELECT k, {kind}Sums(v) AS s FROM A GROUP BY k WITH {window}"
    error = failure(query, rows, cut=cut)
    assert event_of(error) == {"vs": 3, "ve": 4, "k": "b", "v": 13}
    assert "failed on event {'vs': 3, 've': 4, 'k': 'b', 'v': 13}: ZeroDivision" in str(error)


def test_the_event_after_a_restart(failure: Failure) -> None:
    rows = [row(v, 13 if v == 3 else v) for v in range(20)]
    query = "SELECT k, FoldedSums(v) AS s FROM A GROUP BY k WITH TUMBLING(10)"
    error = failure(query, rows, cut=2, snapshot_at=3)
    assert event_of(error) == {"vs": 3, "ve": 4, "k": "b", "v": 13}


@pytest.mark.parametrize("window", WINDOWS)
def test_removing_names_the_event(failure: Failure, window: str) -> None:
    query = f"SELECT k, KeptSums(v) AS s FROM A GROUP BY k WITH {window}"
    error = failure(query, [row(1, 1), row(3, 14, "a")])
    assert event_of(error) == {"vs": 3, "ve": 4, "k": "a", "v": 14}
    assert isinstance(error, OperatorFailed) and error.function == "KeptSums.remove"


def test_open_ends_and_computed_columns(failure: Failure) -> None:
    query = "SELECT FoldedSums(v + 1) AS s FROM A GROUP BY k || 'x' WITH COUNT(1)"
    error = failure(query, [row(3, 12, ve=None)])
    assert event_of(error) == {"vs": 3, "ve": None, "key 1": "bx", "argument 1": 13}
    assert event_of(failure(query, [row(3, 6)])) == "window [3, 4) of 'bx'"


@pytest.mark.parametrize("delay", [0, 100])
@pytest.mark.parametrize("kind", ["Folded", "Kept"])
@pytest.mark.parametrize(
    ("window", "bounds"),
    [
        ("TUMBLING(10)", "[10, 20)"),
        ("HOPPING(10, 5)", "[5, 15)"),
        ("SESSION(5)", "[12, 17)"),
        ("COUNT(1)", "[12, 13)"),
        ("SNAPSHOT", "[12, 13)"),
    ],
)
def test_results_name_the_window_and_the_group(
    failure: Failure, kind: str, window: str, bounds: str, delay: int
) -> None:
    query = f"SELECT k, {kind}Sums(v) AS s FROM A GROUP BY k WITH {window}"
    others = [row(1, 1), row(2, 2, "a")]
    error = failure(query, [*others, row(12, 7)], delay=delay)
    assert event_of(error) == f"window {bounds} of k = 'b'"
    assert f"Sums.result ({error.file}:15) failed on window {bounds} of k = 'b'" in str(error)  # type: ignore[attr-defined]
    error = failure(query, [*others, row(12, 8)], delay=delay)
    assert event_of(error) == f"window {bounds} of k = 'b'"
    assert str(error).endswith("it must return BIGINT, not 'text' (str)")
    error = failure(query.replace("Sums", "NoZero"), [row(12, 8)], delay=delay)
    assert event_of(error) == f"window {bounds} of k = 'b'"


def test_a_group_without_keys_or_window(failure: Failure) -> None:
    query = "SELECT FoldedSums(v) AS s FROM A WITH TUMBLING(10)"
    assert event_of(failure(query, [row(12, 7)])) == "window [10, 20)"
    # With a cut the event is added before any window is known to end.
    snapshots = "SELECT k, KeptNoZero(v) AS s FROM A GROUP BY k WITH SNAPSHOT"
    error = failure(snapshots, [row(12, 7, ve=50), row(13, 7, "a")], cut=1)
    assert event_of(error) == "the group k = 'b'"
    error = failure("SELECT KeptNoZero(v) AS s FROM A", [row(12, 7, ve=50), row(13, 7)], cut=1)
    assert event_of(error) == "the group of all events"


@pytest.mark.parametrize("kind", ["Folded", "Kept"])
def test_aggregates_of_nothing_see_every_event(program: Callable[[str], object], kind: str) -> None:
    query = f"SELECT k, {kind}Counts() AS n FROM A GROUP BY k WITH TUMBLING(10)"
    found = run_program(program(query), {"A": [[row(1, 0), row(2, 0), row(3, 0)]]})  # type: ignore[arg-type]
    assert [r["n"] for r in found.rows] == [3]


# --- the user's operators --------------------------------------------------------------------


def test_timers_name_their_key(failure: Failure) -> None:
    error = failure("REDUCE A ON k USING Waits()", [row(1, 1)])
    assert event_of(error) == "the timer at 6 of k = 'b'"
    assert "it has no on_time" in str(error)
    assert event_of(failure("PROCESS A USING Waits()", [row(1, 1)])) == "the timer at 6"


def test_what_is_emitted_is_named(failure: Failure) -> None:
    error = failure("PROCESS A USING Emits()", [row(v, v) for v in range(11, 15)])
    assert "'vs': 13" in str(event_of(error)) and error.line == 52  # type: ignore[attr-defined]
    assert error.cause.endswith("column v must be BIGINT, not 'text' (str)")  # type: ignore[attr-defined]


# --- sums, windows, lifetimes ----------------------------------------------------------------

BIG = 2**63 - 1


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("delay", [0, 100])
def test_sums_that_overflow(failure: Failure, parallelism: int, delay: int) -> None:
    rows = [row(1, 1), row(11, BIG), row(12, 5, "a"), row(13, 2)]
    keyed = "SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(10)"
    where, _, told = str(failure(keyed, rows, parallelism=parallelism, delay=delay)).partition(": ")
    assert where.startswith("line 2, column 5")
    told, line, caret = told.split("\n")
    assert told == (
        "in window [10, 20) of k = 'b': integer overflow: a SUM does not fit BIGINT: "
        "it is 9223372036854775809; cast to DECIMAL or DOUBLE"
    )
    assert line.find("SUM(v)") == caret.find("^")
    whole = "SELECT SUM(v) AS s FROM A WITH TUMBLING(10)"
    told = str(failure(whole, rows, parallelism=parallelism, delay=delay))
    assert ": in window [10, 20): integer overflow" in told
    assert "it is 9223372036854775814" in told
    negative = [row(11, -BIG), row(12, -BIG)]
    assert f"it is {-2 * BIG}" in str(
        failure(whole, negative, parallelism=parallelism, delay=delay)
    )


@pytest.mark.parametrize(
    ("aggregate", "dtype", "shown"),
    [
        ("SUM", "DECIMAL(38, 0)", "199999999999999999999999999999999999998"),
        ("AVG", "DECIMAL(38, 4)", "99999999999999999999999999999999999999.0000"),
    ],
)
def test_decimals_that_overflow(failure: Failure, aggregate: str, dtype: str, shown: str) -> None:
    most = 10**38 - 1
    query = f"SELECT k, {aggregate}(d) AS s FROM A GROUP BY k WITH TUMBLING(10)"
    rows = [row(1, 0, d=1), row(11, 0, d=most), row(12, 0, d=most)]
    told = str(failure(query, rows, delay=100)).partition(": ")[2]
    assert told.split("\n")[0] == (
        f"in window [10, 20) of k = 'b': overflow: a {aggregate} does not fit {dtype}: "
        f"it is {shown}; cast to fewer decimals or to DOUBLE"
    )


def test_too_many_doubles() -> None:
    lanes = np.array([[1], [MAX_VALUES]])
    with pytest.raises(RowFailure, match="2,147,483,648 DOUBLE values or more") as caught:
        FloatMoment(squares=False).result("sum", lanes, DOUBLE)
    assert caught.value.row == 1


@pytest.mark.parametrize("cut", [None, 1])
def test_open_events_in_hopping_windows(failure: Failure, cut: int | None) -> None:
    rows = [row(1, 1), row(12, 1, "a", ve=None), row(23, 1, "c", ve=None)]
    query = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH HOPPING(10, 5, 1)"
    assert str(failure(query, rows, cut=cut)) == (
        "in window [6, 16) of k = 'a': an open event is in a HOPPING window that never ends; "
        "clip it first (CLIP_DURATION or CHOP)"
    )
    whole = "SELECT COUNT(*) AS n FROM A WITH TUMBLING(10)"
    assert str(failure(whole, rows, cut=cut, parallelism=3)).startswith("in window [10, 20): an ")


@pytest.mark.parametrize("cut", [None, 1])
def test_chop_of_an_open_event(failure: Failure, cut: int | None) -> None:
    rows = [row(1, 1), row(12, 2, "a", ve=None), row(70, 3)]
    told = str(failure("SELECT k, v FROM A WITH CHOP(10)", rows, cut=cut))
    assert told.endswith("on event {'ve': None, 'k': 'a', 'v': 2}")


def test_lifetimes_that_are_moved_too_far(failure: Failure) -> None:
    rows = [row(1, 1), row(2**62 - 5, 2, "a")]
    told = str(failure("SELECT k, v FROM A WITH SHIFT(10)", rows))
    assert (
        "moved to 4611686018427387909, beyond ±2⁶² ticks, on event {'vs': 461168601842738" in told
    )
    assert "'k': 'a'" in told
