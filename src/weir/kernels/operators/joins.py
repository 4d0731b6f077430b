"""INNER and OUTER joins, and SEMI and ANTI joins with a condition, find pairs of live rows.

(SEMI and ANTI by keys alone need no pairs: see `presence.py`.)

Both inputs are walked together in order of vs. A row meets exactly the rows of its key on the other
side that are live at its vs, so the cost is that of the pairs. A row is held until its end. Rows
whose key is NULL meet no row. The live rows of a key lie side by side: left ones in bucket 2 ·
group, right ones in the next bucket.

SEMI and ANTI pieces, and the unmatched pieces of OUTER, come from the same pairs: each tracked row
has an `edge` up to which it is settled and, while matched, the start of its open piece (see
`coverage.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import START, Batch, Int64s, empty_batch
from weir.kernels.expressions.evaluator import compile_expression
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.operators.join_inputs import HeldSide, JoinKeys
from weir.kernels.operators.joins_loops import intersect, meet
from weir.kernels.structures.buckets import Buckets
from weir.kernels.structures.coverage import Coverage
from weir.plan.operators import Join, schema
from weir.plan.schema import Schema


class JoinKernel:
    """Runs joins that need pairs of rows (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._schema = schema(node)
        self._kind = node.kind
        self._keys = JoinKeys()
        self._live = Buckets()
        self._left = HeldSide(left, [left.index(a) for a, _ in node.keys])
        self._right = HeldSide(right, [right.index(b) for _, b in node.keys])
        both = Schema(left.columns + right.columns, self._schema.time)
        self._condition: Callable[[Batch], pa.Array] | None = None
        if node.condition is not None:
            self._condition = compile_expression(node.condition, both)
        tracks_left = node.kind in ("left", "full", "semi", "anti")
        self._left_cover = Coverage(self._left.rows, node.kind == "semi") if tracks_left else None
        tracks_right = node.kind in ("right", "full")
        self._right_cover = Coverage(self._right.rows, False) if tracks_right else None

    @property
    def state_rows(self) -> int:
        return len(self._left.rows) + len(self._right.rows)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        left, right = slices
        pairs_left, pairs_right = self._meet(left, right)
        parts: list[tuple[Int64s, Batch]] = []
        if self._condition is not None and len(pairs_left):
            kept = self._condition(self._paired(pairs_left, pairs_right))
            mask = np.asarray(pc.fill_null(kept, False).to_numpy(zero_copy_only=False))
            pairs_left, pairs_right = pairs_left[mask], pairs_right[mask]
        if self._kind not in ("semi", "anti") and len(pairs_left):
            rows = self._paired(pairs_left, pairs_right)
            parts.append((rows.vs + 1, rows))
        parts += self._pieces(pairs_left, pairs_right, cti)
        self._end(cti)
        result = emitted(parts) if parts else empty_batch(self._schema.types)
        return result, self._output_cti(cti)

    def _hold(self, side: HeldSide, cover: Coverage | None, batch: Batch) -> Int64s:
        groups = self._keys.encode(batch, side.keys)
        self._keys.joined(groups)
        slots = side.add(batch, groups)
        if cover is not None:
            cover.started(slots)
        return slots

    def _meet(self, left: Batch, right: Batch) -> tuple[Int64s, Int64s]:
        """Hold the new rows; return the slots of all pairs with overlapping lifetimes.

        The pairs are in order of time."""
        a = self._hold(self._left, self._left_cover, left)
        b = self._hold(self._right, self._right_cover, right)
        self._live.grow(2 * self._keys.capacity)
        pairs_left, pairs_right, self._live.arena = meet(
            a,
            left.vs,
            left.ve,
            self._left.groups(a),
            b,
            right.vs,
            right.ve,
            self._right.groups(b),
            self._live.arena,
            self._live.spans,
            self._live.free,
        )
        return pairs_left, pairs_right

    def _paired(self, left: Int64s, right: Int64s) -> Batch:
        """Return a row for each pair, with the columns of both sides, valid while both rows are."""
        vs, ve = self._lifetimes(left, right)
        return Batch(vs, ve, self._left.rows.columns(left) + self._right.rows.columns(right))

    def _lifetimes(self, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
        a, b = self._left.rows, self._right.rows
        lifetimes: tuple[Int64s, Int64s] = intersect(left, right, a.vs, a.ve, b.vs, b.ve)
        return lifetimes

    def _pieces(self, left: Int64s, right: Int64s, cti: int) -> list[tuple[Int64s, Batch]]:
        """Return the matched or unmatched pieces of tracked rows that became final."""
        if self._left_cover is None and self._right_cover is None:
            return []
        vs, ve = self._lifetimes(left, right)
        parts = []
        if self._left_cover is not None:
            final, start, end, slots = self._left_cover.advance(left, vs, ve, cti)
            columns = self._left.rows.columns(slots)
            if self._kind not in ("semi", "anti"):
                columns += self._nulls(self._right, len(slots))
            parts.append((final, Batch(start, end, columns)))
        if self._right_cover is not None:
            final, start, end, slots = self._right_cover.advance(right, vs, ve, cti)
            columns = self._nulls(self._left, len(slots)) + self._right.rows.columns(slots)
            parts.append((final, Batch(start, end, columns)))
        return parts

    def _nulls(self, side: HeldSide, length: int) -> tuple[pa.Array, ...]:
        at = 0 if side is self._left else len(self._left.names)
        types = self._schema.types[at : at + len(side.names)]
        return tuple(pa.nulls(length, t) for t in types)

    def _end(self, cti: int) -> None:
        for side, cover in ((self._left, self._left_cover), (self._right, self._right_cover)):
            slots = side.due(cti)
            if cover is not None:
                cover.ended(slots)
            emptied = self._keys.left(side.groups(slots))
            self._live.release(2 * emptied)
            self._live.release(2 * emptied + 1)
            side.rows.free(slots)

    def _output_cti(self, cti: int) -> int:
        for cover in (self._left_cover, self._right_cover):
            if cover is not None:
                cti = min(cti, cover.held_from())
        return cti

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        tables = {}
        for name, side, cover in self._sides():
            slots = side.rows.held()
            extra = cover.state(slots) if cover is not None else {}
            tables[name] = rows_table(side.rows.take(slots), side.names, **extra)
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for number, (name, side, cover) in enumerate(self._sides()):
            batch, extra = table_rows(tables[name])
            slots = self._hold(side, cover, batch)
            if cover is not None:
                cover.restore(slots, extra)
            self._live.grow(2 * self._keys.capacity)
            groups = side.groups(slots)
            has_key = groups >= 0  # rows with NULL keys meet no row
            buckets = 2 * groups[has_key] + number
            self._live.insert_all(buckets, slots[has_key], batch.ve[has_key], START)

    def _sides(self) -> tuple[tuple[str, HeldSide, Coverage | None], ...]:
        return (
            ("left", self._left, self._left_cover),
            ("right", self._right, self._right_cover),
        )
