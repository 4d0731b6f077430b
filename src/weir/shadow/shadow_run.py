"""A shadow run: compares the serial loop and the engine over the first events of logs.

Rules
1. The loop runs first. If it uses up its time, the comparison ends at the event that it has
   reached, and the engine gets the events up to there.
2. If the loop fails at an event, the engine must fail too when it gets that event, and must not
   fail before.
3. A difference is narrowed down to the first event with which the two differ, by running both over
   fewer events.
4. A guard of handlers may end the engine's run, because of an access that was not planned or a
   change of an outside object. Its error is raised unchanged: a real run would end in the same way,
   and no result differs. Changes of outside objects by the loop are checked as well, since the
   engine runs after it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from weir.errors import ReplayDiffers, RunError
from weir.events.batch import START
from weir.garbage import collecting_later
from weir.handlers.runs.hidden_state import KeptObjects
from weir.runtime.partitions import Partitions
from weir.shadow.comparison import SerialDifference, difference_error, first_difference
from weir.shadow.engine_run import EnginePlan, EngineResult, run_engine
from weir.shadow.restored_states import SavedTable, TouchedCells
from weir.shadow.serial_loop import (
    HandlerLine,
    LogEvent,
    LoopFailed,
    LoopResult,
    SerialApp,
    SerialLoop,
    run_loop,
)

SECONDS = 1.0
"""The time limit for the loop in one comparison, unless a number of events is set."""


class ShadowEvents(Protocol):
    """The events of a comparison, for both sides."""

    @property
    def events(self) -> Sequence[LogEvent]: ...

    @property
    def can_be_cut(self) -> bool:
        """Whether the engine can be run over fewer of them."""
        ...

    def partitions(self, count: int) -> Partitions:
        """Return partitions with the first `count` events, for the engine."""
        ...

    def place(self, number: int) -> str:
        """Return the place of an event, if it is known."""
        ...


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """Both sides of a comparison; see the module's rules."""

    serial: SerialApp
    plan: EnginePlan
    first: ShadowEvents
    tables: Mapping[str, SavedTable] = field(default_factory=dict)
    """The saved states that both sides start with."""
    seconds: float | None = SECONDS
    variant: str = ""

    def compare(self) -> int:
        """Run both sides; return over how many events they agree, or raise ReplayDiffers."""
        with collecting_later():
            return self._compare()

    def _compare(self) -> int:
        limit = self.seconds if self.first.can_be_cut else None
        kept = KeptObjects(*(h.function for h in self.serial.app.handlers.values()))
        loop, touched = self._loop(len(self.first.events), limit)
        kept.check()
        failed, count = loop.failed, loop.events
        if failed is not None:
            self._check_fails(failed, self._engine(count + 1, touched))
            if not self.first.can_be_cut:
                return count
            loop, touched = self._loop(count)  # without the effects of the failing event
        difference = self._difference(loop, self._engine(count, touched), count)
        if difference is not None:
            raise self._narrowed(difference, count)
        return count

    # --- both sides --------------------------------------------------------------------------

    def _loop(self, count: int, seconds: float | None = None) -> tuple[LoopResult, TouchedCells]:
        touched, loop = TouchedCells(self.tables), SerialLoop(self.serial)
        touched.restoring(loop.cells)
        end = None if seconds is None else time.monotonic() + seconds
        events = self.first.events[:count]
        return run_loop(loop, events, lambda: end is None or time.monotonic() < end), touched

    def _engine(self, count: int, touched: TouchedCells) -> EngineResult:
        return run_engine(self.plan, {**self.first.partitions(count), **touched.partitions})

    def _difference(
        self, loop: LoopResult, engine: EngineResult, count: int
    ) -> SerialDifference | None:
        if isinstance(engine.failed, RunError) and engine.failed.is_guard:
            raise engine.failed
        now = self.first.events[count - 1].vs if count else START
        return first_difference(loop, self.plan, engine, now)

    # --- what differs ------------------------------------------------------------------------

    def _narrowed(self, difference: SerialDifference, count: int) -> ReplayDiffers:
        """Find the first event at which both sides differ; over `count` events they do."""
        if not self.first.can_be_cut:
            return self._error(difference, 0, difference.at)
        low = 0
        while count - low > 1:
            middle = (low + count) // 2
            loop, touched = self._loop(middle)
            here = self._difference(loop, self._engine(middle, touched), middle)
            if here is None:
                low = middle
            else:
                count, difference = middle, here
        merged = self._loop(count)[0].loop.merged
        at = next((at for *cell, at in merged if tuple(cell) == difference.cell), None)
        return self._error(difference, count, difference.at or at)

    def _check_fails(self, failed: LoopFailed, engine: EngineResult) -> None:
        if engine.failed is None:
            difference = SerialDifference("", f"fails: {failed.cause}", "goes on")
            number = failed.event + 1 if self.first.can_be_cut else 0
            raise self._error(difference, number, failed.at)

    def _error(
        self, difference: SerialDifference, number: int, at: HandlerLine | None
    ) -> ReplayDiffers:
        """Make the error for a difference at an event.

        Events are numbered from 1; 0 means unknown. If no line is known, it names the event's first
        handler.
        """
        event = self.first.events[number - 1] if number else None
        return difference_error(
            self.serial.app,
            difference,
            number=number,
            event=event,
            input=self.first.place(number - 1) if number else "",
            at=at if at is not None or event is None else self._first_handler(event),
            variant=self.variant,
        )

    def _first_handler(self, event: LogEvent) -> HandlerLine | None:
        for name in self.serial.handlers.get(event.type, ()):
            code = self.serial.app.handlers[name].function.__code__
            return HandlerLine(name, code.co_filename, code.co_firstlineno)
        return None
