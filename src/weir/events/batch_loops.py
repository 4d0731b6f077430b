"""The compiled loop that takes rows out of a batch."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import ReadI64s
from weir.loops.compiled import compiled


@compiled
def lifetimes_at(vs: ReadI64s, ve: ReadI64s, rows: ReadI64s):
    """Return the lifetimes of the rows at these positions."""
    # Both arrays in one loop: one read waits for memory while the other runs.
    starts, ends = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        starts[i], ends[i] = vs[rows[i]], ve[rows[i]]
    return starts, ends
