"""Handlers that run as they are: what each run is given, takes out, and must not do."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from enum import Flag
from functools import cached_property, partial
from threading import Lock
from typing import Any, NoReturn

import pytest

import weir
from weir.errors import OperatorFailed, RunError
from weir.handlers.api.app import App
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.runs.hidden_state import KeptObjects

ROWS = [{"k": k, "j": (k + 1) % 3, "xs": [k], "ts": t} for t, k in enumerate([0, 1, 2, 0, 1, 0])]


def small_app() -> tuple[App, Any]:
    app = App("a")
    return app, app.events("e", "k BIGINT, j BIGINT, xs LIST(BIGINT), ts BIGINT", vs="ts")


def emitted(app: App, cut: int | None = None) -> list[dict[str, Any]]:
    """Run all handlers as they are; return what they emit as `out`, without the times."""
    stream = compile_app(app, vectorise=False).emitted["out"]
    rows = weir.collect(stream, inputs={"e": ROWS}, cut=cut).to_pylist()
    rows.sort(key=lambda row: row["vs"])
    return [{name: v for name, v in row.items() if name not in ("vs", "ve")} for row in rows]


class Hidden:
    """A `Hidden` does something where no text of a handler says so."""

    def __init__(self, access: Callable[[], object]) -> None:
        self.access = access

    def __neg__(self) -> int:
        self.access()
        return 1


def test_a_failure_stays_though_the_handler_catches_it() -> None:
    app, e_type = small_app()
    n = app.state("n", default=0, key="BIGINT")
    hidden = Hidden(lambda: n.get(1))
    app.emits("out", "v BIGINT")

    @app.serial
    @app.on(e_type)
    def judge(e: Any) -> None:
        try:
            v = -hidden
        except BaseException:
            v = 0
        app.emit("out", v=v)

    with pytest.raises(OperatorFailed, match="judge reads n with the key 1 in a way that was not"):
        emitted(app)


@pytest.mark.parametrize("cut", [1, None])
def test_a_later_run_gets_the_answers_of_live_reads_in_order(cut: int | None) -> None:
    app, e_type = small_app()
    n = app.state("n", default=0, key="BIGINT")
    times = app.state("times", default=-1, key="BIGINT")

    @app.on(e_type)
    def note(e: Any) -> None:
        times.set(e.k, e.ts)

    @app.on(e_type)
    def step(e: Any) -> None:
        before = n.get(e.k)
        n.add(e.k, 2)
        after = n.get(e.k)
        app.emit("out", before=before, after=after, far=times.get(after % 3))

    assert emitted(app, cut) == [
        {"before": 0, "after": 2, "far": -1},
        {"before": 0, "after": 2, "far": -1},
        {"before": 0, "after": 2, "far": 2},
        {"before": 2, "after": 4, "far": 1},
        {"before": 2, "after": 4, "far": 4},
        {"before": 4, "after": 6, "far": 5},
    ]


def test_answers_are_told_apart_by_their_keys() -> None:
    app, e_type = small_app()
    n = app.state("n", default=0, key="BIGINT")

    @app.on(e_type)
    def count(e: Any) -> None:
        n.add(e.k, 1)

    @app.on(e_type)
    def show(e: Any) -> None:
        app.emit("out", mine=n.get(e.k), other=n.get(e.j))

    assert [(row["mine"], row["other"]) for row in emitted(app)] == [
        (1, 0),
        (1, 0),
        (1, 1),
        (2, 1),
        (2, 1),
        (3, 2),
    ]


def test_what_a_handler_does_to_a_list_of_the_event_no_other_sees() -> None:
    app, e_type = small_app()
    app.emits("out", "first BIGINT, second BIGINT")

    @app.on(e_type)
    def one(e: Any) -> None:
        xs = e.xs
        xs.append(7)
        app.emit("out", first=len(xs), second=0)

    @app.on(e_type)
    def two(e: Any) -> None:
        app.emit("out", first=0, second=len(e.xs))

    app.serial(one, two)
    rows = emitted(app)
    assert {row["first"] for row in rows} == {0, 2}
    assert {row["second"] for row in rows} == {0, 1}


def test_what_changes_outside_of_handlers_ends_the_run() -> None:
    app, e_type = small_app()
    seen: list[int] = []
    hidden = Hidden(partial(operator.iadd, seen, [1]))
    app.emits("out", "v BIGINT")

    @app.on(e_type)
    def count(e: Any) -> None:
        app.emit("out", v=-hidden)

    with pytest.raises(RunError, match=r"changed the variable `hidden` .*, which lives outside"):
        emitted(app)


def test_what_members_of_enums_and_metaclasses_remember_is_compared() -> None:
    class Counting(type):
        n = 0

    class Counted(metaclass=Counting):
        pass

    class Level(Flag):
        LOW = 1
        HIGH = 2

    kept = KeptObjects(lambda: (Counted, Level))
    assert ~Level.LOW is Level.HIGH and Level(3) is not None  # which enums keep
    kept.check()
    Counting.n += 1
    with pytest.raises(RunError, match=r"attribute `n` of the class `.*Counting`"):
        kept.check()
    kept = KeptObjects(lambda: Level.LOW)
    Level.LOW.seen = 1  # type: ignore[attr-defined]
    with pytest.raises(RunError, match=r"the attributes of a `.*Level`"):
        kept.check()


def test_new_attributes_of_classes_and_functions_are_found() -> None:
    class Counted:
        pass

    def count() -> None:
        pass

    kept = KeptObjects(lambda: (Counted, count))
    Counted.seen = 1  # type: ignore[attr-defined]
    with pytest.raises(RunError, match=r"what attributes the class `.*Counted` has"):
        kept.check()
    kept = KeptObjects(lambda: (Counted, count))
    count.seen = 1  # type: ignore[attr-defined]
    with pytest.raises(RunError, match=r"what attributes `.*count` has"):
        kept.check()


def test_what_a_cached_property_keeps_is_compared() -> None:
    class Basket:
        @cached_property
        def items(self) -> list[int]:
            return []

    basket = Basket()
    kept = KeptObjects(lambda: basket.items)
    basket.items.append(1)
    kept.check()  # which may be how it was made
    kept.check()
    basket.items.append(2)
    with pytest.raises(RunError, match=r"changed what `items` of a `.*Basket` keeps"):
        kept.check()


def test_what_cannot_be_pickled_is_compared_by_its_attributes() -> None:
    class Locked:
        __slots__ = ("lock", "n")

        def __init__(self) -> None:
            self.lock, self.n = Lock(), 0

        def __reduce_ex__(self, protocol: object) -> NoReturn:
            raise TypeError("it has a lock")

    locked = Locked()
    kept = KeptObjects(lambda: locked.n)
    kept.check()
    locked.n += 1
    with pytest.raises(RunError, match="changed the variable `locked`"):
        kept.check()


@pytest.mark.parametrize("cut", [None, 1, 2])
def test_a_handler_that_has_done_nothing_does_not_run_again(cut: int | None) -> None:
    app, e_type = small_app()
    n = app.state("n", default=0, key="BIGINT")
    total = app.state("total", default=0, key="BIGINT")
    app.emits("out", "v BIGINT")

    @app.on(e_type)
    def add(e: Any) -> None:
        n.add(abs(e.k), 1)

    @app.on(e_type)
    def judge(e: Any) -> None:
        keys = [e.j, e.k]
        keys.sort()
        if e.ts == 1:
            return  # quietly
        if e.ts == 2:
            app.emit("out", v=-1)
            return
        if e.ts == 3:
            total.add(e.k, 7)
            return
        app.emit("out", v=n.get(keys[0]))

    runs: list[int] = []

    def look(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code is judge.__code__:
            runs.append(frame.f_locals["e"].ts)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        rows = emitted(app, cut)
    finally:
        sys.setprofile(before)
    assert [row["v"] for row in rows] == [1, -1, 2, 3]
    assert sorted(runs) == [0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5]
