"""`Number` replaces the origin of each row with its position within its instant.

All rows of an instant are in one slice, so nothing is kept from one slice to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import START, Batch
from weir.kernels.kernel import Tables
from weir.plan.operators import Number


class NumberKernel:
    """Runs `Number` (see `kernel.Kernel`)."""

    right_from = START
    state_rows = 0

    def __init__(self, node: Number) -> None:
        pass  # the merge in front has sorted the rows

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (rows,) = slices
        at = np.arange(len(rows), dtype=np.int64)
        first = np.ones(len(rows), dtype=np.bool_)
        np.not_equal(rows.vs[1:], rows.vs[:-1], out=first[1:])
        position = at - np.maximum.accumulate(np.where(first, at, 0))
        return Batch(rows.vs, rows.ve, rows.columns, (position,)), cti

    def snapshot(self) -> Tables:
        return {}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        pass
