"""Makes the error for a difference between the engine and the serial loop."""

from __future__ import annotations

import linecache

import pyarrow as pa

from weir.errors import ProgramPlace, ReplayDiffers
from weir.events.batch import OPEN
from weir.handlers.api.app import App
from weir.kernels.expressions.evaluation import shown_time, shown_value
from weir.shadow.comparison import SerialDifference
from weir.shadow.serial_loop import HandlerLine, LogEvent


def difference_error(
    app: App,
    difference: SerialDifference,
    *,
    number: int = 0,
    event: LogEvent | None = None,
    input: str = "",
    at: HandlerLine | None = None,
    variant: str = "",
) -> ReplayDiffers:
    """Make the error of a difference at an event, which stands at `input`; they count from 1, and 0
    is unknown. `at` is a line of the user's, `variant` is one of several."""
    what = f"{difference.what} with {variant}".strip() if variant else difference.what
    return ReplayDiffers(
        what,
        loop=difference.loop,
        engine=difference.engine,
        number=number,
        event=None if event is None else shown_event(app, event),
        input=input,
        handler="" if at is None else at.handler,
        place=None if at is None else _place(at),
    )


def shown_event(app: App, event: LogEvent) -> dict[str, object]:
    """Return an event as messages show it."""
    declared = app.event_types[event.type]
    ends = {"vs": event.vs, "ve": OPEN if event.ve is None else event.ve}
    shown = {name: shown_time(ticks, declared.schema.time) for name, ticks in ends.items()}
    for (name, dtype), value in zip(declared.columns, event.values, strict=True):
        shown[name] = shown_value(pa.scalar(value, dtype))
    return shown


def _place(at: HandlerLine) -> ProgramPlace:
    linecache.checkcache(at.file)
    return ProgramPlace(at.line, 1, at.file, linecache.getline(at.file, at.line).strip())
