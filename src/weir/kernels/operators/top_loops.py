"""Compiled loops of ORDER BY … LIMIT."""

from __future__ import annotations

import numpy as np

from weir.kernels.structures import treap_loops as treap
from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.loops.argument_types import I64, Bool, Booleans, I64s, I64Table, U8s
from weir.loops.compiled import compiled, in_place


@compiled
def ranks_of(window_changes: Booleans, order_changes: Booleans, ties: Bool):
    """Return how many rows of its window come before each row.

    With `ties`, these are the rows before the first one that ties with it."""
    ranks = np.zeros(len(window_changes), dtype=np.int64)
    first = 0
    for i in range(len(ranks)):
        if window_changes[i]:
            first = i
        ranks[i] = i - first
        if ties and i > first and not order_changes[i]:
            ranks[i] = ranks[i - 1]
    return ranks


@in_place
def _equal_order(a, b, starts, lengths, buffer):
    """Tell whether two rows have equal order columns: their keys without the order of arrival."""
    if lengths[a] != lengths[b]:
        return False
    same = True
    for i in range(lengths[a] - 8):
        same = same and buffer[starts[a] + i] == buffer[starts[b] + i]
    return same


@compiled
def replay_top(
    kinds: I64s,
    panes: I64s,
    heads: I64s,
    following: I64s,
    nodes: I64Table,
    roots: I64s,
    starts: I64s,
    lengths: I64s,
    buffer: U8s,
    limit: I64,
    ties: Bool,
    counts: I64s,
):
    """Run the operations; at each EMIT, write the first rows. The lists are concatenated."""
    out = np.empty(1024, dtype=np.int64)
    at = emitted_count = 0
    for op in range(len(kinds)):
        if kinds[op] == EMIT:
            size = nodes[roots[0], treap.SIZE] if roots[0] >= 0 else 0
            if at + size > len(out):
                out = np.concatenate((out, np.empty(len(out) + size, dtype=np.int64)))
            taken, last = np.int64(0), np.int64(-1)
            while taken < size:
                row = treap.kth(nodes, roots[0], taken)
                if taken >= limit and not (
                    ties and limit > 0 and _equal_order(last, row, starts, lengths, buffer)
                ):
                    break
                out[at] = last = row
                at += 1
                taken += 1
            counts[emitted_count] = taken
            emitted_count += 1
            continue
        first, group = heads[panes[op]], np.int64(0)
        if kinds[op] == ENTER:
            treap.insert_chain(first, following, nodes, roots, group, starts, lengths, buffer)
        else:
            treap.remove_chain(first, following, nodes, roots, group, starts, lengths, buffer)
    return out[:at]
