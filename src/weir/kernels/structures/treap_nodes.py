"""The nodes of treaps, each with a priority that nobody can predict.

If its priorities are random, a treap is as deep as a tree of keys in random order. If they were a
plain hash of node numbers, an attacker could choose keys that turn a tree into a list, deeper than
the loops have room for. So the priority of a node is a hash of its number under a secret of the
owner's own. It does not show in an answer.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.kernels.structures.key_hashes import first_state
from weir.kernels.structures.key_hashes_loops import hash_numbers
from weir.kernels.structures.key_secrets import fresh_secret
from weir.kernels.structures.keys import grown
from weir.kernels.structures.treap_loops import FIELDS, PRIORITY


class TreapNodes:
    """Holds the matrix of nodes that the loops of `treap_loops.py` work on."""

    def __init__(self) -> None:
        self._state = first_state(fresh_secret())
        self.table = np.zeros((0, FIELDS), dtype=np.int64)

    def grow(self, capacity: int) -> None:
        """Make room for nodes with numbers below the capacity."""
        old = len(self.table)
        self.table = grown(self.table, capacity)
        new: Int64s = np.arange(old, len(self.table))
        priorities = np.empty(len(new), dtype=np.uint64)
        hash_numbers(new, self._state, priorities)
        self.table[old:, PRIORITY] = priorities.view(np.int64)
