"""On which pieces of its lifetime a row is matched.

Matches of a row come as intervals in order of their start. Touching or overlapping ones are one
piece. `edge` is where knowledge ends: the row is accounted for up to there, matched since
`piece` if that is not OPEN, unmatched otherwise.

Contract
1. `advance` takes matches (in order of start) and the CTI and gives the pieces that became
   final: matched ones (`matched=True`, SEMI) or unmatched ones (ANTI, OUTER), each with the
   smallest CTI at which it is known:
   a matched piece at its end + 1 (something may still touch it), or, when it reaches the row's
   own end, as soon as the match that reaches it is known;
   an unmatched piece when the match that ends it is known, or at the row's end.
2. `held_from` is the smallest start of a piece that may still come.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weir.events.batch import OPEN, Int64s
from weir.events.compiled import compiled
from weir.kernels.structures.keys import grown
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.time_queue import Holds, TimeQueue, after

Pieces = tuple[Int64s, Int64s, Int64s, Int64s]
"""When final, start, end, slot."""


class Coverage:
    """See the module's contract."""

    def __init__(self, rows: RowStore, matched: bool) -> None:
        self._rows = rows
        self._matched = matched
        self._edge = np.full(0, OPEN, dtype=np.int64)  # by slot
        self._piece = np.full(0, OPEN, dtype=np.int64)  # by slot
        self._timers = TimeQueue()
        self._holds = Holds()

    @property
    def _held(self) -> Int64s:
        return self._piece if self._matched else self._edge

    def started(self, slots: Int64s) -> None:
        """Rows begin, unmatched."""
        self._edge = grown(self._edge, self._rows.capacity, OPEN)
        self._piece = grown(self._piece, self._rows.capacity, OPEN)
        self._edge[slots] = self._rows.vs[slots]
        self._piece[slots] = OPEN
        if not self._matched:
            self._holds.push(self._edge[slots], slots, self._edge)
            self._timers.add(self._rows.ve[slots], slots)

    def advance(self, slots: Int64s, starts: Int64s, ends: Int64s, cti: int) -> Pieces:
        at, out_start, out_end, out_slot, touched = _cover(
            slots, starts, ends, self._rows.ve,
            self._edge, self._piece, self._matched,
        )  # fmt: skip
        touched = touched[self._held[touched] != OPEN]
        self._holds.push(self._held[touched], touched, self._held)
        if self._matched:
            self._timers.add(after(self._edge[touched]), touched)
        due_at, due = self._timers.pop(cti)
        late = _time_out(due_at, due, self._rows.ve, self._edge, self._piece, self._matched)
        return (
            np.concatenate([at, late[0]]),
            np.concatenate([out_start, late[1]]),
            np.concatenate([out_end, late[2]]),
            np.concatenate([out_slot, late[3]]),
        )

    def ended(self, slots: Int64s) -> None:
        """Rows are gone; all their pieces have come out."""
        self._edge[slots] = OPEN
        self._piece[slots] = OPEN

    def held_from(self) -> int:
        return self._holds.minimum(self._held)

    def state(self, slots: Int64s) -> dict[str, Int64s]:
        return {"edge": self._edge[slots], "piece": self._piece[slots]}

    def restore(self, slots: Int64s, state: Mapping[str, Int64s]) -> None:
        """Rows that were started anew take over their state from a snapshot."""
        self._edge[slots], self._piece[slots] = state["edge"], state["piece"]
        self._holds.push(self._held[slots], slots, self._held)
        if self._matched:
            open_piece = slots[self._piece[slots] != OPEN]
            self._timers.add(after(self._edge[open_piece]), open_piece)


@compiled
def _cover(slots, starts, ends, ve, edge, piece, matched):  # type: ignore[no-untyped-def]
    none = np.iinfo(np.int64).max
    at = np.empty(2 * len(slots), dtype=np.int64)
    out_start = np.empty(2 * len(slots), dtype=np.int64)
    out_end = np.empty(2 * len(slots), dtype=np.int64)
    out_slot = np.empty(2 * len(slots), dtype=np.int64)
    touched = np.empty(len(slots), dtype=np.int64)
    count = changed = 0
    for i in range(len(slots)):
        slot, start, end = slots[i], starts[i], ends[i]
        if edge[slot] == ve[slot]:
            continue  # matched to its end already
        if end > edge[slot]:
            touched[changed] = slot
            changed += 1
        if start > edge[slot]:
            if matched and piece[slot] != none:
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
            if piece[slot] == none:
                piece[slot] = start
            edge[slot] = max(edge[slot], end)
        if edge[slot] == ve[slot] and matched:
            at[count], out_slot[count] = start + 1, slot
            out_start[count], out_end[count] = piece[slot], ve[slot]
            count += 1
            piece[slot] = none
    return at[:count], out_start[:count], out_end[:count], out_slot[:count], touched[:changed]


@compiled
def _time_out(due_at, due, ve, edge, piece, matched):  # type: ignore[no-untyped-def]
    """Pieces that end because nothing came: a matched one past its edge, an unmatched one at
    the end of its row."""
    none = np.iinfo(np.int64).max
    at = np.empty(len(due), dtype=np.int64)
    out_start = np.empty(len(due), dtype=np.int64)
    out_end = np.empty(len(due), dtype=np.int64)
    out_slot = np.empty(len(due), dtype=np.int64)
    count = 0
    for i in range(len(due)):
        slot = due[i]
        if matched:
            if piece[slot] == none or edge[slot] == ve[slot] or edge[slot] + 1 != due_at[i]:
                continue
            out_start[count], out_end[count] = piece[slot], edge[slot]
            piece[slot] = none
        else:
            if edge[slot] == none or edge[slot] >= ve[slot] or ve[slot] != due_at[i]:
                continue
            out_start[count], out_end[count] = edge[slot], ve[slot]
            edge[slot] = ve[slot]
        at[count], out_slot[count] = due_at[i], slot
        count += 1
    return at[:count], out_start[:count], out_end[:count], out_slot[:count]
