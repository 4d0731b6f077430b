"""A forest keeps the entries of panes, each in its group's tree while its pane is in the window.

Panes hold many entries, and a group's answer is rarely needed. At the end of a window, all entries
of a pane would enter or leave the tree at once. The cost of a step shall be proportional to its
rows. Therefore:

1. Entries enter their tree when their pane is part of the group's next answer. A new pane is part
   of it when its step is over, since it is in the windows that have not ended by then. So the
   entries of a new pane wait until the next step calls `settle`. Further entries of a pane that is
   in the tree enter at once.
2. Entries that leave are *owed*: they stay in the tree until the group's next EMIT, which removes
   all that its group owes, or until `pay` has removed them, some with every row that comes. If all
   entries of a tree are owed, the tree is dropped as a whole.
3. Entries that are out of their trees are *spent*: `collect` returns them, some at a time.

None of this changes an answer, or what `members` returns for a snapshot.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weir.events.batch import Int64s
from weir.kernels.aggregates.forest_loops import (
    DEBTS,
    SPENT_COUNT,
    add_entries,
    collect_spent,
    pay_debts,
    replay_answers,
    replay_members,
    settle_panes,
)
from weir.kernels.structures import treap_loops as treap
from weir.kernels.structures.chains_loops import chains_of
from weir.kernels.structures.keys import grown
from weir.kernels.structures.panes import Operations
from weir.kernels.structures.treap_nodes import TreapNodes

SortKeys = tuple[Int64s, Int64s, npt.NDArray[np.uint8]]


class Forest:
    """Keeps a tree of sorted entries for each group, and spreads the work of changes over rows.

    An entry is a node of `treap`; the caller chooses its number.
    """

    def __init__(self) -> None:
        self.nodes = TreapNodes()
        self.heads = np.full(0, -1, dtype=np.int64)  # by pane: its first entry
        self._following = np.full(0, -1, dtype=np.int64)  # by entry: the next of its chain
        self._panes = np.zeros((0, 3), dtype=np.int64)  # by pane: fields as in `forest_loops`
        self._roots = np.full(0, -1, dtype=np.int64)  # by group: the root of its tree
        self._groups = np.zeros((0, 4), dtype=np.int64)  # by group: what it owes
        self._account = np.array([-1, 0, -1, 0])  # of all groups: the owed, the spent
        # New panes that wait for the next step, and their groups.
        self._waiting = np.zeros((0, 2), dtype=np.int64)

    @property
    def left(self) -> int:
        """Return how many entries have left their panes but are not freed yet."""
        return int(self._account[DEBTS] + self._account[SPENT_COUNT])

    def grow(self, panes: int, groups: int) -> None:
        self.heads = grown(self.heads, panes, -1)
        self._panes = grown(self._panes, panes)
        self._roots = grown(self._roots, groups, -1)
        self._groups = grown(self._groups, groups)

    def add(
        self,
        entries: Int64s,
        panes: Int64s,
        groups: Int64s,
        keys: Int64s,
        capacity: int,
        sort_keys: SortKeys,
    ) -> None:
        """Add new entries with their keys to their panes; every entry is below `capacity`."""
        self.nodes.grow(capacity)
        self._following = grown(self._following, capacity, -1)
        self._waiting = add_entries(
            entries,
            panes,
            groups,
            keys,
            self.heads,
            self._panes,
            self._following,
            self.nodes.table,
            self._roots,
            *sort_keys,
        )

    def settle(self, sort_keys: SortKeys) -> None:
        """Let the new panes of the last step that still exist enter their trees."""
        settle_panes(
            self._waiting,
            self.heads,
            self._panes,
            self._following,
            self.nodes.table,
            self._roots,
            *sort_keys,
        )

    def replay(
        self, operations: Operations, query: int, p: int, q: int, sort_keys: SortKeys
    ) -> tuple[Int64s, Int64s]:
        """Run the operations; return two entries for each EMIT (−1: none).

        Also return the remainder of each quantile's division."""
        out = np.empty((operations.emits, 2), dtype=np.int64)
        rests = np.zeros(operations.emits, dtype=np.int64)
        replay_answers(
            operations.kinds,
            operations.groups,
            operations.panes,
            self.heads,
            self._panes,
            self._following,
            self.nodes.table,
            self._roots,
            self._groups,
            self._account,
            query,
            p,
            q,
            *sort_keys,
            out,
            rests,
        )
        return out, rests

    def replay_all(self, operations: Operations, sort_keys: SortKeys) -> tuple[Int64s, Int64s]:
        """Run the operations; return the counts of entries at each EMIT, and the entries.

        The entries of each EMIT are in order, and all of them are concatenated."""
        counts = np.empty(operations.emits, dtype=np.int64)
        entries = replay_members(
            operations.kinds,
            operations.groups,
            operations.panes,
            self.heads,
            self._panes,
            self._following,
            self.nodes.table,
            self._roots,
            self._groups,
            self._account,
            *sort_keys,
            counts,
        )
        return counts, entries

    def keys(self, entries: Int64s) -> Int64s:
        """Return the keys of entries; the key of −1 is arbitrary."""
        if not len(self.nodes.table):
            return np.zeros_like(entries)
        keys: Int64s = self.nodes.table[entries, treap.KEY]
        return keys

    def members(self, panes: Int64s) -> tuple[Int64s, Int64s]:
        """Return the entries of panes, each with the index of its pane."""
        members: tuple[Int64s, Int64s] = chains_of(panes, self.heads, self._following)
        return members

    def forget(self, panes: Int64s) -> None:
        """Forget panes that have left permanently, and their entries that never entered a tree."""
        self.heads[panes] = -1
        self._panes[panes] = 0

    def pay(self, most: int, sort_keys: SortKeys) -> None:
        """Remove at most this many of the owed entries from their trees."""
        pay_debts(
            most,
            self._following,
            self.nodes.table,
            self._roots,
            self._groups,
            self._account,
            *sort_keys,
        )

    def collect(self, most: int) -> Int64s:
        """Return at most this many of the spent entries; the caller may use their numbers again."""
        entries: Int64s = collect_spent(
            min(most, int(self._account[SPENT_COUNT])), self._following, self._account
        )
        return entries
