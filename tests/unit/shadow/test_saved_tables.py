"""The loop restores the saved cells that it touches; the engine begins with these alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest

from weir.handlers.api.app import App
from weir.plan.operators import FinalState, Source, SourceOptions
from weir.plan.saved_states import state_schema
from weir.plan.states import Cell
from weir.shadow.saved_tables import SavedTable, TableRows, TouchedCells, saved_table
from weir.shadow.serial_cells import SerialCells, Unfit

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
