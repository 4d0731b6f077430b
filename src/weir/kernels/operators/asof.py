"""ASOF JOIN pairs each left row with the latest right row that starts no later.

Right rows are held by key, newest first: only the newest of each key, or all of them if a condition
may reject the newest. Left rows are not held: when their slice comes, all right rows that start no
later have come too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import START, Batch, Int64s
from weir.kernels.expressions.evaluator import compile_expression
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.asof_loops import latest_rows
from weir.kernels.operators.join_inputs import JoinKeys
from weir.kernels.structures.keys import grown
from weir.kernels.structures.rows import RowStore
from weir.plan.operators import Join, schema
from weir.plan.schema import Schema


class AsofKernel:
    """Runs ASOF joins (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._keys = JoinKeys()
        self._left_keys = [left.index(a) for a, _ in node.keys]
        self._right_keys = [right.index(b) for _, b in node.keys]
        self._right_schema = right
        self._keeps_unmatched = node.kind == "left_asof"
        both = Schema(left.columns + right.columns, schema(node).time)
        self._condition: Callable[[Batch], pa.Array] | None = None
        if node.condition is not None:
            self._condition = compile_expression(node.condition, both)
        self._rows = RowStore(right.types)
        self._arrival = np.zeros(0, dtype=np.int64)  # by slot: the row's number in order of arrival
        self._older = np.full(0, -1, dtype=np.int64)  # by slot: the next older row of its key
        self._group_of = np.full(0, -1, dtype=np.int64)  # by slot
        self._newest = np.full(0, -1, dtype=np.int64)  # by group: the slot of its newest row
        self._arrivals = 0

    @property
    def state_rows(self) -> int:
        return len(self._rows)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        left, right = slices
        right_groups = self._keys.encode(right, self._right_keys)
        right, right_groups = right.take(right_groups >= 0), right_groups[right_groups >= 0]
        slots = self._hold(right, right_groups)
        groups = self._keys.encode(left, self._left_keys)
        self._keys.joined(groups)
        self._newest = grown(self._newest, self._keys.capacity, -1)
        matches, replaced = latest_rows(
            left.vs,
            groups,
            right.vs,
            right_groups,
            slots,
            self._newest,
            self._older,
            self._condition is None,
        )
        if self._condition is not None:
            matches = self._search(left, matches)
        rows = self._matched(left, matches)
        result = emitted([(rows.vs + 1, rows)])
        self._keys.left(groups)
        self._keys.left(self._group_of[replaced])
        self._rows.free(replaced)
        return result, cti

    def _hold(self, batch: Batch, groups: Int64s) -> Int64s:
        self._keys.joined(groups)
        slots = self._rows.add(batch)
        self._arrival = grown(self._arrival, self._rows.capacity)
        self._older = grown(self._older, self._rows.capacity, -1)
        self._group_of = grown(self._group_of, self._rows.capacity, -1)
        self._newest = grown(self._newest, self._keys.capacity, -1)
        self._arrival[slots] = np.arange(self._arrivals, self._arrivals + len(slots))
        self._arrivals += len(slots)
        self._group_of[slots] = groups
        return slots

    def _search(self, left: Batch, candidates: Int64s) -> Int64s:
        """For each left row, walk from newer to older right rows until the condition holds."""
        assert self._condition is not None
        result = np.full(len(left), -1, dtype=np.int64)
        rows = np.flatnonzero(candidates >= 0)
        candidates = candidates[rows]
        while len(rows):
            mine = left.take(rows)
            pairs = Batch(mine.vs, mine.ve, mine.columns + self._rows.columns(candidates))
            kept = pc.fill_null(self._condition(pairs), False).to_numpy(zero_copy_only=False)
            holds = np.asarray(kept, dtype=np.bool_)
            result[rows[holds]] = candidates[holds]
            rows, candidates = rows[~holds], self._older[candidates[~holds]]
            rows, candidates = rows[candidates >= 0], candidates[candidates >= 0]
        return result

    def _matched(self, left: Batch, matches: Int64s) -> Batch:
        if self._keeps_unmatched:
            missing = matches < 0
            held = self._rows.columns(matches[~missing])
            index = pa.array(np.cumsum(~missing) - 1, mask=missing)
            columns = tuple(c.take(index) for c in held)
            return Batch(left.vs, left.ve, left.columns + columns)
        rows = np.flatnonzero(matches >= 0)
        mine = left.take(rows)
        return Batch(mine.vs, mine.ve, mine.columns + self._rows.columns(matches[rows]))

    def snapshot(self) -> Tables:
        slots = self._rows.held()
        slots = slots[np.argsort(self._arrival[slots])]
        return {"right": rows_table(self._rows.take(slots), self._right_schema.names)}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        batch, _ = table_rows(tables["right"])
        order = np.argsort(batch.vs, kind="stable")  # the tables of several vertices, concatenated
        batch = batch.take(order)
        groups = self._keys.encode(batch, self._right_keys)
        slots = self._hold(batch, groups)
        nobody = np.zeros(0, dtype=np.int64)
        latest_rows(
            nobody,
            nobody,
            batch.vs,
            groups,
            slots,
            self._newest,
            self._older,
            self._condition is None,
        )
