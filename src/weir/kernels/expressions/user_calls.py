"""Calls the user's own functions, and turns what they raise into failures.

If a scalar function raises, or returns a result of another type than it declares, that becomes a
`RowFailure` with the line of the user's code. If a vectorised function fails, it is called again
for parts of the rows until the failure can name one event.

Every exception that leaves the user's code is its failure, even `SystemExit`. Only Ctrl-C passes:
it may be pressed while the user's code runs.

With WEIR_EXTRA_CALLS in the environment, as in the second run of `--check`, functions are also
called where the result is not needed; this must not change any answer.
"""

from __future__ import annotations

import linecache
import math
import opcode
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import CodeType
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import weir
from weir.errors import OperatorFailed, ProgramPlace
from weir.events.python_lists import python_list, slices
from weir.events.types import DOUBLE, type_name
from weir.events.user_copies import copier
from weir.kernels.expressions.evaluation import RowFailure, UserCode, shown_value
from weir.kernels.expressions.user_values import shown, typed_array
from weir.plan.usercode.functions import ScalarFunction, describe
from weir.plan.usercode.made_functions import MadeFunction, RowLoop

RunCall = Callable[..., pa.Array]
"""Takes the count of rows, then an array for each argument."""
_Result = TypeVar("_Result")

_WEIR = os.path.dirname(weir.__file__) + os.sep
_RAISE = opcode.opmap["RAISE_VARARGS"]


def extra_calls() -> bool:
    """Tell whether this process calls functions more often than their results are needed."""
    return "WEIR_EXTRA_CALLS" in os.environ


def build_user_call(function: ScalarFunction) -> RunCall:
    # A function without arguments gets no arrays, so it cannot tell how many values to return.
    if function.vectorised and function.args:
        return _vectorised(function)
    return _row_by_row(function)


def failing_line(name: str, function: object, error: BaseException | None) -> UserCode:
    """Return the line of the user's file where the function failed.

    Without an error, it is the line where the function is defined."""
    code = _code_of(function)
    file = code.co_filename if code is not None else "<built-in>"
    line = code.co_firstlineno if code is not None else 0
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    for frame in reversed(frames):
        if frame.filename == file and frame.lineno is not None:
            return UserCode(name, file, frame.lineno, _place(frame))
    return UserCode(name, file, line)


def handler_line(name: str, run: object, error: BaseException) -> UserCode:
    """Return the line of the handler that failed within `run`, a function that Weir generated.

    It is in the first frame that is not Weir's. `name` has the names of all handlers that it may
    be."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [f for f in frames if not f.filename.startswith(_WEIR) and f.lineno is not None]
    own = [f for f in users if f.filename == users[0].filename]
    if not own or own[-1].lineno is None:
        return failing_line(name, run, error)
    name = own[0].name if own[0].name in name.split(", ") else name
    return UserCode(name, own[0].filename, own[-1].lineno, _place(own[-1]))


def _place(frame: traceback.FrameSummary) -> ProgramPlace | None:
    """Return the place of a frame, with its line of text; None if there is no source."""
    if frame.lineno is None or frame.colno is None or not frame.line:
        return None
    # Python counts UTF-8 bytes from the beginning of the line, but returns the line stripped.
    whole = linecache.getline(frame.filename, frame.lineno).rstrip()
    column = len(whole.encode()[: frame.colno].decode(errors="replace"))
    indent = len(whole) - len(whole.lstrip())
    return ProgramPlace(frame.lineno, max(column - indent, 0) + 1, frame.filename, whole.lstrip())


def _code_of(function: object) -> CodeType | None:
    # For a decorated function, use what it wraps; for a class, its __init__; for a callable object,
    # its __call__.
    if isinstance(function, type):
        # mypy warns that an instance may have another __init__; here it is the class itself.
        function = function.__init__  # type: ignore[misc]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if not hasattr(function, "__code__"):
        function = type(function).__dict__.get("__call__")
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def check_not_interrupted(error: BaseException, function: object) -> None:
    """Raise the error again if it is a Ctrl-C, pressed while the user's code ran.

    But a KeyboardInterrupt from a `raise` in the function's own file is a failure of the function.
    """
    if not isinstance(error, KeyboardInterrupt):
        return
    code, last = _code_of(function), error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or code is None or last.tb_frame.f_code.co_filename != code.co_filename:
        raise error
    if last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE:
        raise error


def guarded(
    name: str,
    call: Callable[..., _Result],
    arguments: tuple[object, ...],
    event: object,
    of: object = None,
) -> _Result:
    """Call the user's code; turn what it raises into `OperatorFailed`, with the line and the event.

    `of` is the user's function if `call` is not that function itself.
    """
    try:
        return call(*arguments)
    except BaseException as error:
        check_not_interrupted(error, of or call)
        failed_at = failing_line(name, of or call, error)
        raise OperatorFailed(
            function=name,
            file=failed_at.file,
            line=failed_at.line,
            event=event,
            cause=describe(error),
            place=failed_at.place,
        ) from error


def _row_by_row(function: ScalarFunction) -> RunCall:
    call, extra = function.function, extra_calls()

    def run(length: int, *args: pa.Array) -> pa.Array:
        results: list[object] = []
        try:
            columns = [python_values(a) for a in args]
            if isinstance(call, MadeFunction):  # handlers read structs as `s.a` too
                columns = list(map(_copied, columns, args))
        except RowFailure as failure:
            failed_at = failing_line(function.name, call, None)
            raise RowFailure(failure.row, failure.why, failed_at) from None
        try:
            # Made only when it is needed: most columns never need their rows.
            loop = call.make_loop() if isinstance(call, MadeFunction) else _loop_over(call)
            if extra:
                loop(_ignored, _rows(columns, length, 1))
            loop(results.append, _rows(columns, length, length))
        except BaseException as error:
            check_not_interrupted(error, call)
            failed_at = failing_line(function.name, call, error)
            raise RowFailure(len(results), describe(error), failed_at) from error
        try:
            return typed_array(results, function.result)
        except RowFailure as failure:
            raise _wrong_type(function, failure.row, failure.why) from failure.__cause__

    return run


def _copied(values: list[object], column: pa.Array) -> list[object]:
    """Return values as handler code gets them: its own copies, with all NaNs the same object."""
    if column.type == DOUBLE and pc.any(pc.is_nan(column)).as_py():
        return [math.nan if value != value else value for value in values]
    copy = copier(column.type)
    return values if copy is None else list(map(copy, values))


def _loop_over(call: Callable[..., object]) -> RowLoop:
    def loop(take: Callable[[object], None], rows: Iterable[tuple[object, ...]]) -> None:
        for values in rows:
            take(call(*values))

    return loop


def _ignored(result: object) -> None:
    """Consume a result that is not needed."""


def _rows(columns: Sequence[list[object]], length: int, most: int) -> Iterable[tuple[object, ...]]:
    if not columns:
        return [()] * min(length, most)
    rows = zip(*columns, strict=True)
    return rows if most >= length else islice(rows, most)


def python_values(column: pa.Array) -> list[object]:
    """Return the values as Python's; raise `RowFailure` for the first that Python lacks."""
    try:
        return python_list(column)
    except (ValueError, OverflowError):  # a time beyond the year 9999
        for row, value in enumerate(column):
            try:
                value.as_py()
            except (ValueError, OverflowError) as error:
                why = f"Python has no value for the {type_name(column.type)} {shown_value(value)}: "
                why += str(error)
                raise RowFailure(row, why) from None
        raise


def python_rows(columns: Sequence[pa.Array]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one or more columns, converted lazily.

    Raise `RowFailure` for the first row that Python cannot represent."""
    for start, end in slices(len(columns[0])):
        try:
            values = [python_values(c.slice(start, end - start)) for c in columns]
        except RowFailure as failure:
            raise failure.moved_to(start + failure.row) from None
        yield from zip(*values, strict=True)


def _wrong_type(function: ScalarFunction, row: int, why: str) -> RowFailure:
    failed_at = failing_line(function.name, function.function, None)
    if not isinstance(function.function, MadeFunction):
        return RowFailure(row, f"it must return {why}", failed_at)
    # The function computes a value within a handler; the line is the value's.
    linecache.checkcache(failed_at.file)
    text = linecache.getline(failed_at.file, failed_at.line).strip()
    place = ProgramPlace(failed_at.line, 1, failed_at.file, text) if text else None
    at = UserCode(failed_at.function, failed_at.file, failed_at.line, place)
    return RowFailure(row, f"a value must be {why}", at)


def _vectorised(function: ScalarFunction) -> RunCall:
    call, extra = function.function, extra_calls()

    def run(length: int, *args: pa.Array) -> pa.Array:
        if not length:
            return pa.nulls(0, function.result)
        try:
            if extra:
                call(*(a.slice(0, 1) for a in args))
            result = call(*args)
        except BaseException as error:
            check_not_interrupted(error, call)
            row = _first_failing(call, args)
            failed_at = failing_line(function.name, call, error)
            raise RowFailure(row, describe(error), failed_at) from error
        return _checked(function, result, length)

    return run


def _checked(function: ScalarFunction, result: object, length: int) -> pa.Array:
    """Return the result as an array with memory of its own: the function may change the result."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    elif isinstance(result, np.ndarray) and result.ndim == 1:
        result = _of_numpy(function, result)
    declared = function.result
    if not isinstance(result, pa.Array) or result.type != declared:
        raise _wrong_type(function, 0, f"{type_name(declared)}, not {_kind(result, declared)}")
    if len(result) != length:
        raise _wrong_type(
            function, 0, f"an array as long, not {len(result)} values for {length} rows"
        )
    try:
        result.validate(full=True)
        return pa.concat_arrays([result, result.slice(0, 0)])
    except pa.ArrowException as error:
        raise _wrong_type(function, 0, f"a sound array: {error}") from None


def _of_numpy(function: ScalarFunction, result: np.ndarray) -> pa.Array:
    if result.dtype == object:
        try:
            return typed_array(result.tolist(), function.result)
        except RowFailure as failure:
            raise _wrong_type(function, failure.row, failure.why) from failure.__cause__
    try:
        return pa.array(result)
    except (pa.ArrowException, TypeError, ValueError):  # a dtype that Arrow lacks
        why = f"{type_name(function.result)}, not an ndarray of {result.dtype}"
        raise _wrong_type(function, 0, why) from None


def _kind(result: object, declared: pa.DataType) -> str:
    if not isinstance(result, pa.Array):
        return shown(result)
    name = type_name(result.type)
    return name if name != type_name(declared) else str(result.type)  # they differ in NULLs allowed


def _first_failing(call: Callable[..., object], args: Sequence[pa.Array]) -> int:
    """Return the first row on which the function fails, alone or with the rows before it."""
    low, high = 0, len(args[0])  # it fails on the first `high` rows, but not on the first `low`
    while high - low > 1:
        middle = (low + high) // 2
        try:
            call(*(a.slice(0, middle) for a in args))
        except BaseException as error:  # only the first failure is sought; the caller raises it
            check_not_interrupted(error, call)
            high = middle
        else:
            low = middle
    return low
