"""Entries by pane, each in its group's tree while its pane is in the window; paid for row by row.

Panes hold many entries, and a group's answer is asked for rarely: at the end of a window all of
them would change their tree at once. So that a step costs what its rows cost,

1. entries enter as they come, once their pane must be part of the group's next answer. That is so
   behind every step: windows that are not over by then are those that the pane is in. So a new
   pane waits until the next step (`settle`), and entries of a pane that is in enter at once;
2. entries that leave are *owed*: they stay in the tree until the group's next EMIT, which pays
   all its group owes, or until `pay` took them out, some with every row that comes. Where all
   of a tree is owed, it is felled;
3. entries that are out of their trees are *spent*: `collect` gives them back, some at a time.

Nothing of this shows in an answer, nor in `members`, which a snapshot reads.
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

SortKeys = tuple[Int64s, Int64s, npt.NDArray[np.uint8]]


class Forest:
    """See the module's contract. An entry is a node of `treap`; its number is the caller's."""

    def __init__(self) -> None:
        self.nodes = np.zeros((0, treap.FIELDS), dtype=np.int64)
        self.heads = np.full(0, -1, dtype=np.int64)  # by pane
        self._following = np.full(0, -1, dtype=np.int64)  # by entry
        self._panes = np.zeros((0, 3), dtype=np.int64)
        self._roots = np.full(0, -1, dtype=np.int64)
        self._groups = np.zeros((0, 4), dtype=np.int64)
        self._account = np.array([-1, 0, -1, 0])
        # Panes that the last entries waited in, and their groups.
        self._waiting = np.zeros((0, 2), dtype=np.int64)

    @property
    def left(self) -> int:
        """How many entries have left but are not given back."""
        return int(self._account[DEBTS] + self._account[SPENT_COUNT])

    def grow(self, panes: int, groups: int) -> None:
        self.heads = grown(self.heads, panes, -1)
        self._panes = grown(self._panes, panes)
        self._roots = grown(self._roots, groups, -1)
        self._groups = grown(self._groups, groups)

    def add(
        self, entries: Int64s, panes: Int64s, groups: Int64s, keys: Int64s, capacity: int,
        sort_keys: SortKeys,
    ) -> None:  # fmt: skip
        """New entries with their keys; every entry's number is below the capacity."""
        self.nodes = grown(self.nodes, capacity)
        self._following = grown(self._following, capacity, -1)
        self._waiting = add_entries(
            entries, panes, groups, keys, self.heads, self._panes, self._following,
            self.nodes, self._roots, *sort_keys,
        )  # fmt: skip

    def settle(self, sort_keys: SortKeys) -> None:
        """A step is over: panes that it made and that are still there enter."""
        settle_panes(
            self._waiting, self.heads, self._panes, self._following, self.nodes, self._roots,
            *sort_keys,
        )  # fmt: skip

    def replay(
        self, operations: Operations, query: int, p: int, q: int, sort_keys: SortKeys
    ) -> tuple[Int64s, Int64s]:
        """Two entries for each EMIT (−1: none), and the rest of a quantile's division."""
        out = np.empty((operations.emits, 2), dtype=np.int64)
        rests = np.zeros(operations.emits, dtype=np.int64)
        replay_answers(
            operations.kinds, operations.groups, operations.panes, self.heads, self._panes,
            self._following, self.nodes, self._roots, self._groups, self._account,
            query, p, q, *sort_keys, out, rests,
        )  # fmt: skip
        return out, rests

    def replay_all(self, operations: Operations, sort_keys: SortKeys) -> tuple[Int64s, Int64s]:
        """How many entries there are at each EMIT; all of them in order, end to end."""
        counts = np.empty(operations.emits, dtype=np.int64)
        entries = replay_members(
            operations.kinds, operations.groups, operations.panes, self.heads, self._panes,
            self._following, self.nodes, self._roots, self._groups, self._account,
            *sort_keys, counts,
        )  # fmt: skip
        return counts, entries

    def keys(self, entries: Int64s) -> Int64s:
        """The keys of entries; of −1, anything."""
        if not len(self.nodes):
            return np.zeros_like(entries)
        keys: Int64s = self.nodes[entries, treap.KEY]
        return keys

    def members(self, panes: Int64s) -> tuple[Int64s, Int64s]:
        """The panes' entries, with the index of the pane each belongs to."""
        members: tuple[Int64s, Int64s] = chains_of(panes, self.heads, self._following)
        return members

    def forget(self, panes: Int64s) -> None:
        """These panes have left for good; entries that never entered go with them."""
        self.heads[panes] = -1
        self._panes[panes] = 0

    def pay(self, most: int, sort_keys: SortKeys) -> None:
        """Take entries that have left out of their trees, at most so many."""
        pay_debts(
            most, self._following, self.nodes, self._roots, self._groups, self._account, *sort_keys
        )

    def collect(self, most: int) -> Int64s:
        """Entries that are nobody's any more, at most so many."""
        entries: Int64s = collect_spent(
            min(most, int(self._account[SPENT_COUNT])), self._following, self._account
        )
        return entries
