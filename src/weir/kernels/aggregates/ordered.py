"""Aggregates that pick values by an order: MIN, MAX, FIRST, LAST, quantiles, COLLECT.

Each counted row is an *entry* of its pane: a node with a sort key (its value, or its number in the
order of arrival). It is in its group's tree while its pane is in the window. MIN, MAX, FIRST and
LAST keep only the best entry of a pane.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.hashing import binary_buffers
from weir.events.order_bytes import is_plain, plain_codes
from weir.events.python_lists import python_list
from weir.kernels.aggregates.exact import nearest
from weir.kernels.aggregates.forest import Forest, SortKeys
from weir.kernels.aggregates.lanes import counted_rows
from weir.kernels.aggregates.ordered_loops import best_rows
from weir.kernels.structures import treap_loops as treap
from weir.kernels.structures.keys import grown
from weir.kernels.structures.panes import Operations
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.sort_keys import byte_keys, canonical, from_bytes, from_plain
from weir.loops.arrow_memory import numbers_of
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema

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
_NO_NUMBERS = np.zeros(0, dtype=np.int64)
_NO_KEYS: SortKeys = (_NO_NUMBERS, _NO_NUMBERS, np.zeros(0, dtype=np.uint8))


class OrderedMeasure:
    """Computes one aggregate that picks values by their position in an order."""

    def __init__(self, aggregation: Aggregation, schema: Schema) -> None:
        self._type = aggregation.type
        self._function = aggregation.function
        self._args = [schema.index(name) for name in aggregation.args]
        self._filter = None if aggregation.filter is None else schema.index(aggregation.filter)
        self._by_arrival = aggregation.function in ("first", "last", "collect", "user")
        self._arg_types = [schema.types[i] for i in self._args]
        self._plain = not self._by_arrival and is_plain(self._arg_types[0])
        self._whole = self._by_arrival or pa.types.is_nested(self._arg_types[0])
        # An entry's number is its slot here. Its value comes from its key. Where the key is only
        # the first bytes of the value, the value comes from the binary column in front.
        self._has_bytes = not (self._plain or self._by_arrival)
        stored = self._arg_types if self._whole else []
        self._entries = RowStore([pa.binary(), *stored] if self._has_bytes else stored)
        self._query = _QUERIES[aggregation.function]
        self._single = aggregation.function in ("first", "last", "min", "max")
        # Whether panes enter trees before their windows are due. Panes of one entry gain nothing by
        # it, and the user's own code must run only when windows are due.
        self._early = not (self._single or self._function == "user")
        p = Fraction(Decimal(aggregation.params[0])) if aggregation.params else Fraction(0)
        self._p, self._q = p.numerator, p.denominator
        self._forest = Forest()
        self._mark = np.full(0, -1, dtype=np.int64)  # by pane: scratch, −1 between calls

    @property
    def state_rows(self) -> int:
        return len(self._entries) - self._forest.left

    def grow(self, panes: int, groups: int) -> None:
        self._forest.grow(panes, groups)
        self._mark = grown(self._mark, panes, -1)

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        # A user's aggregate sees NULLs; SQL's own skip them.
        skipped = None if self._function == "user" else self._args[0]
        counted = counted_rows(batch.columns, skipped, self._filter, len(batch))
        rows = np.flatnonzero(counted)
        index = pa.array(rows)
        columns = [batch.columns[i].take(index) for i in self._args]
        self._put(columns, panes[rows], groups[rows], arrivals[rows])

    def _put(
        self, columns: list[pa.Array], panes: Int64s, groups: Int64s, arrivals: Int64s
    ) -> None:
        self._tidy(len(panes))
        if self._by_arrival:
            keys, stored = arrivals, columns
        elif self._plain:
            keys, stored = plain_codes(columns[0]), []
        else:
            keys, whole = byte_keys(columns[0])
            stored = [whole]
            if self._whole:
                stored.append(canonical(self._arg_types[0])(columns[0]))
        if self._single:
            sign = 1 if self._query == treap.FIRST else -1
            rows, beaten = best_rows(
                panes,
                keys,
                *(_pieces(stored[0]) if self._has_bytes else _NO_KEYS),
                sign,
                self._forest.heads,
                self._forest.nodes.table,
                *self._sort_keys(),
                self._mark,
            )
            self._entries.free(beaten)
            index = pa.array(rows)
            keys, panes, groups = keys[rows], panes[rows], groups[rows]
            stored = [c.take(index) for c in stored]
        zeros = np.zeros(len(keys), dtype=np.int64)
        slots = self._entries.add(Batch(zeros, zeros, tuple(stored)))
        capacity = self._entries.capacity
        self._forest.add(slots, panes, groups, keys, capacity, self._sort_keys())

    def _tidy(self, rows: int) -> None:
        """Do some of the work that earlier steps left, in proportion to the rows of this one."""
        if self._early:
            self._forest.settle(self._sort_keys())
        self._forest.pay(2 * rows, self._sort_keys())
        self._entries.free(self._forest.collect(4 * rows))

    def _sort_keys(self) -> SortKeys:
        return self._entries.bytes_of(0) if self._has_bytes else _NO_KEYS

    def replay(self, operations: Operations) -> list[pa.Array]:
        query = (self._query, self._p, self._q)
        out, rests = self._forest.replay(operations, *query, self._sort_keys())
        if self._query == treap.CONT:
            return [self._interpolated(out, rests)]
        return [self._values(out[:, 0])]

    def replay_lists(self, operations: Operations) -> tuple[Int64s, tuple[pa.Array, ...]]:
        """Run the operations; return the counts of entries at each EMIT, and their columns.

        The columns of all EMITs are concatenated."""
        counts, entries = self._forest.replay_all(operations, self._sort_keys())
        return counts, self._entries.columns(entries)

    def _values(self, entries: Int64s) -> pa.Array:
        missing = entries < 0
        if self._plain:
            return from_plain(self._forest.keys(entries), missing, self._arg_types[0])
        if missing.any():
            held = self._entries.columns(entries[~missing])[-1]
            index = pa.array(np.cumsum(~missing) - 1, mask=missing)
            values = held.take(index)
        else:
            values = self._entries.columns(entries)[-1]
        return values if self._whole else from_bytes(values, self._arg_types[0])

    def _interpolated(self, out: Int64s, rests: Int64s) -> pa.Array:
        lower = python_list(self._values(out[:, 0]))
        upper = python_list(self._values(out[:, 1]))
        # Row by row: the exact value between two others is a fraction, rounded once.
        values = [
            None if a is None else _between(a, b, Fraction(rest, self._q))
            for a, b, rest in zip(lower, upper, rests.tolist(), strict=True)
        ]
        return pa.array(values, pa.float64())

    def drop(self, panes: Int64s) -> None:
        self._entries.free(self._forest.members(panes)[1])  # entries that were in no tree
        self._forest.forget(panes)

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        at, entries = self._forest.members(panes)
        if not self._by_arrival:
            return at, {"value": self._values(entries)}
        columns = {"arrival": pa.array(self._forest.keys(entries))}
        for i, column in enumerate(self._entries.columns(entries)):
            columns[f"value{i}"] = column
        return at, columns

    def restore(self, panes: Int64s, groups: Int64s, columns: dict[str, pa.Array]) -> None:
        if self._by_arrival:
            arrivals = numbers_of(columns.pop("arrival"))
        else:
            arrivals = np.zeros(len(panes), dtype=np.int64)
        self._put(list(columns.values()), panes, groups, arrivals)


class CollectMeasure(OrderedMeasure):
    """Computes COLLECT: the list of values in order of arrival; NULL if there are none."""

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


def _pieces(keys: pa.Array) -> SortKeys:
    """Return the sort keys of rows in the form that entries' keys are kept in."""
    offsets, data = binary_buffers(keys)
    wide = offsets.astype(np.int64)
    return wide[:-1], np.diff(wide), data


_INF = float("inf")


def _between_specials(a: float, b: float) -> float:
    # a·(1 − part) + b·part with 0 < part < 1: one infinity stays; two opposite ones or a NaN give
    # NaN.
    return a + b
