"""Compiled loops of chains, in which each member of a pane has the number of the next.

`heads[pane]` is a pane's first member, `following[member]` the next one; −1 is none.
"""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64s
from weir.loops.compiled import compiled, in_place


@in_place
def chain(members: I64s, panes: I64s, following: I64s, heads: I64s):
    """Insert each member at the head of its pane's chain."""
    for i in range(len(members)):
        following[members[i]] = heads[panes[i]]
        heads[panes[i]] = members[i]


@compiled
def chains_of(panes: I64s, heads: I64s, following: I64s):
    """Return all members of the panes' chains, each with the index of its pane."""
    count = 0
    for pane in panes:
        entry = heads[pane]
        while entry >= 0:
            count += 1
            entry = following[entry]
    at = np.empty(count, dtype=np.int64)
    members = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(len(panes)):
        entry = heads[panes[i]]
        while entry >= 0:
            at[count] = i
            members[count] = entry
            count += 1
            entry = following[entry]
    return at, members
