"""Loops with one mistake each: examples and programs that cannot tell them from the right loop
prove nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from replay_oracle import wrong_stores
from replay_oracle.cells import Store
from replay_oracle.loop import Answer, EventKind, Handler, Logs, Loop, Row


def _with_store(store: type[Store]) -> type[Loop]:
    return type(store.__name__, (Loop,), {"store_class": store, "__doc__": store.__doc__})


# --- order -----------------------------------------------------------------------------------


class HandlersAsDefined(Loop):
    """Handlers run in order of definition only."""

    def in_handler_order(self, event: str) -> list[Handler]:
        return [h for h in self.known if event in h.events]


class ReadersFirst(Loop):
    """Who only reads runs before who writes."""

    def in_handler_order(self, event: str) -> list[Handler]:
        return super().in_handler_order(event)[::-1]


class WritersBackwards(Loop):
    """Handlers that are free run in the reverse order of definition."""

    def in_handler_order(self, event: str) -> list[Handler]:
        self.known = self.known[::-1]
        found = super().in_handler_order(event)
        self.known = self.known[::-1]
        return found


class _Ordered(Loop):
    def in_log_order(self, logs: Logs) -> list[tuple[EventKind, Row]]:
        found = [
            (self.place(row[kind.vs], number, partition, offset), (kind, row))  # type: ignore[arg-type]
            for number, kind in enumerate(self.kinds)
            for partition, rows in enumerate(logs[kind.name])
            for offset, row in enumerate(rows)
        ]
        return [event for _, event in sorted(found, key=lambda pair: pair[0])]

    def place(self, vs: int, number: int, partition: int, offset: int) -> tuple[int, ...]:
        raise NotImplementedError


class TypesBackwards(_Ordered):
    """At one vs the type that was declared last comes first."""

    def place(self, vs: int, number: int, partition: int, offset: int) -> tuple[int, ...]:
        return vs, -number, partition, offset


class PartitionsBackwards(_Ordered):
    """At one vs the last partition comes first."""

    def place(self, vs: int, number: int, partition: int, offset: int) -> tuple[int, ...]:
        return vs, number, -partition, offset


class OffsetsBackwards(_Ordered):
    """Rows of one time are taken from the end."""

    def place(self, vs: int, number: int, partition: int, offset: int) -> tuple[int, ...]:
        return vs, number, partition, -offset


class TypeAfterType(_Ordered):
    """All events of a type go before those of the next."""

    def place(self, vs: int, number: int, partition: int, offset: int) -> tuple[int, ...]:
        return number, vs, partition, offset


class PartitionAfterPartition(_Ordered):
    """All rows of a partition go before those of the next."""

    def place(self, vs: int, number: int, partition: int, offset: int) -> tuple[int, ...]:
        return partition, vs, number, offset


class ElementsBackwards(Loop):
    """Lists are taken from their end."""

    def in_log_order(self, logs: Logs) -> list[tuple[EventKind, Row]]:
        def turned(row: Row) -> Row:
            return {n: v[::-1] if isinstance(v, list) else v for n, v in row.items()}

        return [(kind, turned(row)) for kind, row in super().in_log_order(logs)]


class OuterEmitsFirst(Loop):
    """What an event emits in loops comes behind all else that it emits."""

    def __init__(self, source: str, params: Mapping[str, object] | None = None) -> None:
        loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.For)]
        self.in_loops = {n for loop in loops for n in range(loop.lineno, loop.end_lineno + 1)}  # type: ignore[operator]
        self.inner: dict[str, tuple[object, int]] = {}
        super().__init__(source, params)

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        super().emit(name, fields)
        event, inner = self.inner.get(name, (None, 0))
        inner = inner if event is self.event else 0
        inside = sys._getframe(2).f_lineno in self.in_loops  # that of `app.emit`
        if not inside:
            rows = self.answer.emits[name]
            rows.insert(len(rows) - 1 - inner, rows.pop())
        self.inner[name] = self.event, inner + inside


# --- what a read sees --------------------------------------------------------------------------


class _Stale(Loop):
    """Reads see an older copy of the states."""

    def run(self, logs: Logs, to: int | None = None) -> Answer:
        self.old, self.taken = self.store.copy(), None
        return super().run(logs, to)

    def mark(self) -> object:
        raise NotImplementedError

    def read(self, name: str, key: object) -> object:
        if self.taken != self.mark():
            self.old, self.taken = self.store.copy(), self.mark()  # type: ignore[assignment]
        assert self.event is not None
        return self.old.get(name, key, self.event.vs)  # type: ignore[attr-defined]

    def change(
        self,
        name: str,
        key: object,
        kind: str,
        args: tuple[object, ...],
        function: Callable[[object], object] | None,
    ) -> None:
        self.read(name, key)
        super().change(name, key, kind, args, function)


class SameEventUnseen(_Stale):
    """Reads do not see merges of their own event."""

    def mark(self) -> object:
        return id(self.event)


class SameInstantUnseen(_Stale):
    """Reads do not see merges of their own instant."""

    def mark(self) -> object:
        return self.event.vs if self.event else None  # type: ignore[attr-defined]


class LaterMergesSeen(Loop):
    """Reads see the later merges of their own event."""

    def in_handler_order(self, event: str) -> list[Handler]:
        return [self._twice(h) for h in super().in_handler_order(event)]

    def _twice(self, handler: Handler) -> Handler:
        def run(event: object) -> None:
            before, emitted = self.store.copy(), self.answer.emits
            self.answer.emits = {}
            handler.function(event)
            self.ahead, self.store = self.store, before
            self.answer.emits = emitted
            handler.function(event)
            self.ahead = None  # type: ignore[assignment]

        return replace(handler, function=run)

    ahead: Store | None = None

    def read(self, name: str, key: object) -> object:
        if self.ahead is None or self.view is not None:
            return super().read(name, key)
        assert self.event is not None
        return self.ahead.get(name, key, self.event.vs)  # type: ignore[attr-defined]


class LateFunctions(Loop):
    """A function of a window sees the states as they are at the read."""

    def captured(self, function: Callable[[object], object], at: int) -> Callable[[object], object]:
        return function


class NoParameters(Loop):
    """Parameters have their defaults."""

    def __init__(self, source: str, params: Mapping[str, object] | None = None) -> None:
        super().__init__(source, None)


def _loops() -> tuple[type[Loop], ...]:
    found: list[type[Loop]] = []
    for thing in (*globals().values(), *vars(wrong_stores).values()):
        if isinstance(thing, type) and not thing.__name__.startswith("_"):
            if issubclass(thing, Loop) and thing is not Loop:
                found.append(thing)
            elif issubclass(thing, Store) and thing is not Store:
                found.append(_with_store(thing))
    return tuple(found)


WRONG_LOOPS = _loops()
