"""Windows of one kind of merges: what is kept as merges come and go is the fold of all of them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handler_apps import app_of
from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch
from weir.events.types import BIGINT, DOUBLE, STRING
from weir.handlers.planning.app_compiler import compile_app
from weir.kernels.kernel_table import make_kernel
from weir.kernels.structures.cells import CellTable
from weir.kernels.structures.saved_cells import cell_rows, check_restored, load_cells
from weir.plan.operators import RowScan, StateScan, schema
from weir.plan.states import Cell, MergeKind
from weir.plan.traversal import ordered_nodes

LAST = 10
DOUBLES = (0.0, -0.0, 1.5, -2.25, 1e300, -1e300, 5e-324, math.nan, math.inf, -math.inf)
TEXTS = ("", "a", "b", "straße", "z")


def same(value: Any) -> Any:
    return tuple(map(same, value)) if isinstance(value, list) else repr(value)


def ranked(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=lambda v: (math.isnan(v), 0 if math.isnan(v) else v), reverse=True)


def distinct(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(v == value or (v != v and value != value) for v in found):
            found.append(value)
    return found


def extreme(values: Sequence[Any], beyond: Callable[[Any, Any], bool]) -> Any:
    best = values[0]
    for value in values[1:]:
        best = value if beyond(value, best) else best
    return best


def exact(values: Sequence[float]) -> float:
    try:
        return math.fsum(values) + 0.0
    except ValueError:  # both infinities
        return math.nan
    except OverflowError:
        whole = sum(int(v) for v in values)
        return math.inf if whole > 0 else -math.inf


FOLDS: dict[MergeKind, Callable[[Any, list[Any]], Any]] = {
    "add": lambda default, values: sum(values, default),
    "set": lambda default, values: values[-1],
    "max": lambda default, values: extreme([default, *values], lambda a, b: a > b),
    "min": lambda default, values: extreme([default, *values], lambda a, b: a < b),
    "append": lambda default, values: [*default, *values],
    "add_to_set": lambda default, values: [
        *default,
        *distinct([*default, *values])[len(default) :],
    ],
    "top_k": lambda default, values: ranked([*default, *values])[:3],
}
CASES: list[tuple[MergeKind, pa.DataType, Any, Sequence[Any]]] = [
    ("add", BIGINT, 7, range(-5, 6)),
    ("add", DOUBLE, 0.5, DOUBLES),
    ("set", BIGINT, 0, range(5)),
    ("set", STRING, None, (*TEXTS, None)),
    ("set", pa.list_(BIGINT), (1,), ([], [2, 3])),
    ("max", BIGINT, 2, range(-5, 6)),
    ("max", DOUBLE, 0.0, DOUBLES),
    ("max", DOUBLE, math.nan, DOUBLES),
    ("max", DOUBLE, -math.inf, DOUBLES),
    ("min", DOUBLE, -0.0, DOUBLES),
    ("min", DOUBLE, math.inf, DOUBLES),
    ("min", STRING, "m", TEXTS),
    ("append", pa.list_(BIGINT), (9,), (*range(4), None)),
    ("add_to_set", pa.list_(DOUBLE), (1.5,), DOUBLES),
    ("add_to_set", pa.list_(DOUBLE), (), DOUBLES),
    ("top_k", pa.list_(DOUBLE), (), DOUBLES),
    ("top_k", pa.list_(DOUBLE), (1.5, -1.0), DOUBLES),
]


@pytest.mark.parametrize(("kind", "dtype", "default", "values"), CASES)
def test_a_window_is_the_fold_of_its_merges(
    kind: MergeKind, dtype: pa.DataType, default: Any, values: Sequence[Any]
) -> None:
    rng = random.Random(f"{kind} {dtype} {default}")
    fold = exact_fold if dtype == DOUBLE and kind == "add" else FOLDS[kind]
    table = CellTable(Cell("s", (BIGINT,), dtype, default, last=LAST))
    merged: dict[int, list[tuple[int, Any]]] = {1: [], 2: []}
    now = 0
    for step in range(400):
        now += rng.choice((0, 0, 1, 1, 2, 25 if step % 50 == 0 else 1))
        key = rng.choice((1, 1, 2))
        if rng.random() < 0.5:
            value = rng.choice(values)
            table.merge(key, now, kind, (value, 3) if kind == "top_k" else (value,))
            merged[key].append((now, value))
        here = [value for at, value in merged[key] if at <= now < at + LAST]
        wanted = fold(default, here) if here else default
        wanted = list(wanted) if pa.types.is_list(dtype) and wanted is not None else wanted
        assert same(table.get(key, now)) == same(wanted)
        if step % 37 == 0:
            table.drop(now)
        if step % 91 == 0:
            table = reloaded(table)


def exact_fold(default: float, values: list[float]) -> float:
    finite = [v for v in (default, *values) if math.isfinite(v)]
    special = [v for v in (default, *values) if not math.isfinite(v)]
    return sum(special) if special else exact(finite)


def reloaded(table: CellTable) -> CellTable:
    rows = cell_rows(table, lambda keys: (pa.array(keys, pa.int64()),), ())
    names = ["number", "merge", "arg"]
    if pa.types.is_list(table.cell.type):
        names += ["element", "k"]
    again = CellTable(table.cell)
    payload = Batch(rows.vs, rows.ve, rows.columns[1:])
    load_cells(again, rows.columns[0].to_pylist(), payload, names, {})
    return again


def test_kinds_that_are_mixed_are_folded_one_by_one() -> None:
    table = CellTable(Cell("s", (), BIGINT, 0, last=LAST))
    for at, kind, value in ((1, "max", 5), (2, "add", 3), (3, "max", 4)):
        table.merge((), at, kind, (value,))  # type: ignore[arg-type]
        table.get((), at)
    assert table.get((), 3) == 8
    assert table.get((), 11) == 4  # max(0 + 3, 4)
    assert table.get((), 12) == 4
    assert table.get((), 13) == 0


def test_top_k_of_several_k() -> None:
    table = CellTable(Cell("s", (), pa.list_(BIGINT), (), last=LAST))
    for at, value, k in ((1, 5, 3), (2, 3, 3), (3, 4, 2)):
        table.merge((), at, "top_k", (value, k))
        table.get((), at)
    assert table.get((), 3) == [5, 4]
    assert table.get((), 11) == [4, 3]


@pytest.mark.parametrize("kind", ["add", "set", "max", "min", "top_k"])
@pytest.mark.parametrize("falling", [False, True])
def test_reads_do_not_look_through_the_window(kind: MergeKind, falling: bool) -> None:
    """30 000 merges and as many reads of one window: a minute if each read folded all of them."""
    many = 30_000
    dtype, default = (pa.list_(BIGINT), ()) if kind == "top_k" else (BIGINT, 0)
    table = CellTable(Cell("s", (), dtype, default, last=10 * many))
    begun = time.process_time()
    for at in range(many):
        value = many - at if falling else at
        table.merge((), at, kind, (value, 3) if kind == "top_k" else (value,))
        table.get((), at)
    assert time.process_time() - begun < 10


class _Burst:
    """A scan by key of a state with `last` or `expires`: many merges of one key, then few of
    another, for a long time."""

    def __init__(self, method: str, span: str, ring: bool, restored: bool = False) -> None:
        app = app_of(f"""
s = app.state("s", default=0, {span}=1000)

@app.on(n)
def h(e):
    {"if s.get(e.a) < 10**9: " if ring else ""}s.{method}(e.a, 1)
    app.emit("out", v=s.get(e.a))
""")
        paths = {"m": "m.jsonl", "n": "n.jsonl"}
        saved = compile_app(app, paths=paths, final=True).final if restored else {}
        compiled = compile_app(app, paths=paths, restored=saved)
        nodes = ordered_nodes([stream.node for stream in compiled.emitted.values()])
        *_, self.node = (n for n in nodes if isinstance(n, StateScan | RowScan))
        self.kernel = make_kernel(self.node)

    def step(self, keys: Sequence[int], at: int, saved: int | None = None) -> int:
        """Take rows with these keys at a time, and a saved cell that was merged into at another;
        return how many rows are held then."""
        vs = np.full(len(keys), at)
        types = schema(self.node.inputs[0]).types
        columns = [pa.array(keys, dtype) for dtype in types]  # the key, and others
        origin = (np.zeros(len(keys), dtype=np.int64), np.arange(len(keys)))
        slices = [Batch(vs, vs + 1, tuple(columns), origin)]
        if saved is not None:
            when, payload = np.array([saved]), schema(self.node.inputs[1]).columns
            given = {"merge": "max", "number": 0}
            slices.append(
                Batch(
                    when,
                    when + 1,
                    tuple(pa.array([given.get(name, 7)], dtype) for name, dtype in payload),
                )
            )
        self.kernel.step(slices, at + 1)
        return self.kernel.state_rows


@pytest.mark.parametrize(
    ("method", "span", "ring", "kind"),
    [
        ("add", "last", False, StateScan),
        ("max", "last", False, StateScan),
        ("max", "last", True, RowScan),
        ("add", "expires", False, StateScan),
        ("add", "expires", True, RowScan),
    ],
)
def test_a_burst_is_given_back(method: str, span: str, ring: bool, kind: type) -> None:
    """What a silent key has held is given back, and who comes later need not be many."""
    burst = _Burst(method, span, ring)
    assert isinstance(burst.node, kind)
    silent = [1] * 5000 if span == "last" else list(range(10, 5010))
    assert burst.step(silent, 0) >= 5000
    assert burst.step([2], 1) >= 5000
    assert burst.step([2], 3000) <= 3


def test_saved_cells_that_are_later_than_what_was_taken() -> None:
    cell = Cell("s", (), BIGINT, 0)
    at = np.array([3, 7])
    rows = Batch(at, at + 1, (pa.array([1, 2]),))
    check_restored(cell, rows, 7)
    with pytest.raises(SnapshotCorrupt, match=r"a saved cell of s was merged into at 7, .* at 6: "):
        check_restored(cell, rows, 6)


@pytest.mark.parametrize("ring", [False, True])
def test_a_scan_takes_no_later_cells(ring: bool) -> None:
    _Burst("max", "last", ring, restored=True).step([1], 10, saved=10)
    with pytest.raises(SnapshotCorrupt, match=r"into at 11, .* first event, at 10"):
        _Burst("max", "last", ring, restored=True).step([1], 10, saved=11)
