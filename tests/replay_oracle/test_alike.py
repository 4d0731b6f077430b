"""The product's loop and the engine do alike at the edges of Python: what a state refuses, NaN,
parameters, bools for numbers, functions in windows."""

from __future__ import annotations

import math

import pytest

from replay_oracle.product_loop import shadow_run
from weir.errors import PlanError, ScriptError
from weir.shadow.serial_loop import SerialLoop, run_loop

HEAD = """
import math
import weir
app = weir.App("alike")
a = app.events("a", "k STRING, n BIGINT, x DOUBLE, xs LIST(DOUBLE), ts BIGINT", vs="ts")
total = app.state("total", default=0, key="STRING")
by_number = app.state("by_number", default=0, key="BIGINT")
by_double = app.state("by_double", default=0.0, key="DOUBLE")
lists = app.state("lists", default=[], type="LIST(DOUBLE)", key="STRING")
recent = app.state("recent", default=0, key="STRING", last=3)
limit = app.param("limit", 2)
app.emits("out", "k STRING, v BIGINT")
app.emits("yes", "k STRING, b BOOLEAN")
"""
NAN = math.nan
LOG = {
    "a": [
        [
            {"k": "p", "n": 1, "x": 1.5, "xs": [NAN, 2.0], "ts": 1},
            {"k": "q", "n": 2, "x": NAN, "xs": [], "ts": 2},
            {"k": "p", "n": 3, "x": -0.0, "xs": [1.0], "ts": 3},
            {"k": "q", "n": 0, "x": NAN, "xs": [NAN], "ts": 4},
        ]
    ]
}
ROWS = "    while True: break\n"
"""What is not on the list of columns."""


def compared(body: str, *, serial: bool = False, **params: object) -> tuple[int, list[object]]:
    """Run both over all events; return over how many they agree, and what the loop emits."""
    text = f"{HEAD}\n@app.on(a)\ndef act(e):\n{body}"
    run = shadow_run(text + ("\napp.serial(act)\n" if serial else ""), LOG, params)
    rows = run_loop(SerialLoop(run.serial), run.first.events).rows
    return run.compare(), [row.values[1] for of in rows.values() for row in of]


CAUGHT = """    try:
        {access}
    except Exception:
        pass
    app.emit("out", k=e.k, v=1)
"""
REFUSED = [
    "total.get(e.n)",
    "total.add(e.n, 1)",
    "total.add(e.k, None)",
    "total.set(e.k, 'x')",
    "total.add(e.k, 2 ** 62) or total.add(e.k, 2 ** 62)",
    "total.merge(e.k, lambda old: 'x')",
    "app.emit('out', k=e.k, v='x')",
]
BEFORE = [
    "total.get((e.k, e.k))",
    "total.merge(e.k, lambda old: total.add(e.k, 1))",
    "total.merge(e.k, lambda old: app.emit('out', k=e.k, v=1))",
    "lists.top_k(e.k, e.x, 0)",
]
"""What is refused before the run, in a serial group, too."""


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("access", REFUSED)
def test_what_a_state_refuses_ends_the_run_even_if_it_is_caught(access: str, serial: bool) -> None:
    if access == "total.get(e.n)" and not serial:  # the plan has to know the key
        with pytest.raises(PlanError, match="expected STRING"):
            compared(CAUGHT.format(access=access))
        return
    count, _ = compared(CAUGHT.format(access=access), serial=serial)
    assert count == 0


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("access", BEFORE)
def test_what_the_text_shows_is_refused_before_the_run(access: str, serial: bool) -> None:
    with pytest.raises(ScriptError, match=r"app\.py, line 18"):
        compared(CAUGHT.format(access=access), serial=serial)


@pytest.mark.parametrize("serial", [False, True])
def test_what_a_merges_function_raises_may_be_caught(serial: bool) -> None:
    access = "total.merge(e.k, lambda old: old + 1 // e.n)"
    count, rows = compared(CAUGHT.format(access=access), serial=serial)
    assert (count, rows) == (4, [1, 1, 1, 1])


@pytest.mark.parametrize("rows", ["", ROWS])
def test_a_nan_of_the_log_is_one_object(rows: str) -> None:
    body = f'{rows}    app.emit("yes", k=e.k, b=e.x in (e.x, 1.0))\n'
    assert compared(body) == (4, [True] * 4)


def test_a_nan_is_one_object_in_lists_and_states() -> None:
    body = """    lists.append(e.k, e.x)
    held = lists.get(e.k)
    app.emit("yes", k=e.k, b=e.x in held and e.x in [*e.xs, e.x])
    app.emit("yes", k=e.k, b=math.nan in e.xs)
    app.emit("yes", k=e.k, b=all(x in held for x in lists.get(e.k)))
"""
    for serial in (False, True):
        wanted = [True, True, True, True, False, True, True, False, True, True, True, True]
        assert compared(body, serial=serial) == (4, wanted)


def test_a_nan_that_is_computed_is_another_object() -> None:
    for rows in ("", ROWS):
        body = f'{rows}    app.emit("yes", k=e.k, b=(e.x + 1) in (e.x + 1, 0.5))\n'
        assert compared(body) == (4, [True, False, True, False])


@pytest.mark.parametrize("serial", [False, True])
def test_parameters_are_plain_values(serial: bool) -> None:
    body = '    app.emit("yes", k=e.k, b=type(limit) is int and isinstance(limit, int))\n'
    assert compared(body, serial=serial, limit=3) == (4, [True] * 4)
    body = '    app.emit("out", k=e.k, v=[5, 6, 7, 8][limit] if limit is not None else 0)\n'
    assert compared(body, serial=serial, limit=3) == (4, [8] * 4)


@pytest.mark.parametrize("rows", ["", ROWS])
@pytest.mark.parametrize("serial", [False, True])
def test_a_bool_is_a_number_as_key_and_value(rows: str, serial: bool) -> None:
    body = f"""{rows}    by_number.add(e.n > 1, True)
    by_double.add(e.n > 1, True)
    app.emit("out", k=e.k, v=by_number.get(1))
    app.emit("yes", k=e.k, b=by_double.get(1.0) > 0.5)
"""
    try:
        count, emitted = compared(body, serial=serial)
    except PlanError as refused:
        assert not serial and "key" in str(refused)
        return
    assert (count, emitted) == (4, [0, 1, 2, 2, False, True, True, True])


def test_a_function_in_a_window_sees_the_cells_before_its_merge() -> None:
    """The engine agrees, or does not take it."""
    body = """    recent.merge(e.k, lambda old: old + total.get(e.k) + e.n)
    total.add(e.k, 10)
    app.emit("out", k=e.k, v=recent.get(e.k))
"""
    for serial in (False, True):
        try:
            count, emitted = compared(body, serial=serial)
        except PlanError as refused:
            assert "recent" in str(refused)
        else:
            assert (count, emitted) == (4, [1, 2, 14, 12])
