"""Row scans: the code of handlers, run row by row over cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, STRING
from weir.plan.operators import RowScan, Source, SourceOptions
from weir.plan.states import Cell, Cells, RowCode, RowFunction
from weir.reliable.chain import make_kernel


def _source(index: int) -> Source:
    columns = (("k", STRING), ("v", BIGINT), ("vs", BIGINT))
    return Source(f"S{index}", columns, "", SourceOptions("vs"), index)


def _rows(*rows: tuple[int, int, str | None, int]) -> Batch:
    """Rows of (vs, number, key, value)."""
    vs = np.array([r[0] for r in rows], dtype=np.int64)
    number = np.array([r[1] for r in rows], dtype=np.int64)
    keys = pa.array([r[2] for r in rows], STRING)
    return Batch(vs, vs + 1, (keys, pa.array([r[3] for r in rows], BIGINT)), (number,))


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
