"""Wrong answers, planted in the engine: a shadow run names the first event where they show."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from small_shadow import COUNT, clicks, parts, shadow_of
from weir.errors import ReplayDiffers, RunError
from weir.events.batch import Batch
from weir.kernels.expressions.evaluator import PYTHON_BUILDERS
from weir.kernels.operators.number import NumberKernel
from weir.kernels.operators.row_scan import RowScanKernel
from weir.kernels.operators.state_scan import StateScanKernel
from weir.kernels.structures.cells import CellTable
from weir.shadow import shadow_run

BUILDERS: Any = PYTHON_BUILDERS


def differs(folder: Path, body: str, count: int = 40) -> ReplayDiffers:
    shadow = shadow_of(folder, body)
    with pytest.raises(ReplayDiffers) as caught:
        shadow.compare(parts(shadow, click=clicks(count)))
    return caught.value


def test_what_agrees_is_counted(tmp_path: Path) -> None:
    shadow = shadow_of(tmp_path, COUNT)
    assert shadow.compare(parts(shadow, click=clicks(40))) == 40
    assert shadow.compare(parts(shadow, click=[])) == 0
    assert shadow_of(tmp_path, COUNT, 7).compare(parts(shadow, click=clicks(40))) == 7
    assert shadow_of(tmp_path, COUNT).compare(parts(shadow, click=clicks(2000))) == 1000


def test_a_wrong_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = StateScanKernel.step

    def step(self: Any, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        rows, cti = right(self, slices, cti)
        wrong = pc.if_else(pc.equal(rows.vs, 22), 5, rows.columns[-1])
        return Batch(rows.vs, rows.ve, (*rows.columns[:-1], wrong), rows.origin), cti

    monkeypatch.setattr(StateScanKernel, "step", step)
    error = differs(tmp_path, COUNT)
    assert (error.number, error.what) == (23, "`out`")
    assert error.event == {"vs": 22, "ve": 23, "id": 22, "user": "b", "at": 22}
    assert error.input == "click.jsonl, row 23"
    total = sum(n for n in range(23) if n % 3 == 22 % 3)
    assert error.loop == str({"vs": 22, "ve": 23, "id": 22, "n": total + 1})
    assert error.engine == str({"vs": 22, "ve": 23, "id": 22, "n": 6})
    assert error.handler == "tell" and error.place is not None
    assert error.place.text == 'app.emit("out", id=e.id, n=count.get(e.user) + 1)'
    assert "report" in str(error) and f"app.py:{error.place[0]}" in str(error)


def test_a_wrong_column_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILDERS, "py_add", PYTHON_BUILDERS["py_sub"])
    error = differs(tmp_path, COUNT)
    assert error.number == 1 and "'n': 1" in error.loop and "'n': -1" in error.engine


def test_a_wrong_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = """
@app.on(click)
def tell(e):
    app.emit("out", id=e.id, n=1)
    app.emit("out", id=e.id, n=2)
"""
    right = NumberKernel.step

    def step(self: Any, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (rows,) = slices
        order = np.lexsort((-np.arange(len(rows)), rows.vs)) if len(rows) > 20 else slice(None)
        (rows,) = (rows.take(np.arange(len(rows))[order]),)
        return right(self, [rows], cti)

    monkeypatch.setattr(NumberKernel, "step", step)
    error = differs(tmp_path, twice)
    assert error.what == "the order of `out`" and error.number == 11
    assert "'n': 1" in error.loop and "'n': 2" in error.engine


def test_a_row_too_few_and_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = NumberKernel.step
    for rows_at_20 in (0, 2):

        def step(
            self: Any, slices: Sequence[Batch], cti: int, often: int = rows_at_20
        ) -> tuple[Batch, int]:
            (rows,) = slices
            counts = np.where(rows.vs == 20, often, 1)
            return right(self, [rows.take(np.repeat(np.arange(len(rows)), counts))], cti)

        monkeypatch.setattr(NumberKernel, "step", step)
        error = differs(tmp_path, COUNT)
        row, nothing = sorted((error.loop, error.engine), reverse=True)
        assert error.number == 21 and row.startswith("{'vs': 20") and nothing == "nothing"
        assert (error.loop == "nothing") == (rows_at_20 == 2)


def test_a_wrong_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = CellTable.merge

    def merge(self: CellTable, key: Any, time: int, *given: Any) -> None:
        if time != 13:
            right(self, key, time, *given)

    monkeypatch.setattr(CellTable, "merge", merge)
    keeps = """
seen = app.state("seen", default=(), type="LIST(BIGINT)")

@app.on(click)
def keep(e):
    seen.append(e.user, e.id)  # this one
    app.emit("out", id=e.id, n=0)
"""
    error = differs(tmp_path, keeps, 15)
    assert (error.number, error.what) == (14, "the state `seen` of 'b'")
    assert error.loop.startswith("[1, 4, 7, 10, 13]")
    assert error.engine.startswith("[1, 4, 7, 10],")
    assert error.place is not None and error.place.text.endswith("# this one")


OUTSIDE = """
BOX = {}

def put(k):
    box = BOX
    return box.setdefault(k, len(box))

@app.on(click)
def tell(e):
    app.emit("out", id=e.id, n=put(e.user))
"""
UNPLANNED = """
count = app.state("count", default=0, key="STRING")

class Hidden:
    def __init__(self, access):
        self.access = access
    def __neg__(self):
        return self.access("a")

hidden = Hidden(count.get)

@app.on(click)
def tell(e):
    app.emit("out", id=e.id, n=-hidden)

@app.on(click)
def note(e):
    count.add(e.user, count.get(e.user) + 1)

app.serial(tell, note)
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (OUTSIDE, "a handler has changed the global `BOX`"),
        (UNPLANNED, "tell reads count with the key 'a' in a way that was not found"),
    ],
)
def test_what_a_guard_ends_is_no_difference(body: str, message: str, tmp_path: Path) -> None:
    shadow = shadow_of(tmp_path, body)
    with pytest.raises(RunError, match=message) as caught:
        shadow.compare(parts(shadow, click=clicks(40)))
    assert not isinstance(caught.value, ReplayDiffers)
    assert caught.value.is_guard


def test_an_error_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILDERS, "py_add", PYTHON_BUILDERS["py_sub"])
    error = differs(tmp_path, COUNT)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.event == error.event
    assert again.place.text == error.place.text  # type: ignore[union-attr]


# --- failures ----------------------------------------------------------------------------------

FAILS = """
count = app.state("count", default=0)

@app.on(click)
def tell(e):
    count.add(e.user, 1)
    app.emit("out", id=100 // (e.id - 30), n=count.get(e.user))
"""


def test_both_fail_at_the_same_event(tmp_path: Path) -> None:
    shadow = shadow_of(tmp_path, FAILS)
    assert shadow.compare(parts(shadow, click=clicks(40))) == 30


def test_the_engine_differs_before_the_event_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = StateScanKernel.step

    def step(self: Any, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        rows, cti = right(self, slices, cti)
        wrong = pc.if_else(pc.equal(rows.vs, 29), 5, rows.columns[-1])
        return Batch(rows.vs, rows.ve, (*rows.columns[:-1], wrong), rows.origin), cti

    monkeypatch.setattr(StateScanKernel, "step", step)
    assert differs(tmp_path, FAILS).number == 30


def test_only_the_loop_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILDERS, "py_floordiv", PYTHON_BUILDERS["py_mul"])
    shadow = shadow_of(tmp_path, FAILS)
    with pytest.raises(ReplayDiffers) as caught:
        shadow.compare(parts(shadow, click=[{"id": 30, "user": "a", "at": 1}]))
    assert caught.value.number == 1 and caught.value.engine == "goes on"
    assert caught.value.loop.startswith("fails: ZeroDivisionError")
    assert caught.value.place is not None and "100 //" in caught.value.place.text


def test_only_the_engine_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = RowScanKernel._rows

    def rows(self: Any, port: int, batch: Batch) -> Any:
        for vs, ve, *values in right(self, port, batch):
            yield vs, ve, *((None,) * len(values) if vs == 25 else values)

    monkeypatch.setattr(RowScanKernel, "_rows", rows)
    error = differs(tmp_path, f"{FAILS.replace('30', '300')}\napp.serial()\n")
    assert error.number == 26 and error.loop == "goes on"
    assert error.engine.startswith("fails: tell (")


# --- how much is compared ------------------------------------------------------------------------


def test_the_loop_has_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            self.now += 0.1
            return self.now

    monkeypatch.setattr(shadow_run, "time", Clock())
    shadow = shadow_of(tmp_path, COUNT)
    compared = shadow.compare(parts(shadow, click=clicks(40)))
    assert 5 <= compared <= 12
    assert shadow_of(tmp_path, COUNT, 40).compare(parts(shadow, click=clicks(40))) == 40


def test_a_window_with_functions_is_compared(tmp_path: Path) -> None:
    body = """
recent = app.state("recent", default=0, last=5)
count = app.state("count", default=0)

@app.on(click)
def tell(e):
    count.add(e.user, 1)
    recent.merge(e.user, lambda old: old + count.get(e.user) * e.id)
    app.emit("out", id=e.id, n=recent.get(e.user))
"""
    shadow = shadow_of(tmp_path, body)
    assert shadow.compare(parts(shadow, click=clicks(40))) == 40
