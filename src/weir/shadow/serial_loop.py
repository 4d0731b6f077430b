"""The plain serial loop: runs an app's own functions on one event after the other, in log order.

This is what an app means (`docs/reference/handlers.md`). The engine computes the same for many
events at a time, and a shadow run compares the two (`comparison.py`). Nothing here is optimised.

Rules
1. CPython runs the user's functions unchanged. States and emits reach the loop through
   `handlers/runs/running_event.py`; cells are in `serial_cells.py`. While handlers run, parameters
   are their plain values.
2. Each handler gets its own copies of the event and of states' values. It may change a list that it
   got, and no other handler sees the change.
3. An emitted row has the lifetime of its event, and values of the stream's types.
4. The first exception ends the loop; rows that the failing event emitted before it do not count. An
   error of a state or an emit ends the loop even if a handler catches it. A handler may catch what
   a merge's function raises.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import pyarrow as pa

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.runs.live_handles import ParamPlace, param_places, params_set
from weir.handlers.runs.running_event import event_class, running_with
from weir.plan.states import MergeKind
from weir.plan.usercode.functions import describe
from weir.shadow.serial_cells import CellKey, SerialCells, Unfit, copied, fit, same_as_key


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event: its type, its lifetime (`ve` None: open), its columns' values."""

    type: str
    vs: int
    ve: int | None
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class HandlerLine:
    """A line of the user's code in a handler."""

    handler: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class LoopRow:
    """A row that the loop emitted, with its event and line; events are numbered from 0."""

    name: str
    vs: int
    ve: int | None
    values: tuple[object, ...]
    event: int
    at: HandlerLine


class LoopFailed(Exception):
    """A handler raised, or a value did not fit: at which event, why, and at which line."""

    def __init__(self, event: int, cause: str, at: HandlerLine) -> None:
        super().__init__(f"{at.handler} ({at.file}:{at.line}): {cause}")
        self.event, self.cause, self.at = event, cause, at


@dataclass(frozen=True, slots=True)
class SerialApp:
    """What the loop needs of an app.

    This is the handlers of each event type in the order in which they run, the states, the columns
    of emitted streams, and the values of parameters. Rows of a stream that is not in `emitted` are
    kept unchanged.
    """

    app: App
    handlers: Mapping[str, Sequence[str]]
    states: Mapping[str, State]
    emitted: Mapping[str, Sequence[tuple[str, pa.DataType]]]
    params: Mapping[str, object]


@dataclass(slots=True)
class SerialLoop:
    """Processes events in log order; see the module's rules.

    While it runs handlers, it is the `RunningEvent` that they reach.
    """

    of: SerialApp
    cells: SerialCells = field(init=False)
    events: int = 0
    """How many events it has processed."""
    merged: list[tuple[str, CellKey, HandlerLine]] = field(default_factory=list)
    """The cells into which the last event merged, with the lines."""
    _rows: list[LoopRow] = field(default_factory=list)
    _event: LogEvent = field(init=False)
    _handler: str = ""
    _event_classes: dict[str, Callable[[tuple[object, ...]], object]] = field(init=False)
    _params: tuple[ParamPlace, ...] = field(init=False)
    _refused: Exception | None = None

    def __post_init__(self) -> None:
        self.cells = SerialCells(self.of.states)
        self._params = param_places(self.of.app)
        types = self.of.app.event_types.values()
        self._event_classes = {
            t.name: event_class(t.name, [n for n, _ in t.columns]) for t in types
        }

    def take(self, event: LogEvent) -> list[LoopRow]:
        """Run the handlers of an event; return the rows that they emit, in order."""
        self._event, self._rows, self.merged, self.cells.now = event, [], [], event.vs
        with running_with(self), params_set(self._params, self.of.params):
            for name in self.of.handlers.get(event.type, ()):
                self._handler, function = name, self.of.app.handlers[name].function
                values = (copied(value) for value in event.values)
                try:
                    function(self._event_classes[event.type]((event.vs, event.ve, *values)))
                    if self._refused is not None:
                        raise self._refused
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # any exception of the user's code ends the loop
                    at = _raised_at(name, function.__code__.co_filename, error)
                    raise LoopFailed(self.events, describe(error), at) from error
        self.events += 1
        return self._rows

    # --- what handlers reach -------------------------------------------------------------------

    def get(self, state: str, key: tuple[object, ...]) -> object:
        with self._ends_the_loop():
            return self.cells.get(state, key)

    def merge(
        self,
        state: str,
        key: tuple[object, ...],
        kind: MergeKind,
        args: tuple[object, ...],
        function: Callable[..., object] | None,
    ) -> None:
        with self._ends_the_loop():
            self.cells.merge(state, key, kind, args, function)
        same = tuple(same_as_key(part) for part in key)
        self.merged.append((state, same, self._line()))

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        columns = self.of.emitted.get(name)
        with self._ends_the_loop():
            self.cells.refuse_in_function("app.emit()")
            values = tuple(fields.values())
            values = values if columns is None else _row(name, dict(columns), fields)
        event = self._event
        self._rows.append(LoopRow(name, event.vs, event.ve, values, self.events, self._line()))

    def param(self, name: str) -> object:
        return self.of.params[name]

    @contextmanager
    def _ends_the_loop(self) -> Iterator[None]:
        """Remember the first error that is raised here."""
        try:
            yield
        except (Unfit, PlanError) as refused:
            self._refused = self._refused or refused
            raise

    def _line(self) -> HandlerLine:
        """Return the innermost line of the handler's file that is running."""
        file = self.of.app.handlers[self._handler].function.__code__.co_filename
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        return HandlerLine(self._handler, file, 0 if frame is None else frame.f_lineno)


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The results of the loop: rows by stream in order, the loop itself, and any failure."""

    rows: dict[str, list[LoopRow]]
    loop: SerialLoop
    failed: LoopFailed | None = None

    @property
    def events(self) -> int:
        """How many events it processed, not counting a failing one."""
        return self.loop.events

    @property
    def cells(self) -> SerialCells:
        return self.loop.cells


def run_loop(
    loop: SerialLoop, events: Iterable[LogEvent], goes_on: Callable[[], bool] = lambda: True
) -> LoopResult:
    """Run the loop over events until one fails, while `goes_on` returns true."""
    rows: dict[str, list[LoopRow]] = {name: [] for name in loop.of.emitted}
    failed = None
    try:
        for event in events:
            for row in loop.take(event):
                rows.setdefault(row.name, []).append(row)
            if not goes_on():
                break
    except LoopFailed as failure:
        failed = failure
    return LoopResult(rows, loop, failed)


def _row(
    name: str, columns: Mapping[str, pa.DataType], fields: Mapping[str, object]
) -> tuple[object, ...]:
    """Return the values of an emit with the order and the types of its stream's columns."""
    for column in {**columns, **fields}:
        if column not in columns:
            raise PlanError(f"`{name}` has no column `{column}`")
        if column not in fields:
            raise PlanError(f"this emit of `{name}` has no `{column}`")
    return tuple(
        fit(f"what is emitted as `{column}`", fields[column], t) for column, t in columns.items()
    )


def _raised_at(handler: str, file: str, error: BaseException) -> HandlerLine:
    """Return the last line of the handler's file in an exception's traceback."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return HandlerLine(handler, file, (lines[-1] or 0) if lines else 0)
