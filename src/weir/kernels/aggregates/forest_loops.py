"""Compiled loops of the forest (see `forest.py` for its contract)."""

from __future__ import annotations

import numpy as np

from weir.kernels.structures import treap_loops as treap
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT
from weir.loops.argument_types import I64, I64s, I64Table, U8s
from weir.loops.compiled import compiled, in_place

# Fields of a pane, in addition to its first entry: its last entry, the count of its entries, and
# whether it is in the tree.
_LAST, _SIZE, _INSIDE = range(3)
_OUT, _WAITS, _IN = range(3)
# Fields of a group, in addition to its tree: the first and the last entry that it owes, their
# count, and the next group in the list of debtors plus one (0: this group is not listed, −1: it is
# the last).
_OWED, _LAST_OWED, _DEBT, _DEBTOR = range(4)
# The first debtor plus one (or −1), the count of all owed entries, the first spent entry, the count
# of spent entries.
_FIRST_DEBTOR, DEBTS, _SPENT, SPENT_COUNT = range(4)


@compiled
def add_entries(
    entries: I64s,
    panes: I64s,
    groups: I64s,
    keys: I64s,
    heads: I64s,
    fields: I64Table,
    following: I64s,
    nodes: I64Table,
    roots: I64s,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
):
    """Append entries to the chains of their panes; return the panes that must wait now."""
    waiting = np.empty((len(entries), 2), dtype=np.int64)
    count = 0
    for i in range(len(entries)):
        entry, pane = entries[i], panes[i]
        nodes[entry, treap.KEY] = keys[i]
        nodes[entry, treap.LEFT] = nodes[entry, treap.RIGHT] = -1
        nodes[entry, treap.SIZE] = 1
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
def settle_panes(
    waiting: I64Table,
    heads: I64s,
    fields: I64Table,
    following: I64s,
    nodes: I64Table,
    roots: I64s,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
):
    """Let the panes that still wait enter their trees."""
    for i in range(len(waiting)):
        pane, group = waiting[i]
        if fields[pane, _INSIDE] == _WAITS:
            _enter(pane, group, heads, fields, following, nodes, roots, starts, lengths, buffer)


@compiled
def _enter(pane, group, heads, fields, following, nodes, roots, starts, lengths, buffer):
    if fields[pane, _INSIDE] != _IN:
        first = heads[pane]
        treap.insert_chain(first, following, nodes, roots, group, starts, lengths, buffer)
        fields[pane, _INSIDE] = _IN


@in_place
def _leave(pane, group, heads, fields, following, nodes, roots, groups, account):
    """Record that the group owes the pane's entries; drop its tree if it owes all of it."""
    fields[pane, _INSIDE] = _OUT
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
    account[DEBTS] += size
    heads[pane] = -1
    fields[pane, _SIZE] = 0
    if debt[_DEBT] == nodes[roots[group], treap.SIZE]:
        roots[group] = -1
        following[debt[_LAST_OWED]] = account[_SPENT]
        account[_SPENT] = debt[_OWED]
        account[SPENT_COUNT] += debt[_DEBT]
        account[DEBTS] -= debt[_DEBT]
        debt[_DEBT] = 0
    elif debt[_DEBTOR] == 0:
        debt[_DEBTOR] = account[_FIRST_DEBTOR]
        account[_FIRST_DEBTOR] = group + 1


@in_place
def _pay_group(group, most, following, nodes, roots, groups, account, starts, lengths, buffer):
    """Remove at most this many of the group's owed entries from its tree; return how many."""
    debt = groups[group]
    paid = min(most, debt[_DEBT])
    for _ in range(paid):
        entry = debt[_OWED]
        debt[_OWED] = following[entry]
        treap.remove(nodes, roots, group, entry, starts, lengths, buffer)
        following[entry] = account[_SPENT]
        account[_SPENT] = entry
    debt[_DEBT] -= paid
    account[DEBTS] -= paid
    account[SPENT_COUNT] += paid
    return paid


@in_place
def pay_debts(
    most: I64,
    following: I64s,
    nodes: I64Table,
    roots: I64s,
    groups: I64Table,
    account: I64s,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
):
    """Remove at most this many owed entries from their trees, group by group."""
    while most > 0 and account[_FIRST_DEBTOR] > 0:
        group = account[_FIRST_DEBTOR] - 1
        most -= _pay_group(
            group, most, following, nodes, roots, groups, account, starts, lengths, buffer
        )
        if groups[group, _DEBT] == 0:
            account[_FIRST_DEBTOR] = groups[group, _DEBTOR]
            groups[group, _DEBTOR] = 0


@compiled
def collect_spent(count: I64, following: I64s, account: I64s):
    """Remove this many entries from the list of the spent, and return them."""
    entries = np.empty(count, dtype=np.int64)
    for i in range(count):
        entries[i] = account[_SPENT]
        account[_SPENT] = following[entries[i]]
    account[SPENT_COUNT] -= count
    return entries


@compiled
def _change(
    kind,
    pane,
    group,
    heads,
    fields,
    following,
    nodes,
    roots,
    groups,
    account,
    starts,
    lengths,
    buffer,
):
    """Let a pane enter or leave; at an EMIT, remove all that the group owes from its tree."""
    if kind == ENTER:
        _enter(pane, group, heads, fields, following, nodes, roots, starts, lengths, buffer)
    elif kind == EXIT:
        _leave(pane, group, heads, fields, following, nodes, roots, groups, account)
    else:
        most = groups[group, _DEBT]
        _pay_group(group, most, following, nodes, roots, groups, account, starts, lengths, buffer)


@compiled
def replay_answers(
    kinds: I64s,
    groups: I64s,
    panes: I64s,
    heads: I64s,
    fields: I64Table,
    following: I64s,
    nodes: I64Table,
    roots: I64s,
    debts: I64Table,
    account: I64s,
    query: I64,
    p: I64,
    q: I64,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
    out: I64Table,
    rests: I64s,
):
    """Run the operations; at each EMIT, write the nodes that answer the query.

    Also write the remainder of a quantile's division."""
    emitted = 0
    for op in range(len(kinds)):
        _change(
            kinds[op],
            panes[op],
            groups[op],
            heads,
            fields,
            following,
            nodes,
            roots,
            debts,
            account,
            starts,
            lengths,
            buffer,
        )
        if kinds[op] == EMIT:
            rests[emitted] = treap.answer(nodes, roots[groups[op]], query, p, q, out[emitted])
            emitted += 1


@compiled
def replay_members(
    kinds: I64s,
    groups: I64s,
    panes: I64s,
    heads: I64s,
    fields: I64Table,
    following: I64s,
    nodes: I64Table,
    roots: I64s,
    debts: I64Table,
    account: I64s,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
    counts: I64s,
):
    """Run the operations; at each EMIT, write all nodes in order. The lists are concatenated."""
    out = np.empty(1024, dtype=np.int64)
    at = emitted = 0
    for op in range(len(kinds)):
        _change(
            kinds[op],
            panes[op],
            groups[op],
            heads,
            fields,
            following,
            nodes,
            roots,
            debts,
            account,
            starts,
            lengths,
            buffer,
        )
        if kinds[op] == EMIT:
            root = roots[groups[op]]
            counts[emitted] = nodes[root, treap.SIZE] if root >= 0 else 0
            if at + counts[emitted] > len(out):
                out = np.concatenate((out, np.empty(len(out) + counts[emitted], dtype=np.int64)))
            at = treap.in_order(nodes, root, out, at)
            emitted += 1
    return out[:at]
