"""The *running* event: what states, emits and parameters use while a handler runs row by row.

Contract
1. `State.get`, `State.merge` and the other merges, `App.emit` and parameters ask `current()`; they
   know only their own names. So an app from another process works with the cells of this one.
2. The runner of a handler (`serial_code.py`) calls it within `running_with(…)`, which holds for its
   thread and restores what was running before when it ends.
3. The event is an instance of the class that `event_class` makes: attributes for the columns, `vs`
   and `ve` in ticks (`ve` None: open); it cannot be changed.
"""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from weir.errors import PlanError
from weir.plan.states import MergeKind


class RunningEvent(Protocol):
    """The surroundings of one event in a run: cells, emitted rows, parameters."""

    def get(self, state: str, key: tuple[object, ...]) -> object: ...

    def merge(
        self,
        state: str,
        key: tuple[object, ...],
        kind: MergeKind,
        args: tuple[object, ...],
        function: Callable[..., object] | None,
    ) -> None: ...

    def emit(self, name: str, fields: Mapping[str, object]) -> None: ...

    def param(self, name: str) -> object: ...


_TupleField: Any = type(namedtuple("_One", "field").field)  # type: ignore[attr-defined]
"""The descriptor of a named tuple's field, which is read without a call."""


class _Here(threading.local):
    running: RunningEvent | None = None


_here = _Here()


def current(
    what: str, hint: str = "app.replay(…) and app.emitted(…) run the handlers"
) -> RunningEvent:
    """Return the event that runs in this thread; `what` and `hint` are for the error if none does.

    >>> current("seen.get()")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    weir.errors.PlanError: seen.get() works inside of handlers, while an app runs; ...
    """
    if _here.running is None:
        raise PlanError(f"{what} works inside of handlers, while an app runs", hint=hint)
    return _here.running


@contextmanager
def running_with(context: RunningEvent) -> Iterator[None]:
    """Connect states, emits and parameters in this thread to `context`, for a time."""
    before = _here.running
    _here.running = context
    try:
        yield
    finally:
        _here.running = before


def event_class(name: str, columns: Iterable[str]) -> Callable[[tuple[object, ...]], object]:
    """Make the class of an event type's events; it takes a tuple (vs, ve, values of the columns …).

    >>> message = event_class("message", ["id", "text"])((7, None, 1, "hi"))
    >>> message.vs, message.ve, message.text, message
    (7, None, 'hi', message(vs=7, ve=None, id=1, text='hi'))
    >>> message.text = "ho"
    Traceback (most recent call last):
    AttributeError: can't set attribute
    """
    names = ("vs", "ve", *columns)

    def shown(event: tuple[object, ...]) -> str:
        return f"{name}({', '.join(f'{n}={v!r}' for n, v in zip(names, event, strict=True))})"

    # A named tuple is the fastest immutable object with attributes in Python.
    attributes: dict[str, object] = {n: _TupleField(i, n) for i, n in enumerate(names)}
    return type(name, (tuple,), {"__slots__": (), "__repr__": shown, **attributes})
