"""Adds the names of the group and the window to failures of aggregates.

The code that fails knows little. A sum knows the number of its result (`RowFailure`), a user's
aggregate the operation that it was at (`OperationFailure`), a window the number of its group
(`GroupFailure`). The kernel, which knows groups and windows, turns each of these into a
`GroupFailure`. With the group's keys, `GroupFailure.named` makes the error for users, which names
the event, or the window and the group. Only that error leaves the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed, Position, ProgramPlace, RunError, cut_off
from weir.kernels.expressions.evaluation import RowFailure, UserCode, shown_python, shown_time
from weir.kernels.structures.panes import Operations, Results
from weir.kernels.structures.panes_loops import EMIT


class OperationFailure(Exception):
    """A user's aggregate failed at this operation, perhaps on an event."""

    def __init__(
        self, at: int, why: str, user_code: UserCode, event: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(why)
        self.at, self.why, self.user_code, self.event = at, why, user_code, event


class GroupFailure(Exception):
    """A group's result cannot be computed; the window or the event is included if there is one."""

    def __init__(
        self,
        group: int,
        why: str,
        *,
        window: tuple[int, int] | None = None,
        user_code: UserCode | None = None,
        event: Mapping[str, object] | None = None,
        place: Position | None = None,
    ) -> None:
        super().__init__(why)
        self.group, self.why, self.window = group, why, window
        self.user_code, self.event, self.place = user_code, event, place

    def named(self, keys: Mapping[str, object], time: pa.DataType) -> RunError:
        """Return the error that users see; `time` is the type of the window's bounds."""
        window = _window_text(self.window, keys, time)
        user, place = self.user_code, self.place
        if user is None:
            text = f"in {cut_off(window)}: {cut_off(self.why)}"
            return RunError(place.pointed(text) if isinstance(place, ProgramPlace) else text)
        return OperatorFailed(
            function=user.function,
            file=user.file,
            line=user.line,
            cause=self.why,
            event=window if self.event is None else _event(self.event, keys, time),
            place=user.place,
        )


def located(
    failure: OperationFailure | RowFailure, operations: Operations, results: Results
) -> GroupFailure:
    """Return the failure with the group of its operation and the window of its result."""
    emits = np.flatnonzero(operations.kinds == EMIT)
    at = failure.at if isinstance(failure, OperationFailure) else int(emits[failure.row])
    group = int(operations.groups[at])
    following = np.flatnonzero((emits >= at) & (operations.groups[emits] == group))
    rows = np.flatnonzero(results.emit == following[0]) if len(following) else following
    window = (int(results.vs[rows[0]]), int(results.ve[rows[0]])) if len(rows) else None
    event = failure.event if isinstance(failure, OperationFailure) else None
    place = failure.place if isinstance(failure, RowFailure) else None
    return GroupFailure(
        group, failure.why, window=window, user_code=failure.user_code, event=event, place=place
    )


def key_text(keys: Mapping[str, object]) -> str:
    """Write the keys as `k = 'a', j = 2`; of a computed key, only the value."""
    named = (
        f"{name} = {value!r}" if name[0] != "$" else repr(value) for name, value in keys.items()
    )
    return ", ".join(named)


def _window_text(
    window: tuple[int, int] | None, keys: Mapping[str, object], time: pa.DataType
) -> str:
    if window is None:
        return f"the group {key_text(keys)}" if keys else "the group of all events"
    start, end = (shown_time(bound, time) for bound in window)
    shown = f"window [{start}, {'open' if end is None else end})"
    return f"{shown} of {key_text(keys)}" if keys else shown


def _event(
    event: Mapping[str, object], keys: Mapping[str, object], time: pa.DataType
) -> dict[str, object]:
    """Return the event's lifetime, keys and other values by name; a computed value has a number."""
    lifetime = {n: t if t is None else shown_time(t, time) for n, t in _lifetime(event)}
    named = {_label(n, "key", i): v for i, (n, v) in enumerate(keys.items(), 1)}
    rest = [(n, v) for n, v in event.items() if n not in lifetime]
    return {
        **lifetime,
        **named,
        **{_label(n, "argument", i): shown_python(v) for i, (n, v) in enumerate(rest, 1)},
    }


def _lifetime(event: Mapping[str, object]) -> Iterator[tuple[str, int | None]]:
    for name in ("vs", "ve"):
        time = event[name]
        assert time is None or isinstance(time, int)
        yield name, time


def _label(name: str, kind: str, number: int) -> str:
    return f"{kind} {number}" if name[0] == "$" else name
