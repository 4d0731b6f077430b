"""Runs an app over streams of a program instead of its logs: `APP spam(message = M)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.errors import PlanError
from weir.events.types import type_name
from weir.handlers.api.declarations import EventType
from weir.plan.binding.binder import unknown
from weir.plan.fluent.stream import Stream


def with_streams(events: Mapping[str, EventType], streams: Mapping[str, Stream]) -> list[EventType]:
    """Return an app's event types, with these streams in place of the logs of some.

    PlanError if a stream lacks a column of its events, or has it in another type.
    """
    for name in streams:
        if name not in events:
            raise unknown("event type", name, events)
    return [
        replace(event, stream=_fitted(event, streams[name]), path=None, options=None)
        if name in streams
        else event
        for name, event in events.items()
    ]


def _fitted(event: EventType, stream: Stream) -> Stream:
    """Return a stream with only the columns that events have."""
    types = dict(stream.schema.columns)
    what = f"the stream `{stream.name}`" if stream.name else "the stream"
    for name, dtype in event.columns:
        if name not in types:
            columns = ", ".join(types) or "none"
            raise PlanError(
                f"{what} has no column `{name}`, which events of `{event.name}` have",
                hint=f"its columns are {columns}",
            )
        if types[name] != dtype:
            raise PlanError(
                f"the column `{name}` of events of `{event.name}` is {type_name(dtype)}, and that "
                f"of {what} is {type_name(types[name])}",
                hint=f"CAST({name} AS {type_name(dtype)})",
            )
    names = [name for name, _ in event.columns]
    return stream if names == list(types) else stream.select(*names)
