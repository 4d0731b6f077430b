"""A final state returns the cells of a state as rows, when its input has ended.

Rows have the times of merges, so no row may come out earlier; until then the output's CTI stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, empty_batch
from weir.kernels.kernel import Tables, emitted
from weir.kernels.operators.cell_scan import CellScan
from weir.plan.operators import FinalState, schema


class FinalStateKernel:
    """Runs `FinalState` (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: FinalState) -> None:
        self._types, self._as_of = schema(node).types, node.as_of
        restored = {} if node.restored is None else {node.restored: 0}
        self._scan = CellScan(
            [schema(i) for i in node.inputs],
            node.keys,
            (node.state,),
            node.merges,
            (),
            node.depth,
            restored,
        )

    @property
    def state_rows(self) -> int:
        return self._scan.state_rows

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        self._scan.run(slices)
        if cti != OPEN:
            if self._as_of is not None:
                self._scan.forget(min(cti, self._as_of))
            return empty_batch(self._types), START
        if self._as_of is not None:
            self._scan.drop(self._as_of)
        rows = self._scan.rows_of(0)
        return emitted([(rows.vs, rows)]), cti

    def snapshot(self) -> Tables:
        return self._scan.snapshot()

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        self._scan.load(tables)
