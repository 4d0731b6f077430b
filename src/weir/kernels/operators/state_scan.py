"""A state scan adds to its reader's rows what they read from versioned state (`plan/states.py`).

Nothing is held back: a slice has all rows of its instants, so every request of the slice can be
answered. The reader's rows come out with their origins in the order in which they came in, that of
(vs, origin).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from weir.events.batch import OPEN, START, Batch
from weir.kernels.kernel import Tables
from weir.kernels.operators.cell_scan import CellScan
from weir.kernels.structures.fast_kinds import why_slow
from weir.plan.operators import StateScan, schema
from weir.plan.saved_states import argument_type


def slow_states(node: StateScan) -> dict[str, str]:
    """Return the names of a scan's states that have no compiled loop, each with the reason."""
    inputs = [schema(i) for i in node.inputs]
    reasons = {}
    for number, cell in enumerate(node.states):
        merges = [
            (m, [argument_type(arg, rows) for arg in m.args])
            for rows, of_port in zip(inputs, node.merges, strict=True)
            for m in of_port
            if m.state == number
        ]
        if why := why_slow(cell, merges):
            reasons[cell.state] = why
    return reasons


class StateScanKernel:
    """Runs `StateScan` (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: StateScan) -> None:
        restored = {port: state for state, port in enumerate(node.restored) if port >= 0}
        self._scan = CellScan(
            [schema(i) for i in node.inputs],
            node.keys,
            node.states,
            node.merges,
            node.reads,
            node.depth,
            restored,
        )

    @property
    def state_rows(self) -> int:
        return self._scan.state_rows

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        answers = self._scan.run(slices, self.right_from)
        if cti != OPEN:
            self._scan.forget(cti)
        rows = slices[0]
        return Batch(rows.vs, rows.ve, (*rows.columns, *answers), rows.origin), cti

    def snapshot(self) -> Tables:
        return self._scan.snapshot()

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        self._scan.load(tables)
