"""Compiled loops that sort the requests to states (see `requests.py`)."""

from __future__ import annotations

from weir.loops.argument_types import I64, I64s, I64Table
from weir.loops.compiled import in_place


@in_place
def _comes_first(vs, origins, depth, a, p, b, q, blocks):
    """Tell whether program `p`'s visit of row `a` comes before `q`'s visit of row `b`."""
    if vs[a] != vs[b]:
        return vs[a] < vs[b]
    for i in range(depth):
        if origins[i, a] != origins[i, b]:
            return origins[i, a] < origins[i, b]
    if blocks[p] != blocks[q]:
        return blocks[p] < blocks[q]
    for i in range(depth, origins.shape[0]):
        if origins[i, a] != origins[i, b]:
            return origins[i, a] < origins[i, b]
    return p < q


@in_place
def merge_visits(
    vs: I64s,
    origins: I64Table,
    depth: I64,
    starts: I64s,
    heads: I64s,
    stops: I64s,
    blocks: I64s,
    program: I64s,
    row: I64s,
):
    """Write the visits of all programs in order: the program, and the row of its port.

    Program p visits the rows from `starts[p]` to `stops[p]` of the arrays `vs` and `origins`, which
    has one row for each origin column. `heads[p]` is the program's current row; initially, it is
    `starts[p]`.
    """
    programs = len(starts)
    at = 0
    while at < len(program):
        best = -1
        second = -1
        for p in range(programs):
            if heads[p] == stops[p]:
                continue
            if best < 0 or _comes_first(vs, origins, depth, heads[p], p, heads[best], best, blocks):
                second = best
                best = p
            elif second < 0 or _comes_first(
                vs, origins, depth, heads[p], p, heads[second], second, blocks
            ):
                second = p
        # The first program continues until the second one comes first.
        while True:
            program[at] = best
            row[at] = heads[best] - starts[best]
            at += 1
            heads[best] += 1
            if heads[best] == stops[best]:
                break
            if second >= 0 and not _comes_first(
                vs, origins, depth, heads[best], best, heads[second], second, blocks
            ):
                break
