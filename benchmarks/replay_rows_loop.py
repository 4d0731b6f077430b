"""The plain loop that row-by-row code is compared with: the app's own functions over real dicts.

A stand-in for the module `weir` runs an app's file: states are dicts, `get` gives what lies in the
dict (no copy, no check), an event is a named tuple, what is emitted goes to a list.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq


class State:
    """A state as a dict; `fresh` makes the default of a key that is new."""

    def __init__(self, name: str, default: Any = None, **_: object) -> None:
        self.name, self.default = name, default
        self.cells: dict[Any, Any] = {}
        kind = type(default)
        self.fresh = (lambda: kind(default)) if kind in (list, dict) else lambda: default
        if kind not in (list, dict):
            cells = self.cells
            self.get = lambda key: cells.get(key, default)

    def get(self, key: Any) -> Any:
        if key not in self.cells:
            return self.fresh()
        return self.cells[key]

    def set(self, key: Any, x: Any) -> None:
        self.cells[key] = x

    def add(self, key: Any, x: Any) -> None:
        self.cells[key] = self.cells.get(key, self.default) + x

    def max(self, key: Any, x: Any) -> None:
        self.cells[key] = max(self.cells.get(key, self.default), x)

    def append(self, key: Any, x: Any) -> None:
        self.cells.setdefault(key, []).append(x)

    def merge(self, key: Any, function: Callable[[Any], Any]) -> None:
        self.cells[key] = function(self.get(key))


class App:
    """An app: one event type, whose handlers run in order of definition."""

    def __init__(self, name: str) -> None:
        self.emitted: list[tuple[str, dict[str, Any]]] = []
        self.states: dict[str, State] = {}
        self.handlers: list[Callable[[Any], None]] = []

    def events(self, name: str, columns: str, **_: object) -> str:
        self.columns = [part.split()[0] for part in columns.split(",")]
        return name

    def state(self, name: str, default: Any = None, **options: Any) -> State:
        self.states[name] = State(name, default, **options)
        return self.states[name]

    def on(self, event: str) -> Callable[[Any], Any]:
        def decorate(function: Callable[[Any], None]) -> Callable[[Any], None]:
            self.handlers.append(function)
            return function

        return decorate

    def serial(self, function: Any) -> Any:
        return function

    def emits(self, name: str, columns: str) -> None:
        """Types: Python has none."""

    def emit(self, name: str, **fields: Any) -> None:
        self.emitted.append((name, fields))


def plain_app(path: Path) -> App:
    """Run an app's file with the stand-in."""
    weir, home = ModuleType("weir"), ModuleType("plain")
    weir.App = App  # type: ignore[attr-defined]
    before = sys.modules["weir"]
    sys.modules["weir"] = weir
    sys.modules["plain"] = home  # dataclasses look up the module of their class
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(home))
    finally:
        sys.modules["weir"] = before
        del sys.modules["plain"]
    app: App = home.app
    return app


def run_plainly(path: Path, log: Path) -> App:
    """Read the log, make an event of each row, and call the handlers."""
    app = plain_app(path)
    event = namedtuple("event", app.columns)._make  # type: ignore[misc]
    table = pq.read_table(log, columns=app.columns, use_threads=False)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    handlers = app.handlers
    if len(handlers) == 1:
        (handler,) = handlers
        for row in rows:
            handler(event(row))
    else:
        for row in rows:
            e = event(row)
            for handler in handlers:
                handler(e)
    return app
