"""An app behind `app.emitted(…)` sees rows in the order of the serial loop: per event, handler
after handler, statement after statement, elements where the loop stands."""

from collections.abc import Callable

import pytest

import weir
from weir.errors import OperatorFailed
from weir.handlers.api.app import App
from weir.handlers.api.declarations import EventType
from weir.plan.operators import Enter
from weir.plan.traversal import ordered_nodes

LOG = [{"id": 1, "xs": [7, 8], "ts": 5}, {"id": 0, "xs": [9], "ts": 5}]


def first_app() -> tuple[App, EventType]:
    one = App("one")
    one.emits("out", "id BIGINT, what STRING, x BIGINT")
    return one, one.events("ev", "id BIGINT, xs LIST(BIGINT), ts BIGINT", vs="ts")


def seen(one: App) -> list[tuple[object, ...]]:
    """Return what an app over what another one emits sees, as it sees it."""
    two = App("two")
    got = two.events("got", one.emitted("out"))
    n = two.state("n", default=0)

    @two.on(got)
    def number(e):  # type: ignore[no-untyped-def]
        n.add(0, 1)
        two.emit("seen", n=n.get(0), id=e.id, what=e.what, x=e.x)

    found = [
        weir.collect(two.emitted("seen"), inputs={"ev": LOG}, cut=cut, parallelism=2).to_pylist()
        for cut in (None, 1)
    ]
    assert found[0] == found[1]
    rows = sorted(found[0], key=lambda row: row["n"])
    return [(row["id"], row["what"], row["x"]) for row in rows]


def serial_or_not(one: App, serial: bool) -> Callable[..., object]:
    return one.serial if serial else lambda handler: handler


@pytest.mark.parametrize("serial", [False, True])
def test_a_loop_stands_between_the_statements_around_it(serial: bool) -> None:
    one, ev = first_app()

    @serial_or_not(one, serial)
    @one.on(ev)
    def tell(e):  # type: ignore[no-untyped-def]
        one.emit("out", id=e.id, what="first", x=0)
        for x in e.xs:
            one.emit("out", id=e.id, what="z", x=x)
            one.emit("out", id=e.id, what="a", x=x)
        one.emit("out", id=e.id, what="last", x=0)

    assert seen(one) == [
        (1, "first", 0),
        (1, "z", 7),
        (1, "a", 7),
        (1, "z", 8),
        (1, "a", 8),
        (1, "last", 0),
        (0, "first", 0),
        (0, "z", 9),
        (0, "a", 9),
        (0, "last", 0),
    ]


@pytest.mark.parametrize("first", [False, True], ids=["compiled first", "serial first"])
@pytest.mark.parametrize("second", [False, True], ids=["compiled second", "serial second"])
def test_handlers_emit_one_after_the_other(first: bool, second: bool) -> None:
    one, ev = first_app()

    @serial_or_not(one, first)
    @one.on(ev)
    def loop(e):  # type: ignore[no-untyped-def]
        for x in e.xs:
            one.emit("out", id=e.id, what="loop", x=x)

    @serial_or_not(one, second)
    @one.on(ev)
    def behind(e):  # type: ignore[no-untyped-def]
        one.emit("out", id=e.id, what="behind", x=0)

    assert seen(one) == [
        (1, "loop", 7),
        (1, "loop", 8),
        (1, "behind", 0),
        (0, "loop", 9),
        (0, "behind", 0),
    ]


def test_what_a_parameter_leaves_out_changes_no_order() -> None:
    one, ev = first_app()
    level = one.param("level", 0)

    @one.on(ev)
    def tell(e):  # type: ignore[no-untyped-def]
        if level > 0:
            one.emit("out", id=e.id, what="never", x=0)
        for x in e.xs:
            if level > 0:
                one.emit("out", id=e.id, what="never", x=0)
            one.emit("out", id=e.id, what="loop", x=x)
        one.emit("out", id=e.id, what="last", x=0)

    assert seen(one) == [
        (1, "loop", 7),
        (1, "loop", 8),
        (1, "last", 0),
        (0, "loop", 9),
        (0, "last", 0),
    ]


def test_what_is_in_order_by_itself_stays_as_it_is() -> None:
    one, ev = first_app()

    @one.on(ev)
    def tell(e):  # type: ignore[no-untyped-def]
        for x in e.xs:
            one.emit("out", id=e.id, what="z", x=x)
            one.emit("out", id=e.id, what="a", x=x)

    nodes = ordered_nodes([one.emitted("out").node])
    assert not any(isinstance(node, Enter) for node in nodes)
    assert [what for _, what, _ in seen(one)] == ["z", "a", "z", "a", "z", "a"]


def test_an_error_behind_it_names_the_event() -> None:
    one, ev = first_app()

    @one.on(ev)
    def tell(e):  # type: ignore[no-untyped-def]
        one.emit("out", id=e.id, what="first", x=0)
        for x in e.xs:
            one.emit("out", id=e.id, what="x", x=x)

    two = App("two")
    got = two.events("got", one.emitted("out"))
    total = two.state("total", default=0)

    @two.on(got)
    def divided(e):  # type: ignore[no-untyped-def]
        total.add(e.id, 10 // (e.x - 9))
        two.emit("total", n=total.get(e.id))

    with pytest.raises(OperatorFailed, match=r"'xs': \[9\].*\(ev, row 2\)"):
        weir.collect(two.emitted("total"), inputs={"ev": LOG})
