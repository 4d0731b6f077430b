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
from weir.events.compiled import compiled, in_place
from weir.kernels.aggregates.measures import chains_of
from weir.kernels.operators.panes import Operations
from weir.kernels.structures import treap
from weir.kernels.structures.keys import grown

SortKeys = tuple[Int64s, Int64s, npt.NDArray[np.uint8]]

# Fields of a pane besides its first entry: its last one, how many, whether it is in the tree.
_LAST, _SIZE, _INSIDE = range(3)
_WAITS, _IN = 1, 2
# Fields of a group besides its tree: the first and last entry it owes, how many, and the next in
# the list of debtors plus one (0: it is not listed, −1: there is none).
_OWED, _LAST_OWED, _DEBT, _DEBTOR = range(4)
# The first debtor plus one (or −1), all that is owed; the first of the spent, how many.
_FIRST_DEBTOR, _DEBTS, _SPENT, _SPENT_COUNT = range(4)


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
        return int(self._account[_DEBTS] + self._account[_SPENT_COUNT])

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
        self._waiting = _add(
            entries, panes, groups, keys, self.heads, self._panes, self._following,
            self.nodes, self._roots, *sort_keys,
        )  # fmt: skip

    def settle(self, sort_keys: SortKeys) -> None:
        """A step is over: panes that it made and that are still there enter."""
        _settle(
            self._waiting, self.heads, self._panes, self._following, self.nodes, self._roots,
            *sort_keys,
        )  # fmt: skip

    def replay(
        self, operations: Operations, query: int, p: int, q: int, sort_keys: SortKeys
    ) -> tuple[Int64s, Int64s]:
        """Two entries for each EMIT (−1: none), and the rest of a quantile's division."""
        out = np.empty((operations.emits, 2), dtype=np.int64)
        rests = np.zeros(operations.emits, dtype=np.int64)
        _replay(
            operations.kinds, operations.groups, operations.panes, self.heads, self._panes,
            self._following, self.nodes, self._roots, self._groups, self._account,
            query, p, q, *sort_keys, out, rests,
        )  # fmt: skip
        return out, rests

    def replay_all(self, operations: Operations, sort_keys: SortKeys) -> tuple[Int64s, Int64s]:
        """How many entries there are at each EMIT; all of them in order, end to end."""
        counts = np.empty(operations.emits, dtype=np.int64)
        entries = _replay_all(
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
        return chains_of(panes, self.heads, self._following)

    def forget(self, panes: Int64s) -> None:
        """These panes have left for good; entries that never entered go with them."""
        self.heads[panes] = -1
        self._panes[panes] = 0

    def pay(self, most: int, sort_keys: SortKeys) -> None:
        """Take entries that have left out of their trees, at most so many."""
        _pay(
            most, self._following, self.nodes, self._roots, self._groups, self._account, *sort_keys
        )

    def collect(self, most: int) -> Int64s:
        """Entries that are nobody's any more, at most so many."""
        entries: Int64s = _collect(
            min(most, int(self._account[_SPENT_COUNT])), self._following, self._account
        )
        return entries


@compiled
def _add(entries, panes, groups, keys, heads, fields, following, nodes, roots,  # type: ignore[no-untyped-def]
         starts, lengths, buffer):  # fmt: skip
    """Chain entries to their panes; the panes that wait because of them."""
    waiting = np.empty((len(entries), 2), dtype=np.int64)
    count = 0
    for i in range(len(entries)):
        entry, pane = entries[i], panes[i]
        nodes[entry, 0] = keys[i]
        nodes[entry, 1] = nodes[entry, 2] = -1
        nodes[entry, 3] = 1
        if heads[pane] < 0:
            fields[pane, _LAST], fields[pane, _SIZE] = entry, 0
        following[entry] = heads[pane]
        heads[pane] = entry
        fields[pane, _SIZE] += 1
        if fields[pane, _INSIDE] == _IN:
            treap.insert(nodes, roots, groups[i], entry, starts, lengths, buffer)
        elif fields[pane, _INSIDE] != _WAITS:
            fields[pane, _INSIDE] = _WAITS
            waiting[count, 0], waiting[count, 1] = pane, groups[i]
            count += 1
    return waiting[:count]


@compiled
def _settle(waiting, heads, fields, following, nodes, roots, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    for i in range(len(waiting)):
        pane, group = waiting[i]
        if fields[pane, _INSIDE] == _WAITS:
            _enter(pane, group, heads, fields, following, nodes, roots, starts, lengths, buffer)


@compiled
def _enter(pane, group, heads, fields, following, nodes, roots, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    if fields[pane, _INSIDE] != _IN:
        treap.move(
            np.int64(0), heads[pane], following, nodes, roots, group, starts, lengths, buffer
        )
        fields[pane, _INSIDE] = _IN


@in_place
def _leave(pane, group, heads, fields, following, nodes, roots, groups, account):  # type: ignore[no-untyped-def]
    """The group owes the pane's entries, or has a tree no more."""
    fields[pane, _INSIDE] = 0
    size = fields[pane, _SIZE]
    if size == 0:
        return
    debt = groups[group]
    if debt[_DEBT] == 0:
        debt[_LAST_OWED] = fields[pane, _LAST]
    else:
        following[fields[pane, _LAST]] = debt[_OWED]
    debt[_OWED] = heads[pane]
    debt[_DEBT] += size
    account[_DEBTS] += size
    heads[pane] = -1
    fields[pane, _SIZE] = 0
    if debt[_DEBT] == nodes[roots[group], 3]:
        roots[group] = -1
        following[debt[_LAST_OWED]] = account[_SPENT]
        account[_SPENT] = debt[_OWED]
        account[_SPENT_COUNT] += debt[_DEBT]
        account[_DEBTS] -= debt[_DEBT]
        debt[_DEBT] = 0
    elif debt[_DEBTOR] == 0:
        debt[_DEBTOR] = account[_FIRST_DEBTOR]
        account[_FIRST_DEBTOR] = group + 1


@in_place
def _pay_group(group, most, following, nodes, roots, groups, account, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    """Take out what the group owes, at most so much; how much that was."""
    debt = groups[group]
    paid = min(most, debt[_DEBT])
    for _ in range(paid):
        entry = debt[_OWED]
        debt[_OWED] = following[entry]
        treap.remove(nodes, roots, group, entry, starts, lengths, buffer)
        following[entry] = account[_SPENT]
        account[_SPENT] = entry
    debt[_DEBT] -= paid
    account[_DEBTS] -= paid
    account[_SPENT_COUNT] += paid
    return paid


@in_place
def _pay(most, following, nodes, roots, groups, account, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    while most > 0 and account[_FIRST_DEBTOR] > 0:
        group = account[_FIRST_DEBTOR] - 1
        most -= _pay_group(
            group, most, following, nodes, roots, groups, account, starts, lengths, buffer
        )
        if groups[group, _DEBT] == 0:
            account[_FIRST_DEBTOR] = groups[group, _DEBTOR]
            groups[group, _DEBTOR] = 0


@compiled
def _collect(count, following, account):  # type: ignore[no-untyped-def]
    entries = np.empty(count, dtype=np.int64)
    for i in range(count):
        entries[i] = account[_SPENT]
        account[_SPENT] = following[entries[i]]
    account[_SPENT_COUNT] -= count
    return entries


@compiled
def _change(kind, pane, group, heads, fields, following, nodes, roots, groups, account,  # type: ignore[no-untyped-def]
            starts, lengths, buffer):  # fmt: skip
    """A pane enters or leaves; or, for an EMIT, the tree is made what it should be."""
    if kind == 0:
        _enter(pane, group, heads, fields, following, nodes, roots, starts, lengths, buffer)
    elif kind == 1:
        _leave(pane, group, heads, fields, following, nodes, roots, groups, account)
    else:
        most = groups[group, _DEBT]
        _pay_group(group, most, following, nodes, roots, groups, account, starts, lengths, buffer)


@compiled
def _replay(kinds, groups, panes, heads, fields, following, nodes, roots, debts, account,  # type: ignore[no-untyped-def]
            query, p, q, starts, lengths, buffer, out, rests):  # fmt: skip
    emitted = 0
    for op in range(len(kinds)):
        _change(
            kinds[op], panes[op], groups[op], heads, fields, following, nodes, roots,
            debts, account, starts, lengths, buffer,
        )  # fmt: skip
        if kinds[op] == 2:
            rests[emitted] = treap.answer(nodes, roots[groups[op]], query, p, q, out[emitted])
            emitted += 1


@compiled
def _replay_all(kinds, groups, panes, heads, fields, following, nodes, roots, debts, account,  # type: ignore[no-untyped-def]
                starts, lengths, buffer, counts):  # fmt: skip
    out = np.empty(1024, dtype=np.int64)
    at = emitted = 0
    for op in range(len(kinds)):
        _change(
            kinds[op], panes[op], groups[op], heads, fields, following, nodes, roots,
            debts, account, starts, lengths, buffer,
        )  # fmt: skip
        if kinds[op] == 2:
            root = roots[groups[op]]
            counts[emitted] = nodes[root, 3] if root >= 0 else 0
            if at + counts[emitted] > len(out):
                out = np.concatenate((out, np.empty(len(out) + counts[emitted], dtype=np.int64)))
            at = treap.in_order(nodes, root, out, at)
            emitted += 1
    return out[:at]
