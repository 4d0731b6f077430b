"""What a user's operator gets: events, and a context that emits rows and sets timers."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from weir.events.batch import LATEST, OPEN, START
from weir.events.types import BIGINT
from weir.kernels.expressions.user_values import Misfit, converter, plain_value


class Event:
    """A row as the user's code sees it: `event.Amount`, `event["Amount"]`, `event.vs`.

    `event.ve` is None while the event is open; `event.input` is 0 or 1 in COMBINE.
    """

    __slots__ = ("input", "values", "ve", "vs")

    def __init__(self, vs: int, ve: int, values: dict[str, object], port: int) -> None:
        self.vs = vs
        self.ve = None if ve == OPEN else ve
        self.values = values
        self.input = port

    def __getitem__(self, name: str) -> object:
        return self.values[name]

    def __getattr__(self, name: str) -> object:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"the event has no column {name}") from None

    def __reduce__(self) -> tuple[object, ...]:
        # An `OperatorFailed` carries events across processes. Unpickling by slots would read
        # columns before they are set.
        return Event, (self.vs, OPEN if self.ve is None else self.ve, self.values, self.input)

    def __repr__(self) -> str:
        return repr({"vs": self.vs, "ve": self.ve, **self.values})


class Context:
    """Lets the user's code `emit` rows and `set_timer`s; `now` is the current time.

    It is the same object in all calls. It may be used only during a call, in the thread of the
    call.
    """

    def __init__(self, columns: Sequence[tuple[str, pa.DataType]] = ()) -> None:
        self.now = START
        self.timers: list[int] = []
        self.rows: list[tuple[int, int, int, list[object]]] = []
        self._columns = [(name, converter(dtype)) for name, dtype in columns]
        self._names = frozenset(name for name, _ in columns)
        self._final = START
        self._thread: int | None = None

    def begin(self, now: int, final: int) -> None:
        self.now, self._final = now, final
        self._thread = threading.get_ident()

    def end(self) -> None:
        self._thread = None

    def emit(self, *, vs: int | None = None, ve: int | None = None, **columns: object) -> None:
        """Emit a row that is valid from `vs` (default: now) to `ve` (default: one tick later)."""
        self._check_running("emit")
        start = self.now if vs is None else _time(vs, "vs")
        end = start + 1 if ve is None else _time(ve, "ve")
        if start < self.now:
            raise ValueError(f"emit at vs = {start}, which is before the current time {self.now}")
        if not columns.keys() <= self._names:
            unknown = sorted(columns.keys() - self._names)
            declared = ", ".join(name for name, _ in self._columns)
            raise TypeError(
                f"it emits {unknown}, which it does not declare; its columns are {declared}"
            )
        row = []
        for name, convert in self._columns:
            try:
                row.append(convert(columns.get(name)))
            except Misfit as misfit:
                raise TypeError(f"column {name} must be {misfit}") from None
        if start < end:
            self.rows.append((self._final, start, end, row))

    def set_timer(self, time: int) -> None:
        """Ask for a call of `on_time(time)`; raise an error unless the time is still to come."""
        self._check_running("set_timer")
        time = _time(time, "a timer")
        if time <= self.now:
            raise ValueError(f"a timer at {time}, which is not after the current time {self.now}")
        self.timers.append(time)

    def _check_running(self, what: str) -> None:
        if self._thread != threading.get_ident():
            raise RuntimeError(f"{what} outside of on_event and on_time, or in another thread")


def _time(value: object, what: str) -> int:
    """Return the ticks of a time, or of an open end, from the user's code.

    Raise TypeError or ValueError if it is invalid."""
    try:
        time = plain_value(value, BIGINT)
    except Misfit as misfit:
        raise TypeError(f"{what} must be {misfit}") from None
    if not isinstance(time, int):
        raise TypeError(f"{what} must be BIGINT, not None")
    if abs(time) > LATEST and (time, what) != (OPEN, "ve"):
        raise ValueError(f"{what} = {time}, which is beyond ±2⁶² ticks")
    return time
