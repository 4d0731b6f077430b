"""Coverage tracks on which pieces of its lifetime a row is matched.

Matches of a row come as intervals in order of their start. Touching or overlapping ones are one
piece. The row is settled up to its `edge`. Just before the edge, it is matched since `piece`, or
unmatched if `piece` is OPEN.

Contract
1. `advance` takes matches (in order of start) and the CTI and returns the pieces that became final:
   matched ones (`matched=True`, SEMI) or unmatched ones (ANTI, OUTER), each with the smallest CTI
   at which it is known. A matched piece is known at its end + 1, since a later match may touch it
   until then; if it reaches the row's own end, it is known as soon as the match that reaches that
   end is. An unmatched piece is known when the match that ends it is, or at the row's end.
2. `held_from` is the smallest start of a piece that may still come.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weir.events.batch import OPEN, Int64s
from weir.kernels.structures.coverage_loops import cover, time_out
from weir.kernels.structures.keys import grown
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.time_queue import Holds, TimeQueue, after

Pieces = tuple[Int64s, Int64s, Int64s, Int64s]
"""For each piece: the CTI at which it is final, its start, its end, the slot of its row."""


class Coverage:
    """Tracks the matched or the unmatched pieces of held rows, and when they become final."""

    def __init__(self, rows: RowStore, matched: bool) -> None:
        self._rows = rows
        self._matched = matched
        self._edge = np.full(0, OPEN, dtype=np.int64)  # by slot: its pieces are settled up to here
        self._piece = np.full(0, OPEN, dtype=np.int64)  # by slot: where its matched piece began
        self._timers = TimeQueue()
        self._holds = Holds()

    @property
    def _held(self) -> Int64s:
        return self._piece if self._matched else self._edge

    def started(self, slots: Int64s) -> None:
        """Begin to track rows; they are unmatched so far."""
        self._edge = grown(self._edge, self._rows.capacity, OPEN)
        self._piece = grown(self._piece, self._rows.capacity, OPEN)
        self._edge[slots] = self._rows.vs[slots]
        self._piece[slots] = OPEN
        if not self._matched:
            self._holds.push(self._edge[slots], slots, self._edge)
            self._timers.add(self._rows.ve[slots], slots)

    def advance(self, slots: Int64s, starts: Int64s, ends: Int64s, cti: int) -> Pieces:
        at, out_start, out_end, out_slot, touched = cover(
            slots,
            starts,
            ends,
            self._rows.ve,
            self._edge,
            self._piece,
            self._matched,
        )
        touched = touched[self._held[touched] != OPEN]
        self._holds.push(self._held[touched], touched, self._held)
        if self._matched:
            self._timers.add(after(self._edge[touched]), touched)
        due_at, due = self._timers.pop(cti)
        late = time_out(due_at, due, self._rows.ve, self._edge, self._piece, self._matched)
        return (
            np.concatenate([at, late[0]]),
            np.concatenate([out_start, late[1]]),
            np.concatenate([out_end, late[2]]),
            np.concatenate([out_slot, late[3]]),
        )

    def ended(self, slots: Int64s) -> None:
        """Stop tracking rows whose pieces have all come out."""
        self._edge[slots] = OPEN
        self._piece[slots] = OPEN

    def held_from(self) -> int:
        return self._holds.minimum(self._held)

    def state(self, slots: Int64s) -> dict[str, Int64s]:
        return {"edge": self._edge[slots], "piece": self._piece[slots]}

    def restore(self, slots: Int64s, state: Mapping[str, Int64s]) -> None:
        """Restore the state of tracked rows from a snapshot."""
        self._edge[slots], self._piece[slots] = state["edge"], state["piece"]
        self._holds.push(self._held[slots], slots, self._held)
        if self._matched:
            open_piece = slots[self._piece[slots] != OPEN]
            self._timers.add(after(self._edge[open_piece]), open_piece)
