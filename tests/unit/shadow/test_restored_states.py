"""The loop restores cells from saved states, only those that it touches, and compares them."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from weir.handlers.api.app import App
from weir.plan.operators import FinalState, Source, SourceOptions
from weir.plan.saved_states import state_schema
from weir.plan.states import Cell
from weir.shadow.restored_states import (
    SavedTable,
    TableRows,
    TouchedCells,
    contents,
    restore,
    saved_table,
)
from weir.shadow.serial_cells import SerialCells, Unfit


def cells_of(**declared: Any) -> SerialCells:
    return SerialCells({"s": App("a").state("s", **declared)})


def exact(value: Fraction, special: int = 0) -> bytes:
    """A sum as saved states have it."""
    return struct.pack("B", special) + int(value * 2**1074).to_bytes(300, "little", signed=True)


def test_saved_values_are_gone_on_from() -> None:
    cells = cells_of(default=0, expires=10)
    restore(cells, "s", [(5, {"key0": "k", "key1": 1, "value": 7})], {})
    cells.now = 14
    assert cells.get("s", ("k", 1)) == 7
    cells.now = 15
    assert cells.get("s", ("k", 1)) == 0


@pytest.mark.parametrize(
    ("special", "value"), [(0, 1e16), (1, math.nan), (2, math.inf), (6, math.nan)]
)
def test_a_saved_sum_is_exact(special: int, value: float) -> None:
    cells = cells_of(default=0.0)
    packed = exact(Fraction(10**16 + 1), special)
    restore(cells, "s", [(1, {"key0": "k", "value": value, "exact": packed})], {})
    found = cells.get("s", ("k",))
    assert found == value or (math.isnan(found) and math.isnan(value))
    cells.merge("s", ("k",), "add", (1.0,))
    if special == 0:
        assert cells.get("s", ("k",)) == 1e16 + 2


def test_a_saved_window_is_in_order_of_its_merges() -> None:
    rows = [
        (7, {"key0": 1, "number": 2, "merge": "call f", "arg": None, "call f.0": 3}),
        (7, {"key0": 1, "number": 1, "merge": "set", "arg": 10, "call f.0": None}),
        (1, {"key0": 1, "number": 0, "merge": "add", "arg": 100, "call f.0": None}),
    ]
    cells = cells_of(default=0, last=10)
    restore(cells, "s", rows, {"call f": lambda old, x: old * x})
    cells.now = 9
    assert cells.get("s", (1,)) == 30
    cells.merge("s", (1,), "add", (1,))
    assert cells.get("s", (1,)) == 31


def test_a_saved_list_has_its_elements() -> None:
    columns = {"key0": 1, "arg": None}
    rows = [
        (1, {**columns, "number": 0, "merge": "append", "element": "a", "k": None}),
        (2, {**columns, "number": 1, "merge": "top_k", "element": "b", "k": 1}),
    ]
    cells = cells_of(default=(), type="LIST(STRING)", last=10)
    restore(cells, "s", rows, {})
    cells.now = 2
    assert cells.get("s", (1,)) == ["b"]


def test_contents_leave_out_what_has_ended() -> None:
    cells = cells_of(default=0, expires=10)
    cells.merge("s", ("old",), "add", (1,))
    cells.now = 5
    cells.merge("s", ("new",), "add", (1,))
    assert set(contents(cells, "s", 9)) == {("old",), ("new",)}
    assert set(contents(cells, "s", 10)) == {("new",)}
    window = cells_of(default=0, last=10)
    window.merge("s", ("k",), "add", (1,))
    window.now = 5
    window.merge("s", ("k",), "add", (2,))
    found = contents(window, "s", 10)
    assert found[("k",)].value == 2 and found[("k",)].steps == ((5, "add", (2,)),)
    assert contents(window, "s", 15) == {}


def test_contents_tell_sums_apart_that_are_read_alike() -> None:
    one, other = cells_of(default=0.0), cells_of(default=0.0)
    one.merge("s", ("k",), "add", (1e16,))
    other.merge("s", ("k",), "set", (1e16,))
    assert contents(one, "s", 0) == contents(other, "s", 0)
    one.merge("s", ("k",), "add", (1.0,))
    assert contents(one, "s", 0)[("k",)].value == contents(other, "s", 0)[("k",)].value
    assert contents(one, "s", 0) != contents(other, "s", 0)


KEYS = (pa.float64(), pa.string())
CELL = Cell("s", KEYS, pa.int64(), 0)


def table() -> SavedTable:
    columns = (("vs", pa.int64()), *state_schema(CELL))
    source = Source("saved", columns, "saved.parquet", SourceOptions("vs"), 0)
    rows = pa.table(
        {
            "vs": [1, 2, 3, 4, 5],
            "key0": pa.array([0.0, math.nan, None, 1.5, 1.5], pa.float64()),
            "key1": ["a", "a", "a", "b", None],
            "value": [10, 20, 30, 40, 50],
        }
    )
    node = FinalState((), (), CELL, (), 2)
    return saved_table("s", source, node, TableRows("saved", rows))


def cells() -> SerialCells:
    return SerialCells({"s": replace(App("a").state("s", default=0), keys=KEYS)})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ((0.0, "a"), 10),
        ((-0.0, "a"), 10),
        ((math.nan, "a"), 20),
        ((None, "a"), 30),
        ((1.5, "b"), 40),
        ((1.5, None), 50),
        ((1.5, "a"), 0),
        ((2, "b"), 0),
        ((False, "a"), 10),
    ],
)
def test_a_cell_is_restored_when_it_is_touched(key: tuple[object, ...], value: int) -> None:
    assert TouchedCells({"s": table()}).restoring(cells()).get("s", key) == value


@pytest.mark.parametrize("key", [("x", "b"), (1.5,)])
def test_a_key_that_no_cell_has_is_refused(key: tuple[object, ...]) -> None:
    with pytest.raises(Unfit, match="a key of s"):
        TouchedCells({"s": table()}).restoring(cells()).get("s", key)


def test_an_engine_begins_with_the_cells_that_were_touched() -> None:
    touched = TouchedCells({"s": table()})
    loop = touched.restoring(cells())
    loop.now = 9
    loop.merge("s", (1.5, "b"), "add", (1,))
    loop.merge("s", (1.5, "b"), "add", (1,))
    assert loop.get("s", (1.5, "b")) == 42
    assert loop.get("s", (0.0, "a")) == 10
    (part,) = touched.partitions["saved"]
    found = [row for chunk in part.chunks(1) for row in chunk.rows.to_pylist()]
    assert [(row["vs"], row["value"]) for row in found] == [(1, 10), (4, 40)]
    assert TouchedCells({}).partitions == {}


def test_a_cell_that_is_restored_late_was_there_all_the_time() -> None:
    app = App("a")
    states = {
        "s": replace(app.state("s", default=0), keys=KEYS),
        "w": app.state("w", default=0, last=100),
    }
    loop = TouchedCells({"s": table()}).restoring(SerialCells(states))
    key = (1.5, "b")
    loop.merge("w", ("k",), "call", (), lambda old: old + loop.get("s", key))
    loop.merge("w", ("k",), "add", (1,))
    assert loop.get("w", ("k",)) == 41  # the function runs now, and sees what was before
