"""State scans against a plain loop over all requests, one after the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, STRING
from weir.plan.operators import Enter, FinalState, Number, RowScan, Source, SourceOptions, StateScan
from weir.plan.states import Cell, Cells, RowCode, RowFunction, StateMerge, StateRead
from weir.reliable.chain import make_kernel

COLUMNS = (("k", STRING), ("v", BIGINT), ("vs", BIGINT))


def _source(index: int) -> Source:
    return Source(f"S{index}", COLUMNS, "", SourceOptions("vs"), index)


def _rows(*rows: tuple[int, int, str | None, int]) -> Batch:
    """Rows of (vs, number, key, value)."""
    vs = np.array([r[0] for r in rows], dtype=np.int64)
    number = np.array([r[1] for r in rows], dtype=np.int64)
    keys = pa.array([r[2] for r in rows], STRING)
    return Batch(vs, vs + 1, (keys, pa.array([r[3] for r in rows], BIGINT)), (number,))


def test_number_counts_within_an_instant() -> None:
    kernel = make_kernel(Number(_source(0)))
    out, cti = kernel.step([_rows((1, 0, "a", 1), (1, 1, "b", 1), (3, 2, "a", 1))], 5)
    assert cti == 5
    assert [o.tolist() for o in out.origin] == [[0, 1, 0]]


def test_a_read_sees_what_was_merged_before_it() -> None:
    streams = (Enter(_source(0), 1, 1), Enter(_source(1), 0, 1))
    cell = Cell("s", (STRING,), BIGINT, 0)
    merges = ((StateMerge(0, "add", ("v",), 1, 1),), (StateMerge(0, "add", ("v",), 0, 0),))
    reads = (StateRead(0, "before", 0, 0), StateRead(0, "after", 2, 2))
    scan = make_kernel(StateScan(streams, (("k",), ("k",)), (cell,), merges, reads, 1))
    out, _ = scan.step(
        [_rows((1, 5, "a", 1), (1, 6, None, 2), (2, 7, "a", 3)), _rows((1, 2, "a", 100))], OPEN
    )
    assert [c.to_pylist() for c in out.columns[2:]] == [[100, 0, 101], [101, 2, 104]]
    assert out.origin[0].tolist() == [5, 6, 7]
    final = make_kernel(FinalState(streams, (("k",), ("k",)), cell, merges, 1))
    out, cti = final.step([_rows((1, 5, "a", 1)), _rows((1, 2, "b", 100))], 2)
    assert not len(out) and cti < 1
    out, _ = final.step([_rows(), _rows()], OPEN)
    assert [c.to_pylist() for c in out.columns] == [["a", "b"], [1, 100]]


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
