"""Compiled loops of chains link the members of each pane one to the next.

`heads[pane]` is a pane's first member, `following[member]` the next one; −1 is none.
"""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64s
from weir.loops.compiled import compiled, in_place


@in_place
def chain(members: I64s, panes: I64s, following: I64s, heads: I64s):
    """Put each member before the chain of its pane."""
    for i in range(len(members)):
        following[members[i]] = heads[panes[i]]
        heads[panes[i]] = members[i]


@compiled
def chains_of(panes: I64s, heads: I64s, following: I64s):
    """Return all members of the panes' chains, after the index of the pane that each belongs to."""
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
