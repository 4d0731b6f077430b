"""The user's own aggregates: rows in order of arrival, folded by the user's `add`.

Every result folds its rows anew, which is right for any aggregate and costs the size of the
window. Python calls per row: the code is the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from weir.errors import OperatorFailed
from weir.kernels.ordered import OrderedMeasure
from weir.kernels.panes import Operations
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

    def replay(self, operations: Operations) -> list[pa.Array]:
        counts, columns = self.replay_lists(operations)
        values = [column.to_pylist() for column in columns]
        results, at = [], 0
        for count in counts.tolist():
            rows = list(zip(*(v[at : at + count] for v in values), strict=True)) if values else []
            results.append(self._fold(rows))
            at += count
        return [self._typed(results)]

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
