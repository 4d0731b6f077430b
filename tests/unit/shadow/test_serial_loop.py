"""The serial loop runs handlers as they are, one event after the other; answers by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.planning.handler_order import serial_order
from weir.shadow.serial_loop import LogEvent, LoopResult, SerialApp, SerialLoop, run_loop

Columns = Mapping[str, Sequence[tuple[str, pa.DataType]]]
ID = {"out": [("id", pa.int64())]}


def loop_of(app: App, emitted: Columns, **params: object) -> SerialLoop:
    return SerialLoop(
        SerialApp(app, serial_order(app), app.states, emitted, app.param_values(params))
    )


def ran(app: App, events: Sequence[LogEvent], emitted: Columns, **params: object) -> LoopResult:
    return run_loop(loop_of(app, emitted, **params), events)


def values(result: LoopResult, name: str = "out") -> list[tuple[object, ...]]:
    return [row.values for row in result.rows[name]]


def event(vs: int, *columns: object, name: str = "click", ve: int | None = None) -> LogEvent:
    return LogEvent(name, vs, vs + 1 if ve is None else ve, columns)


def clicks(columns: str = "id BIGINT, user STRING") -> tuple[App, Any]:
    app = App("a")
    return app, app.events("click", f"{columns}, at BIGINT", vs="at")


def test_events_go_through_handlers_one_by_one() -> None:
    app, click = clicks()
    seen = app.state("seen", default=0)

    @app.on(click)
    def first(e: Any) -> None:
        if seen.get(e.user) == 0:
            app.emit("out", id=e.id)
        seen.add(e.user, 1)

    events = [event(t, n, user, t) for t, n, user in ((1, 1, "a"), (1, 2, "b"), (2, 3, "a"))]
    result = ran(app, events, ID)
    assert values(result) == [(1,), (2,)]
    assert result.events == 3 and result.failed is None
    assert result.cells.get("seen", ("a",)) == 2


def test_a_row_has_the_lifetime_of_its_event_and_where_it_is_from() -> None:
    app, click = clicks()

    def told(e: Any) -> None:
        app.emit("out", id=e.id)  # the line that is named

    @app.on(click)
    def tell(e: Any) -> None:
        told(e)
        told(e)

    result = ran(app, [event(1, 1, "a", 1), event(2, 2, "a", 2, ve=9)], ID)
    last = result.rows["out"][-1]
    assert (last.vs, last.ve, last.event, last.at.handler) == (2, 9, 1, "tell")
    assert last.at.file == __file__
    assert last.at.line == told.__code__.co_firstlineno + 1


def test_an_open_event_has_no_end() -> None:
    app, click = clicks()

    @app.on(click)
    def tell(e: Any) -> None:
        app.emit("out", id=e.vs if e.ve is None else -1)

    result = run_loop(loop_of(app, ID), [LogEvent("click", 3, None, (1, "a", 3))])
    assert values(result) == [(3,)] and result.rows["out"][0].ve is None


def test_who_writes_runs_before_who_only_reads() -> None:
    app, click = clicks()
    count = app.state("count", default=0)

    @app.on(click)
    def judge(e: Any) -> None:
        app.emit("out", id=count.get(e.user))

    @app.on(click)
    def note(e: Any) -> None:
        count.add(e.user, 1)

    assert serial_order(app) == {"click": ("note", "judge")}
    assert values(ran(app, [event(1, 1, "a", 1), event(2, 1, "a", 2)], ID)) == [(1,), (2,)]


def test_a_handler_sees_only_its_event_types() -> None:
    app, click = clicks()
    view = app.events("view", "id BIGINT, at BIGINT", vs="at")

    @app.on(view)
    def views(e: Any) -> None:
        app.emit("out", id=-e.id)

    @app.on(click, view)
    def all_of_them(e: Any) -> None:
        app.emit("out", id=e.id)

    assert serial_order(app) == {"click": ("all_of_them",), "view": ("views", "all_of_them")}
    events = [event(1, 1, "a", 1), event(1, 2, 1, name="view")]
    assert values(ran(app, events, ID)) == [(1,), (-2,), (2,)]


def test_each_handler_has_an_event_of_its_own() -> None:
    app, click = clicks("tags LIST(STRING), who STRUCT(name STRING)")

    @app.on(click)
    def one(e: Any) -> None:
        e.tags.append("x")
        e.who["name"] = "nobody"
        app.emit("out", id=len(e.tags))

    @app.on(click)
    def two(e: Any) -> None:
        app.emit("out", id=len(e.tags) if e.who.name == "ann" else -1)

    events = [event(t, ["a"], {"name": "ann"}, t) for t in (1, 2)]
    assert values(ran(app, events, ID)) == [(2,), (1,), (2,), (1,)]


def test_parameters_have_their_values() -> None:
    app, click = clicks()
    most = app.param("most", 5)

    @app.on(click)
    def tell(e: Any) -> None:
        if e.id > most:
            app.emit("out", id=most)

    events = [event(1, 4, "a", 1), event(2, 6, "a", 2)]
    assert values(ran(app, events, ID)) == [(5,)]
    assert values(ran(app, events, ID, most=3)) == [(3,), (3,)]


def test_what_is_emitted_has_the_types_of_its_stream() -> None:
    app, click = clicks()

    @app.on(click)
    def tell(e: Any) -> None:
        app.emit("out", user=e.user, score=e.id)

    columns = {"out": [("score", pa.float64()), ("user", pa.string())]}
    found = values(ran(app, [event(1, 4, "a", 1)], columns))
    assert found == [(4.0, "a")] and isinstance(found[0][0], float)
    failed = ran(app, [event(1, 2**53 + 1, "a", 1)], columns).failed
    assert failed is not None and "must be DOUBLE" in failed.cause


def test_a_stream_that_nobody_declared_is_kept() -> None:
    app, click = clicks()

    @app.on(click)
    def tell(e: Any) -> None:
        app.emit("hidden", id=e.id)

    assert values(ran(app, [event(1, 4, "a", 1)], ID), "hidden") == [(4,)]


@pytest.mark.parametrize("fields", [{}, {"id": 1, "more": 2}])
def test_an_emit_has_all_columns_and_no_others(fields: dict[str, object]) -> None:
    app, click = clicks()

    @app.on(click)
    def tell(e: Any) -> None:
        app.emit("out", **fields)

    failed = ran(app, [event(1, 4, "a", 1)], ID).failed
    assert failed is not None and isinstance(failed.__cause__, PlanError)


def test_the_first_exception_ends_the_loop() -> None:
    app, click = clicks()
    total = app.state("total", default=0)

    @app.on(click)
    def divide(e: Any) -> None:
        app.emit("out", id=e.id)
        app.emit("out", id=12 // e.id)  # fails for 0
        total.add(e.user, 1)

    events = [event(t, n, "a", t) for t, n in ((1, 4), (2, 0), (3, 3))]
    result = ran(app, events, ID)
    assert values(result) == [(4,), (3,)]
    assert result.failed is not None and result.events == 1
    assert result.failed.event == 1 and result.failed.cause.startswith("ZeroDivisionError")
    assert result.failed.at.handler == "divide"
    assert result.failed.at.line == divide.__code__.co_firstlineno + 3
    assert result.cells.get("total", ("a",)) == 1


def test_a_merge_function_does_not_emit() -> None:
    app, click = clicks()
    total = app.state("total", default=0)

    @app.on(click)
    def note(e: Any) -> None:
        total.merge(e.user, lambda old: app.emit("out", id=old) or old)

    loop = SerialLoop(SerialApp(app, {"click": ("note",)}, app.states, ID, {}))
    failed = run_loop(loop, [event(1, 1, "a", 1)]).failed
    assert failed is not None and "may read, not merge or emit" in failed.cause


def test_an_assertion_a_failing_check_and_an_exit_count() -> None:
    for error in (AssertionError, SystemExit, ValueError):
        app, click = clicks()

        def check(e: Any, error: type[BaseException] = error) -> None:
            raise error("no")

        @app.on(click)
        def tell(e: Any, check: Any = check) -> None:
            check(e)

        loop = SerialLoop(SerialApp(app, {"click": ("tell",)}, {}, ID, {}))
        assert run_loop(loop, [event(1, 1, "a", 1)]).failed is not None


def test_it_does_not_look_at_how_a_state_is_reached() -> None:
    """A default argument, an object's attribute, super(), a generator: CPython knows."""
    app, click = clicks()
    total = app.state("total", default=0)

    class Above:
        def __init__(self, state: Any) -> None:
            self.state = state

        def note(self, key: str) -> None:
            self.state.add(key, 1)

    class Below(Above):
        def note(self, key: str) -> None:
            super().note(key)

    def noted(key: str, state: Any = total) -> Any:
        state.add(key, 10)
        yield key

    @app.on(click)
    def note(e: Any) -> None:
        Below(total).note(e.user)
        for _ in noted(e.user):
            app.emit("out", id=total.get(e.user))

    loop = SerialLoop(SerialApp(app, {"click": ("note",)}, app.states, ID, {}))
    assert values(run_loop(loop, [event(1, 1, "a", 1)] * 2)) == [(11,), (22,)]


def test_known_types_of_keys_are_checked() -> None:
    app, click = clicks()
    total = app.state("total", default=0)

    @app.on(click)
    def note(e: Any) -> None:
        total.add(e.user, 1)

    states = {"total": replace(total, keys=(pa.int64(),))}
    loop = SerialLoop(SerialApp(app, serial_order(app), states, ID, {}))
    failed = run_loop(loop, [event(1, 1, "a", 1)]).failed
    assert failed is not None and "a key of total must be BIGINT" in failed.cause
