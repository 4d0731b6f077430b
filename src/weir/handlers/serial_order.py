"""The order in which the handlers of each event type run, for who runs them one by one."""

from __future__ import annotations

from types import FunctionType

from weir.handlers.accesses import Analysed
from weir.handlers.app import App
from weir.handlers.handler_order import handler_order
from weir.handlers.reach import Reach
from weir.handlers.state_uses import state_uses


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
