"""Ordered multisets, one per group, in one pool of nodes: compiled loops over int64 arrays.

Contract
1. A node has a key. Nodes with equal keys are ordered by the bytes of their sort keys (which plain
   numbers do not have), then by their numbers. `roots[group]` is a group's tree, −1 if it is empty.
2. Insert, remove, first, last and k-th cost O(log n) in the size of the group, whoever chose the
   keys. The tree's shape (a treap by the priorities of `treap_nodes.py`) never shows in an answer.

`nodes` is one int64 matrix with a row per node: key, left, right, size, priority; `sort_keys` holds
(starts, lengths, buffer) of byte keys, with an empty `lengths` for plain numbers.
"""

from __future__ import annotations

import numpy as np

from weir.loops.compiled import compiled, in_place

KEY, LEFT, RIGHT, SIZE, PRIORITY = range(5)
"""Columns of `nodes`."""
FIELDS = 5
_DEEPEST = 256
"""More than the depth of any tree.

For 2³¹ nodes of random priorities, the chance of such a depth is below 2⁻¹⁰⁰."""
FIRST, LAST, DISC, CONT, ALL = range(5)
"""Queries: the first node, the last one, a quantile's node, the two nodes around it, all nodes.

`in_order` answers the last query."""


@in_place
def compare(key, a, starts, lengths, buffer, other_key, b, others, other_lengths, other_buffer):
    """Return a number below 0 if the first sort key comes before the second, above 0 if after.

    A sort key is its number, followed by its bytes at `a` or `b`.
    """
    if key != other_key:
        return -1 if key < other_key else 1
    if len(lengths) == 0:
        return 0
    for i in range(min(lengths[a], other_lengths[b])):
        x, y = buffer[starts[a] + i], other_buffer[others[b] + i]
        if x != y:
            return -1 if x < y else 1
    return lengths[a] - other_lengths[b]


@in_place
def _before(nodes, a, b, starts, lengths, buffer):
    """Tell whether node a comes before node b."""
    if nodes[a, KEY] != nodes[b, KEY]:
        return nodes[a, KEY] < nodes[b, KEY]
    if len(lengths):
        order = compare(
            np.int64(0), a, starts, lengths, buffer, np.int64(0), b, starts, lengths, buffer
        )
        if order:
            return order < 0
    return a < b


@in_place
def _size(nodes, node):
    return nodes[node, SIZE] if node >= 0 else 0


@in_place
def _count(nodes, node):
    """Write the size of a node from the sizes of its children."""
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    nodes[node, SIZE] = 1 + _size(nodes, left) + _size(nodes, right)


@compiled
def insert(nodes, roots, group, new, starts, lengths, buffer):
    """Insert node `new` into the group's tree."""
    parent, side, node = -1, LEFT, roots[group]
    priority = nodes[new, PRIORITY]
    while node >= 0 and nodes[node, PRIORITY] > priority:
        nodes[node, SIZE] += 1
        parent = node
        side = LEFT if _before(nodes, new, node, starts, lengths, buffer) else RIGHT
        node = nodes[node, side]
    # Split the subtree into the nodes before and after the new one.
    path = np.empty(_DEEPEST, dtype=np.int64)
    depth = 0
    left_hook, left_side, right_hook, right_side = new, LEFT, new, RIGHT
    while node >= 0:
        path[depth] = node
        depth += 1
        if _before(nodes, node, new, starts, lengths, buffer):
            nodes[left_hook, left_side] = node
            left_hook, left_side = node, RIGHT
            node = nodes[node, RIGHT]
        else:
            nodes[right_hook, right_side] = node
            right_hook, right_side = node, LEFT
            node = nodes[node, LEFT]
    nodes[left_hook, left_side] = -1
    nodes[right_hook, right_side] = -1
    for i in range(depth - 1, -1, -1):
        _count(nodes, path[i])
    _count(nodes, new)
    if parent >= 0:
        nodes[parent, side] = new
    else:
        roots[group] = new


@in_place
def remove(nodes, roots, group, old, starts, lengths, buffer):
    """Remove node `old` from the group's tree."""
    parent, side, node = -1, LEFT, roots[group]
    while node != old:
        nodes[node, SIZE] -= 1
        parent = node
        side = LEFT if _before(nodes, old, node, starts, lengths, buffer) else RIGHT
        node = nodes[node, side]
    a, b = nodes[old, LEFT], nodes[old, RIGHT]
    while True:
        if a < 0 or b < 0:
            joined = a if a >= 0 else b
        elif nodes[a, PRIORITY] > nodes[b, PRIORITY]:
            joined = a
        else:
            joined = b
        if parent >= 0:
            nodes[parent, side] = joined
        else:
            roots[group] = joined
        if a < 0 or b < 0:
            break
        if joined == a:
            nodes[a, SIZE] += nodes[b, SIZE]
            parent, side, a = a, RIGHT, nodes[a, RIGHT]
        else:
            nodes[b, SIZE] += nodes[a, SIZE]
            parent, side, b = b, LEFT, nodes[b, LEFT]


@in_place
def kth(nodes, root, rank):
    """Return the node that has this many nodes before it."""
    node = root
    while True:
        before = _size(nodes, nodes[node, LEFT])
        if rank < before:
            node = nodes[node, LEFT]
        elif rank == before:
            return node
        else:
            rank -= before + 1
            node = nodes[node, RIGHT]


@compiled
def in_order(nodes, root, out, at):
    """Write all nodes of a tree, from `at` on; return the end."""
    stack = np.empty(_DEEPEST, dtype=np.int64)
    depth, node = 0, root
    while node >= 0 or depth:
        while node >= 0:
            stack[depth] = node
            depth += 1
            node = nodes[node, LEFT]
        depth -= 1
        node = stack[depth]
        out[at] = node
        at += 1
        node = nodes[node, RIGHT]
    return at


@compiled
def insert_chain(node, following, nodes, roots, group, starts, lengths, buffer):
    """Insert a chain of nodes, from this one on, into the group's tree."""
    while node >= 0:
        insert(nodes, roots, group, node, starts, lengths, buffer)
        node = following[node]


@in_place
def remove_chain(node, following, nodes, roots, group, starts, lengths, buffer):
    """Remove a chain of nodes, from this one on, from the group's tree."""
    while node >= 0:
        remove(nodes, roots, group, node, starts, lengths, buffer)
        node = following[node]


@in_place
def _divided(p, n, q):
    """Return p·n // q and the remainder, with 0 ≤ p ≤ q ≤ 10¹⁸: bit by bit, as p·n may not fit."""
    bit = np.int64(1)
    while bit <= n >> 1:
        bit <<= 1
    whole, rest = np.int64(0), np.int64(0)
    while bit > 0:
        whole, rest = 2 * whole, 2 * rest
        if n & bit:
            rest += p
        while rest >= q:
            whole, rest = whole + 1, rest - q
        bit >>= 1
    return whole, rest


@in_place
def answer(nodes, root, query, p, q, out):
    """Write the two nodes that answer a query (−1 for none); return the remainder of a quantile.

    The quantile p/q of n nodes lies at p·(n − 1) / q, between the two nodes if there is a
    remainder.
    """
    n = _size(nodes, root)
    out[0] = out[1] = -1
    if n == 0:
        return 0
    if query == FIRST:
        out[0] = kth(nodes, root, np.int64(0))
    elif query == LAST:
        out[0] = kth(nodes, root, n - 1)
    elif query == DISC:
        rank, rest = _divided(p, n, q)
        out[0] = kth(nodes, root, rank if rest else max(rank - 1, 0))
    else:
        rank, rest = _divided(p, n - 1, q)
        out[0] = kth(nodes, root, rank)
        out[1] = kth(nodes, root, rank + 1) if rest else out[0]
        return rest
    return 0
