"""LEFT SEMI and LEFT ANTI joins by keys alone need to know only when the right side has a row.

Without a further condition, all left rows of a key are matched at the same instants. So there is
one *presence* per key: the last maximal piece [since, edge) that its right rows cover. A right row
extends it or, after a gap, begins the next one; then the row is forgotten.

Contract (in addition to that of `kernel.Kernel`)
1. A left row is held until it has ended or is covered to its end: every held row ends after its
   key's edge. A key's rows lie in a heap by end and in a list by start.
2. Removing a row costs O(log n). Apart from that, only rows that produce a piece are visited. So
   the cost of a step is that of its input and output, however many rows a key has.
3. A presence is over when the CTI has passed its edge, since a later row could still touch it until
   then. Its `since` is then OPEN. Its edge stays while the key has rows: ANTI pieces begin there.
4. A piece is final as in `coverage.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.join_inputs import encode_keys
from weir.kernels.operators.presence_loops import (
    EDGE,
    NO_TIMER,
    PLACE,
    SINCE,
    TIMER,
    rung,
    settle,
    walk,
)
from weir.kernels.structures.heaps_loops import (
    insert_all,
    slots_of,
)
from weir.kernels.structures.keys import KeyIndex, each_once, grown
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.time_queue import Holds, TimeQueue
from weir.plan.operators import Join, schema

_EMPTY = np.array([-1, -1, -1, OPEN, START, -1, NO_TIMER], dtype=np.int64)


class PresenceKernel:
    """Runs SEMI and ANTI joins without a further condition (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._semi = node.kind == "semi"
        self._names = left.names
        self._left_keys = [left.index(a) for a, _ in node.keys]
        self._right_keys = [right.index(b) for _, b in node.keys]
        # The right columns to keep; one column may be a key twice.
        self._kept = list(dict.fromkeys(self._right_keys))
        self._kept_names = [right.names[i] for i in self._kept]
        self._index = KeyIndex()
        self._rows = RowStore(left.types)
        self._links = np.zeros((0, 4), dtype=np.int64)  # by slot: heap and list, see `heaps_loops`
        # By group: its rows, its presence, its timer (the fields of `presence_loops`).
        self._groups = _EMPTY.reshape(1, -1).copy()
        self._held = np.full(1, OPEN, dtype=np.int64)  # by group: start of its next piece
        self._presences = RowStore([right.types[i] for i in self._kept])  # their keys
        self._timers = TimeQueue()
        self._holds = Holds()

    @property
    def state_rows(self) -> int:
        return len(self._rows) + len(self._presences)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        left, right = slices
        slots, groups = self._hold(left)
        theirs = self._encode(right, self._right_keys)
        pieces, count, gone, met = walk(
            slots,
            groups,
            right.vs,
            right.ve,
            theirs,
            self._rows.vs,
            self._rows.ve,
            self._links,
            self._groups,
            self._semi,
        )
        self._keep_keys(right.take(met), theirs[met])
        due = self._timers.pop(cti)
        touched = np.concatenate([groups, theirs, rung(*due, self._groups)])
        pieces, count, gone = self._settle(touched, cti, pieces, count, gone)
        final, vs, ve, slots = np.ascontiguousarray(pieces[:count].T)
        rows = emitted([(final, Batch(vs, ve, self._rows.columns(slots)))])
        self._rows.free(slots_of(gone, self._links))
        return rows, min(cti, self._holds.minimum(self._held))

    def _encode(self, batch: Batch, columns: Sequence[int]) -> Int64s:
        groups = encode_keys(self._index, batch, columns) + 1
        missing = self._index.capacity + 1 - len(self._groups)
        if missing > 0:
            self._groups = np.concatenate([self._groups, np.tile(_EMPTY, (missing, 1))])
            self._held = grown(self._held, len(self._groups), OPEN)
        return groups

    def _hold(self, batch: Batch) -> tuple[Int64s, Int64s]:
        groups = self._encode(batch, self._left_keys)
        slots = self._rows.add(batch)
        self._links = grown(self._links, self._rows.capacity)
        return slots, groups

    def _keep_keys(self, rows: Batch, groups: Int64s) -> None:
        """Store the keys of groups that have their first presence."""
        keys = tuple(rows.columns[i] for i in self._kept)
        self._groups[groups, PLACE] = self._presences.add(Batch(rows.vs, rows.ve, keys))

    def _settle(
        self, touched: Int64s, cti: int, pieces: Int64s, count: int, gone: int
    ) -> tuple[Int64s, int, int]:
        """Do what is due in these groups; update their holds and timers."""
        pieces, count, gone, moved, armed, emptied = settle(
            touched,
            cti,
            pieces,
            count,
            gone,
            self._rows.vs,
            self._rows.ve,
            self._links,
            self._groups,
            self._held,
            self._semi,
        )
        self._holds.push(self._held[moved], moved, self._held)
        self._timers.add(self._groups[armed, TIMER], armed)
        emptied = each_once(emptied)
        slots = self._groups[emptied, PLACE]
        self._presences.free(slots[slots >= 0])
        self._groups[emptied] = _EMPTY
        self._index.release(emptied - 1)
        return pieces, count, gone

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        present = np.flatnonzero(self._groups[:, PLACE] >= 0)
        since, edge, slots = self._groups[present][:, [SINCE, EDGE, PLACE]].T
        presences = Batch(since, edge, self._presences.columns(slots))
        return {
            "left": rows_table(self._rows.take(self._rows.held()), self._names),
            "right": rows_table(presences, self._kept_names),
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        presences, _ = table_rows(tables["right"])
        theirs = self._encode(presences, [self._kept.index(i) for i in self._right_keys])
        batch, _ = table_rows(tables["left"])
        slots, groups = self._hold(batch.take(np.argsort(batch.vs, kind="stable")))
        self._groups[theirs, SINCE], self._groups[theirs, EDGE] = presences.vs, presences.ve
        self._groups[theirs, PLACE] = self._presences.add(presences)
        insert_all(slots, groups, self._rows.ve, self._links, self._groups)
        nothing = np.zeros((0, 4), dtype=np.int64)
        self._settle(np.concatenate([groups, theirs]), START, nothing, 0, -1)
