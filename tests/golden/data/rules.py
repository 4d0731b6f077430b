"""The user's own code of the golden programs."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import weir


@weir.udf
def shout(text: str | None) -> str | None:
    return None if text is None else text.upper() + "!"


@weir.udf(args=["BIGINT"], result="BIGINT", vectorised=True)
def doubled(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


@weir.aggregate
class Longest:
    """The length of the longest text."""

    def zero(self) -> int:
        return 0

    def add(self, state: int, value: str) -> int:
        return max(state, len(value or ""))

    def result(self, state: int) -> int:
        return state


@weir.aggregate(state={"turns": "BIGINT", "last": "LIST(STRING)"})
class Turns:
    """How often the text changes, and the last two texts."""

    def zero(self) -> dict[str, Any]:
        return {"turns": 0, "last": []}

    def add(self, state: dict[str, Any], text: str) -> dict[str, Any]:
        turned = state["last"][-1:] != [text]
        return {"turns": state["turns"] + turned, "last": [*state["last"][-1:], text]}

    def result(self, state: dict[str, Any]) -> str:
        return f"{state['turns']} {state['last']}"


@weir.operator(columns={"k": "STRING", "runs": "BIGINT", "total": "BIGINT"})
class Runs:
    """A row for each run of events with less than `gap` between their starts."""

    runs: int
    total: int
    last: int

    def __init__(self, gap: int) -> None:
        self.gap, self.runs, self.total, self.last = gap, 0, 0, 0

    def on_event(self, event: Any, ctx: Any) -> None:
        self.runs, self.last = self.runs + 1, event.vs
        self.total += event.v or 0
        ctx.set_timer(event.vs + self.gap)

    def on_time(self, time: int, ctx: Any) -> None:
        if time == self.last + self.gap:
            ctx.emit(k=f"until {time}", runs=self.runs, total=self.total, ve=time + 2)
            self.runs = self.total = 0


@weir.operator(columns={"who": "BIGINT", "nth": "BIGINT"})
class Numbered:
    """Numbers the events of both inputs in the order in which they come."""

    n: int = 0

    def on_event(self, event: Any, ctx: Any) -> None:
        self.n += 1
        ctx.emit(who=event.input, nth=self.n, ve=event.ve)
