"""The user's code that the simulator's workloads `IMPORT`."""

from __future__ import annotations

from typing import Any

import weir


@weir.operator(columns={"events": "BIGINT", "total": "BIGINT"})
class Bursts:
    """Emits a row for each burst of events with less than `gap` between their starts."""

    events: int
    total: int
    last: int

    def __init__(self, gap: int) -> None:
        self.gap, self.events, self.total, self.last = gap, 0, 0, 0

    def on_event(self, event: Any, ctx: Any) -> None:
        self.events, self.last = self.events + 1, event.vs
        self.total += event.v or 0
        ctx.set_timer(event.vs + self.gap)

    def on_time(self, time: int, ctx: Any) -> None:
        if time == self.last + self.gap:
            ctx.emit(events=self.events, total=self.total, ve=time + 2)
            self.events = self.total = 0


@weir.operator(columns={"input": "INT", "nth": "BIGINT"})
class Numbered:
    """Numbers the events of both inputs in the order in which they come."""

    nth: int = 0

    def on_event(self, event: Any, ctx: Any) -> None:
        self.nth += 1
        ctx.emit(input=event.input, nth=self.nth, ve=event.ve)


@weir.aggregate(state={"turns": "BIGINT", "last": "BIGINT"})
class Turns:
    """Counts how often the value changes."""

    def zero(self) -> dict[str, Any]:
        return {"turns": 0, "last": None}

    def add(self, state: dict[str, Any], value: int) -> dict[str, Any]:
        return {"turns": state["turns"] + (value != state["last"]), "last": value}

    def result(self, state: dict[str, Any]) -> int:
        turns: int = state["turns"]
        return turns


@weir.aggregate
class Widest:
    """Finds the largest absolute value."""

    def zero(self) -> int:
        return 0

    def add(self, state: int, value: int) -> int:
        return max(state, abs(value or 0))

    def result(self, state: int) -> int:
        return state
