"""Operators and aggregates that keep something outside of their declared state are refused."""

from __future__ import annotations

import textwrap
from collections import deque
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import weir
from weir import PlanError, collect, operator, stream
from weir.errors import OperatorFailed, ScriptError
from weir.plan.usercode.functions import OperatorFunction
from weir.plan.usercode.undeclared_state import undeclared_assignment
from weir.script import parse_program

A = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
ROWS = [{"vs": n, "v": n} for n in range(3)]
COLUMNS = {"n": "BIGINT"}


class Base:
    total: int = 0
    rate: int

    def __init__(self, rate: int = 2) -> None:
        self.rate = rate
        self.limit = self.start(rate)

    def start(self, rate: int) -> int:
        self.first = rate  # only __init__ calls it
        return rate

    def on_event(self, event: Any, ctx: Any) -> None:
        self.total += self.rate

    def remember(self, event: Any) -> None:
        self.last = event.vs


class Plain(Base):
    def on_event(self, event: Any, ctx: Any) -> None:
        self.last = event.vs


class Augmented(Base):
    def on_event(self, event: Any, ctx: Any) -> None:
        self.limit += 1


class Unpacked(Base):
    def on_event(self, event: Any, ctx: Any) -> None:
        self.total, (self.last, *_) = 1, [2]


class Deleted(Base):
    def on_event(self, event: Any, ctx: Any) -> None:
        del self.limit


class InOnTime(Base):
    def on_time(self, time: int, ctx: Any) -> None:
        self.last = time


class InAMethod(Base):
    def on_event(self, event: Any, ctx: Any) -> None:
        if event.v > 10**9:
            self.remember(event)


class BySuper(Plain):
    def on_event(self, event: Any, ctx: Any) -> None:
        super().on_event(event, ctx)


class InALambda(Base):
    def on_event(me, event: Any, ctx: Any) -> None:  # noqa: N805
        for me.last in range(3):
            pass


class ByAProperty(Base):
    @property
    def latest(self) -> int:
        return 0

    @latest.setter
    def latest(self, value: int) -> None:
        self.last = value

    def on_event(self, event: Any, ctx: Any) -> None:
        self.latest = event.vs


class Slotted:
    __slots__ = ("last",)

    def on_event(self, event: Any, ctx: Any) -> None:
        self.last = event.vs


class Private:
    def on_event(self, event: Any, ctx: Any) -> None:
        self.__last = event.vs


@pytest.mark.parametrize(
    "cls",
    [
        Plain,
        Augmented,
        Unpacked,
        Deleted,
        InOnTime,
        InAMethod,
        BySuper,
        InALambda,
        ByAProperty,
        Slotted,
        Private,
    ],
)
def test_an_attribute_that_is_set_and_not_declared_is_refused_at_planning(cls: type) -> None:
    made = operator(columns=COLUMNS)(cls)
    with pytest.raises(PlanError) as refused:
        A.process(made())
    text = str(refused.value)
    assert text.startswith(f"{cls.__name__}.") and f"({__file__}, line " in text
    assert "which is not declared as state: a restart would lose it; annotate it" in text
    line = int(text.partition(", line ")[2].partition(")")[0])
    source = Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1]
    attribute = text.partition("`")[2].partition("`")[0]
    assert f".{attribute}" in source


def test_a_script_says_where_it_uses_it(tmp_path: Path) -> None:
    code = """
    import weir

    @weir.operator(columns={"n": "BIGINT"})
    class Rise:
        def on_event(self, event, ctx):
            self.last = event.v
    """
    (tmp_path / "rules.py").write_text(textwrap.dedent(code), encoding="utf-8")
    text = """IMPORT 'rules.py';
STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
Out = PROCESS A USING Rise();
"""
    with pytest.raises(ScriptError, match=r"Rise.on_event sets `last` \(.*rules.py, line 7\)") as e:
        parse_program(text, directory=tmp_path)
    assert str(e.value).startswith("line 3, column 7: ") and "`last: int`" in str(e.value)


class Scaled(Base):
    last: int
    note: str

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names, self.last, self.note = names, 0, ""

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.names))

    def on_event(self, event: Any, ctx: Any) -> None:
        event.values["v"] = self.last  # not its own attribute
        self.last, self.note = event.vs, f"{self.longest}"
        ctx.emit(n=self.last)


def test_declared_state_constants_and_computed_values_are_fine() -> None:
    made = operator(columns=COLUMNS)(Scaled)
    out = collect(A.process(made(("a", "bc"))), inputs={"A": ROWS})
    assert out.column("n").to_pylist() == [0, 1, 2]


# --- what only a run shows ------------------------------------------------------------------------


class Helper:
    def __init__(self) -> None:
        self.seen = 0

    def note(self) -> None:
        self.seen += 1


class BySetattr:
    def on_event(self, event: Any, ctx: Any) -> None:
        setattr(self, "la" + "st", event.vs)


class ByDict:
    def on_event(self, event: Any, ctx: Any) -> None:
        vars(self)["last"] = event.vs


class ByAlias:
    def on_event(self, event: Any, ctx: Any) -> None:
        me = self
        me.last = event.vs


class Appended:
    def __init__(self) -> None:
        self.last: Any = []

    def on_event(self, event: Any, ctx: Any) -> None:
        self.last.append(event.vs)


class Nested:
    def __init__(self) -> None:
        self.last = {"by": deque([set()])}

    def on_event(self, event: Any, ctx: Any) -> None:
        self.last["by"][0].add(event.vs)


class Replaced:
    def __init__(self) -> None:
        self.last = [0.5]

    def on_event(self, event: Any, ctx: Any) -> None:
        self.last[0] += 1.0


class OfTheClass:
    last: Any = []  # noqa: RUF012

    def on_event(self, event: Any, ctx: Any) -> None:
        self.last.append(event.vs)


class InAnObject:
    def __init__(self) -> None:
        self.last = Helper()

    def on_event(self, event: Any, ctx: Any) -> None:
        self.last.note()


@pytest.mark.parametrize(
    ("cls", "does"),
    [
        (BySetattr, "sets"),
        (ByDict, "sets"),
        (ByAlias, "sets"),
        (Appended, "changes"),
        (Nested, "changes"),
        (Replaced, "changes"),
        (OfTheClass, "changes"),
        (InAnObject, "changes"),
    ],
)
def test_what_the_source_does_not_show_is_refused_at_the_first_event(cls: type, does: str) -> None:
    made = operator(columns=COLUMNS, state={})(cls)
    changed = A.process(made())
    with pytest.raises(OperatorFailed) as failed:
        collect(changed, inputs={"A": ROWS})
    text = str(failed.value)
    assert f"on_event {does} `last`, which is not declared as state" in text
    assert cls.__name__ in text and __file__ in text and "'vs': 0" in text


def test_large_constants_are_not_searched_at_every_call() -> None:
    class Large:
        def __init__(self) -> None:
            self.table = list(range(5000))

        def on_event(self, event: Any, ctx: Any) -> None:
            ctx.emit(n=self.table[event.v])

    made = operator(columns=COLUMNS)(Large)
    out = collect(A.process(made()), inputs={"A": ROWS})
    assert out.column("n").to_pylist() == [0, 1, 2]


def test_without_source_a_run_shows_it() -> None:
    names: dict[str, Any] = {}
    exec("class Made:\n def on_event(self, event, ctx): self.last = event.vs", names)
    assert undeclared_assignment(names["Made"], ["on_event"], []) is None
    made: OperatorFunction = operator(columns=COLUMNS)(names["Made"])
    with pytest.raises(OperatorFailed, match="on_event sets `last`"):
        collect(A.process(made()), inputs={"A": ROWS})


# --- aggregates -----------------------------------------------------------------------------------


def test_an_aggregate_that_sets_attributes_is_refused() -> None:
    @weir.aggregate
    class Seen:
        def zero(self) -> int:
            return 0

        def add(self, state: int, value: int) -> int:
            self.count = state + 1
            return self.count

        def result(self, state: int) -> int:
            return state

    with pytest.raises(PlanError, match=r"Seen.add sets `count`.*only what its methods return"):
        A.window(weir.tumbling(5)).agg(n=weir.call(Seen, weir.col("v")))
