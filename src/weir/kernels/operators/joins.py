"""INNER and OUTER joins, SEMI and ANTI joins with a condition: pairs of live rows, and what they
cover. (SEMI and ANTI by keys alone need no pairs: see `presence.py`.)

Both inputs are walked together in order of vs. A row meets exactly the rows of its key on the
other side that are live at its vs, so the cost is that of the pairs. A row is held until its
end; rows whose key is NULL meet nobody. The live rows of a key lie side by side: those of the left
in bucket 2 · group, those of the right in the next one.

SEMI and ANTI pieces (and the unmatched pieces of OUTER) come from the same pairs: each row
that is tracked has an `edge` up to which its fate is known and, while matched, the start of
its open piece (see `coverage.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import START, Batch, Int64s, empty_batch
from weir.events.compiled import compiled, in_place, inlined
from weir.events.hashing import hash_rows
from weir.kernels.expressions.evaluator import compile_expression
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.structures.buckets import Buckets, insert, live, make_room
from weir.kernels.structures.coverage import Coverage
from weir.kernels.structures.keys import KeyIndex, count_down, count_up, grown
from weir.kernels.structures.rows import RowStore, valid_mask
from weir.kernels.structures.time_queue import TimeQueue
from weir.plan.operators import Join, schema
from weir.plan.schema import Schema


def encode_keys(index: KeyIndex, batch: Batch, columns: Sequence[int]) -> Int64s:
    """Each row's group; −1 where a key is NULL."""
    keys = [batch.columns[i] for i in columns]
    if not any(k.null_count for k in keys):
        return index.encode(*hash_rows(keys, len(batch)))
    valid = np.ones(len(batch), dtype=np.bool_)
    for key in keys:
        valid &= valid_mask(key)
    groups = np.full(len(batch), -1, dtype=np.int64)
    first, second = hash_rows(keys, len(batch))
    groups[valid] = index.encode(first[valid], second[valid])
    return groups


class JoinKeys:
    """Groups of equal keys on both sides; a group lives while rows of it are held."""

    def __init__(self) -> None:
        self._index = KeyIndex()
        self._members = np.zeros(0, dtype=np.int64)

    @property
    def capacity(self) -> int:
        return self._index.capacity

    def encode(self, batch: Batch, columns: Sequence[int]) -> Int64s:
        return encode_keys(self._index, batch, columns)

    def joined(self, groups: Int64s) -> None:
        self._members = grown(self._members, self.capacity)
        count_up(groups, self._members)

    def left(self, groups: Int64s) -> Int64s:
        """These rows are gone, one group each; the groups without rows, which are forgotten."""
        emptied: Int64s = count_down(groups, self._members)
        self._index.release(emptied)
        return emptied


class Side:
    """The held rows of one input: by slot and by end."""

    def __init__(self, shape: Schema, keys: Sequence[int]) -> None:
        self.names = shape.names
        self.keys = tuple(keys)
        self.rows = RowStore(shape.types)
        self._group = np.full(0, -1, dtype=np.int64)  # by slot
        self._ends = TimeQueue()

    def add(self, batch: Batch, groups: Int64s) -> Int64s:
        slots = self.rows.add(batch)
        self._group = grown(self._group, self.rows.capacity, -1)
        self._group[slots] = groups
        self._ends.add(batch.ve, slots)
        return slots

    def groups(self, slots: Int64s) -> Int64s:
        return self._group[slots]

    def forget_dropped(self) -> None:
        """Rows that went before their end leave it behind: begin anew when most are such."""
        if len(self._ends) > 2 * self.rows.capacity:
            held = self.rows.held()
            self._ends = TimeQueue()
            self._ends.add(self.rows.ve[held], held)

    def due(self, cti: int) -> Int64s:
        """The slots of rows that end at or before this CTI."""
        return self._ends.pop(cti)[1]


class JoinKernel:
    """See `kernel.Kernel` for the contract."""

    right_from = START

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._schema = schema(node)
        self._kind = node.kind
        self._keys = JoinKeys()
        self._live = Buckets()
        self._left = Side(left, [left.index(a) for a, _ in node.keys])
        self._right = Side(right, [right.index(b) for _, b in node.keys])
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

    def _hold(self, side: Side, cover: Coverage | None, batch: Batch) -> Int64s:
        groups = self._keys.encode(batch, side.keys)
        self._keys.joined(groups)
        slots = side.add(batch, groups)
        if cover is not None:
            cover.started(slots)
        return slots

    def _meet(self, left: Batch, right: Batch) -> tuple[Int64s, Int64s]:
        """Hold the new rows; the slots of all pairs whose lifetimes meet, in order of time."""
        a = self._hold(self._left, self._left_cover, left)
        b = self._hold(self._right, self._right_cover, right)
        self._live.grow(2 * self._keys.capacity)
        pairs_left, pairs_right, self._live.arena = _meet(
            a, left.vs, left.ve, self._left.groups(a),
            b, right.vs, right.ve, self._right.groups(b),
            self._live.arena, self._live.spans, self._live.free,
        )  # fmt: skip
        return pairs_left, pairs_right

    def _paired(self, left: Int64s, right: Int64s) -> Batch:
        """Pairs as rows of both sides' columns, valid while both are."""
        vs, ve = self._lifetimes(left, right)
        return Batch(vs, ve, self._left.rows.columns(left) + self._right.rows.columns(right))

    def _lifetimes(self, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
        a, b = self._left.rows, self._right.rows
        lifetimes: tuple[Int64s, Int64s] = _intersect(left, right, a.vs, a.ve, b.vs, b.ve)
        return lifetimes

    def _pieces(self, left: Int64s, right: Int64s, cti: int) -> list[tuple[Int64s, Batch]]:
        """The matched or unmatched pieces of tracked rows that became final."""
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

    def _nulls(self, side: Side, length: int) -> tuple[pa.Array, ...]:
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
            known = groups >= 0  # the others, of NULL keys, meet nobody
            buckets = 2 * groups[known] + number
            self._live.insert_all(buckets, slots[known], batch.ve[known], START)

    def _sides(self) -> tuple[tuple[str, Side, Coverage | None], ...]:
        return (
            ("left", self._left, self._left_cover),
            ("right", self._right, self._right_cover),
        )


@compiled
def _meet(a, a_vs, a_ve, a_groups, b, b_vs, b_ve, b_groups, arena, spans, free):  # type: ignore[no-untyped-def]
    """Walk both sides' new rows in order of vs; each meets the live rows of the other side."""
    rows = np.empty(len(a) + len(b) + 16, dtype=np.int64)  # of each pair: slot, or ~slot of right
    found = np.empty(len(rows), dtype=np.int64)  # the live row that it meets
    at = np.zeros(5, dtype=np.int64)
    while at[0] + at[1] < len(a) + len(b):
        full = _walk(
            a, a_vs, a_ve, a_groups, b, b_vs, b_ve, b_groups, arena, spans, rows, found, at
        )
        if full == _PAIRS:
            rows = np.concatenate((rows, np.empty_like(rows)))
            found = np.concatenate((found, np.empty_like(found)))
        elif full == _BUCKET:
            arena = make_room(at[3], at[4], arena, spans, free)
    left, right = _as_pairs(rows, found, at[2])
    return left, right, arena


_PAIRS, _BUCKET = 1, 2
_AHEAD = 64
"""Look-ups that are prepared at a time (see `_touch`)."""


@in_place
def _walk(a, a_vs, a_ve, a_groups, b, b_vs, b_ve, b_groups, arena, spans, rows, found, at):  # type: ignore[no-untyped-def]
    """Go on from `at` (left rows, right rows, pairs so far); 0 at the end, or what is full: then
    the bucket and the time are in `at` too."""
    i, j, count = at[0], at[1], at[2]
    full = read = 0
    while i + j < len(a) + len(b):
        if i < len(a) and (j == len(b) or a_vs[i] <= b_vs[j]):
            if i % _AHEAD == 0:
                read += _touch(a_groups, i, spans)
            side, slot, group, now, end = 0, a[i], a_groups[i], a_vs[i], a_ve[i]
        else:
            if j % _AHEAD == 0:
                read += _touch(b_groups, j, spans)
            side, slot, group, now, end = 1, b[j], b_groups[j], b_vs[j], b_ve[j]
        if group >= 0:
            bucket = 2 * group + side
            more = live(bucket ^ 1, now, arena, spans, found, count)
            if more < 0:
                full = _PAIRS
                break
            if not insert(bucket, slot, end, now, arena, spans):
                full = _BUCKET
                at[3], at[4] = bucket, now
                break
            while count < more:
                rows[count] = ~slot if side else slot
                count += 1
        i += 1 - side
        j += side
    at[0], at[1], at[2] = i, j, count
    if not full:
        at[3] = read  # so that it is really read
    return full


@inlined
def _touch(groups, first, spans):  # type: ignore[no-untyped-def]
    """Read what the next `_AHEAD` look-ups will read, of both sides, and give some number
    that the caller keeps.

    A look-up branches on what it reads, which it waits for; here the waits overlap."""
    total = 0
    for i in range(first, min(first + _AHEAD, len(groups))):
        total += spans[2 * max(groups[i], 0), 0]
    return total


@compiled
def _intersect(left, right, left_vs, left_ve, right_vs, right_ve):  # type: ignore[no-untyped-def]
    vs = np.empty(len(left), dtype=np.int64)
    ve = np.empty(len(left), dtype=np.int64)
    for i in range(len(left)):
        vs[i] = max(left_vs[left[i]], right_vs[right[i]])
        ve[i] = min(left_ve[left[i]], right_ve[right[i]])
    return vs, ve


@compiled
def _as_pairs(rows, found, count):  # type: ignore[no-untyped-def]
    left = np.empty(count, dtype=np.int64)
    right = np.empty(count, dtype=np.int64)
    for i in range(count):
        left[i] = rows[i] if rows[i] >= 0 else found[i]
        right[i] = found[i] if rows[i] >= 0 else ~rows[i]
    return left, right
