"""Evaluates bound expressions over whole batches, vectorised on Arrow.

Contract
1. `compile_expression(expr, schema)` resolves names and builds functions once. It returns a
   function from a batch with the schema's columns to an array of the expression's type, one value
   per row. That function is pure: no clock, no random numbers, no state between calls.
2. A value that cannot be computed raises a `RunError` that names the event (in the user's own
   function an `OperatorFailed`). It fails only where SQL evaluates: a CASE branch for rows that
   reach it, a COALESCE argument where those before it are NULL, the right side of AND (OR) where
   the left is not FALSE (TRUE). Built-in functions have no side effects, so everything is first
   tried on whole batches, and row by row only after a failure.
3. A part that reads no column is computed once; if that fails, it fails on the first event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.errors import EventFailed, Position
from weir.events.batch import Batch, times
from weir.kernels.expressions import (
    functions_formats,
    functions_hashes,
    functions_lists,
    functions_logic,
    functions_numbers,
    functions_text,
    functions_time,
    python_numbers,
    python_text,
)
from weir.kernels.expressions.branches import LAZY, Part, case, constant_part, made_of
from weir.kernels.expressions.casts import build_cast, misfit
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    RowFailure,
    Site,
    as_array,
    shown_value,
)
from weir.kernels.expressions.failed_events import event_at, named_failure
from weir.kernels.expressions.user_calls import build_user_call
from weir.plan.expressions import (
    LIFETIME_NAMES,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    Literal,
    UserCall,
)
from weir.plan.functions import FUNCTIONS
from weir.plan.functions.built_in import Nulls
from weir.plan.render import render
from weir.plan.schema import Schema

BUILDERS: Mapping[str, Builder] = {
    **functions_logic.FUNCTIONS,
    **functions_numbers.FUNCTIONS,
    **functions_text.FUNCTIONS,
    **functions_time.FUNCTIONS,
    **functions_formats.FUNCTIONS,
    **functions_lists.FUNCTIONS,
    **functions_hashes.FUNCTIONS,
}
PYTHON_BUILDERS: Mapping[str, Builder] = {**python_numbers.FUNCTIONS, **python_text.FUNCTIONS}
"""The functions that event handlers are compiled to; scripts cannot call them."""


@dataclass(frozen=True, slots=True)
class _ErrorContext:
    """A part's place in the program, and how to explain Arrow's failure on its arguments."""

    place: Position | None
    why: Callable[[Sequence[object], Exception], str]


def compile_expression(expr: Expr, schema: Schema) -> Callable[[Batch], pa.Array]:
    """Compile an expression to a function from batches with these columns to its values.

    >>> from weir.events.types import BIGINT
    >>> import numpy as np
    >>> schema = Schema((("v", BIGINT),), BIGINT)
    >>> double = Call("mul", (Column("v", type=BIGINT), Literal(2, type=BIGINT)), type=BIGINT)
    >>> batch = Batch(np.array([1]), np.array([5]), (pa.array([21]),))
    >>> compile_expression(double, schema)(batch).to_pylist()
    [42]
    """
    part = _compile(expr, schema)

    def evaluate(batch: Batch) -> pa.Array:
        try:
            return as_array(part.run(batch), len(batch))
        except RowFailure as failure:
            error = named_failure(failure, batch, schema)
            raise error from failure.__cause__
        except (pa.ArrowException, MemoryError, OverflowError) as failure:
            # No single row is the cause: memory may be short for all of them together.
            first = event_at(batch, schema, 0) if len(batch) else None
            events = f"one of {len(batch)} events, the first of them {first}"
            raise EventFailed(f"a value cannot be computed: {failure}", event=events) from failure

    return evaluate


# --- compilation ---------------------------------------------------------------------------


def _compile(expr: Expr, schema: Schema) -> Part:
    match expr:
        case Literal():
            return constant_part(pa.scalar(expr.value, expr.type))
        case Column():
            return _column(expr.name, schema)
        case Call():
            return _call(expr, [_compile(a, schema) for a in expr.args])
        case Case():
            branches = [(_compile(c, schema), _compile(v, schema)) for c, v in expr.branches]
            return case(branches, _compile(expr.otherwise, schema), _type(expr))
        case Cast():
            arg = _compile(expr.arg, schema)
            convert = build_cast(arg.type, _type(expr), expr.lenient)
            context = _ErrorContext(expr.position, lambda v, _: misfit(v[0], _type(expr)))
            return _apply(convert, [arg], _type(expr), context)
        case UserCall():
            return _user_call(expr, [_compile(a, schema) for a in expr.args])
    raise AssertionError(f"not bound: {expr!r}")


def _type(expr: Expr) -> pa.DataType:
    assert expr.type is not None, f"not bound: {expr!r}"
    return expr.type


def _column(name: str, schema: Schema) -> Part:
    if name in LIFETIME_NAMES:
        time = schema.time
        start = name == "vs"
        return Part(lambda batch: times(batch.vs if start else batch.ve, time), time)
    index = schema.index(name)
    columns = frozenset((index,))
    return Part(lambda batch: batch.columns[index], schema.types[index], columns=columns)


def _call(call: Call, args: Sequence[Part]) -> Part:
    if call.function in LAZY:
        return LAZY[call.function](args, _type(call))
    builders = PYTHON_BUILDERS if call.function.startswith("py_") else BUILDERS
    if _is_always_null(call, args):
        return constant_part(pa.scalar(None, call.type))
    site = Site(
        call.function,
        _type(call),
        tuple(a.type for a in args),
        tuple(a.constant for a in args),
    )
    return _apply(builders[call.function](site), args, _type(call), _error_context(call))


def _is_always_null(call: Call, args: Sequence[Part]) -> bool:
    """Tell whether the call is NULL in all rows because an argument is."""
    nulls = FUNCTIONS[call.function].nulls if call.function in FUNCTIONS else Nulls.ARE_TESTED
    if nulls is Nulls.ARE_TESTED:
        return False
    if nulls is Nulls.MAKE_NULL and any(map(_is_null, args)):
        return True
    return any(pa.types.is_null(a.type) for a in args)


def _error_context(call: Call) -> _ErrorContext:
    def why(values: Sequence[object], error: Exception) -> str:
        shown = render(replace(call, args=tuple(Literal(v) for v in values)))
        return f"{error} in {shown}"

    return _ErrorContext(call.position, why)


def _is_null(part: Part) -> bool:
    return part.constant is not None and not part.constant.is_valid


def _apply(
    function: ArrayFunction, args: Sequence[Part], dtype: pa.DataType, context: _ErrorContext
) -> Part:
    if all(a.constant is not None for a in args):
        return _folded(function, args, dtype, context)
    run = _runner(function, [a.run for a in args], context)
    return made_of(args, run, dtype)


def _folded(
    function: ArrayFunction, args: Sequence[Part], dtype: pa.DataType, context: _ErrorContext
) -> Part:
    one = [as_array(a.constant, 1) for a in args]
    try:
        return constant_part(function(*one)[0])
    except (pa.ArrowInvalid, RowFailure):
        # It fails only if a row reaches it.
        return Part(_runner(function, [a.array for a in args], context), dtype)


def _runner(
    function: ArrayFunction, args: Sequence[Callable[[Batch], Datum]], context: _ErrorContext
) -> Callable[[Batch], Datum]:
    def run(batch: Batch) -> Datum:
        values = [arg(batch) for arg in args]
        try:
            return function(*values)
        except RowFailure as failure:
            failure.place = failure.place or context.place
            raise
        except pa.ArrowInvalid as error:
            raise _located(function, values, len(batch), context, error) from None

    return run


def _located(
    function: ArrayFunction,
    values: Sequence[Datum],
    length: int,
    context: _ErrorContext,
    error: Exception,
) -> RowFailure:
    """Find the first row on which Arrow fails, and return its failure."""
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        try:
            function(*(_slice(v, low, middle) for v in values))
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    shown = [shown_value(v if isinstance(v, pa.Scalar) else v[low]) for v in values]
    return RowFailure(low, context.why(shown, error), place=context.place)


def _slice(value: Datum, start: int, stop: int) -> Datum:
    return value if isinstance(value, pa.Scalar) else value.slice(start, stop - start)


def _user_call(call: UserCall, args: Sequence[Part]) -> Part:
    function = build_user_call(call.function)

    def run(batch: Batch) -> pa.Array:
        return function(len(batch), *(a.array(batch) for a in args))

    return replace(made_of(args, run, _type(call)), calls_user=True)
