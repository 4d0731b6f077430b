"""Keeps all counts and sums of an aggregation in one matrix of int64 lanes.

Contract
1. Lane 0 counts rows. Aggregates over the same column and filter share one moment. A column may
   contain states (`states.py`) instead of values; then they are merged.
2. `encode` returns each row's lanes. When a moment had to widen, it also returns where each old
   lane is now, and the caller moves the lanes that it keeps (`relaid`).
3. Adding rows of the matrix adds the rows that they stand for; subtracting removes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s
from weir.kernels.aggregates.moments import Moment, make_moment
from weir.kernels.aggregates.states import MergedMoment, pack
from weir.kernels.expressions.evaluation import Mask, RowFailure
from weir.kernels.structures.rows import valid_mask
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema

_SQUARES = frozenset({"stddev", "variance"})
_SUMS = frozenset({"sum", "avg", "moments"}) | _SQUARES
ADDITIVE = frozenset({"count_star", "count"}) | _SUMS


@dataclass(frozen=True, slots=True)
class _Column:
    """The column and the filter of a moment.

    The moment counts the column's rows that pass the filter."""

    arg: int | None
    filter: int | None


_ALL_ROWS = _Column(None, None)
"""The column of lane 0: a COUNT(*) without a filter needs no moment of its own."""


class Lanes:
    """Converts an operator's rows to int64 lanes, and lanes to results."""

    def __init__(self, aggregates: Sequence[Aggregation], schema: Schema) -> None:
        self._moments: dict[_Column, Moment] = {}
        self._results: list[tuple[str, _Column, pa.DataType]] = []
        columns = [self._column(a, schema) for a in aggregates]
        summed = {c for a, c in zip(aggregates, columns, strict=True) if a.function in _SUMS}
        squared = {c for a, c in zip(aggregates, columns, strict=True) if _squares(a)}
        for aggregation, column in zip(aggregates, columns, strict=True):
            if column not in self._moments and column != _ALL_ROWS:
                dtype = None
                if column in summed and column.arg is not None:
                    dtype = schema.types[column.arg]
                moment = make_moment(aggregation.of or dtype, column in squared)
                merged = aggregation.of is not None
                self._moments[column] = MergedMoment(moment) if merged else moment
            function = "count" if aggregation.function == "count_star" else aggregation.function
            self._results.append((function, column, aggregation))

    @staticmethod
    def _column(aggregation: Aggregation, schema: Schema) -> _Column:
        counts_rows = aggregation.function == "count_star"
        return _Column(
            None if counts_rows else schema.index(aggregation.args[0]),
            None if aggregation.filter is None else schema.index(aggregation.filter),
        )

    @property
    def names(self) -> list[str]:
        """Return the stable name of each lane."""
        moments = enumerate(self._moments.values())
        return ["rows", *(f"m{i}.{name}" for i, moment in moments for name in moment.lane_names)]

    @property
    def width(self) -> int:
        return 1 + sum(len(m.lane_names) for m in self._moments.values())

    def encode(self, columns: Sequence[pa.Array], length: int) -> tuple[Int64s, Int64s | None]:
        """Return each row's lanes and, if old lanes moved, where each of them is now."""
        before = self.names
        counted = {c: counted_rows(columns, c.arg, c.filter, length) for c in self._moments}
        changed = False
        for c, moment in self._moments.items():
            changed |= moment.fit(None if c.arg is None else columns[c.arg], counted[c])
        matrix = np.zeros((length, self.width), dtype=np.int64)
        matrix[:, 0] = 1
        at = 1
        for c, moment in self._moments.items():
            moment.encode(None if c.arg is None else columns[c.arg], counted[c], matrix, at)
            at += len(moment.lane_names)
        return matrix, self._moved(before) if changed else None

    def _moved(self, before: list[str]) -> Int64s:
        now = {name: at for at, name in enumerate(self.names)}
        return np.array([now[name] for name in before], dtype=np.int64)

    def results(self, matrix: Int64s) -> list[pa.Array]:
        """Return one column for each aggregate, in the order of the aggregates."""
        starts: dict[_Column, int] = {}
        at = 1
        for column, moment in self._moments.items():
            starts[column] = at
            at += len(moment.lane_names)
        columns = []
        for function, column, aggregation in self._results:
            if column == _ALL_ROWS:
                columns.append(pa.array(np.ascontiguousarray(matrix[:, 0])))
                continue
            moment = self._moments[column]
            names = moment.lane_names
            lanes = matrix[:, starts[column] : starts[column] + len(names)]
            if function == "moments":
                columns.append(pack(lanes, names))
                continue
            try:
                columns.append(moment.result(function, lanes, aggregation.type))
            except RowFailure as failure:
                failure.place = aggregation.position
                raise
        return columns

    def load(self, names: Sequence[str]) -> None:
        """Switch to the lanes of a snapshot."""
        for i, moment in enumerate(self._moments.values()):
            prefix = f"m{i}."
            moment.load([n.removeprefix(prefix) for n in names if n.startswith(prefix)])


def _squares(aggregation: Aggregation) -> bool:
    return aggregation.function in _SQUARES or "squares" in aggregation.params


def counted_rows(
    columns: Sequence[pa.Array], arg: int | None, filter_: int | None, length: int
) -> Mask:
    """Return the rows that an aggregate counts: its argument is not NULL and its filter is true."""
    counted = np.ones(length, dtype=np.bool_) if arg is None else valid_mask(columns[arg])
    if filter_ is not None:
        kept = columns[filter_].fill_null(False).to_numpy(zero_copy_only=False)
        counted = counted & np.asarray(kept, dtype=np.bool_)
    return counted


def relaid(matrix: Int64s, moved: Int64s, width: int) -> Int64s:
    """Return the matrix with each old lane in its new place and zeros in the new lanes."""
    wider = np.zeros((len(matrix), width), dtype=np.int64)
    wider[:, moved] = matrix
    return wider
