"""Converts the event on which an operator failed to the form that errors show.

Columns that Weir added for itself (`$…`) are left out.
"""

from __future__ import annotations

from weir.errors import EventFailed, FailedRow, OperatorFailed
from weir.events.batch import Batch
from weir.kernels.expressions.evaluation import RowFailure, shown_time, shown_value
from weir.plan.schema import Schema


def event_at(batch: Batch, schema: Schema, row: int) -> dict[str, object]:
    """Return one event as messages show it: lifetime (None for an open end), then columns."""
    lifetime = (("vs", batch.vs), ("ve", batch.ve))
    event = {name: shown_time(int(times[row]), schema.time) for name, times in lifetime}
    for name, column in zip(schema.names, batch.columns, strict=True):
        if not name.startswith("$"):
            event[name] = shown_value(column[row])
    return event


def failed_row(batch: Batch, row: int, port: int = 0) -> FailedRow:
    """Return a row's place in its operator's input: the port, the position and the origin."""
    return FailedRow(port, row, tuple(int(column[row]) for column in batch.origin))


def named_failure(failure: RowFailure, batch: Batch, schema: Schema, port: int = 0) -> EventFailed:
    """Return the error that users see, with the event."""
    event, row = event_at(batch, schema, failure.row), failed_row(batch, failure.row, port)
    user = failure.user_code
    if user is None:
        return EventFailed(failure.why, event=event, place=failure.place, row=row)
    return OperatorFailed(
        function=user.function,
        file=user.file,
        line=user.line,
        event=event,
        cause=failure.why,
        place=user.place,
        row=row,
    )
