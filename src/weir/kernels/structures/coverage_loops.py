"""Compiled loops of coverage (see `coverage.py` for its contract)."""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN
from weir.loops.argument_types import Bool, I64s
from weir.loops.compiled import compiled


@compiled
def cover(slots: I64s, starts: I64s, ends: I64s, ve: I64s, edge: I64s, piece: I64s, matched: Bool):
    """Apply matches in order of start, and return the pieces that they end.

    For each piece, return when it is final, its start, its end and its slot. Also return the slots
    whose edge moved.
    """
    at = np.empty(2 * len(slots), dtype=np.int64)
    out_start = np.empty(2 * len(slots), dtype=np.int64)
    out_end = np.empty(2 * len(slots), dtype=np.int64)
    out_slot = np.empty(2 * len(slots), dtype=np.int64)
    touched = np.empty(len(slots), dtype=np.int64)
    count = changed = 0
    for i in range(len(slots)):
        slot, start, end = slots[i], starts[i], ends[i]
        if edge[slot] == ve[slot]:
            continue  # already matched up to its end
        if end > edge[slot]:
            touched[changed] = slot
            changed += 1
        if start > edge[slot]:
            if matched and piece[slot] != OPEN:
                at[count], out_slot[count] = edge[slot] + 1, slot
                out_start[count], out_end[count] = piece[slot], edge[slot]
                count += 1
            if not matched:
                at[count], out_slot[count] = start + 1, slot
                out_start[count], out_end[count] = edge[slot], start
                count += 1
            piece[slot] = start
            edge[slot] = end
        else:
            if piece[slot] == OPEN:
                piece[slot] = start
            edge[slot] = max(edge[slot], end)
        if edge[slot] == ve[slot] and matched:
            at[count], out_slot[count] = start + 1, slot
            out_start[count], out_end[count] = piece[slot], ve[slot]
            count += 1
            piece[slot] = OPEN
    return at[:count], out_start[:count], out_end[:count], out_slot[:count], touched[:changed]


@compiled
def time_out(due_at: I64s, due: I64s, ve: I64s, edge: I64s, piece: I64s, matched: Bool):
    """Return the pieces that end without a match.

    Matched ones end past their edge, unmatched ones at the end of their row."""
    at = np.empty(len(due), dtype=np.int64)
    out_start = np.empty(len(due), dtype=np.int64)
    out_end = np.empty(len(due), dtype=np.int64)
    out_slot = np.empty(len(due), dtype=np.int64)
    count = 0
    for i in range(len(due)):
        slot = due[i]
        if matched:
            if piece[slot] == OPEN or edge[slot] == ve[slot] or edge[slot] + 1 != due_at[i]:
                continue
            out_start[count], out_end[count] = piece[slot], edge[slot]
            piece[slot] = OPEN
        else:
            if edge[slot] == OPEN or edge[slot] >= ve[slot] or ve[slot] != due_at[i]:
                continue
            out_start[count], out_end[count] = edge[slot], ve[slot]
            edge[slot] = ve[slot]
        at[count], out_slot[count] = due_at[i], slot
        count += 1
    return at[:count], out_start[:count], out_end[:count], out_slot[:count]
