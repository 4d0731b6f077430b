"""The user's own aggregates: rows in order of arrival, folded by the user's `add`.

Every result folds its rows anew, which is right for any aggregate and costs the size of the
window. One that the user declares `exact` keeps a state for each group instead: rows are added
when they enter the window and removed when they leave. Python calls per row: the code is the
user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed
from weir.events.batch import Int64s
from weir.kernels.keys import each_once
from weir.kernels.measures import chains_of
from weir.kernels.ordered import OrderedMeasure
from weir.kernels.panes import EMIT, ENTER, Operations
from weir.kernels.treap import KEY
from weir.kernels.user_calls import describe, failure_place
from weir.plan.nodes import Aggregation, Schema
from weir.plan.user_code import AggregateFunction

Result = TypeVar("Result")


class UserMeasure(OrderedMeasure):
    """See the module's docstring."""

    def __init__(self, aggregation: Aggregation, schema: Schema) -> None:
        super().__init__(aggregation, schema)
        assert aggregation.user is not None
        self._user = aggregation.user
        make = aggregation.user.implementation
        self._code = guarded(f"{self._user.name}.__init__", make, (), "(none)")
        self._states: dict[int, object] = {}  # by group, while rows of it are in the window
        self._rows_in: dict[int, int] = {}

    def replay(self, operations: Operations) -> list[pa.Array]:
        if self._user.exact:
            return [self._typed(self._running(operations))]
        counts, columns = self.replay_lists(operations)
        values = [column.to_pylist() for column in columns]
        results, at = [], 0
        for count in counts.tolist():
            rows = list(zip(*(v[at : at + count] for v in values), strict=True)) if values else []
            results.append(self._fold(rows))
            at += count
        return [self._typed(results)]

    def _running(self, operations: Operations) -> list[object]:
        """The results at each EMIT, by adding and removing."""
        name, results = self._user.name, []
        changing = operations.panes[operations.kinds != EMIT]
        rows_of = self._rows_of(each_once(changing))
        steps = (operations.kinds.tolist(), operations.groups.tolist(), operations.panes.tolist())
        for kind, group, pane in zip(*steps, strict=True):
            if group not in self._states:
                self._states[group] = guarded(f"{name}.zero", self._code.zero, (), "(none)")
                self._rows_in[group] = 0
            state = self._states[group]
            if kind == EMIT:
                result = guarded(f"{name}.result", self._code.result, (state,), "(a whole group)")
                results.append(result)
                continue
            method = "add" if kind == ENTER else "remove"
            for row in rows_of[pane]:
                state = guarded(f"{name}.{method}", getattr(self._code, method), (state, *row), row)
            self._states[group] = state
            self._rows_in[group] += len(rows_of[pane]) if kind == ENTER else -len(rows_of[pane])
            if self._rows_in[group] == 0:
                del self._states[group], self._rows_in[group]
        return results

    def _rows_of(self, panes: Int64s) -> dict[int, list[tuple[object, ...]]]:
        """The values of each pane's rows, in order of arrival."""
        at, entries = chains_of(panes, self._heads, self._following)
        order = np.lexsort((self._nodes[entries, KEY], at)) if len(entries) else entries
        columns = [c.to_pylist() for c in self._entries.columns(entries[order])]
        rows: dict[int, list[tuple[object, ...]]] = {pane: [] for pane in panes.tolist()}
        for place, values in zip(at[order].tolist(), zip(*columns, strict=True), strict=True):
            rows[int(panes[place])].append(values)
        return rows

    def _fold(self, rows: list[tuple[object, ...]]) -> object:
        name = self._user.name
        state = guarded(f"{name}.zero", self._code.zero, (), "(none)")
        for row in rows:
            state = guarded(f"{name}.add", self._code.add, (state, *row), row)
        return guarded(f"{name}.result", self._code.result, (state,), "(a whole group)")

    def _typed(self, results: list[object]) -> pa.Array:
        try:
            return pa.array(results, self._type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise _failure(self._user, self._code.result, error) from error


def _failure(user: AggregateFunction, call: Callable[..., object], error: Exception) -> Exception:
    code = getattr(call, "__code__", None)
    return OperatorFailed(
        function=f"{user.name}.result",
        file=code.co_filename if code else "?",
        line=code.co_firstlineno if code else 0,
        event="(a whole group)",
        cause=f"its result does not fit {user.result}: {error}",
    )


def guarded(
    name: str, call: Callable[..., Result], arguments: tuple[object, ...], event: object
) -> Result:
    """Call the user's code; what it raises becomes `OperatorFailed` with the place and event."""
    try:
        return call(*arguments)
    except Exception as error:
        place = failure_place(name, call, error)
        raise OperatorFailed(
            function=name, file=place.file, line=place.line, event=event, cause=describe(error)
        ) from error
