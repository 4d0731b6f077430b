"""The user's own code is plan data: scalar functions, aggregates, stateful operators.

Contract
1. All of it must be deterministic: the same arguments give the same result, in any process.
2. Every object is identified by its name and by what it wraps. It is part of the plan, and only
   kernels call it. An exception that it raises reaches the user as `OperatorFailed`.
3. An operator's `emit` requires vs ≥ the current time. `on_time(t)` fires only for a t that was
   registered, after all events with vs < t and before those at t, by key.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeGuard, TypeVar

import pyarrow as pa

from weir.plan.usercode.undeclared_state import UndeclaredAssignment, undeclared_assignment

if TYPE_CHECKING:
    from weir.plan.fluent.stream import Stream
    from weir.plan.usercode.imported_files import ImportedFrom

Kind = TypeVar("Kind")


_LONGEST = 2000
"""How many characters of an exception's text are shown."""


def describe(error: BaseException) -> str:
    """Return the kind and the text of an exception of the user's code."""
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
    """A scalar function of `@weir.udf`; `vectorised` ones take and return Arrow arrays."""

    name: str
    function: Callable[..., object]
    args: tuple[pa.DataType, ...]
    result: pa.DataType
    vectorised: bool = False
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)
    """The file that it comes from, if IMPORT ran that file; see `imported_files.py`."""

    def __call__(self, *values: object) -> object:
        return self.function(*values)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return _reduced(self, self.imported, "scalars", protocol)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate that `@weir.aggregate` makes from a class with zero, add and result.

    The methods are `zero() -> state`, `add(state, *values) -> state`, `result(state) -> value`.
    Optional are `remove(state, *values) -> state` and `merge(state, state) -> state`. These are
    used only if `exact` declares that they return exactly what adding in order would.
    """

    name: str
    implementation: type
    args: tuple[pa.DataType, ...]
    result: pa.DataType
    exact: bool = False
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)
    """The file that it comes from, if IMPORT ran that file; see `imported_files.py`."""

    @property
    def undeclared(self) -> UndeclaredAssignment | None:
        """Return a line that sets an attribute, or None; only returned values are kept."""
        entries = ("zero", "add", "remove", "merge", "result")
        return undeclared_assignment(self.implementation, entries, ())

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return _reduced(self, self.imported, "aggregates", protocol)


@dataclass(frozen=True, slots=True)
class FoldingAggregate(AggregateFunction):
    """An aggregate that declares the type of its state.

    Rows are added as they come, and a snapshot keeps the states instead of the rows.
    """

    state: pa.DataType = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class OperatorFunction:
    """An operator that `@weir.operator` makes from a class with `on_event(self, event, ctx)`.

    `on_time(self, time, ctx)` is optional; `columns` are those of the rows that it emits. There is
    one instance of the class per key. A snapshot keeps the attributes in `state`, which has their
    types.
    """

    name: str
    implementation: type
    columns: tuple[tuple[str, pa.DataType], ...]
    state: tuple[tuple[str, pa.DataType], ...]
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)
    """The file that it comes from, if IMPORT ran that file; see `imported_files.py`."""

    def __call__(self, *args: object) -> OperatorCall:
        """Return the operator with its constants, as in PROCESS, REDUCE and COMBINE: `Op(30m)`."""
        return OperatorCall(self, args)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return _reduced(self, self.imported, "operators", protocol)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """`Op(30m)` in PROCESS, REDUCE or COMBINE: the operator and its constants."""

    operator: OperatorFunction
    args: tuple[object, ...]

    @property
    def columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        return self.operator.columns

    @property
    def misfit(self) -> str | None:
        """Return what is wrong with the arguments, or None if they fit the class's signature."""
        try:
            signature = inspect.signature(self.operator.implementation)
        except ValueError:  # from a C type without a signature
            return None
        try:
            signature.bind(*self.args)
        except TypeError as error:
            return f"{self.operator.name} takes {signature}: {error}"
        return None

    @property
    def undeclared(self) -> UndeclaredAssignment | None:
        """Return a line that sets an attribute that is not declared as state, or None."""
        declared = [name for name, _ in self.operator.state]
        entries = ("on_event", "on_time")
        return undeclared_assignment(self.operator.implementation, entries, declared)


class EmittingApp(ABC):
    """An app of event handlers (`handlers/api/app.py`), as scripts know it."""

    name: str

    @property
    @abstractmethod
    def event_names(self) -> Sequence[str]:
        """The event types, in order of declaration."""

    @property
    @abstractmethod
    def param_names(self) -> Sequence[str]: ...

    @abstractmethod
    def emitted_over(
        self, streams: Mapping[str, Stream], params: Mapping[str, object]
    ) -> Mapping[str, Stream]:
        """Return what the app emits, by name, when its events are the rows of these streams."""

    @abstractmethod
    def travel_with(self, file: ImportedFrom) -> None:
        """Store the file that the app comes from, whose text other processes get."""


@dataclass(frozen=True, slots=True)
class UserFunctions:
    """The user's functions and apps that a program can use, by name."""

    scalars: Mapping[str, ScalarFunction] = field(default_factory=dict)
    aggregates: Mapping[str, AggregateFunction] = field(default_factory=dict)
    operators: Mapping[str, OperatorFunction] = field(default_factory=dict)
    apps: Mapping[str, EmittingApp] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[object]) -> UserFunctions:
        """Collect the objects that a decorator made; of equal names, the last one counts.

        >>> UserFunctions.of([1, "no function"]) == UserFunctions()
        True
        """
        candidates = list(objects)
        return cls(
            {f.name: f for f in candidates if _is_a(f, ScalarFunction)},
            {f.name: f for f in candidates if _is_a(f, AggregateFunction)},
            {f.name: f for f in candidates if _is_a(f, OperatorFunction)},
            {f.name: f for f in candidates if _is_app(f)},
        )

    def travelling_with(self, file: ImportedFrom) -> UserFunctions:
        """Return the same functions, each with the file that it comes from."""
        for app in self.apps.values():
            app.travel_with(file)
        return UserFunctions(
            {name: replace(f, imported=file) for name, f in self.scalars.items()},
            {name: replace(f, imported=file) for name, f in self.aggregates.items()},
            {name: replace(f, imported=file) for name, f in self.operators.items()},
            self.apps,
        )

    def __or__(self, other: UserFunctions) -> UserFunctions:
        """Return the functions of both; of equal names, the other's counts."""
        return UserFunctions(
            {**self.scalars, **other.scalars},
            {**self.aggregates, **other.aggregates},
            {**self.operators, **other.operators},
            {**self.apps, **other.apps},
        )


def _is_a(thing: object, kind: type[Kind]) -> TypeGuard[Kind]:
    # By the type alone: a user's object may be here, and may lie about its class.
    return issubclass(type(thing), kind)


def _is_app(thing: object) -> TypeGuard[EmittingApp]:
    return issubclass(type(thing), EmittingApp)


def _reduced(
    function: ScalarFunction | AggregateFunction | OperatorFunction,
    imported: ImportedFrom | None,
    kind: str,
    protocol: SupportsIndex,
) -> str | tuple[Any, ...]:
    """Let pickle store only the origin of an imported function, and any other function whole."""
    if imported is None:
        return object.__reduce_ex__(function, protocol)
    return _function_of, (imported, kind, function.name)


def _function_of(imported: ImportedFrom, kind: str, name: str) -> object:
    functions: Mapping[str, object] = getattr(imported.functions(), kind)
    return functions[name]


NO_FUNCTIONS = UserFunctions()
