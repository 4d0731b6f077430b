"""What an app declares: event types, states, parameters, handlers.

Analysis and compilation use these as data. In handlers that run row by row their methods work,
while the runner binds them (`live_handles.py`, `running_event.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex

import pyarrow as pa

from weir.handlers.api.parameters import AppParam, without_params
from weir.handlers.runs.running_event import current
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Source, SourceOptions
from weir.plan.schema import Schema
from weir.plan.states import MERGE_TRAITS, MergeKind, MergeTraits, key_parts

if TYPE_CHECKING:
    from weir.handlers.api.app import App

__all__ = ["AppParam", "EmitDeclaration", "EventHandler", "EventType", "State"]


@dataclass(frozen=True, slots=True, eq=False)
class EventType:
    """An input of an app: a log of its own, or the rows of a stream.

    `path` is None if neither a path nor a stream was given; then the run gives it (`--log`).
    """

    app: App = field(repr=False)
    name: str
    stream: Stream
    index: int
    """Its number in order of declaration, which orders events of the same time."""
    path: str | None = None
    options: SourceOptions | None = None
    """The WITH options of a log; None if the events are another stream's rows."""

    @property
    def schema(self) -> Schema:
        return self.stream.schema

    @property
    def columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The events' columns in addition to `vs` and `ve`, with their types."""
        return self.stream.schema.columns

    @property
    def is_log(self) -> bool:
        """Whether the events come from a log, whose path a run may set."""
        return self.options is not None and isinstance(self.stream.node, Source)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return _reduced(self, self.app, "event_types", self.name, protocol)


@dataclass(frozen=True, eq=False)
class State:
    """Versioned state: a cell for each key, with the default until something is merged.

    The methods work only while handlers run: the runner binds them (`live_handles.py`). A key is
    one value, or a tuple of several.
    """

    app: App = field(repr=False)
    name: str
    type: pa.DataType
    default: object
    """Immutable: lists are tuples, structs are tuples of (name, value) pairs."""
    keys: tuple[pa.DataType, ...] | None = None
    """The types of the key's columns, if they were declared."""
    last: int | None = None
    expires: int | None = None

    def get(self, key: object) -> Any:
        """Return a copy of a key's value: the default after all earlier merges."""
        live = self.__dict__.get("get")  # where somebody kept this method from before it was bound
        if live is not None:
            return live(key)
        return current(f"{self.name}.get()").get(self.name, _key(key))

    def merge(self, key: object, function: Callable[[Any], object]) -> None:
        """Make `function(old value)` the value of a key."""
        self._merge(key, "call", (), function)

    def add(self, key: object, x: object) -> None:
        """Add a number; a DOUBLE sum is kept exactly, and rounded when it is read."""
        self._merge(key, "add", (x,))

    def set(self, key: object, x: object) -> None:
        """Make `x` the value."""
        self._merge(key, "set", (x,))

    def max(self, key: object, x: object) -> None:
        """Make `x` the value if it is larger."""
        self._merge(key, "max", (x,))

    def min(self, key: object, x: object) -> None:
        """Make `x` the value if it is smaller."""
        self._merge(key, "min", (x,))

    def append(self, key: object, x: object) -> None:
        """Put `x` at the end of the list."""
        self._merge(key, "append", (x,))

    def add_to_set(self, key: object, x: object) -> None:
        """Put `x` at the end of the list unless it is there already."""
        self._merge(key, "add_to_set", (x,))

    def top_k(self, key: object, x: object, k: int) -> None:
        """Keep the `k` largest values, descending; of equal ones the earlier comes first."""
        self._merge(key, "top_k", (x, k))

    def _merge(
        self,
        key: object,
        kind: MergeKind,
        args: tuple[object, ...],
        function: Callable[[Any], object] | None = None,
    ) -> None:
        what = "merge" if kind == "call" else kind
        live = self.__dict__.get(what)
        if live is not None:
            live(key, *args, *(() if function is None else (function,)))
            return
        plain = tuple(map(without_params, args))
        function = None if function is None else _Plain(function)
        current(f"{self.name}.{what}()").merge(self.name, _key(key), kind, plain, function)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return _reduced(self, self.app, "states", self.name, protocol)


def bind_state(state: State, methods: Mapping[str, Callable[..., Any]] | None) -> None:
    """Bind these methods to a state; None unbinds them."""
    for name in _METHODS:
        if methods is None:
            state.__dict__.pop(name, None)
        else:
            state.__dict__[name] = methods[name]


def _key(key: object) -> tuple[object, ...]:
    return tuple(map(without_params, key_parts(key)))


MERGES: dict[str, MergeTraits] = {traits.method: traits for traits in MERGE_TRAITS.values()}
"""The methods of a state that merge, with the properties of their merges."""
_METHODS = ("get", *MERGES)


@dataclass(frozen=True, slots=True, eq=False)
class EventHandler:
    """The user's function for events of some types."""

    name: str
    function: Callable[[Any], object]
    events: tuple[EventType, ...]


@dataclass(frozen=True, slots=True)
class EmitDeclaration:
    """A call of `app.emits(name, columns)`."""

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True)
class _Plain:
    """A merge function whose result contains no parameters."""

    function: Callable[[Any], object]

    def __call__(self, old: Any) -> object:
        return without_params(self.function(old))


def _reduced(
    thing: EventType | State, app: App, kind: str, name: str, protocol: SupportsIndex
) -> str | tuple[Any, ...]:
    """Pickle the name of a declaration if its app is from a file, else all of it."""
    if app.imported is None:
        return object.__reduce_ex__(thing, protocol)
    return _of_app, (app, kind, name)


def _of_app(app: App, kind: str, name: str) -> object:
    declaration: object = getattr(app, kind)[name]
    return declaration
