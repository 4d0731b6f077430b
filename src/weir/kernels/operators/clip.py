"""CLIP JOIN ends a left row where the next matching right row starts.

Left rows are held, linked by key, until they are clipped or end. Right rows are used at once and
not held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.expressions.evaluator import compile_expression
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.clip_loops import clips
from weir.kernels.operators.join_inputs import HeldSide, JoinKeys
from weir.kernels.structures.buckets import Buckets
from weir.kernels.structures.keys import each_once, grown
from weir.kernels.structures.time_queue import Holds
from weir.plan.operators import Join, schema
from weir.plan.schema import Schema


class ClipKernel:
    """Runs CLIP joins (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._keys = JoinKeys()
        self._live = Buckets()
        self._left = HeldSide(left, [left.index(a) for a, _ in node.keys])
        self._right_keys = [right.index(b) for _, b in node.keys]
        both = Schema(left.columns + right.columns, schema(node).time)
        self._condition: Callable[[Batch], pa.Array] | None = None
        if node.condition is not None:
            self._condition = compile_expression(node.condition, both)
        self._held = np.full(0, OPEN, dtype=np.int64)  # by slot: vs while the end is unknown
        self._holds = Holds()

    @property
    def state_rows(self) -> int:
        return len(self._left.rows)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        left, right = slices
        side = self._left
        slots = self._hold(left)
        # The groups of the right rows are held until the end of this step.
        groups = self._keys.encode(right, self._right_keys)
        self._keys.joined(groups)
        self._live.grow(self._keys.capacity)
        clipped, rows, self._live.arena = clips(
            slots,
            left.vs,
            left.ve,
            side.groups(slots),
            self._live.arena,
            self._live.spans,
            self._live.free,
            right.vs,
            groups,
            self._condition is None,
        )
        if self._condition is not None:
            clipped, rows = self._first_matches(clipped, rows, right)
        starts = right.vs[rows]
        parts = [(starts + 1, self._ended(clipped, starts))]
        self._forget(clipped)
        due = side.due(cti)
        # A clipped row is gone, and its slot may already hold another row.
        due = each_once(due[(self._held[due] != OPEN) & (side.rows.ve[due] <= cti)])
        ends = side.rows.ve[due]
        parts.append((ends, self._ended(due, ends)))
        self._forget(due)
        self._live.release(self._keys.left(groups))
        side.forget_dropped()
        return emitted(parts), min(cti, self._holds.minimum(self._held))

    def _hold(self, batch: Batch) -> Int64s:
        groups = self._keys.encode(batch, self._left.keys)
        self._keys.joined(groups)
        slots = self._left.add(batch, groups)
        self._held = grown(self._held, self._left.rows.capacity, OPEN)
        self._held[slots] = batch.vs
        self._holds.push(batch.vs, slots, self._held)
        return slots

    def _first_matches(
        self, left: Int64s, right_rows: Int64s, right: Batch
    ) -> tuple[Int64s, Int64s]:
        """Keep, for each left row, only the first right row that satisfies the condition."""
        assert self._condition is not None
        theirs = right.take(right_rows)
        columns = self._left.rows.columns(left) + theirs.columns
        kept = self._condition(Batch(theirs.vs, theirs.ve, columns))
        mask = np.asarray(pc.fill_null(kept, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
        left, right_rows = left[mask], right_rows[mask]
        _, first = np.unique(left, return_index=True)  # pairs are in order of time
        return left[first], right_rows[first]

    def _ended(self, slots: Int64s, ends: Int64s) -> Batch:
        return Batch(self._left.rows.vs[slots], ends, self._left.rows.columns(slots))

    def _forget(self, slots: Int64s) -> None:
        side = self._left
        self._held[slots] = OPEN
        groups = side.groups(slots)
        self._live.remove(groups, slots)
        self._live.release(self._keys.left(groups))
        side.rows.free(slots)

    def snapshot(self) -> Tables:
        return {"left": rows_table(self._left.rows.take(self._left.rows.held()), self._left.names)}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        batch, _ = table_rows(tables["left"])
        side = self._left
        slots = self._hold(batch)
        self._live.grow(self._keys.capacity)
        self._live.insert_all(side.groups(slots), slots, batch.ve, START)
