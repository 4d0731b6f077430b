"""The user's own aggregates: rows in order of arrival, folded by the user's `add`.

Every result folds its rows anew, which is right for any aggregate and costs the size of the
window. One that the user declares `exact` keeps a state for each group instead: rows are added
when they enter the window and removed when they leave. Python calls per row: the code is the
user's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch, Int64s
from weir.events.types import BIGINT
from weir.kernels.evaluation import RowFailure
from weir.kernels.group_failures import OperationFailure
from weir.kernels.keys import each_once
from weir.kernels.ordered import OrderedMeasure
from weir.kernels.panes import EMIT, ENTER, Operations
from weir.kernels.user_calls import describe, failure_place, guarded, typed_array
from weir.plan.nodes import Aggregation, Schema

Row = tuple[object, ...]
_LIFETIME = ("vs", "ve")


class UserMeasure(OrderedMeasure):
    """See the module's docstring. An entry keeps the event's lifetime after the arguments, for
    messages."""

    def __init__(self, aggregation: Aggregation, schema: Schema) -> None:
        self._names = (*aggregation.args, *_LIFETIME)
        lifetimes = tuple((name, BIGINT) for name in _LIFETIME)
        super().__init__(
            replace(aggregation, args=self._names), Schema(schema.columns + lifetimes, schema.time)
        )
        assert aggregation.user is not None
        self._user = aggregation.user
        make = aggregation.user.implementation
        self._code = guarded(f"{self._user.name}.__init__", make, (), "its first call")
        self._states: dict[int, object] = {}  # by group, while rows of it are in the window
        self._rows_in: dict[int, int] = {}

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        columns = (*batch.columns, pa.array(batch.vs), pa.array(batch.ve))
        super().put(Batch(batch.vs, batch.ve, columns), panes, groups, arrivals)

    def replay(self, operations: Operations) -> list[pa.Array]:
        running = self._running if self._user.exact else self._folded
        return [self._typed(running(operations), operations)]

    def _folded(self, operations: Operations) -> list[object]:
        """The results at each EMIT, by adding all rows anew."""
        counts, columns = self.replay_lists(operations)
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        results: list[object] = []
        end = 0
        for at, count in zip(_emits(operations), counts.tolist(), strict=True):
            state = self._call("zero", at)
            start, end = end, end + count
            for row in rows[start:end]:
                state = self._take("add", at, state, row)
            results.append(self._call("result", at, state))
        return results

    def _running(self, operations: Operations) -> list[object]:
        """The results at each EMIT, by adding and removing."""
        results = []
        changing = operations.panes[operations.kinds != EMIT]
        rows_of = self._rows_of(each_once(changing))
        steps = (operations.kinds.tolist(), operations.groups.tolist(), operations.panes.tolist())
        for at, (kind, group, pane) in enumerate(zip(*steps, strict=True)):
            if group not in self._states:
                self._states[group] = self._call("zero", at)
                self._rows_in[group] = 0
            state = self._states[group]
            if kind == EMIT:
                results.append(self._call("result", at, state))
                continue
            method = "add" if kind == ENTER else "remove"
            for row in rows_of[pane]:
                state = self._take(method, at, state, row)
            self._states[group] = state
            self._rows_in[group] += len(rows_of[pane]) if kind == ENTER else -len(rows_of[pane])
            if self._rows_in[group] == 0:
                del self._states[group], self._rows_in[group]
        return results

    def _rows_of(self, panes: Int64s) -> dict[int, list[Row]]:
        """The values of each pane's rows, in order of arrival."""
        at, entries = self._forest.members(panes)
        order = np.lexsort((self._forest.keys(entries), at))
        columns = [c.to_pylist() for c in self._entries.columns(entries[order])]
        rows: dict[int, list[Row]] = {pane: [] for pane in panes.tolist()}
        for place, values in zip(at[order].tolist(), zip(*columns, strict=True), strict=True):
            rows[int(panes[place])].append(values)
        return rows

    def _call(self, method: str, at: int, *arguments: object) -> object:
        call = getattr(self._code, method)
        try:
            return call(*arguments)
        except Exception as error:
            raise self._failure(method, at, error) from error

    def _take(self, method: str, at: int, state: object, row: Row) -> object:
        """Add a row to the state or remove it."""
        try:
            return getattr(self._code, method)(state, *row[: -len(_LIFETIME)])
        except Exception as error:
            raise self._failure(method, at, error, row) from error

    def _failure(
        self, method: str, at: int, error: Exception, row: Row | None = None
    ) -> OperationFailure:
        call = getattr(self._code, method, None)
        place = failure_place(f"{self._user.name}.{method}", call, error)
        event = None if row is None else dict(zip(self._names, row, strict=True))
        if event is not None and event["ve"] == OPEN:
            event["ve"] = None
        return OperationFailure(at, describe(error), place, event)

    def _typed(self, results: list[object], operations: Operations) -> pa.Array:
        try:
            return typed_array(results, self._type)
        except RowFailure as failure:
            place = failure_place(f"{self._user.name}.result", self._code.result, None)
            at = _emits(operations)[failure.row]
            raise OperationFailure(at, f"it must return {failure.why}", place) from None


def _emits(operations: Operations) -> list[int]:
    emits: list[int] = np.flatnonzero(operations.kinds == EMIT).tolist()
    return emits
