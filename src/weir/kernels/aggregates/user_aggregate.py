"""Runs the user's own aggregates: folds rows in order of arrival with the user's `add`.

Every result folds its rows again, which is right for any aggregate and costs the size of the
window. One that the user declares `exact` keeps a state for each group instead: rows are added
when they enter the window and removed when they leave. One that declares the type of its state
keeps no rows at all (`folded_aggregate.py`). Python calls per row: the code is the user's.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.types import BIGINT
from weir.kernels.aggregates.aggregate_code import LIFETIME, AggregateCode, UserRow
from weir.kernels.aggregates.ordered import OrderedMeasure
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import python_rows
from weir.kernels.structures.keys import each_once
from weir.kernels.structures.panes import Operations
from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema


class UserMeasure(OrderedMeasure):
    """A `UserMeasure` computes one of the user's own aggregates.

    An entry keeps the event's lifetime after the arguments, for messages.
    """

    def __init__(self, aggregation: Aggregation, schema: Schema) -> None:
        names = (*aggregation.args, *LIFETIME)
        lifetimes = tuple((name, BIGINT) for name in LIFETIME)
        super().__init__(
            replace(aggregation, args=names), Schema(schema.columns + lifetimes, schema.time)
        )
        assert aggregation.user is not None
        self._exact = aggregation.user.exact
        self._code = AggregateCode(aggregation.user, names)
        self._states: dict[int, object] = {}  # by group, while rows of it are in the window
        self._rows_in: dict[int, int] = {}

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        columns = (*batch.columns, pa.array(batch.vs), pa.array(batch.ve))
        super().put(Batch(batch.vs, batch.ve, columns), panes, groups, arrivals)

    def replay(self, operations: Operations) -> list[pa.Array]:
        running = self._running if self._exact else self._folded
        try:
            results = running(operations)
        except RowFailure as failure:  # a value that Python has not
            raise self._code.refused("add", 0, failure.why) from None
        return [self._code.typed(results, _emits(operations))]

    def _folded(self, operations: Operations) -> list[object]:
        """Return the results at each EMIT, adding all rows of the window again."""
        counts, columns = self.replay_lists(operations)
        rows = python_rows(columns)
        results: list[object] = []
        for at, count in zip(_emits(operations), counts.tolist(), strict=True):
            state = self._code.zero(at)
            for row in islice(rows, count):
                state = self._code.take("add", at, state, row)
            results.append(self._code.result(at, state))
        return results

    def _running(self, operations: Operations) -> list[object]:
        """Return the results at each EMIT, adding rows to a group's state and removing them."""
        results = []
        changing = operations.panes[operations.kinds != EMIT]
        rows_of = self._rows_of(each_once(changing))
        steps = (operations.kinds.tolist(), operations.groups.tolist(), operations.panes.tolist())
        for at, (kind, group, pane) in enumerate(zip(*steps, strict=True)):
            if group not in self._states:
                self._states[group] = self._code.zero(at)
                self._rows_in[group] = 0
            state = self._states[group]
            if kind == EMIT:
                results.append(self._code.result(at, state))
                continue
            method = "add" if kind == ENTER else "remove"
            for row in rows_of[pane]:
                state = self._code.take(method, at, state, row)
            self._states[group] = state
            self._rows_in[group] += len(rows_of[pane]) if kind == ENTER else -len(rows_of[pane])
            if self._rows_in[group] == 0:
                del self._states[group], self._rows_in[group]
        return results

    def _rows_of(self, panes: Int64s) -> dict[int, list[UserRow]]:
        """Return the values of each pane's rows, in order of arrival."""
        at, entries = self._forest.members(panes)
        order = np.lexsort((self._forest.keys(entries), at))
        values = python_rows(self._entries.columns(entries[order]))
        rows: dict[int, list[UserRow]] = {pane: [] for pane in panes.tolist()}
        for index, row in zip(at[order].tolist(), values, strict=True):
            rows[int(panes[index])].append(row)
        return rows


def _emits(operations: Operations) -> list[int]:
    emits: list[int] = np.flatnonzero(operations.kinds == EMIT).tolist()
    return emits
