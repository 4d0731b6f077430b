"""Ordered multisets, one per group, in one pool of nodes: compiled loops over int64 arrays.

Contract
1. A node has a key; where two keys are equal the bytes of its sort key decide (none for plain
   numbers), then its number. `roots[group]` is a group's tree, −1 when empty.
2. Insert, remove, first, last and k-th cost O(log n) in the size of the group; the shape
   (a treap with priorities hashed from node numbers) never shows in an answer.

`nodes` is one int64 matrix with a row per node: key, left, right, size; `sort_keys` holds
(starts, lengths, buffer) of byte keys, with an empty `lengths` for plain numbers.
"""

from __future__ import annotations

import numpy as np

from weir.events.compiled import compiled, in_place

KEY, LEFT, RIGHT, SIZE = 0, 1, 2, 3
FIELDS = 4
ENTER, EXIT, EMIT = 0, 1, 2
FIRST, LAST, DISC, CONT, ALL = 0, 1, 2, 3, 4


@in_place
def _priority(node):  # type: ignore[no-untyped-def]
    # Mixed well (splitmix64): one multiplication would follow keys that are themselves spread by
    # the golden ratio, and the tree would be a list.
    word = np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@in_place
def compare(key, a, starts, lengths, buffer, other_key, b, others, other_lengths, other_buffer):  # type: ignore[no-untyped-def]
    """Below 0 where the first sort key (its number, and its bytes at `a`) stands before the
    second, above 0 where it stands behind."""
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
def _before(nodes, a, b, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    """Whether node a stands before node b."""
    if nodes[a, 0] != nodes[b, 0]:
        return nodes[a, 0] < nodes[b, 0]
    if len(lengths):
        order = compare(
            np.int64(0), a, starts, lengths, buffer, np.int64(0), b, starts, lengths, buffer
        )
        if order:
            return order < 0
    return a < b


@in_place
def _size(nodes, node):  # type: ignore[no-untyped-def]
    return nodes[node, 3] if node >= 0 else 0


@compiled
def insert(nodes, roots, group, new, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    """Put node `new` into the group's tree."""
    parent, side, node = -1, 0, roots[group]
    priority = _priority(new)
    while node >= 0 and _priority(node) > priority:
        nodes[node, 3] += 1
        parent = node
        side = 1 if _before(nodes, new, node, starts, lengths, buffer) else 2
        node = nodes[node, side]
    # Split what hangs below into the nodes before and after the new one.
    path = np.empty(256, dtype=np.int64)
    depth = 0
    left_hook, left_side, right_hook, right_side = new, 1, new, 2
    while node >= 0:
        path[depth] = node
        depth += 1
        if _before(nodes, node, new, starts, lengths, buffer):
            nodes[left_hook, left_side] = node
            left_hook, left_side = node, 2
            node = nodes[node, 2]
        else:
            nodes[right_hook, right_side] = node
            right_hook, right_side = node, 1
            node = nodes[node, 1]
    nodes[left_hook, left_side] = -1
    nodes[right_hook, right_side] = -1
    for i in range(depth - 1, -1, -1):
        seen = path[i]
        nodes[seen, 3] = 1 + _size(nodes, nodes[seen, 1]) + _size(nodes, nodes[seen, 2])
    nodes[new, 3] = 1 + _size(nodes, nodes[new, 1]) + _size(nodes, nodes[new, 2])
    if parent >= 0:
        nodes[parent, side] = new
    else:
        roots[group] = new


@in_place
def remove(nodes, roots, group, old, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    """Take node `old` out of the group's tree."""
    parent, side, node = -1, 0, roots[group]
    while node != old:
        nodes[node, 3] -= 1
        parent = node
        side = 1 if _before(nodes, old, node, starts, lengths, buffer) else 2
        node = nodes[node, side]
    a, b = nodes[old, 1], nodes[old, 2]
    while True:
        if a < 0 or b < 0:
            joined = a if a >= 0 else b
        elif _priority(a) > _priority(b):
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
            nodes[a, 3] += nodes[b, 3]
            parent, side, a = a, 2, nodes[a, 2]
        else:
            nodes[b, 3] += nodes[a, 3]
            parent, side, b = b, 1, nodes[b, 1]


@in_place
def kth(nodes, root, rank):  # type: ignore[no-untyped-def]
    """The node with this many before it."""
    node = root
    while True:
        before = _size(nodes, nodes[node, 1])
        if rank < before:
            node = nodes[node, 1]
        elif rank == before:
            return node
        else:
            rank -= before + 1
            node = nodes[node, 2]


@compiled
def in_order(nodes, root, out, at):  # type: ignore[no-untyped-def]
    """Write all nodes of a tree, from `at` on; where they end."""
    stack = np.empty(256, dtype=np.int64)
    depth, node = 0, root
    while node >= 0 or depth:
        while node >= 0:
            stack[depth] = node
            depth += 1
            node = nodes[node, 1]
        depth -= 1
        node = stack[depth]
        out[at] = node
        at += 1
        node = nodes[node, 2]
    return at


@compiled
def move(kind, node, following, nodes, roots, group, starts, lengths, buffer):  # type: ignore[no-untyped-def]
    """A pane's nodes, from its first on, enter their group's tree or leave it."""
    while node >= 0:
        if kind == 0:
            insert(nodes, roots, group, node, starts, lengths, buffer)
        else:
            remove(nodes, roots, group, node, starts, lengths, buffer)
        node = following[node]


@in_place
def answer(nodes, root, query, p, q, out):  # type: ignore[no-untyped-def]
    """The two nodes that a query asks for (−1 for none; p/q is a quantile), and the rest of the
    division that a quantile's place is."""
    n = _size(nodes, root)
    out[0] = out[1] = -1
    if n == 0:
        return 0
    if query == 0:
        out[0] = kth(nodes, root, np.int64(0))
    elif query == 1:
        out[0] = kth(nodes, root, n - 1)
    elif query == 2:
        out[0] = kth(nodes, root, max((p * n + q - 1) // q, 1) - 1)
    else:
        rank = p * (n - 1) // q
        rest = p * (n - 1) - rank * q
        out[0] = kth(nodes, root, rank)
        out[1] = kth(nodes, root, rank + 1) if rest else out[0]
        return rest
    return 0
