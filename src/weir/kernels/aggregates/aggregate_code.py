"""Calls the methods of a user's aggregate, and turns what they raise into failures.

`at` is the caller's number of an operation or a row; a failure carries it.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN
from weir.events.types import BINARY
from weir.kernels.aggregates.group_failures import OperationFailure
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import (
    check_not_interrupted,
    extra_calls,
    failing_line,
    guarded,
)
from weir.kernels.expressions.user_values import Misfit, converter, typed_array
from weir.plan.usercode.functions import AggregateFunction, describe

LIFETIME = ("vs", "ve")
UserRow = tuple[object, ...]
"""The arguments of a call, followed by the lifetime of their event for messages."""
_CHANGING = (list, dict, set, bytearray, deque, np.ndarray)


class AggregateCode:
    """An instance of the user's class, and the calls of its methods.

    `names` are the names of a `UserRow`'s columns.
    """

    def __init__(self, user: AggregateFunction, names: tuple[str, ...]) -> None:
        self._user, self._names = user, names
        make = user.implementation
        self._code = guarded(f"{user.name}.__init__", make, (), "its first call")
        # The user's code may see a row twice, and a result may be its state. So values that can
        # change are copied.
        self._copied = any(pa.types.is_nested(t) for t in user.args)
        self._freeze = converter(user.result) if _can_change(user.result) else None
        self._last_zero: object = None
        self._extra = extra_calls()

    def zero(self, at: int, row: UserRow | None = None) -> object:
        """Return a new state from the user's `zero`, for this row if there is one."""
        state = self._call("zero", at, (), row)
        if state is self._last_zero and isinstance(state, _CHANGING):
            why = f"it returns the same {type(state).__name__} again; it must make a new one"
            raise self.refused("zero", at, why, row)
        self._last_zero = state
        return state

    def take(self, method: str, at: int, state: object, row: UserRow) -> object:
        """Let the user's method add a row to the state or remove it."""
        values = row[: -len(LIFETIME)]
        values = deepcopy(values) if self._copied else values
        try:
            if self._extra:
                self._code.add(self._code.zero(), *deepcopy(values))
            return getattr(self._code, method)(state, *values)
        except BaseException as error:
            raise self._failure(method, at, error, row) from error

    def result(self, at: int, state: object) -> object:
        result = self._call("result", at, (state,))
        if self._freeze is None:
            return result
        try:
            return self._freeze(result)
        except Misfit as misfit:
            raise self.refused("result", at, f"it must return {misfit}") from None

    def typed(self, results: list[object], at: list[int]) -> pa.Array:
        """Convert results to their type; `at` has the operation of each result."""
        try:
            return typed_array(results, self._user.result)
        except RowFailure as failure:
            why = f"it must return {failure.why}"
            raise self.refused("result", at[failure.row], why) from failure.__cause__

    def refused(
        self, method: str, at: int, why: str, row: UserRow | None = None
    ) -> OperationFailure:
        """Return the failure of a method that returned something it must not return."""
        call = getattr(self._user.implementation, method)
        failed_at = failing_line(f"{self._user.name}.{method}", call, None)
        return OperationFailure(at, why, failed_at, self._event(row))

    def _call(
        self, method: str, at: int, arguments: tuple[object, ...], row: UserRow | None = None
    ) -> object:
        try:
            return getattr(self._code, method)(*arguments)
        except BaseException as error:
            raise self._failure(method, at, error, row) from error

    def _failure(
        self, method: str, at: int, error: BaseException, row: UserRow | None
    ) -> OperationFailure:
        call = getattr(self._user.implementation, method, None)
        check_not_interrupted(error, call)
        failed_at = failing_line(f"{self._user.name}.{method}", call, error)
        return OperationFailure(at, describe(error), failed_at, self._event(row))

    def _event(self, row: UserRow | None) -> dict[str, object] | None:
        if row is None:
            return None
        event = dict(zip(self._names, row, strict=True))
        return {**event, "ve": None} if event["ve"] == OPEN else event


def _can_change(dtype: pa.DataType) -> bool:
    """Tell whether the user's code could change a Python value of this type."""
    return bool(pa.types.is_nested(dtype) or dtype == BINARY)
