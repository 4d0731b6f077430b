"""Writes, for errors, the event on which an operator failed.

Columns that Weir added for itself (`$…`) are left out.
"""

from __future__ import annotations

from weir.errors import EventFailed, FailedRow, OperatorFailed
from weir.events.batch import Batch
from weir.kernels.expressions.evaluation import RowFailure, shown_time, shown_value
from weir.plan.schema import Schema


def event_at(batch: Batch, schema: Schema, row: int) -> dict[str, object]:
    """Return one event as messages show it: its lifetime (an open end is None), then its
    columns."""
    lifetime = (("vs", batch.vs), ("ve", batch.ve))
    event = {name: shown_time(int(times[row]), schema.time) for name, times in lifetime}
    for name, column in zip(schema.names, batch.columns, strict=True):
        if not name.startswith("$"):
            event[name] = shown_value(column[row])
    return event


def failed_row(batch: Batch, row: int, port: int = 0) -> FailedRow:
    """Say which row of an operator's input it is."""
    return FailedRow(port, row, tuple(int(column[row]) for column in batch.origin))


def named_failure(failure: RowFailure, batch: Batch, schema: Schema, port: int = 0) -> EventFailed:
    """Make the error that users see, with the event."""
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
