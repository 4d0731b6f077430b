"""The compiled loop of CLIP joins."""

from __future__ import annotations

import numpy as np

from weir.kernels.structures.buckets_loops import PAIRS, insert, live, make_room
from weir.loops.argument_types import Bool, I64s, I64Table
from weir.loops.compiled import compiled


@compiled
def clips(
    slots: I64s,
    vs: I64s,
    ve: I64s,
    groups: I64s,
    arena: I64Table,
    spans: I64Table,
    free: I64s,
    right_vs: I64s,
    right_groups: I64s,
    at_once: Bool,
):
    """Find (left slot, right row) wherever a right row starts inside a left row of its key.

    It walks new left rows and right rows in order of vs, right ones first. With `at_once`, a left
    row is removed after its first match.
    """
    left = np.empty(len(slots) + len(right_vs) + 16, dtype=np.int64)
    right = np.empty(len(slots) + len(right_vs) + 16, dtype=np.int64)
    count = i = j = 0
    while i < len(slots) or j < len(right_vs):
        if i < len(slots) and (j == len(right_vs) or vs[i] < right_vs[j]):
            if groups[i] >= 0:
                while not insert(groups[i], slots[i], ve[i], vs[i], arena, spans):
                    arena = make_room(groups[i], vs[i], arena, spans, free)
            i += 1
            continue
        group = right_groups[j]
        if group >= 0:
            more = live(group, right_vs[j], arena, spans, left, count)
            while more < 0:
                left = np.concatenate((left, np.empty_like(left)))
                right = np.concatenate((right, np.empty_like(right)))
                more = live(group, right_vs[j], arena, spans, left, count)
            right[count:more] = j
            count = more
            if at_once:
                spans[group, PAIRS] = 0
        j += 1
    return left[:count], right[:count], arena
