"""The oracle's serial loop for code of every kind: real lists and dicts, each handler its own.

`replay_oracle.loop` hands out values that nobody can change. Drawn code changes what it gets, so
here an event and what a state holds are copies, and what is merged or emitted has to be of its
declared type.
"""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from python_apps.apps import Touches
from replay_oracle.accesses_found import Touched
from replay_oracle.loop import Answer, AppFailed, Event, Handler, Logs, Loop, Row

# Where dataclasses look up the names of annotations that are texts.
sys.modules.setdefault("weir_oracle_app", types.ModuleType("weir_oracle_app"))


class StructCopy(dict):  # type: ignore[type-arg]
    """A `StructCopy` is a struct as a handler gets it: a dict whose fields are attributes."""

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Unfit(TypeError):
    """An `Unfit` says that a value is not of its declared type."""


def copied(value: object) -> object:
    """Return a value that shares nothing with this one that could be changed."""
    if isinstance(value, list | tuple):
        return [copied(part) for part in value]
    if isinstance(value, dict):
        return StructCopy({name: copied(part) for name, part in value.items()})
    return value


def check_fits(type: str, value: object) -> None:
    """Raise Unfit unless a value is of a type; NULL is of every type."""
    if value is None:
        return
    if type.startswith("LIST("):
        if not isinstance(value, list | tuple):
            raise Unfit(f"{value!r} is no {type}")
        for part in value:
            check_fits(type[5:-1], part)
    elif type.startswith("STRUCT("):
        fields = [part.split() for part in type[7:-1].split(", ")]
        if not isinstance(value, dict) or set(value) != {name for name, _ in fields}:
            raise Unfit(f"{value!r} is no {type}")
        for name, inner in fields:
            check_fits(inner, value[name])
    else:
        kind = {"BIGINT": int, "DOUBLE": (float, int), "STRING": str, "BOOLEAN": bool}[type]
        if not isinstance(value, kind) or (isinstance(value, bool) and type != "BOOLEAN"):  # type: ignore[arg-type]
            raise Unfit(f"{value!r} is no {type}")
        if type == "BIGINT" and not -(2**63) <= value < 2**63:  # type: ignore[operator]
            raise Unfit(f"{value!r} is beyond BIGINT")
        if (
            type == "DOUBLE"
            and isinstance(value, int)
            and (abs(value) >= 2**1023 or float(value) != value)
        ):
            raise Unfit(f"{value!r} is no DOUBLE exactly")


@dataclass
class Failure:
    """A `Failure` is what ended a loop: the exception as text, None where a value did not fit."""

    handler: str
    event: Mapping[str, object]
    text: str | None


class PythonLoop(Loop):
    """A `PythonLoop` runs one drawn app; handlers are ordered by what they touch, or as said."""

    def __init__(
        self, source: str, touches: Touches | None, order: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._touches, self._order = touches, order
        self.emit_types = _emit_types(source)
        self.failure: Failure | None = None
        self.later_failures: list[AppFailed] = []
        """What the other handlers of the event that failed would have failed with."""
        self.taken = 0
        super().__init__("")
        self._execute(source)
        self.known = [
            Handler(f.__name__, f, events, self._touched(f.__name__)) for f, events in self.handlers
        ]

    def _touched(self, name: str) -> Touched:
        reads, writes = (self._touches or {}).get(name, ((), ()))
        return Touched(set(reads), set(writes))

    def in_handler_order(self, event: str) -> list[Handler]:
        if self._order is None:
            return super().in_handler_order(event)
        by_name = {handler.name: handler for handler in self.known}
        return [by_name[name] for name in self._order.get(event, ())]

    def run(self, logs: Logs, to: int | None = None) -> Answer:
        events = self.in_log_order(logs)
        orders = {kind.name: self.in_handler_order(kind.name) for kind in self.kinds}
        for kind, row in events:
            self.taken += 1
            for number, handler in enumerate(orders[kind.name]):
                self.event = _event(kind, row)
                try:
                    handler.function(self.event)
                except Exception as error:
                    event = vars(Event(kind, row))
                    unfit = isinstance(error, Unfit | OverflowError)
                    text = _text_of(error)
                    self.failure = Failure(handler.name, event, None if unfit else text)
                    self._try_others(kind, row, orders[kind.name][number + 1 :])
                    raise AppFailed(text, handler.name, event) from error
        end = max((row["ts"] for _, row in events), default=0)
        try:
            self.answer.state = {n: dict(self.store.listed(n, end)) for n in self.store.kinds}  # type: ignore[arg-type]
        except Exception as error:
            raise AppFailed(f"final state: {error}") from error
        return self.answer

    def _try_others(self, kind: Any, row: Row, handlers: Sequence[Handler]) -> None:
        for handler in handlers:
            self.event = _event(kind, row)
            try:
                handler.function(self.event)
            except Exception as error:
                event = vars(Event(kind, row))
                self.later_failures.append(AppFailed(_text_of(error), handler.name, event))

    def read(self, name: str, key: object) -> object:
        return copied(super().read(name, key))

    def change(
        self,
        name: str,
        key: object,
        kind: str,
        args: tuple[object, ...],
        function: Callable[[object], object] | None,
    ) -> None:
        type = self.store.kinds[name].type
        if self.view is not None:
            raise TypeError("a merge's function merges")
        if kind != "call":
            value = int(args[0]) if kind == "add" and isinstance(args[0], bool) else args[0]
            if value is None and kind in ("add", "max", "min"):
                raise Unfit(f"{kind} of None")
            check_fits(type[5:-1] if kind in ("append", "add_to_set", "top_k") else type, value)
            args = (value, *args[1:])
        elif function is not None:
            function = _checked(function, type)
        super().change(name, key, kind, args, function)

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        if self.view is not None:
            raise TypeError("a merge's function emits")
        for field, type in self.emit_types[name].items():
            check_fits(type, fields[field])
        super().emit(name, fields)


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _checked(function: Callable[[object], object], type: str) -> Callable[[object], object]:
    def call(old: object) -> object:
        new = function(copied(old))
        check_fits(type, new)
        return new

    return call


def _event(kind: object, row: Row) -> Event:
    made = Event(kind, row)  # type: ignore[arg-type]
    for name, value in row.items():
        made.__dict__[name] = copied(value)
    return made


def _emit_types(source: str) -> dict[str, dict[str, str]]:
    """Return the types of emitted fields, as the text declares them."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        match node:
            case ast.Expr(ast.Call(ast.Attribute(attr="emits"), [name, columns])):
                assert isinstance(name, ast.Constant) and isinstance(columns, ast.Constant)
                parts = re.findall(r"(\w+) (\w+(?:\([^)]*\))?)", str(columns.value))
                found[str(name.value)] = dict(parts)
    return found
