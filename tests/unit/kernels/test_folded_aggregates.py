"""An aggregate that declares its state gives what folding its rows at the end would give."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import weir
from weir import testing
from weir.errors import OperatorFailed
from weir.events.batch import OPEN, START, Batch
from weir.kernels.operators.aggregate import AggregateKernel
from weir.plan.operators import Aggregate
from weir.plan.usercode.functions import AggregateFunction

CODE = """
import weir

class Chain:
    # Depends on the order; writes into its state, also when it is asked for its result.
    def zero(self):
        return {"n": 0, "text": "", "last": []}
    def add(self, state, v: int):
        state["last"].append(v)
        n = (31 * state["n"] + (v or 7)) % 1_000_003
        return {"last": state["last"][-3:], "n": n, "text": state["text"] + str(v)}
    def result(self, state) -> str:
        state["last"].append("end")
        return f"{state['n']} {state['text']} {state['last']}"

Kept = weir.aggregate(type("Kept", (Chain,), {}))
Folded = weir.aggregate(
    state={"n": "BIGINT", "text": "STRING", "last": "LIST(BIGINT)"}
)(type("Folded", (Chain,), {}))
"""

WINDOWS = [
    "HOPPING(12, 3)",
    "HOPPING(3, 5)",
    "TUMBLING(5)",
    "SNAPSHOT",
    "SESSION(4)",
    "COUNT(3, 1)",
    "COUNT(2, 3)",
]


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "chains.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return """IMPORT 'chains.py';
        STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a.jsonl' WITH (vs = vs, ve = ve);
    """


def _events(seed: int, open_ends: bool) -> list[dict[str, object]]:
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for vs in sorted(chance.randrange(60) for _ in range(40)):
        lasts = chance.choice([1, 1, 4, 9, 30, None] if open_ends else [1, 1, 4, 9, 30])
        end = None if lasts is None else vs + lasts
        row = {"vs": vs, "ve": end, "k": chance.choice("ab"), "v": chance.choice([None, 1, 2, 3])}
        rows.append(row)
    return rows


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("cut", "restart"), [(7, None), (7, 3), (1, 20), (100, None)])
@pytest.mark.parametrize("condition", ["", "FILTER (WHERE v > 1)"])
def test_states_give_what_rows_give(
    declared: str, window: str, cut: int, restart: int | None, condition: str
) -> None:
    text = f"""{declared} Out = SELECT k, Kept(v) {condition} AS a, Folded(v) {condition} AS b
        FROM A GROUP BY k WITH {window};"""
    events = _events(cut, open_ends="HOPPING" not in window and "TUMBLING" not in window)
    found = testing.run(text, {"A": [events]}, cut=cut, snapshot_at=restart, parallelism=2).rows
    assert len({r["a"] for r in found}) > 3
    assert [r["a"] for r in found] == [r["b"] for r in found]


# --- the kernel by itself -------------------------------------------------------------------


class Total:
    """Adds numbers up."""

    def zero(self) -> int:
        return 0

    def add(self, state: int, v: int) -> int:
        return state + v

    def result(self, state: int) -> int:
        return state


def _kernel(function: AggregateFunction, window: object) -> AggregateKernel:
    source = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    made = source.window(window).agg(x=weir.call(function, weir.col("v")))  # type: ignore[arg-type]
    node = made.node
    while not isinstance(node, Aggregate):
        (node,) = node.inputs
    return AggregateKernel(node)


def _points(*rows: tuple[int, int]) -> Batch:
    starts, values = (np.array(c, dtype=np.int64) for c in zip(*rows, strict=True))
    return Batch(starts, starts + 1, (pa.array(values),))


def _results(kernel: AggregateKernel, batch: Batch, cti: int) -> list[object]:
    values: list[object] = kernel.step([batch], cti)[0].columns[0].to_pylist()
    return values


def test_a_window_has_one_state_however_many_rows_it_has() -> None:
    kernel = _kernel(weir.aggregate(state="BIGINT")(Total), weir.tumbling(1000))
    assert _results(kernel, _points(*((i, i) for i in range(900))), 900) == []
    assert kernel.state_rows == 2  # the pane, and the state
    held = kernel.snapshot()["values1"]
    assert held.num_rows == 1 and held.schema.field("$state").type == pa.int64()
    assert _results(kernel, _points((900, 1)), OPEN) == [899 * 900 // 2 + 1]
    assert kernel.state_rows == 0


def test_a_row_is_added_once_to_all_windows_that_hold_the_same() -> None:
    calls: list[int] = []

    class Seen(Total):
        def add(self, state: int, v: int) -> int:
            calls.append(v)
            return state + v

    kernel = _kernel(weir.aggregate(state="BIGINT")(Seen), weir.hopping(1000, 10))
    assert _results(kernel, _points((5, 7)), OPEN) == [7] * 100
    assert calls == [7]


def test_windows_that_lack_rows_are_not_shown_to_the_users_code() -> None:
    """As while a vertex is built again from the last part of its input."""
    shown: list[int] = []

    class Seen(Total):
        def add(self, state: int, v: int) -> int:
            shown.append(v)
            return state + v

    for window, before, behind in (
        (weir.tumbling(10), [], [12]),
        (weir.snapshot(), [3, 4], [5]),
    ):
        shown.clear()
        kernel = _kernel(weir.aggregate(state="BIGINT")(Seen), window)
        kernel.right_from = 20
        assert _results(kernel, _points((9, 1), (19, 2), (20, 3), (25, 4)), 26) == before
        kernel.right_from = START
        assert _results(kernel, _points((27, 5)), OPEN) == behind
        assert shown == [3, 4, 5]


@pytest.mark.parametrize(
    ("dtype", "zero", "added", "kept"),
    [
        ("BIGINT", np.int64(3), True, "its state must be BIGINT, not True (bool)"),
        ("BIGINT", 0, 1 << 63, "its state must be BIGINT, not 9223372036854775808 (int)"),
        ("BIGINT", 0.0, 1, "Odd.zero"),
        ("DOUBLE", 0, (1 << 53) + 1, "which no DOUBLE is exactly"),
        ("TIMESTAMP", 0, 1 << 61, "for which Python has no value"),
        ("LIST(BIGINT)", (), ["1"], "an element must be BIGINT, not '1' (str)"),
        ({"a": "INT"}, {"a": 1}, {"b": 1}, "its keys must be 'a'"),
        ({"a": "INT"}, {"a": 1}, {"a": "x"}, "'a' must be INT, not 'x' (str)"),
    ],
)
def test_a_state_of_another_type_is_refused(
    dtype: object, zero: object, added: object, kept: str
) -> None:
    class Odd:
        def zero(self) -> object:
            return zero

        def add(self, state: object, v: int) -> object:
            return added

        def result(self, state: object) -> int:
            return 0

    kernel = _kernel(weir.aggregate(state=dtype)(Odd), weir.tumbling(10))  # type: ignore[call-overload]
    with pytest.raises(OperatorFailed) as failed:
        kernel.step([_points((1, 13))], 5)
    assert kept in str(failed.value) and "'v': 13" in str(failed.value)
    assert Path(__file__).name in str(failed.value)


def test_states_are_given_back_as_a_restart_would() -> None:
    given: list[object] = []

    class Watched:
        def zero(self) -> object:
            return {"b": (np.int64(1),), "a": 1, "t": 5}

        def add(self, state: object, v: int) -> object:
            given.append(state)
            return state

        def result(self, state: object) -> int:
            return 0

    declared = {"a": "DOUBLE", "b": "LIST(INT)", "t": "TIMESTAMP"}
    function = weir.aggregate(state=declared)(Watched)
    kernel = _kernel(function, weir.tumbling(10))
    kernel.step([_points((1, 1))], 2)
    again = _kernel(function, weir.tumbling(10))
    again.load(kernel.snapshot())
    for each in (kernel, again):
        each.step([_points((3, 1))], 4)
    first, here, there = map(repr, given)
    assert first == here == there and "'a': 1.0, 'b': [1]" in first


def test_a_row_that_cannot_be_added_is_told_as_it_comes() -> None:
    class Picky(Total):
        def add(self, state: int, v: int) -> int:
            return state + 1 // (v - 13)

    kernel = _kernel(weir.aggregate(state="BIGINT")(Picky), weir.count_window(100))
    with pytest.raises(OperatorFailed, match=r"Picky.add.*'vs': 2.*'v': 13.*ZeroDivisionError"):
        kernel.step([_points((1, 1), (2, 13))], 5)
