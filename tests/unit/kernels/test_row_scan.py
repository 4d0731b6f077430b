"""Row scans: the code of handlers, run row by row over cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import OperatorFailed, RunError
from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, DOUBLE, STRING
from weir.plan.operators import RowScan, Source, SourceOptions
from weir.plan.states import Cell, Cells, RowCode, RowFunction
from weir.reliable.chain import make_kernel

LISTS = pa.list_(BIGINT)
POINT = pa.struct([("x", BIGINT), ("y", LISTS)])


def _source(index: int, dtype: pa.DataType = BIGINT) -> Source:
    columns = (("k", STRING), ("v", dtype), ("vs", BIGINT))
    return Source(f"S{index}", columns, "", SourceOptions("vs"), index)


def _rows(*rows: tuple[int, int, str | None, Any], dtype: pa.DataType = BIGINT) -> Batch:
    """Rows of (vs, number, key, value)."""
    vs = np.array([r[0] for r in rows], dtype=np.int64)
    number = np.array([r[1] for r in rows], dtype=np.int64)
    keys = pa.array([r[2] for r in rows], STRING)
    return Batch(vs, vs + 1, (keys, pa.array([r[3] for r in rows], dtype)), (number,))


def _first_of_key() -> RowFunction:
    def run(
        port: int, vs: int, ve: int | None, values: tuple[object, ...], cells: Cells
    ) -> list[object]:
        value, key = values
        if cells.get(0, (key,)):
            return [None, [{"v": port}]]
        cells.merge(0, (key,), "set", (True,))
        return [value, []]

    return run


def test_code_runs_row_by_row() -> None:
    seen = Cell("seen", (STRING,), pa.bool_(), False)
    effects = (("first", BIGINT), ("ports", pa.list_(pa.struct([("v", BIGINT)]))))
    both = (_source(0), _source(1))
    columns, places = (("v", "k"),) * 2, ((3, 3), (2, 2))
    code = RowCode("f", _first_of_key)
    node = RowScan(both, (("k",),) * 2, (seen,), code, columns, places, effects, 1)
    mine = _rows((1, 5, "a", 1), (1, 6, "a", 2), (2, 7, None, 3), (2, 8, None, 4), (2, 9, "b", 5))
    out, _ = make_kernel(node).step([mine, _rows((2, 9, "b", 7))], OPEN)
    assert out.columns[2].to_pylist() == [1, None, 3, None, None]
    assert out.columns[3].to_pylist() == [[], [{"v": 0}], [], [{"v": 0}], [{"v": 0}]]
    assert out.origin[0].tolist() == [5, 6, 7, 8, 9]


Code = Callable[[Any, Any, Cells], object]
"""What a row's code does with the key, the value and the cells; gives its only effect."""


def scan(
    cell: Cell, code: Code, effect: pa.DataType = BIGINT, dtype: pa.DataType = BIGINT
) -> RowScan:
    def make() -> RowFunction:
        def run(
            port: int, vs: int, ve: int | None, values: tuple[object, ...], cells: Cells
        ) -> Sequence[object]:
            return [code(*values, cells)]

        return run

    return RowScan(
        (_source(0, dtype),), (("k",),), (cell,), RowCode("rule", make), (("k", "v"),), ((0, 0),),
        (("e", effect),), 1,
    )  # fmt: skip


def effects(node: RowScan, *rows: Any, dtype: pa.DataType = BIGINT, cut: bool = False) -> list[Any]:
    """The effects of all rows: in one step, or each in a step of its own with a restart behind."""
    kernel = make_kernel(node)
    if not cut:
        return kernel.step([_rows(*rows, dtype=dtype)], OPEN)[0].columns[-1].to_pylist()
    found: list[Any] = []
    for row in rows:
        found += kernel.step([_rows(row, dtype=dtype)], row[0] + 1)[0].columns[-1].to_pylist()
        tables = kernel.snapshot()
        kernel = make_kernel(node)
        kernel.load(tables)
    return found


def counting(kind: Any) -> Code:
    def code(key: Any, value: Any, cells: Cells) -> object:
        before = cells.get(0, (key,))
        cells.merge(0, (key,), kind, (value, 2) if kind == "top_k" else (value,))
        return before

    return code


KINDS: list[tuple[Any, pa.DataType, Any, list[Any]]] = [
    ("add", BIGINT, 0, [0, 3, 4, 0, 9]),
    ("max", BIGINT, 0, [0, 3, 3, 0, 5]),
    ("min", BIGINT, 9, [9, 3, 1, 9, 1]),
    ("set", BIGINT, None, [None, 3, 1, None, 5]),
    ("append", LISTS, (), [[], [3], [3, 1], [], [3, 1, 5]]),
    ("add_to_set", LISTS, (1,), [[1], [1, 3], [1, 3], [1], [1, 3, 5]]),
    ("top_k", LISTS, (), [[], [3], [3, 1], [], [5, 3]]),
]
ROWS = ((1, 0, "a", 3), (2, 1, "a", 1), (3, 2, "a", 5), (3, 3, None, 7), (4, 4, "a", 2))


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("kind", "dtype", "default", "wanted"), KINDS)
def test_cells_go_on_after_a_restart(
    kind: Any, dtype: pa.DataType, default: Any, wanted: list[Any], cut: bool
) -> None:
    cell = Cell("s", (STRING,), dtype, default)
    assert effects(scan(cell, counting(kind), dtype), *ROWS, cut=cut) == wanted


@pytest.mark.parametrize("cut", [False, True])
def test_windows_and_ends_to_the_tick(cut: bool) -> None:
    last = Cell("s", (STRING,), BIGINT, 0, last=2)
    # Reads come before the merges of their own row.
    assert effects(scan(last, counting("add")), *ROWS, cut=cut) == [0, 3, 1, 0, 5]
    expires = Cell("s", (STRING,), BIGINT, 0, expires=2)
    rows = ((1, 0, "a", 3), (2, 1, "a", 1), (4, 2, "a", 5), (5, 3, "a", 1))
    assert effects(scan(expires, counting("add")), *rows, cut=cut) == [0, 3, 0, 5]


@pytest.mark.parametrize("cut", [False, True])
def test_sums_of_doubles_are_exact(cut: bool) -> None:
    node = scan(Cell("s", (STRING,), DOUBLE, 0.0), counting("add"), DOUBLE, DOUBLE)
    rows = [(t, t, "a", v) for t, v in enumerate((1e16, 1.0, 1.0, -1e16, 0.0))]
    got = effects(node, *rows, dtype=DOUBLE, cut=cut)
    assert got == [0.0, 1e16, 1e16, 1e16 + 2, 2.0]


@pytest.mark.parametrize("cut", [False, True])
def test_keys_are_compared_as_groups_are(cut: bool) -> None:
    keys = iter((0.0, -0.0, math.nan, -math.nan, None, None) * 2)

    def code(key: Any, value: Any, cells: Cells) -> object:
        mine = (next(keys), [1, next(keys)])
        next(keys)
        before = cells.get(0, mine)
        cells.merge(0, mine, "add", (1,))
        return before

    cell = Cell("s", (DOUBLE, pa.list_(DOUBLE)), BIGINT, 0)
    rows = [(t, t, "a", 0) for t in range(4)]
    assert effects(scan(cell, code), *rows, cut=cut) == [0, 0, 1, 1]


def test_values_cannot_be_changed() -> None:
    def change(key: Any, value: Any, cells: Cells) -> object:
        value["y"].append(1)
        return None

    cell = Cell("s", (STRING,), LISTS, (1,))
    row = (1, 0, "a", {"x": 1, "y": [2]})
    with pytest.raises(OperatorFailed, match=r"rule .*test_row_scan.*immutable: make a new one"):
        effects(scan(cell, change, dtype=POINT), row, dtype=POINT)

    def change_state(key: Any, value: Any, cells: Cells) -> object:
        cells.get(0, (key,)).extend([1])  # type: ignore[attr-defined]
        return None

    with pytest.raises(OperatorFailed, match="immutable"):
        effects(scan(cell, change_state), (1, 0, "a", 1))
    mine = [5]

    def keep(key: Any, value: Any, cells: Cells) -> object:
        cells.merge(0, (key,), "set", (mine,))
        mine.append(6)
        return cells.get(0, (key,))

    assert effects(scan(cell, keep, LISTS), (1, 0, "a", 1)) == [[5]]
    # A struct's fields are attributes too.
    node = scan(cell, lambda key, value, cells: value.y[0] + value["x"], dtype=POINT)
    assert effects(node, row, dtype=POINT) == [3]


def test_what_does_not_fit_is_an_error() -> None:
    cell = Cell("s", (STRING,), BIGINT, 2**63 - 1)
    with pytest.raises(OperatorFailed, match=r"rule .*'vs': 1.*state s must be BIGINT, not 922"):
        effects(scan(cell, counting("add")), (1, 0, "a", 1))

    def wrong_key(key: Any, value: Any, cells: Cells) -> object:
        cells.merge(0, (1,), "add", (0,))
        return None

    with pytest.raises(OperatorFailed, match=r"a key of s must be STRING, not 1"):
        effects(scan(cell, wrong_key), (1, 0, "a", 1))
    with pytest.raises(OperatorFailed, match=r"event .*'v': 4.*e must be BIGINT, not 'x'"):
        effects(scan(cell, lambda key, value, cells: "x"), (1, 0, "a", 4))

    def broken(key: Any, value: Any, cells: Cells) -> object:
        return 1 // (value - 4)

    with pytest.raises(OperatorFailed, match=r"'v': 4.*ZeroDivisionError"):
        effects(scan(cell, broken), (1, 0, "a", 1), (1, 1, "a", 4))


def test_a_checkpoint_cannot_keep_functions() -> None:
    def code(key: Any, value: Any, cells: Cells) -> object:
        cells.merge(0, (key,), "call", (), lambda old: 2 * old + value)
        return cells.get(0, (key,))

    node = scan(Cell("s", (STRING,), BIGINT, 1, last=5), code)
    assert effects(node, *ROWS[:2]) == [5, 11]
    with pytest.raises(RunError, match=r"a checkpoint cannot keep the window of s, .*; use"):
        effects(node, *ROWS[:2], cut=True)


@pytest.mark.parametrize("ends", [{"last": 10}, {"expires": 10}])
def test_cells_that_have_ended_are_dropped(ends: dict[str, int]) -> None:
    kernel = make_kernel(scan(Cell("s", (STRING,), BIGINT, 0, **ends), counting("add")))
    most = 0
    for start in range(0, 8000, 200):
        rows = [(t, t, str(t), 1) for t in range(start, start + 200)]
        kernel.step([_rows(*rows)], start + 200)
        most = max(most, kernel.state_rows)
    assert most <= 2 * 1024 + 400
