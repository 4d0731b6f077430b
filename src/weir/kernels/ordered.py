"""Aggregates that ask for places in an order: MIN, MAX, FIRST, LAST, quantiles, COLLECT.

A row that counts is an *entry* of its pane: a node with a sort key (its value, or its place in
the order of arrival) that is in its group's tree while its pane is in the window. MIN, MAX,
FIRST and LAST keep only the best entry of a pane.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.compiled import compiled
from weir.kernels import treap
from weir.kernels.exact import nearest
from weir.kernels.keys import grown
from weir.kernels.lanes import counted_rows
from weir.kernels.measures import chain_members, chains_of
from weir.kernels.panes import Operations, Panes
from weir.kernels.rows import RowStore
from weir.kernels.sort_keys import byte_keys, from_bytes, from_plain, is_plain, plain_keys
from weir.plan.nodes import Aggregation, Schema

_QUERIES = {
    "min": treap.FIRST,
    "max": treap.LAST,
    "first": treap.FIRST,
    "last": treap.LAST,
    "quantile_disc": treap.DISC,
    "quantile_cont": treap.CONT,
    "collect": treap.ALL,
    "user": treap.ALL,
}
ORDERED = frozenset(_QUERIES) - {"user"}
_NO_NUMBERS = np.zeros(0, dtype=np.int64)
_NO_BYTES = np.zeros(0, dtype=np.uint8)


class OrderedMeasure:
    """One ordered aggregate."""

    def __init__(self, aggregation: Aggregation, schema: Schema) -> None:
        self._type = aggregation.type
        self._function = aggregation.function
        self._args = [schema.index(name) for name in aggregation.args]
        self._filter = None if aggregation.filter is None else schema.index(aggregation.filter)
        self._by_arrival = aggregation.function in ("first", "last", "collect", "user")
        self._arg_types = [schema.types[i] for i in self._args]
        self._plain = not self._by_arrival and is_plain(self._arg_types[0])
        # An entry's number is its slot here; plain keys need no other copy of the value.
        stored = self._arg_types if self._by_arrival else [] if self._plain else [pa.binary()]
        self._entries = RowStore(stored)
        self._query = _QUERIES[aggregation.function]
        single = aggregation.function in ("first", "last", "min", "max")
        self._best_only = single and (self._plain or self._by_arrival)
        p = Fraction(Decimal(aggregation.params[0])) if aggregation.params else Fraction(0)
        self._p, self._q = p.numerator, p.denominator
        self._nodes = np.zeros((0, treap.FIELDS), dtype=np.int64)
        self._following = np.full(0, -1, dtype=np.int64)
        self._heads = np.full(0, -1, dtype=np.int64)
        self._roots = np.full(0, -1, dtype=np.int64)
        self._mark = np.full(0, -1, dtype=np.int64)  # by pane: scratch, −1 between calls

    @property
    def state_rows(self) -> int:
        return len(self._entries)

    def grow(self, panes: int, groups: int) -> None:
        self._heads = grown(self._heads, panes, -1)
        self._mark = grown(self._mark, panes, -1)
        self._roots = grown(self._roots, groups, -1)

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        # A user's aggregate sees NULLs; SQL's own skip them.
        skipped = None if self._function == "user" else self._args[0]
        counted = counted_rows(batch.columns, skipped, self._filter, len(batch))
        rows = np.flatnonzero(counted)
        index = pa.array(rows)
        columns = [batch.columns[i].take(index) for i in self._args]
        self._put(columns, panes[rows], arrivals[rows])

    def _put(self, columns: list[pa.Array], panes: Int64s, arrivals: Int64s) -> None:
        if self._by_arrival:
            keys, stored = arrivals, columns
        elif self._plain:
            keys, stored = plain_keys(columns[0]), []
        else:
            keys, whole = byte_keys(columns[0])
            stored = [whole]
        if self._best_only:
            sign = 1 if self._query == treap.FIRST else -1
            rows, beaten = _best_rows(panes, keys, sign, self._heads, self._nodes, self._mark)
            self._entries.free(beaten)
            index = pa.array(rows)
            keys, panes = keys[rows], panes[rows]
            stored = [c.take(index) for c in stored]
        zeros = np.zeros(len(keys), dtype=np.int64)
        slots = self._entries.add(Batch(zeros, zeros, tuple(stored)))
        self._nodes = grown(self._nodes, self._entries.capacity)
        self._following = grown(self._following, self._entries.capacity, -1)
        _link(slots, panes, keys, self._nodes, self._following, self._heads)

    def _sort_keys(self) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
        if self._plain or self._by_arrival:
            return _NO_NUMBERS, _NO_NUMBERS, _NO_BYTES
        return self._entries.bytes_of(0)

    def replay(self, operations: Operations) -> list[pa.Array]:
        out = np.empty((operations.emits, 2), dtype=np.int64)
        rests = np.zeros(operations.emits, dtype=np.int64)
        treap.replay(
            operations.kinds, operations.groups, operations.panes, self._heads, self._following,
            self._nodes, self._roots, self._query, self._p, self._q, *self._sort_keys(),
            out, rests,
        )  # fmt: skip
        if self._query == treap.CONT:
            return [self._interpolated(out, rests)]
        return [self._values(out[:, 0])]

    def replay_lists(self, operations: Operations) -> tuple[Int64s, tuple[pa.Array, ...]]:
        """At each EMIT all entries in order: how many, and their columns end to end."""
        counts = np.empty(operations.emits, dtype=np.int64)
        entries = treap.replay_all(
            operations.kinds, operations.groups, operations.panes, self._heads, self._following,
            self._nodes, self._roots, *self._sort_keys(), counts,
        )  # fmt: skip
        return counts, self._entries.columns(entries)

    def _values(self, entries: Int64s) -> pa.Array:
        missing = entries < 0
        if self._plain:
            keys = self._nodes[entries, treap.KEY] if len(self._nodes) else entries * 0
            return from_plain(keys, missing, self._arg_types[0])
        if missing.any():
            held = self._entries.columns(entries[~missing])[0]
            index = pa.array(np.cumsum(~missing) - 1, mask=missing)
            values = held.take(index)
        else:
            values = self._entries.columns(entries)[0]
        return values if self._by_arrival else from_bytes(values, self._arg_types[0])

    def _interpolated(self, out: Int64s, rests: Int64s) -> pa.Array:
        lower = self._values(out[:, 0]).to_pylist()
        upper = self._values(out[:, 1]).to_pylist()
        # Row by row: an exact value between two others is a fraction, rounded once.
        values = [
            None if a is None else _between(a, b, Fraction(rest, self._q))
            for a, b, rest in zip(lower, upper, rests.tolist(), strict=True)
        ]
        return pa.array(values, pa.float64())

    def drop(self, panes: Int64s) -> None:
        entries = chain_members(panes, self._heads, self._following)
        self._entries.free(entries)
        self._heads[panes] = -1

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        at, entries = chains_of(panes, self._heads, self._following)
        if not self._by_arrival:
            return at, {"value": self._values(entries)}
        keys = self._nodes[entries, treap.KEY] if len(self._nodes) else entries
        columns = {"arrival": pa.array(keys)}
        for i, column in enumerate(self._entries.columns(entries)):
            columns[f"value{i}"] = column
        return at, columns

    def restore(self, table: Panes, panes: Int64s, columns: dict[str, pa.Array]) -> None:
        if self._by_arrival:
            arrivals = np.asarray(columns.pop("arrival").to_numpy(zero_copy_only=False), np.int64)
        else:
            arrivals = np.zeros(len(panes), dtype=np.int64)
        self._put(list(columns.values()), panes, arrivals)


class CollectMeasure(OrderedMeasure):
    """COLLECT: the values in order of arrival, as a list; NULL over none."""

    def replay(self, operations: Operations) -> list[pa.Array]:
        counts, columns = self.replay_lists(operations)
        offsets = np.zeros(len(counts) + 1, dtype=np.int32)
        np.cumsum(counts, out=offsets[1:])
        mask = pa.array(counts == 0)
        return [pa.ListArray.from_arrays(pa.array(offsets), columns[0], self._type, mask=mask)]


def _between(a: float | int | Decimal, b: float | int | Decimal, part: Fraction) -> float:
    if part == 0 or a == b:
        return float(a)
    special = [x for x in (a, b) if isinstance(x, float) and (x != x or x in (_INF, -_INF))]
    if special:
        return _between_specials(float(a), float(b))
    low, high = Fraction(a), Fraction(b)
    return nearest(low + (high - low) * part)


_INF = float("inf")


def _between_specials(a: float, b: float) -> float:
    # a·(1 − part) + b·part with 0 < part < 1: one infinity wins, two of them or a NaN are NaN.
    return a + b


@compiled
def _best_rows(panes, keys, sign, heads, nodes, mark):  # type: ignore[no-untyped-def]
    """The best row of each pane that beats what the pane has, and the entries so beaten."""
    rows = np.empty(len(panes), dtype=np.int64)
    count = 0
    for row in range(len(panes)):
        at = mark[panes[row]]
        if at < 0:
            mark[panes[row]] = count
            rows[count] = row
            count += 1
        elif (keys[row] < keys[rows[at]]) if sign > 0 else (keys[row] > keys[rows[at]]):
            rows[at] = row
    beaten = np.empty(count, dtype=np.int64)
    kept = lost = 0
    for i in range(count):
        row = rows[i]
        mark[panes[row]] = -1
        entry = heads[panes[row]]
        if entry >= 0:
            better = keys[row] < nodes[entry, 0] if sign > 0 else keys[row] > nodes[entry, 0]
            if not better:
                continue
            beaten[lost] = entry
            lost += 1
            heads[panes[row]] = -1
        rows[kept] = row
        kept += 1
    return rows[:kept], beaten[:lost]


@compiled
def _link(slots, panes, keys, nodes, following, heads):  # type: ignore[no-untyped-def]
    for i in range(len(slots)):
        node = slots[i]
        nodes[node, 0] = keys[i]
        nodes[node, 1] = -1
        nodes[node, 2] = -1
        nodes[node, 3] = 1
        following[node] = heads[panes[i]]
        heads[panes[i]] = node
