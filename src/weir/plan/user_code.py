"""The user's own code as plan data: scalar functions, aggregates, stateful operators.

Contract
1. All of it must be deterministic: the same arguments give the same result, in any process.
2. Every object is identified by name and by what it wraps; it lives in the plan and is called
   by kernels only. What it raises reaches the user as `OperatorFailed`.
3. An operator's `emit` takes vs ≥ the current time. `on_time(t)` fires only for a t that was
   registered, after all events with vs < t and before those at t, by key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeGuard, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from weir.plan.imported_files import ImportedFiles

Kind = TypeVar("Kind")


_LONGEST = 2000
"""Characters of an exception's text that are shown."""


def describe(error: BaseException) -> str:
    """The kind and the text of what the user's code raised."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # its own __str__ fails
        return f"{type(error).__name__}, whose text cannot be shown"
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """`@weir.udf`: `vectorised` functions take and return Arrow arrays, others plain values."""

    name: str
    function: Callable[..., object]
    args: tuple[pa.DataType, ...]
    result: pa.DataType
    vectorised: bool = False
    files: ImportedFiles | None = field(default=None, compare=False, repr=False)
    """The IMPORTs of its program, if it is from one; see `imported_files.py`."""

    def __call__(self, *values: object) -> object:
        return self.function(*values)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """`@weir.aggregate`: a class with zero, add, result and optionally remove and merge.

    `zero() -> state`, `add(state, *values) -> state`, `remove(state, *values) -> state`,
    `merge(state, state) -> state`, `result(state) -> value`. `remove` and `merge` are used only
    when `exact` says that they give the very value that adding in order would.
    """

    name: str
    implementation: type
    args: tuple[pa.DataType, ...]
    result: pa.DataType
    exact: bool = False
    files: ImportedFiles | None = field(default=None, compare=False, repr=False)
    """The IMPORTs of its program, if it is from one; see `imported_files.py`."""


@dataclass(frozen=True, slots=True)
class OperatorFunction:
    """`@weir.operator`: a class with `on_event(self, event, ctx)` and optionally
    `on_time(self, time, ctx)`; `columns` are what it emits. One instance per key; the
    attributes named in `state` (with their types) are what a snapshot keeps of it."""

    name: str
    implementation: type
    columns: tuple[tuple[str, pa.DataType], ...]
    state: tuple[tuple[str, pa.DataType], ...]
    files: ImportedFiles | None = field(default=None, compare=False, repr=False)
    """The IMPORTs of its program, if it is from one; see `imported_files.py`."""

    def __call__(self, *args: object) -> OperatorCall:
        """`Op(30m)`: the operator with its constants, for PROCESS, REDUCE and COMBINE."""
        return OperatorCall(self, args)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """`Op(30m)` in PROCESS, REDUCE or COMBINE: the operator and its constant arguments."""

    operator: OperatorFunction
    args: tuple[object, ...]

    @property
    def columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        return self.operator.columns

    @property
    def misfit(self) -> str:
        """What is wrong with the arguments, if anything is and the class says what it takes."""
        try:
            signature = inspect.signature(self.operator.implementation)
        except ValueError:  # made by a type of C without a signature
            return ""
        try:
            signature.bind(*self.args)
        except TypeError as error:
            return f"{self.operator.name} takes {signature}: {error}"
        return ""


@dataclass(frozen=True, slots=True)
class UserFunctions:
    """The user's own code that a program can call, by name."""

    scalars: Mapping[str, ScalarFunction] = field(default_factory=dict)
    aggregates: Mapping[str, AggregateFunction] = field(default_factory=dict)
    operators: Mapping[str, OperatorFunction] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[object]) -> UserFunctions:
        """Those among the objects that a decorator made; of equal names the last one counts.

        >>> UserFunctions.of([1, "no function"]) == UserFunctions()
        True
        """
        found = list(objects)
        return cls(
            {f.name: f for f in found if _is_a(f, ScalarFunction)},
            {f.name: f for f in found if _is_a(f, AggregateFunction)},
            {f.name: f for f in found if _is_a(f, OperatorFunction)},
        )

    def travelling_with(self, files: ImportedFiles) -> UserFunctions:
        """The same, each with what must be run wherever it goes."""
        return UserFunctions(
            {name: replace(f, files=files) for name, f in self.scalars.items()},
            {name: replace(f, files=files) for name, f in self.aggregates.items()},
            {name: replace(f, files=files) for name, f in self.operators.items()},
        )

    def __or__(self, other: UserFunctions) -> UserFunctions:
        """Both; of equal names the other's counts."""
        return UserFunctions(
            {**self.scalars, **other.scalars},
            {**self.aggregates, **other.aggregates},
            {**self.operators, **other.operators},
        )


def _is_a(thing: object, kind: type[Kind]) -> TypeGuard[Kind]:
    # By its type alone: any object of the user's may be here, and say what it likes of its class.
    return issubclass(type(thing), kind)


NO_FUNCTIONS = UserFunctions()
