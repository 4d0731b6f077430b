"""The compiled loop of SELECT DISTINCT."""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN
from weir.loops.argument_types import I64s
from weir.loops.compiled import compiled


@compiled
def maximal_pieces(vs: I64s, ve: I64s, groups: I64s, start: I64s, end: I64s):
    """Extend or begin pieces; return the groups that began a piece, and the pieces that ended."""
    started = np.empty(len(vs), dtype=np.int64)
    ended = np.empty(len(vs), dtype=np.int64)
    starts = np.empty(len(vs), dtype=np.int64)
    ends = np.empty(len(vs), dtype=np.int64)
    begun = count = 0
    for row in range(len(vs)):
        group = groups[row]
        if start[group] != OPEN and vs[row] <= end[group]:
            end[group] = max(end[group], ve[row])
            continue
        if start[group] != OPEN:
            ended[count], starts[count], ends[count] = group, start[group], end[group]
            count += 1
        start[group], end[group] = vs[row], ve[row]
        started[begun] = group
        begun += 1
    return started[:begun], ended[:count], starts[:count], ends[:count]
