"""The compiled loop of ASOF joins."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import Bool, I64s
from weir.loops.compiled import compiled


@compiled
def latest_rows(
    left_vs: I64s,
    left_groups: I64s,
    right_vs: I64s,
    right_groups: I64s,
    slots: I64s,
    newest: I64s,
    older: I64s,
    only_newest: Bool,
):
    """Return each left row's newest right row (−1 for none), and the right rows that were replaced.

    It is the newest row of the same key that starts no later."""
    found = np.full(len(left_vs), -1, dtype=np.int64)
    replaced = np.empty(len(slots), dtype=np.int64)
    count = j = 0
    for i in range(len(left_vs) + 1):
        while j < len(slots) and (i == len(left_vs) or right_vs[j] <= left_vs[i]):
            group = right_groups[j]
            older[slots[j]] = -1 if only_newest else newest[group]
            if only_newest and newest[group] >= 0:
                replaced[count] = newest[group]
                count += 1
            newest[group] = slots[j]
            j += 1
        if i < len(left_vs) and left_groups[i] >= 0:
            found[i] = newest[left_groups[i]]
    return found, replaced[:count]
