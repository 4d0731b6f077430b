"""`@udf`, `@aggregate` and `@operator` turn the user's Python into plan data.

Types are written as in a script (`"BIGINT"`, `"LIST(STRING)"`) or come from the annotations: int is
BIGINT, float DOUBLE, str STRING, bool BOOLEAN, bytes BINARY. A program calls the decorated function
or class by its own name; from Python, it works as before.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import overload

import pyarrow as pa

from weir.errors import PlanError
from weir.events.python_types import TypeText, python_type, written_type
from weir.plan.names import check_name
from weir.plan.usercode.functions import (
    AggregateFunction,
    FoldingAggregate,
    OperatorFunction,
    ScalarFunction,
)


@overload
def udf(function: Callable[..., object], /) -> ScalarFunction: ...
@overload
def udf(
    *,
    args: Sequence[TypeText] | None = None,
    result: TypeText | None = None,
    vectorised: bool = False,
) -> Callable[[Callable[..., object]], ScalarFunction]: ...
def udf(
    function: Callable[..., object] | None = None,
    /,
    *,
    args: Sequence[TypeText] | None = None,
    result: TypeText | None = None,
    vectorised: bool = False,
) -> ScalarFunction | Callable[[Callable[..., object]], ScalarFunction]:
    """Declare a scalar function.

    A vectorised one takes and returns Arrow arrays, and must declare its types.

    >>> @udf
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> str(double.result), double(4)
    ('int64', 8)
    """

    def decorate(function: Callable[..., object]) -> ScalarFunction:
        name = _name(function)
        arg_types = _types(args) if args is not None else _parameters(function, name)
        result_type = written_type(result) if result is not None else _returned(function, name)
        return ScalarFunction(name, function, arg_types, result_type, vectorised)

    return decorate if function is None else decorate(function)


@overload
def aggregate(cls: type, /) -> AggregateFunction: ...
@overload
def aggregate(
    *,
    args: Sequence[TypeText] | None = None,
    result: TypeText | None = None,
    exact: bool = False,
    state: TypeText | Mapping[str, TypeText] | None = None,
) -> Callable[[type], AggregateFunction]: ...
def aggregate(
    cls: type | None = None,
    /,
    *,
    args: Sequence[TypeText] | None = None,
    result: TypeText | None = None,
    exact: bool = False,
    state: TypeText | Mapping[str, TypeText] | None = None,
) -> AggregateFunction | Callable[[type], AggregateFunction]:
    """Declare an aggregate: a class with zero, add, result, and optionally remove and merge.

    The methods are called on an instance. Without `args`, the annotations of `add` after the state
    are its argument types; without `result`, the annotation of `result` is its result type.

    With `state`, which declares the type of its state, rows are added as they come and are not
    kept. If `state` maps names to types, the state is a dict and has a STRUCT type.

    >>> @aggregate
    ... class Longest:
    ...     def zero(self) -> int: return 0
    ...     def add(self, state: int, value: str) -> int: return max(state, len(value))
    ...     def result(self, state: int) -> int: return state
    >>> [*map(str, Longest.args)], str(Longest.result)
    (['string'], 'int64')
    >>> @aggregate(state={"n": "BIGINT", "last": "STRING"})
    ... class Changes:
    ...     def zero(self) -> dict: return {"n": 0, "last": None}
    ...     def add(self, state: dict, value: str) -> dict:
    ...         return {"n": state["n"] + (value != state["last"]), "last": value}
    ...     def result(self, state: dict) -> int: return state["n"]
    >>> str(Changes.state)
    'struct<n: int64, last: string>'
    """

    def decorate(cls: type) -> AggregateFunction:
        name = cls.__name__
        _require(cls, "aggregate", ("zero", "add", "result"))
        if exact:
            _require(cls, "exact aggregate", ("remove", "merge"))
        if exact and state is not None:
            raise PlanError(
                f"the aggregate {name} is exact and declares a state",
                hint="leave out one: exact keeps rows, so that they can be removed",
            )
        arg_types = _types(args) if args is not None else _added(cls)
        method = _method(cls, "result")
        result_type = written_type(result) if result is not None else _returned(method, name)
        if state is None:
            return AggregateFunction(name, cls, arg_types, result_type, exact)
        return FoldingAggregate(name, cls, arg_types, result_type, state=_state(state, name))

    return decorate if cls is None else decorate(cls)


def operator(
    *,
    columns: Mapping[str, TypeText],
    state: Mapping[str, TypeText] | None = None,
) -> Callable[[type], OperatorFunction]:
    """Declare a stateful operator: a class with `on_event(event, ctx)` and optionally `on_time`.

    `columns` are those of the rows that it emits. `state` are the attributes that a snapshot keeps,
    by default those that the class annotates.

    >>> @operator(columns={"total": "BIGINT"})
    ... class Totals:
    ...     total: int = 0
    ...     def on_event(self, event, ctx): ...
    >>> [(name, str(dtype)) for name, dtype in Totals.state]
    [('total', 'int64')]
    """

    def decorate(cls: type) -> OperatorFunction:
        _require(cls, "operator", ("on_event",))
        _refuse_lazy(getattr(cls, "on_time", None), f"{cls.__name__}.on_time")
        for name in columns:
            check_name(name)
        emitted = tuple((n, written_type(t)) for n, t in columns.items())
        kept = _annotated(cls) if state is None else {n: written_type(t) for n, t in state.items()}
        return OperatorFunction(cls.__name__, cls, emitted, tuple(kept.items()))

    return decorate


# --- types from annotations ----------------------------------------------------------------


def result_type(function: object) -> pa.DataType | None:
    """Return the type that a function's annotation declares for its result, or None.

    >>> def longest(texts: list[str]) -> int | None: ...
    >>> str(result_type(longest)), result_type(len)
    ('int64', None)
    """
    if isinstance(function, ScalarFunction):
        return function.result
    if not isinstance(function, types.FunctionType):
        return None
    try:
        return python_type(typing.get_type_hints(function).get("return"))
    except Exception:  # an annotation may be any expression, even one that fails
        return None


def _state(written: TypeText | Mapping[str, TypeText], name: str) -> pa.DataType:
    if not isinstance(written, Mapping):
        return written_type(written)
    if not written:
        raise PlanError(f"the state of {name} has no names")
    for field in written:
        check_name(field)
    fields = [(field, written_type(dtype)) for field, dtype in written.items()]
    return written_type(pa.struct(fields))


def _types(written: Sequence[TypeText]) -> tuple[pa.DataType, ...]:
    return tuple(written_type(t) for t in written)


def _annotation(hint: object, where: str) -> pa.DataType:
    dtype = python_type(hint)
    if dtype is None:
        if hint is None:
            example = "def f(x: int, s: str) -> float, or x: 'BIGINT' for a type of Weir's"
            raise PlanError(f"{where} has no type", hint=f"annotate it, as in {example}")
        raise PlanError(f"{where} has no type that Weir knows", hint="write it as text, 'BIGINT'")
    return dtype


def _hints(thing: Callable[..., object] | type) -> Mapping[str, object]:
    try:
        return typing.get_type_hints(thing)
    except NameError as error:
        raise PlanError(f"{thing.__qualname__}: {error}") from error


def _parameters(function: Callable[..., object], name: str) -> tuple[pa.DataType, ...]:
    hints = _hints(function)
    names = inspect.signature(function).parameters
    return tuple(_annotation(hints.get(n), f"argument `{n}` of {name}") for n in names)


def _returned(function: Callable[..., object], name: str) -> pa.DataType:
    return _annotation(_hints(function).get("return"), f"the result of {name}")


def _added(cls: type) -> tuple[pa.DataType, ...]:
    """Return the types of `add`'s values: its parameters without self and the state.

    A static method has no self."""
    add = _method(cls, "add")
    hints, names = _hints(add), list(inspect.signature(add).parameters)
    skipped = 1 if isinstance(inspect.getattr_static(cls, "add"), staticmethod) else 2
    values = names[skipped:]
    return tuple(_annotation(hints.get(n), f"`{n}` of {cls.__name__}.add") for n in values)


def _annotated(cls: type) -> dict[str, pa.DataType]:
    hints = _hints(cls)
    return {n: _annotation(h, f"`{n}` of {cls.__name__}") for n, h in hints.items()}


def _method(cls: type, name: str) -> Callable[..., object]:
    method: Callable[..., object] = getattr(cls, name)
    return method


def _name(function: Callable[..., object]) -> str:
    """Return the name of a function; raise PlanError if it has none, or if a call runs nothing."""
    name = getattr(function, "__name__", None)
    if not callable(function) or not isinstance(name, str):
        raise PlanError(f"a {type(function).__name__} is not a function with a name")
    _refuse_lazy(function, name)
    return name


def _refuse_lazy(function: object, name: str) -> None:
    for is_lazy, what in _LAZY:
        if is_lazy(function):
            raise PlanError(f"{name} is {what}: calling it runs nothing")


_LAZY = (
    (inspect.isgeneratorfunction, "a generator, as it has a `yield`"),
    (inspect.iscoroutinefunction, "asynchronous"),
    (inspect.isasyncgenfunction, "an asynchronous generator"),
)


def _require(cls: type, what: str, methods: Sequence[str]) -> None:
    for name in methods:
        if not callable(getattr(cls, name, None)):
            raise PlanError(f"the {what} {cls.__name__} needs a method `{name}`")
        _refuse_lazy(getattr(cls, name), f"{cls.__name__}.{name}")
