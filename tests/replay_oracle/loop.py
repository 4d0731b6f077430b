"""The serial loop: runs an app's source text over logs, one event after the other.

The source is executed with a stand-in for the module `weir`, whose `App` and states belong to
this loop. What an app means is said once more here, as code:

1. Events go in order of (vs, event type in order of declaration, partition, offset).
2. For each event its handlers run: those that write a state before those that only read it,
   else in order of definition (`in_handler_order`).
3. `get` sees what was merged before; `merge` takes effect at once.
4. Events and what states hold are handed out as copies, to each handler its own.
5. What a state refuses ends the run, even if a handler catches it; what a merge's function raises
   is the handler's own, who may catch it.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from replay_oracle.accesses_found import Touched, functions_of, touched
from replay_oracle.cells import Kind, Merged, Store, comparable, copied, typed

NUMBER = "number"
Row = Mapping[str, object]
Logs = Mapping[str, Sequence[Sequence[Row]]]
"""The partitions of each event type, each with its rows in order."""


class AppFailed(Exception):
    """An `AppFailed` says that the app's own code, or a value beyond its type, ended the run: in
    which handler (none: in the final state), on which event."""

    def __init__(
        self, text: str, handler: str = "", event: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(text)
        self.handler, self.event = handler, dict(event or {})

    def is_like(self, other: AppFailed) -> bool:
        """Tell whether another run failed in the same handler on the same event; it may know more
        of the event."""
        told = {name: other.event.get(name) for name in self.event}
        return self.handler == other.handler and comparable(told) == comparable(self.event)


class Wrong(Exception):
    """A `Wrong` says that a program does what no app may do."""


@dataclass(frozen=True)
class Emitted:
    """An `Emitted` is a row that was emitted: the event's lifetime and the fields."""

    vs: int
    ve: int | None
    fields: tuple[tuple[str, object], ...]

    def comparable(self) -> tuple[object, ...]:
        return (self.vs, self.ve, comparable(dict(self.fields)))


@dataclass
class Answer:
    """An `Answer` is what a run gives: emits by name, in order, and the final state."""

    emits: dict[str, list[Emitted]] = field(default_factory=dict)
    state: dict[str, dict[tuple[object, ...], object]] = field(default_factory=dict)


@dataclass
class EventKind:
    """An `EventKind` is what `app.events` gives."""

    name: str
    columns: tuple[str, ...]
    vs: str
    ve: str | None
    lifetime: int | None


@dataclass
class Handler:
    """A `Handler` is a function with the event types that it is for, and what it touches."""

    name: str
    function: Callable[[object], object]
    events: tuple[str, ...]
    touched: Touched


class Event:
    """An `Event` is what a handler gets: its columns, `vs` and `ve` as attributes."""

    def __init__(self, kind: EventKind, row: Row) -> None:
        values = {name: copied(row.get(name)) for name in kind.columns}
        vs = values[kind.vs]
        if kind.ve is not None:
            ve = values[kind.ve]
        else:
            ve = vs + (1 if kind.lifetime is None else kind.lifetime)  # type: ignore[operator]
        self.__dict__.update(values, vs=vs, ve=ve)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an event is immutable: {name}")


class State:
    """A `State` is what `app.state` gives; every access goes to the loop's store."""

    def __init__(self, loop: Loop, name: str) -> None:
        self._loop, self._name = loop, name

    def get(self, key: object) -> object:
        return self._loop.read(self._name, key)

    def merge(self, key: object, function: Callable[[object], object]) -> None:
        self._loop.change(self._name, key, "call", (), function)


def _ready_made(kind: str) -> Callable[..., None]:
    def method(self: State, key: object, *args: object, **named: object) -> None:
        more = tuple(named[name] for name in ("x", "k") if name in named)
        self._loop.change(self._name, key, kind, (*args, *more), None)

    return method


for _kind in ("add", "set", "max", "min", "append", "add_to_set", "top_k"):
    setattr(State, _kind, _ready_made(_kind))


class App:
    """An `App` is the stand-in for `weir.App`: it tells the loop what was declared."""

    def __init__(self, loop: Loop, name: str) -> None:
        self._loop, self.name = loop, name
        loop.app = self

    def events(
        self,
        name: str,
        columns: str,
        *,
        vs: str = "vs",
        ve: str | None = None,
        lifetime: int | None = None,
        **options: object,
    ) -> EventKind:
        names = tuple(part.split()[0] for part in _parts(columns))
        ve = ve or ("ve" if "ve" in names else None)
        return self._loop.declare_events(EventKind(name, names, vs, ve, lifetime))

    def state(
        self,
        name: str,
        default: object = None,
        *,
        type: str | None = None,
        key: object = None,
        last: int | None = None,
        expires: int | None = None,
    ) -> State:
        kind = Kind(name, None, type or _type_of(default), last, expires)
        kind.default = typed(kind, copied(default))
        self._loop.store.declare(kind)
        return State(self._loop, name)

    def param(self, name: str, default: object) -> object:
        return self._loop.params.get(name, default)

    def on(self, *events: EventKind) -> Callable[[types.FunctionType], types.FunctionType]:
        def decorate(function: types.FunctionType) -> types.FunctionType:
            self._loop.handlers.append((function, tuple(e.name for e in events)))
            return function

        return decorate

    def serial(self, *handlers: object) -> object:
        """Serial or not: the loop is serial."""
        return handlers[0] if handlers else None

    def emits(self, name: str, columns: str) -> None:
        """Types of emits: Python has none."""

    def emit(self, name: str, /, **fields: object) -> None:
        self._loop.emit(name, fields)


def _parts(columns: str) -> Iterator[str]:
    """Split a declaration at the commas that stand in no brackets."""
    depth, start = 0, 0
    for i, c in enumerate(columns):
        depth += (c in "(<") - (c in ")>")
        if c == "," and not depth:
            yield columns[start:i].strip()
            start = i + 1
    yield columns[start:].strip()


def _type_of(default: object) -> str:
    names = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}
    return names.get(type(default), "")


class Loop:
    """A `Loop` runs one app; `wrong_loops.py` has subclasses that do it wrong."""

    store_class: type[Store] = Store
    app_class: type[App] = App

    def __init__(self, source: str, params: Mapping[str, object] | None = None) -> None:
        self.params = dict(params or {})
        self.store = self.store_class()
        self.kinds: list[EventKind] = []
        self.handlers: list[tuple[types.FunctionType, tuple[str, ...]]] = []
        self.app: App | None = None
        self.event: Event | None = None
        self.view: tuple[Store, int] | None = None
        self.refused: Exception | None = None
        self.raised: Exception | None = None
        """The first failure of a state, and the last one of a merge's function."""
        self.answer = Answer()
        names = self._execute(source)
        states = {n: v._name for n, v in names.items() if isinstance(v, State)}
        functions = functions_of(ast.parse(source))
        self.known = [
            Handler(f.__name__, f, events, touched(f.__name__, functions, states))
            for f, events in self.handlers
        ]

    def _execute(self, source: str) -> dict[str, object]:
        module = types.ModuleType("weir")
        module.App = lambda name: self.app_class(self, name)  # type: ignore[attr-defined]
        module.udf = lambda *a, **k: a[0] if a else (lambda f: f)  # type: ignore[attr-defined]

        def imported(name: str, *rest: object) -> object:
            return module if name == "weir" else builtins.__import__(name, *rest)  # type: ignore[arg-type]

        loaded = types.ModuleType("weir_oracle_app")
        names = vars(loaded)
        names["__builtins__"] = {**vars(builtins), "__import__": imported}
        sys.modules[loaded.__name__] = loaded  # dataclasses look there, also those in handlers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            exec(compile(source, "app.py", "exec"), names)
        return names

    def declare_events(self, kind: EventKind) -> EventKind:
        self.kinds.append(kind)
        return kind

    # --- the loop --------------------------------------------------------------------------

    def run(self, logs: Logs, to: int | None = None) -> Answer:
        """Run all events (before `to`); the final state is as of `to`, else of the largest vs."""
        for kind, row in self.in_log_order(logs):
            if to is not None and self.time_of(kind, row) >= to:
                break
            for handler in self.in_handler_order(kind.name):
                self.event = self.event_of(kind, row)
                try:
                    handler.function(self.event)
                    if self.refused is not None:
                        raise self.refused
                except Wrong:
                    raise
                except Exception as error:
                    text = f"{handler.name}: {type(error).__name__}: {error}"
                    raise AppFailed(text, handler.name, vars(self.event)) from error
        every = [self.time_of(kind, row) for kind, row in self.in_log_order(logs)]
        end = to if to is not None else max(every, default=0)
        try:
            self.answer.state = {n: dict(self.store.listed(n, end)) for n in self.store.kinds}
        except Exception as error:
            raise AppFailed(f"final state: {error}") from error
        return self.answer

    def in_log_order(self, logs: Logs) -> list[tuple[EventKind, Row]]:
        found = []
        for number, kind in enumerate(self.kinds):
            for partition, rows in enumerate(logs[kind.name]):
                for offset, row in enumerate(rows):
                    at = self.time_of(kind, row)
                    found.append(((at, number, partition, offset), (kind, row)))
        return [event for _, event in sorted(found, key=lambda pair: pair[0])]

    def time_of(self, kind: EventKind, row: Row) -> int:
        return row[kind.vs]  # type: ignore[return-value]

    def event_of(self, kind: EventKind, row: Row) -> Event:
        return Event(kind, row)

    def in_handler_order(self, event: str) -> list[Handler]:
        """Return the handlers of an event type in the order in which they run."""
        here = [h for h in self.known if event in h.events]
        follows = {
            i: {
                j
                for j, w in enumerate(here)
                if j != i and w.touched.writes & (h.touched.reads - h.touched.writes)
            }
            for i, h in enumerate(here)
        }
        before = {i: _reached(follows, i) for i in follows}
        order: list[int] = []
        while len(order) < len(here):
            # The first that waits for nobody but those that wait for it in turn.
            first = next(
                i
                for i in follows
                if i not in order and all(j in order or i in before[j] for j in before[i])
            )
            circle = [j for j in follows if j in before[first] and first in before[j]]
            order += [first, *(j for j in circle if j != first)]
        return [here[i] for i in order]

    # --- what handlers do --------------------------------------------------------------------

    def read(self, name: str, key: object) -> object:
        assert self.event is not None
        store, at = self.view or (self.store, self.event.vs)  # type: ignore[attr-defined]
        with self.ends_the_run():
            return store.get(name, key, at)

    def change(
        self,
        name: str,
        key: object,
        kind: str,
        args: tuple[object, ...],
        function: Callable[[object], object] | None,
    ) -> None:
        if self.view is not None:
            raise Wrong("a merge function merges")
        assert self.event is not None
        at: int = self.event.vs  # type: ignore[attr-defined]
        captured = self.captured(function, at) if function else None
        with self.ends_the_run():
            self.store.merge(name, key, Merged(at, kind, tuple(copied(a) for a in args), captured))

    @contextmanager
    def ends_the_run(self) -> Iterator[None]:
        """Remember a failure of a state; those of a merge's function pass."""
        try:
            yield
        except Exception as error:
            if error is not self.raised:
                self.refused = self.refused or error
            raise

    def captured(self, function: Callable[[object], object], at: int) -> Callable[[object], object]:
        """Return the function as it is now: its variables and all states keep their values."""
        store = self.store.copy()
        if isinstance(function, types.FunctionType) and function.__closure__:
            cells = tuple(types.CellType(c.cell_contents) for c in function.__closure__)
            function = types.FunctionType(
                function.__code__,
                function.__globals__,
                function.__name__,
                function.__defaults__,
                cells,
            )

        def call(old: object) -> object:
            outer, self.view = self.view, (store, at)
            try:
                return function(old)
            except Exception as error:
                self.raised = error
                raise
            finally:
                self.view = outer

        return call

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        if self.view is not None:
            raise Wrong("a merge function emits")
        event = self.event
        assert event is not None
        row = tuple((n, copied(v)) for n, v in fields.items())
        self.answer.emits.setdefault(name, []).append(Emitted(event.vs, event.ve, row))  # type: ignore[attr-defined]


def _reached(follows: Mapping[int, set[int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = list(follows[start])
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += follows[i]
    return found


def run_serially(
    source: str,
    logs: Logs,
    params: Mapping[str, object] | None = None,
    to: int | None = None,
    loop: type[Loop] = Loop,
) -> Answer:
    """Run an app's source text over logs."""
    return loop(source, params).run(logs, to)


Comparable = tuple[dict[str, Counter[tuple[object, ...]]], dict[str, dict[object, object]]]


def comparable_answer(answer: Answer, *, numbered: bool = False) -> Comparable:
    """Return an answer so that two of them are equal where §3.1 says so: emits as a bag of rows,
    without names of which nothing came. With `numbered`, rows have their place, from 1."""
    given = {n: _numbered(rows) if numbered else rows for n, rows in answer.emits.items() if rows}
    emits = {n: Counter(e.comparable() for e in rows) for n, rows in given.items()}
    state = {n: {k: comparable(v) for k, v in cells.items()} for n, cells in answer.state.items()}
    return emits, state  # type: ignore[return-value]


def _numbered(rows: Sequence[Emitted]) -> list[Emitted]:
    return [replace(row, fields=(*row.fields, (NUMBER, n))) for n, row in enumerate(rows, 1)]
