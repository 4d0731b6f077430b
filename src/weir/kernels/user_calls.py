"""Calls of the user's own code.

What a scalar function raises, and a result of another type than it declares, is a `RowFailure`
with the place in the user's code. A vectorised function that fails on many rows is asked again for
parts of them, so that the failure names one event.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TypeVar

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed
from weir.events.types import type_name
from weir.kernels.evaluation import RowFailure, UserCode
from weir.plan.user_code import ScalarFunction

UserFunction = Callable[..., pa.Array]
"""Takes the number of rows, then an array for each argument."""
Result = TypeVar("Result")
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def build_user_call(function: ScalarFunction) -> UserFunction:
    # A function of nothing gets no arrays that could tell it how many values to make.
    if function.vectorised and function.args:
        return _vectorised(function)
    return _row_by_row(function)


def failure_place(name: str, function: object, error: BaseException | None) -> UserCode:
    """The line in the user's file where it failed; where the function is defined for None."""
    code = _code_of(function)
    file = code.co_filename if code is not None else "<built-in>"
    line = code.co_firstlineno if code is not None else 0
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    for frame in reversed(frames):
        if frame.filename == file and frame.lineno is not None:
            return UserCode(name, file, frame.lineno)
    return UserCode(name, file, line)


def _code_of(function: object) -> CodeType | None:
    # A decorated function is looked through; a class runs its __init__, a callable object its
    # __call__.
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if not hasattr(function, "__code__"):
        function = type(function).__dict__.get("__call__")
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


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


def typed_array(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    """The values as an array; `RowFailure` ("BIGINT, not 'x'") for the first that does not fit."""
    try:
        return pa.array(values, dtype)
    except _MISFITS:
        row = next(i for i, v in enumerate(values) if not _fits(v, dtype))
        raise RowFailure(row, f"{type_name(dtype)}, not {values[row]!r}") from None


def _fits(value: object, dtype: pa.DataType) -> bool:
    try:
        pa.array([value], dtype)
    except _MISFITS:
        return False
    return True


def _row_by_row(function: ScalarFunction) -> UserFunction:
    call = function.function

    def run(length: int, *args: pa.Array) -> pa.Array:
        results: list[object] = []
        try:
            rows = zip(*(a.to_pylist() for a in args), strict=True) if args else [()] * length
            for values in rows:
                results.append(call(*values))
        except Exception as error:
            place = failure_place(function.name, call, error)
            raise RowFailure(len(results), describe(error), place) from error
        try:
            return typed_array(results, function.result)
        except RowFailure as failure:
            raise _wrong_type(function, failure.row, failure.why) from None

    return run


def _wrong_type(function: ScalarFunction, row: int, why: str) -> RowFailure:
    place = failure_place(function.name, function.function, None)
    return RowFailure(row, f"it must return {why}", place)


def _vectorised(function: ScalarFunction) -> UserFunction:
    call = function.function

    def run(length: int, *args: pa.Array) -> pa.Array:
        if not length:
            return pa.nulls(0, function.result)
        try:
            result = call(*args)
        except Exception as error:
            row = _first_failing(call, args)
            place = failure_place(function.name, call, error)
            raise RowFailure(row, describe(error), place) from error
        return _checked(function, result, length)

    return run


def _checked(function: ScalarFunction, result: object, length: int) -> pa.Array:
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    elif isinstance(result, np.ndarray):
        result = pa.array(result)
    if not isinstance(result, pa.Array) or result.type != function.result:
        got = type_name(result.type) if isinstance(result, pa.Array) else type(result).__name__
        raise _wrong_type(function, 0, f"{type_name(function.result)}, not {got}")
    if len(result) != length:
        raise _wrong_type(
            function, 0, f"an array as long, not {len(result)} values for {length} rows"
        )
    return result


def _first_failing(call: Callable[..., object], args: Sequence[pa.Array]) -> int:
    """The first row on which the function fails alone or with those before it."""
    low, high = 0, len(args[0])  # fails on the first `high` rows, not on the first `low`
    while high - low > 1:
        middle = (low + high) // 2
        try:
            call(*(a.slice(0, middle) for a in args))
        except Exception:  # looked for, not swallowed: the caller raises the first one
            high = middle
        else:
            low = middle
    return low
