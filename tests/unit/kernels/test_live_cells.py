"""The methods of live states: those written for their types do what `CellTable` does."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from weir.events.types import BIGINT, BOOLEAN, DOUBLE, STRING
from weir.kernels.structures.cells import CellTable
from weir.kernels.structures.live_cells import accessors, cell_key
from weir.plan.states import Accessors, Cell, CellFailure, RowCursor, UnplannedAccess

LISTS, POINT = pa.list_(BIGINT), pa.struct([("x", BIGINT), ("t", STRING)])
VALUES: dict[pa.DataType, tuple[Any, list[Any]]] = {
    BIGINT: (0, [1, True, -(2**63), 2**63, None, 1.5, "1"]),
    DOUBLE: (0.0, [1.5, 2, True, math.nan, -0.0, None, "x", 2**53 + 1]),
    STRING: ("", ["a", "é", "\ud800", None, 1]),
    BOOLEAN: (False, [True, None, 1]),
    LISTS: ((), [[1, 2], [True], (3,), [], [None], ["a"], None, [2**63], 5]),
    POINT: (None, [{"x": 1, "t": "a"}, {"t": "é", "x": 2}, {"x": 1}, {"x": "a", "t": "b"}, None]),
}


def _methods(cell: Cell, *, keyed: bool = True, key: Any = "k") -> tuple[Accessors, RowCursor]:
    cursor = RowCursor(key=key, is_active=True)
    return accessors(CellTable(cell, timed=False), cursor, keyed=keyed), cursor


@pytest.mark.parametrize(
    ("dtype", "x"), [(dtype, x) for dtype, (_, xs) in VALUES.items() for x in xs]
)
def test_set_is_that_of_the_table(dtype: pa.DataType, x: Any) -> None:
    cell = Cell("s", (STRING,), dtype, VALUES[dtype][0])
    methods, cursor = _methods(cell)
    table = CellTable(cell, timed=False)
    if x is True and dtype in (BIGINT, DOUBLE):
        x_of_table: Any = 1  # what Python takes for a number is one, in handler code
    else:
        x_of_table = x
    try:
        table.merge("k", 0, "set", (x_of_table,))
    except CellFailure:
        with pytest.raises(CellFailure):
            methods["set"]("k", x)
        assert cursor.failure is not None
        assert methods["get"]("k") == table.get("k", 0)
        return
    methods["set"]("k", x)
    wanted, found = table.get("k", 0), methods["get"]("k")
    assert found == wanted or (wanted != wanted and found is math.nan)
    assert type(found) is type(wanted)


@pytest.mark.parametrize("dtype", [LISTS, POINT])
def test_values_are_copies(dtype: pa.DataType) -> None:
    methods, _ = _methods(Cell("s", (STRING,), dtype, None))
    value: Any = [1] if dtype == LISTS else {"x": 1, "t": "a"}
    methods["set"]("k", value)
    for mine in (value, methods["get"]("k")):
        mine.clear()
        assert methods["get"]("k")
    methods["merge"]("k", lambda old: old.clear() or ([2] if dtype == LISTS else None))
    assert methods["get"]("k") == ([2] if dtype == LISTS else None)


def test_lists_grow_in_place_and_sets_know_of_it() -> None:
    methods, _ = _methods(Cell("s", (STRING,), LISTS, ()))
    methods["append"]("k", 1)
    methods["add_to_set"]("k", 1)
    methods["append"]("k", 2)
    methods["add_to_set"]("k", 2)
    methods["append"]("k", None)
    assert methods["get"]("k") == [1, 2, None]
    methods["set"]("k", [])
    methods["add_to_set"]("k", 2)
    assert methods["get"]("k") == [2]


def test_add_is_exact() -> None:
    methods, _ = _methods(Cell("s", (STRING,), BIGINT, 2**63 - 2))
    methods["add"]("k", 1)
    assert methods["get"]("k") == 2**63 - 1
    with pytest.raises(CellFailure):
        methods["add"]("k", 1)
    methods, _ = _methods(Cell("s", (STRING,), DOUBLE, 0.0))
    for x in (0.1, 0.2, 0.3, -0.6):
        methods["add"]("k", x)
    assert methods["get"]("k") == math.fsum((0.1, 0.2, 0.3, -0.6))


@pytest.mark.parametrize(
    ("keys", "key", "other"),
    [((STRING,), "k", "l"), ((BIGINT, STRING), (1, "a"), (1, "b")), ((DOUBLE,), 0.5, 1.0)],
)
def test_only_the_key_of_the_row(keys: tuple[pa.DataType, ...], key: Any, other: Any) -> None:
    cell = Cell("s", keys, BIGINT, 0)
    for method, args in (("get", ()), ("set", (1,)), ("add", (1,)), ("merge", (lambda n: n,))):
        methods, cursor = _methods(cell, key=key)
        methods["set"]((*key,) if isinstance(key, tuple) else key, 7)
        assert methods["get"](key) == 7
        with pytest.raises(UnplannedAccess, match="planned"):
            methods[method](other, *args)
        assert cursor.failure is not None


@pytest.mark.parametrize("keys", [(STRING,), (BIGINT,), (DOUBLE,), (BIGINT, STRING)])
def test_keys_that_are_equal_are_one(keys: tuple[pa.DataType, ...]) -> None:
    methods, cursor = _methods(Cell("s", keys, BIGINT, 0), keyed=False)
    same: dict[int, list[Any]] = {
        1: [1, True] if keys == (BIGINT,) else [0.0, -0.0] if keys == (DOUBLE,) else ["é", "é"],
        2: [(1, "a"), (True, "a")],
    }
    first, second = same[len(keys)]
    methods["add"](first, 1)
    methods["add"](second, 1)
    assert methods["get"](first) == 2
    for wrong in ([], {}, object()):
        cursor.failure = None
        with pytest.raises(CellFailure, match="key"):
            methods["get"](wrong)
    cursor.is_active, cursor.failure = False, None
    with pytest.raises(UnplannedAccess, match="kept from an earlier run"):
        methods["get"](first)


def test_a_merge_function_must_not_merge() -> None:
    methods, _ = _methods(Cell("s", (STRING,), BIGINT, 0))
    for inner in (lambda: methods["add"]("k", 1), lambda: methods["set"]("k", 1)):
        with pytest.raises(UnplannedAccess, match="inside of a merge function"):
            methods["merge"]("k", lambda _, inner=inner: inner())
    with pytest.raises(ZeroDivisionError):
        methods["merge"]("k", lambda n: n // 0)
    methods["add"]("k", 1)  # it has ended
    assert methods["get"]("k") == 1
    assert cell_key(("k",)) == "k"
