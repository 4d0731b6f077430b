"""The user's own aggregates fold rows in order of arrival by the user's `add`.

Every result folds its rows anew, which is right for any aggregate and costs the size of the
window. One that the user declares `exact` keeps a state for each group instead: rows are added
when they enter the window and removed when they leave. Python calls per row: the code is the
user's.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch, Int64s
from weir.events.types import BIGINT, BINARY
from weir.kernels.aggregates.group_failures import OperationFailure
from weir.kernels.aggregates.ordered import OrderedMeasure
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import (
    check_not_interrupted,
    extra_calls,
    failing_line,
    guarded,
    python_values,
)
from weir.kernels.expressions.user_values import Misfit, converter, typed_array
from weir.kernels.structures.keys import each_once
from weir.kernels.structures.panes import Operations
from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema
from weir.plan.user_code import describe

PaneRow = tuple[object, ...]
_LIFETIME = ("vs", "ve")
_CHANGING = (list, dict, set, bytearray, deque, np.ndarray)


class UserMeasure(OrderedMeasure):
    """A `UserMeasure` computes one of the user's own aggregates.

    An entry keeps the event's lifetime after the arguments, for messages.
    """

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
        # Rows may be shown to the user's code twice, results may be its states: what can change
        # is copied.
        self._copied = any(pa.types.is_nested(t) for t in self._user.args)
        self._freeze = converter(self._type) if _can_change(self._type) else None
        self._last_zero: object = None
        self._extra = extra_calls()

    def put(self, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s) -> None:
        columns = (*batch.columns, pa.array(batch.vs), pa.array(batch.ve))
        super().put(Batch(batch.vs, batch.ve, columns), panes, groups, arrivals)

    def replay(self, operations: Operations) -> list[pa.Array]:
        running = self._running if self._user.exact else self._folded
        try:
            results = running(operations)
        except RowFailure as failure:  # a value that Python has not
            raise self._refused("add", 0, failure.why) from None
        return [self._typed(results, operations)]

    def _folded(self, operations: Operations) -> list[object]:
        """Return the results at each EMIT, adding all rows of the window anew."""
        counts, columns = self.replay_lists(operations)
        rows = list(zip(*(python_values(column) for column in columns), strict=True))
        results: list[object] = []
        end = 0
        for at, count in zip(_emits(operations), counts.tolist(), strict=True):
            state = self._zero(at)
            start, end = end, end + count
            for row in rows[start:end]:
                state = self._take("add", at, state, row)
            results.append(self._result(at, state))
        return results

    def _running(self, operations: Operations) -> list[object]:
        """Return the results at each EMIT, adding rows to a group's state and removing them."""
        results = []
        changing = operations.panes[operations.kinds != EMIT]
        rows_of = self._rows_of(each_once(changing))
        steps = (operations.kinds.tolist(), operations.groups.tolist(), operations.panes.tolist())
        for at, (kind, group, pane) in enumerate(zip(*steps, strict=True)):
            if group not in self._states:
                self._states[group] = self._zero(at)
                self._rows_in[group] = 0
            state = self._states[group]
            if kind == EMIT:
                results.append(self._result(at, state))
                continue
            method = "add" if kind == ENTER else "remove"
            for row in rows_of[pane]:
                state = self._take(method, at, state, row)
            self._states[group] = state
            self._rows_in[group] += len(rows_of[pane]) if kind == ENTER else -len(rows_of[pane])
            if self._rows_in[group] == 0:
                del self._states[group], self._rows_in[group]
        return results

    def _rows_of(self, panes: Int64s) -> dict[int, list[PaneRow]]:
        """Return the values of each pane's rows, in order of arrival."""
        at, entries = self._forest.members(panes)
        order = np.lexsort((self._forest.keys(entries), at))
        columns = [python_values(c) for c in self._entries.columns(entries[order])]
        rows: dict[int, list[PaneRow]] = {pane: [] for pane in panes.tolist()}
        for index, values in zip(at[order].tolist(), zip(*columns, strict=True), strict=True):
            rows[int(panes[index])].append(values)
        return rows

    def _zero(self, at: int) -> object:
        state = self._call("zero", at)
        if state is self._last_zero and isinstance(state, _CHANGING):
            why = f"it returns the same {type(state).__name__} again; it must make a new one"
            raise self._refused("zero", at, why)
        self._last_zero = state
        return state

    def _result(self, at: int, state: object) -> object:
        result = self._call("result", at, state)
        if self._freeze is None:
            return result
        try:
            return self._freeze(result)
        except Misfit as misfit:
            raise self._refused("result", at, f"it must return {misfit}") from None

    def _call(self, method: str, at: int, *arguments: object) -> object:
        try:
            return getattr(self._code, method)(*arguments)
        except BaseException as error:
            raise self._failure(method, at, error) from error

    def _take(self, method: str, at: int, state: object, row: PaneRow) -> object:
        """Add a row to the state or remove it."""
        values = row[: -len(_LIFETIME)]
        values = deepcopy(values) if self._copied else values
        try:
            if self._extra:
                self._code.add(self._code.zero(), *deepcopy(values))
            return getattr(self._code, method)(state, *values)
        except BaseException as error:
            raise self._failure(method, at, error, row) from error

    def _failure(
        self, method: str, at: int, error: BaseException, row: PaneRow | None = None
    ) -> OperationFailure:
        call = getattr(self._user.implementation, method, None)
        check_not_interrupted(error, call)
        failed_at = failing_line(f"{self._user.name}.{method}", call, error)
        event = None if row is None else dict(zip(self._names, row, strict=True))
        if event is not None and event["ve"] == OPEN:
            event["ve"] = None
        return OperationFailure(at, describe(error), failed_at, event)

    def _refused(self, method: str, at: int, why: str) -> OperationFailure:
        call = getattr(self._user.implementation, method)
        return OperationFailure(at, why, failing_line(f"{self._user.name}.{method}", call, None))

    def _typed(self, results: list[object], operations: Operations) -> pa.Array:
        try:
            return typed_array(results, self._type)
        except RowFailure as failure:
            at = _emits(operations)[failure.row]
            why = f"it must return {failure.why}"
            raise self._refused("result", at, why) from failure.__cause__


def _can_change(dtype: pa.DataType) -> bool:
    """Tell whether code may later write into a Python value of this type."""
    return bool(pa.types.is_nested(dtype) or dtype == BINARY)


def _emits(operations: Operations) -> list[int]:
    emits: list[int] = np.flatnonzero(operations.kinds == EMIT).tolist()
    return emits
