"""INNER, OUTER, SEMI and ANTI joins: pairs of live rows, and what they cover.

Both inputs are walked together in order of vs. A row meets exactly the rows of its key on the
other side that are live at its vs, so the cost is that of the pairs. A row is held until its
end; rows whose key is NULL meet nobody.

SEMI and ANTI pieces (and the unmatched pieces of OUTER) come from the same pairs: each row
that is tracked has an `edge` up to which its fate is known and, while matched, the start of
its open piece (see `coverage.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import Batch, Int64s, empty_batch
from weir.events.compiled import compiled
from weir.events.hashing import hash_rows
from weir.kernels.coverage import Coverage
from weir.kernels.expressions import compile_expression
from weir.kernels.kernel import Tables, emitted, rows_table, table_rows
from weir.kernels.keys import KeyIndex, count_down, count_up, grown
from weir.kernels.rows import RowStore
from weir.kernels.time_queue import TimeQueue
from weir.plan.nodes import Join, Schema, schema

GROUP = 3  # the column of `Side.links` that holds the group


class JoinKeys:
    """Groups of equal keys on both sides; a group lives while rows of it are held."""

    def __init__(self) -> None:
        self._index = KeyIndex()
        self._members = np.zeros(0, dtype=np.int64)

    @property
    def capacity(self) -> int:
        return self._index.capacity

    def encode(self, batch: Batch, columns: Sequence[int]) -> Int64s:
        """Each row's group; −1 where a key is NULL."""
        keys = [batch.columns[i] for i in columns]
        if not any(k.null_count for k in keys):
            return self._index.encode(*hash_rows(keys, len(batch)))
        valid = np.ones(len(batch), dtype=np.bool_)
        for key in keys:
            valid &= np.asarray(key.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        groups = np.full(len(batch), -1, dtype=np.int64)
        first, second = hash_rows(keys, len(batch))
        groups[valid] = self._index.encode(first[valid], second[valid])
        return groups

    def joined(self, groups: Int64s) -> None:
        self._members = grown(self._members, self.capacity)
        count_up(groups, self._members)

    def left(self, groups: Int64s) -> None:
        """These rows are gone, one group each; groups without rows are forgotten."""
        self._index.release(count_down(groups, self._members))


class Side:
    """The held rows of one input, linked by group, with a queue of their ends.

    `links` has a row for each slot: the next and the previous slot of its group (−1 for none,
    next −2 when it is not linked), its end and its group, side by side because a walk reads
    them together. `head` is the first slot of each group.
    """

    def __init__(self, shape: Schema, keys: Sequence[int]) -> None:
        self.names = shape.names
        self.keys = tuple(keys)
        self.rows = RowStore(shape.types)
        self.ends = TimeQueue()
        self.links = np.full((0, 4), -2, dtype=np.int64)
        self.head = np.full(0, -1, dtype=np.int64)

    def add(self, batch: Batch, groups: Int64s) -> Int64s:
        slots = self.rows.add(batch)
        self.links = grown(self.links, self.rows.capacity, -2)
        _place(slots, batch.ve, groups, self.links)
        self.ends.add(batch.ve, slots)
        return slots

    def groups(self, slots: Int64s) -> Int64s:
        return self.links[slots, GROUP]

    def ended(self, cti: int) -> Int64s:
        """The slots of rows that end at or before this CTI, taken out of their lists."""
        _, slots = self.ends.pop(cti)
        unlink_all(slots, self.links, self.head)
        return slots

    def drop(self, slots: Int64s) -> None:
        self.rows.free(slots)


class JoinKernel:
    """See `kernel.Kernel` for the contract."""

    def __init__(self, node: Join) -> None:
        left, right = schema(node.left), schema(node.right)
        self._schema = schema(node)
        self._kind = node.kind
        self._keys = JoinKeys()
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
        # Without a condition, presence is all that SEMI and ANTI ask of the right side: of the
        # rows live at one instant the one that ends last stands for all.
        self._presence = node.kind in ("semi", "anti") and node.condition is None

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
        for side in (self._left, self._right):
            side.head = grown(side.head, self._keys.capacity, -1)
        return _meet(
            a, left.vs, self._left.links, self._left.head,
            b, right.vs, self._right.links, self._right.head, self._presence,
        )  # fmt: skip

    def _paired(self, left: Int64s, right: Int64s) -> Batch:
        """Pairs as rows of both sides' columns, valid while both are."""
        vs = np.maximum(self._left.rows.vs[left], self._right.rows.vs[right])
        ve = np.minimum(self._left.rows.ve[left], self._right.rows.ve[right])
        return Batch(vs, ve, self._left.rows.columns(left) + self._right.rows.columns(right))

    def _pieces(self, left: Int64s, right: Int64s, cti: int) -> list[tuple[Int64s, Batch]]:
        """The matched or unmatched pieces of tracked rows that became final."""
        if self._left_cover is None and self._right_cover is None:
            return []
        vs = np.maximum(self._left.rows.vs[left], self._right.rows.vs[right])
        ve = np.minimum(self._left.rows.ve[left], self._right.rows.ve[right])
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
            slots = side.ended(cti)
            if cover is not None:
                cover.ended(slots)
            self._keys.left(side.groups(slots))
            side.drop(slots)

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
        for name, side, cover in self._sides():
            batch, extra = table_rows(tables[name])
            slots = self._hold(side, cover, batch)
            if cover is not None:
                cover.restore(slots, extra)
            side.head = grown(side.head, self._keys.capacity, -1)
            only_last = self._presence and name == "right"
            link_all(slots, side.links, side.head, only_last)

    def _sides(self) -> tuple[tuple[str, Side, Coverage | None], ...]:
        return (
            ("left", self._left, self._left_cover),
            ("right", self._right, self._right_cover),
        )


@compiled
def _place(slots, ve, groups, links):  # type: ignore[no-untyped-def]
    for i in range(len(slots)):
        row = links[slots[i]]
        row[0], row[1], row[2], row[3] = -2, -1, ve[i], groups[i]


@compiled
def link(slot, group, links, head):  # type: ignore[no-untyped-def]
    """Put a slot in front of its group's list."""
    first = head[group]
    links[slot, 0] = first
    links[slot, 1] = -1
    if first >= 0:
        links[first, 1] = slot
    head[group] = slot


@compiled
def unlink(slot, group, links, head):  # type: ignore[no-untyped-def]
    """Take a linked slot out of its group's list."""
    following, previous = links[slot, 0], links[slot, 1]
    if previous >= 0:
        links[previous, 0] = following
    else:
        head[group] = following
    if following >= 0:
        links[following, 1] = previous
    links[slot, 0] = -2


@compiled
def unlink_all(slots, links, head):  # type: ignore[no-untyped-def]
    for slot in slots:
        if links[slot, 0] != -2:
            unlink(slot, links[slot, 3], links, head)


@compiled
def link_all(slots, links, head, only_last):  # type: ignore[no-untyped-def]
    """Link slots; with `only_last` just the one of each group that ends last."""
    for slot in slots:
        group = links[slot, 3]
        if group >= 0:
            rival = head[group]
            if only_last and rival >= 0:
                if links[rival, 2] >= links[slot, 2]:
                    continue
                unlink(rival, group, links, head)
            link(slot, group, links, head)


@compiled
def _meet(a, a_vs, a_links, a_head, b, b_vs, b_links, b_head, presence):  # type: ignore[no-untyped-def]
    """Walk both sides' new rows in order of vs; each meets the live rows of the other side."""
    left = np.empty(len(a) + len(b) + 16, dtype=np.int64)
    right = np.empty(len(a) + len(b) + 16, dtype=np.int64)
    count = i = j = 0
    while i < len(a) or j < len(b):
        from_left = i < len(a) and (j == len(b) or a_vs[i] <= b_vs[j])
        if from_left:
            slot, now, mine, my_head, theirs, their_head = a[i], a_vs[i], a_links, a_head, b_links, b_head
            i += 1
        else:
            slot, now, mine, my_head, theirs, their_head = b[j], b_vs[j], b_links, b_head, a_links, a_head
            j += 1
        group = mine[slot, 3]
        if group < 0:
            continue
        if presence and not from_left:
            rival = b_head[group]
            if rival >= 0:
                if b_links[rival, 2] >= b_links[slot, 2]:
                    continue
                unlink(rival, group, b_links, b_head)
        other = their_head[group]
        while other >= 0:
            after = theirs[other, 0]
            if theirs[other, 2] <= now:
                unlink(other, group, theirs, their_head)
            else:
                if count == len(left):
                    left = np.concatenate((left, np.empty_like(left)))
                    right = np.concatenate((right, np.empty_like(right)))
                left[count] = slot if from_left else other
                right[count] = other if from_left else slot
                count += 1
            other = after
        link(slot, group, mine, my_head)
    return left[:count], right[:count]
