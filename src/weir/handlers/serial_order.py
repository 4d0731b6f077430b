"""What the serial loop needs to know of an app: its events, and the order of its handlers."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType

from weir.handlers.accesses import Analysed
from weir.handlers.app import App
from weir.handlers.entrance import entrance
from weir.handlers.handler_order import handler_order
from weir.handlers.reach import Reach
from weir.handlers.state_uses import state_uses
from weir.plan.operators import Node


def serial_order(app: App) -> dict[str, tuple[str, ...]]:
    """Return the names of handlers by event type: those that write a state before those that only
    read it, by their text; else in order of definition."""
    reach, none = Reach(app), frozenset[str]()
    uses = {}
    for name, handler in app.handlers.items():
        assert isinstance(handler.function, FunctionType)
        uses[name] = state_uses(handler.function, reach)
    return {
        event.name: handler_order([
            Analysed(name, event.name, (), *uses[name], none)
            for name, handler in app.handlers.items()
            if event in handler.events
        ])
        for event in app.event_types.values()
    }  # fmt: skip


def event_rows(
    app: App, paths: Mapping[str, str], start: int | None = None, end: int | None = None
) -> dict[str, Node]:
    """Return the rows of each event type as the app's handlers get them; see `entrance`."""
    return entrance(list(app.event_types.values()), paths, start, end).rows
