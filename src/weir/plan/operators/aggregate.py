"""Aggregates of windows, with or without GROUP BY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, assert_never

from weir.plan.aggregations import Aggregations
from weir.plan.expressions import columns_of
from weir.plan.functions.failures import sees_equals_alike
from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    HorizonStep,
    Meeting,
    Names,
    Predicates,
    Pushed,
    bounded,
    endless,
    last_instant,
    meeting_by,
    none_sinks,
    sinking,
)
from weir.plan.operators.grouping import Grouping
from weir.plan.operators.node_class import node_class
from weir.plan.operators.spans import LONGEST_LIFETIME, NONE, UNBOUNDED, Span
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow, Window

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Aggregate(Grouping):
    """Makes a row for each window of each group: the key columns, then the aggregates."""

    input: Node
    keys: tuple[str, ...]
    aggregates: Aggregations
    window: Window

    def meeting(self) -> Meeting:
        return meeting_by(self.keys)

    def sees_order(self, port: int) -> bool:
        counts = isinstance(self.window, CountWindow)
        return counts or any(a.sees_order for _, a in self.aggregates)

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        match self.window:
            case Hopping(size):
                return Span(0, size)
            case Session():
                return LONGEST_LIFETIME
            case SnapshotWindow() | CountWindow():  # inside an event's lifetime, or equal to it
                return lives[0]
        assert_never(self.window)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        match self.window:
            case Hopping(size):
                return Span(0, size)
            case Session():
                return UNBOUNDED
            case SnapshotWindow():
                return lives[0]
            case CountWindow():
                return NONE
        assert_never(self.window)

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        (life,) = lives
        match self.window:
            case Hopping(size):
                # Rows before a window may still be valid in it.
                return bounded(
                    "HOPPING", life, lambda ticks: HorizonStep(last_instant(ticks), size)
                )
            case SnapshotWindow():
                # A cell may begin where a row that is gone ended.
                return bounded("SNAPSHOT", life, lambda ticks: HorizonStep(ticks, ticks))
            case Session():
                return endless(
                    "SESSION: a session goes on for as long as events follow",
                    "a TUMBLING or HOPPING window, which ends by itself",
                )
            case CountWindow():
                return endless(
                    "COUNT: a window is found by counting all rows before it",
                    "a TUMBLING or HOPPING window, which is found by time",
                )
        assert_never(self.window)

    def slimmed(self, wanted: Names) -> Self:
        below = schema(self.input)
        needed = tuple((n, a) for n, a in self.aggregates if n in wanted or a.can_fail(below))
        return self if needed == self.aggregates else replace(self, aggregates=needed)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        if self._can_fail(open_events=not lives[0].known):
            return none_sinks(self, arriving)
        keys = frozenset(self.keys)
        return sinking(self, arriving, lambda p: columns_of(p) <= keys and sees_equals_alike(p))

    def _can_fail(self, *, open_events: bool) -> bool:
        """Tell whether a window, or a value of it, may be an error."""
        if isinstance(self.window, Hopping) and open_events:
            return True
        below = schema(self.input)
        return any(a.can_fail(below) for _, a in self.aggregates)

    def kept(self) -> str:
        each = "each key and" if self.keys else "each"
        values = self.kept_values()
        match self.window:
            case Hopping():
                return self.kept_panes()
            case Session():
                of_key = " for each key" if self.keys else ""
                return f"open sessions: one row of sums{of_key}{values}"
            case SnapshotWindow():
                return f"live events: one row of sums for {each} lifetime{values}"
            case CountWindow():
                counter = "a counter for every key, permanently" if self.keys else "a counter"
                return f"{counter}; one row of sums for {each} unfilled window{values}"
        assert_never(self.window)
