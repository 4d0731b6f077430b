"""Runs the user's own aggregates: folds rows in order of arrival with the user's `add`.

There are three ways, with different costs per result. Python is called for each row, since the code
is the user's.

- Every result folds its rows again (`UserMeasure`). This is right for any aggregate and costs the
  size of the window.
- An aggregate that the user declares `exact` keeps a state for each group: rows are added when they
  enter the window and removed when they leave.
- An aggregate that declares the type of its state keeps states and no rows (`FoldedMeasure`).

For the last, a group's line of positions (see `windows.py`) is cut into *spans*: stretches of
positions whose windows have had exactly the same rows, and so share one state. When a row comes, it
is added to every span of its own interval. Where the interval begins or ends inside a span, the
span is cut in two with a state each. Rows come in order of arrival, so every state has folded the
rows of its windows in that order. Folding all rows at the end would give the same.

So a window of points has one state, however many rows it has. A row whose lifetime meets a thousand
windows is added once while they all hold the same rows. A span is forgotten as soon as a pane
enters or leaves where the span ends: all its windows then have their results. After every call, a
state is replaced by what a snapshot would restore (`settler`), so a restart changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.types import BIGINT
from weir.kernels.aggregates.aggregate_code import LIFETIME, AggregateCode, UserRow
from weir.kernels.aggregates.group_failures import GroupFailure, OperationFailure
from weir.kernels.aggregates.lanes import counted_rows
from weir.kernels.aggregates.ordered import OrderedMeasure
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import python_rows, python_values
from weir.kernels.expressions.user_values import Misfit, settler, typed_array
from weir.kernels.structures.keys import each_once
from weir.kernels.structures.panes import Operations, Panes
from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.loops.arrow_memory import numbers_of
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema
from weir.plan.usercode.functions import FoldingAggregate


class UserMeasure(OrderedMeasure):
    """Computes one of the user's own aggregates from the rows of each window.

    An entry has the arguments and then the event's lifetime, for messages.
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
        except RowFailure as failure:  # a value that Python cannot represent
            raise self._code.refused("add", 0, failure.why) from None
        return [self._code.typed(results, _emits(operations))]

    def _folded(self, operations: Operations) -> list[object]:
        """Return the results at each EMIT by adding all rows of the window again."""
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
        """Return the results at each EMIT by adding rows to a group's state and removing them."""
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
        """Return the arguments of each pane's rows, in order of arrival."""
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


class _Span:
    """A stretch of positions with one state; `pane` is a pane that contains all of it."""

    __slots__ = ("end", "pane", "start", "state")

    def __init__(self, start: int, end: int, pane: int, state: object) -> None:
        self.start, self.end, self.pane, self.state = start, end, pane, state


_end_of = attrgetter("end")


class FoldedMeasure:
    """Computes one of the user's own aggregates by its declared state (see `Measure`).

    `wanted_from` returns the first position whose results are needed. Windows before it may lack
    rows, and the user's code must not see rows that are in no other window.
    """

    def __init__(
        self,
        aggregation: Aggregation,
        schema: Schema,
        table: Panes,
        wanted_from: Callable[[], int],
    ) -> None:
        assert isinstance(aggregation.user, FoldingAggregate)
        self._args = [schema.index(name) for name in aggregation.args]
        self._filter = None if aggregation.filter is None else schema.index(aggregation.filter)
        self._table, self._wanted_from = table, wanted_from
        self._code = AggregateCode(aggregation.user, (*aggregation.args, *LIFETIME))
        self._type = aggregation.user.state
        self._settle = settler(self._type)
        self._spans: dict[int, list[_Span]] = {}  # by group, in the order of positions
        self.state_rows = 0

    def grow(self, panes: int, groups: int) -> None:
        pass

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        counted = counted_rows(batch.columns, None, self._filter, len(batch))
        # The rest is part of a needed window, and so are all earlier rows that share its states:
        # starts only grow.
        rows = np.flatnonzero(counted & (self._table.end[panes] > self._wanted_from()))
        if not len(rows):
            return
        index = pa.array(rows)
        columns = [batch.columns[i].take(index) for i in self._args]
        columns += [pa.array(batch.vs[rows]), pa.array(batch.ve[rows])]
        try:
            self._fold(columns, panes[rows])
        except OperationFailure as failure:
            raise GroupFailure(
                int(groups[rows[failure.at]]),
                failure.why,
                user_code=failure.user_code,
                event=failure.event,
            ) from failure.__cause__

    def _fold(self, columns: Sequence[pa.Array], panes: Int64s) -> None:
        """Add each row to the states of its pane's positions."""
        current, spans = -1, list[_Span]()
        rows = zip(python_rows(columns), panes.tolist(), strict=True)
        try:
            for at, (row, pane) in enumerate(rows):
                if pane != current:
                    current, spans = pane, self._covering(at, pane, row)
                for span in spans:
                    state = self._code.take("add", at, span.state, row)
                    span.state = self._settled("add", at, state, row)
        except RowFailure as failure:  # a value that Python cannot represent
            raise self._code.refused("add", failure.row, failure.why) from None

    def _covering(self, at: int, pane: int, row: UserRow) -> list[_Span]:
        """Return the spans that make up a pane; cut and create spans where needed."""
        start, end = int(self._table.start[pane]), int(self._table.end[pane])
        spans = self._spans.setdefault(int(self._table.group[pane]), [])
        before = len(spans)
        first = bisect_right(spans, start, key=_end_of)
        if first < len(spans) and spans[first].start < start:
            self._cut(spans, first, start)
            first += 1
        last = first
        while start < end:
            following = spans[last] if last < len(spans) else None
            if following is None or following.start > start:
                until = end if following is None else min(end, following.start)
                state = self._settled("zero", at, self._code.zero(at, row), row)
                spans.insert(last, _Span(start, until, pane, state))
            elif following.end > end:
                self._cut(spans, last, end)
            start = spans[last].end
            last += 1
        self.state_rows += len(spans) - before
        return spans[first:last]

    def _cut(self, spans: list[_Span], index: int, position: int) -> None:
        """Cut a span in two."""
        span = spans[index]
        rest = _Span(position, span.end, span.pane, self._settle(span.state))
        span.end = position
        spans.insert(index + 1, rest)

    def _settled(self, method: str, at: int, state: object, row: UserRow | None) -> object:
        try:
            return self._settle(state)
        except Misfit as misfit:
            why = f"its state must be {misfit}"
            raise self._code.refused(method, at, why, row) from misfit.__cause__

    def replay(self, operations: Operations) -> list[pa.Array]:
        results: list[object] = []
        emits: list[int] = []
        entering = operations.kinds == ENTER
        panes = operations.panes
        edges = np.where(entering, self._table.start[panes], self._table.end[panes])
        steps = zip(
            operations.kinds.tolist(), operations.groups.tolist(), edges.tolist(), strict=True
        )
        positions = iter(operations.positions.tolist())
        for at, (kind, group, edge) in enumerate(steps):
            if kind == EMIT:
                results.append(self._result(at, group, next(positions)))
                emits.append(at)
            else:
                self._forget_before(group, edge)
        return [self._code.typed(results, emits)]

    def _result(self, at: int, group: int, position: int) -> object:
        spans = self._spans.get(group, [])
        index = bisect_right(spans, position, key=_end_of)
        if index < len(spans) and spans[index].start <= position:
            # A copy: the user's code may change it, and the span may be read again.
            return self._code.result(at, self._settle(spans[index].state))
        return self._code.result(at, self._settled("zero", at, self._code.zero(at), None))

    def _forget_before(self, group: int, position: int) -> None:
        """Forget the group's spans that end at this position or before it."""
        spans = self._spans.get(group)
        if spans is None:
            return
        gone = bisect_right(spans, position, key=_end_of)
        del spans[:gone]
        self.state_rows -= gone
        if not spans:
            del self._spans[group]

    def drop(self, panes: Int64s) -> None:
        pass  # the spans of a pane are forgotten when it leaves

    def values(self, panes: Int64s) -> tuple[Int64s, dict[str, pa.Array]]:
        spans = [span for of_group in self._spans.values() for span in of_group]
        index = {pane: at for at, pane in enumerate(panes.tolist())}
        at = np.array([index[span.pane] for span in spans], dtype=np.int64)
        return at, {
            "from": pa.array([span.start for span in spans], pa.int64()),
            "to": pa.array([span.end for span in spans], pa.int64()),
            "state": typed_array([span.state for span in spans], self._type),
        }

    def restore(self, panes: Int64s, groups: Int64s, columns: dict[str, pa.Array]) -> None:
        starts, ends = numbers_of(columns["from"]), numbers_of(columns["to"])
        order = np.lexsort((starts, groups))
        states = python_values(columns["state"].take(pa.array(order)))
        numbers = (a[order].tolist() for a in (groups, starts, ends, panes))
        for group, start, end, pane, state in zip(*numbers, states, strict=True):
            self._spans.setdefault(group, []).append(_Span(start, end, pane, state))
        self.state_rows += len(states)
