"""The compiled loop that keeps the best row of each pane."""

from __future__ import annotations

import numpy as np

from weir.kernels.structures import treap_loops as treap
from weir.loops.argument_types import I64, I64s, I64Table, U8s
from weir.loops.compiled import compiled


@compiled
def best_rows(
    panes: I64s,
    keys: I64s,
    firsts: I64s,
    sizes: I64s,
    data: U8s,
    sign: I64,
    heads: I64s,
    nodes: I64Table,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
    mark: I64s,
):
    """Find the best row of each pane that beats the pane's entry; also return the beaten entries.

    The parameters have the sort keys of the rows first, then those of the entries.
    """
    rows = np.empty(len(panes), dtype=np.int64)
    count = 0
    for row in range(len(panes)):
        at = mark[panes[row]]
        if at < 0:
            mark[panes[row]] = count
            rows[count] = row
            count += 1
            continue
        rival = rows[at]
        order = treap.compare(
            keys[row], row, firsts, sizes, data, keys[rival], rival, firsts, sizes, data
        )
        if sign * order < 0:
            rows[at] = row
    beaten = np.empty(count, dtype=np.int64)
    kept = lost = 0
    for i in range(count):
        row = rows[i]
        mark[panes[row]] = -1
        entry = heads[panes[row]]
        if entry >= 0:
            key = nodes[entry, treap.KEY]
            order = treap.compare(
                keys[row], row, firsts, sizes, data, key, entry, starts, lengths, buffer
            )
            if sign * order >= 0:
                continue
            beaten[lost] = entry
            lost += 1
            heads[panes[row]] = -1
        rows[kept] = row
        kept += 1
    return rows[:kept], beaten[:lost]
