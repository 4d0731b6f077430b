"""The user's own code that generated programs IMPORT."""

import pyarrow as pa
import pyarrow.compute as pc

from weir.plan.usercode.decorators import aggregate, operator, udf


@udf(args=("BIGINT",), result="BIGINT")
def or_minus_one(value: int | None) -> int:
    return -1 if value is None else value


@udf(args=("DOUBLE", "DOUBLE"), result="DOUBLE", vectorised=True)
def added(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.add(left, right)


@aggregate
class Chained:
    """Depends on the order of its values."""

    def zero(self) -> str:
        return ""

    def add(self, state: str, value: str) -> str:
        return state if value is None else f"{state}{value}|"

    def result(self, state: str) -> str:
        return state


@aggregate(exact=True)
class Evens:
    """Counts even numbers, and can take them away again."""

    def zero(self) -> int:
        return 0

    def add(self, state: int, value: int) -> int:
        return state + (value is not None and value % 2 == 0)

    def remove(self, state: int, value: int) -> int:
        return state - (value is not None and value % 2 == 0)

    def merge(self, state: int, other: int) -> int:
        return state + other

    def result(self, state: int) -> int:
        return state


@aggregate(state={"text": "STRING", "last": "LIST(STRING)"})
class Linked:
    """Depends on the order of its values; its state is declared, and it writes into it."""

    def zero(self) -> dict:
        return {"text": "", "last": []}

    def add(self, state: dict, value: str) -> dict:
        if value is not None:
            state["last"] = [*state["last"][-2:], value]
            state["text"] += f"{value}{len(state['last'])}|"
        return state

    def result(self, state: dict) -> str:
        state["last"].reverse()
        return f"{state['text']} {state['last']}"


@aggregate(state="BIGINT")
class Rolled:
    """Depends on the order of its values; its state is a number."""

    def zero(self) -> int:
        return 7

    def add(self, state: int, value: int) -> int:
        return state if value is None else (31 * state + value) % 1_000_003

    def result(self, state: int) -> int:
        return state


@operator(columns={"what": "STRING", "n": "BIGINT", "since": "BIGINT"})
class Quiet:
    """Says what came, and again when nothing came for a while."""

    seen: int
    last: int

    def __init__(self, timeout: int) -> None:
        self.timeout = timeout
        self.seen = 0
        self.last = 0

    def on_event(self, event: object, ctx: object) -> None:
        self.seen += 1
        self.last = event.vs
        ctx.emit(what=f"input {event.input}", n=self.seen, since=event.ve)
        ctx.set_timer(event.vs + self.timeout)

    def on_time(self, time: int, ctx: object) -> None:
        if time == self.last + self.timeout:
            ctx.emit(what="quiet", n=self.seen, since=self.last, ve=time + 3)
            self.seen = 0


@operator(columns={"n": "BIGINT"})
class Numbered:
    """Depends on the order of all its events; emits into the future."""

    n: int

    def __init__(self, column: str) -> None:
        self.column = column
        self.n = 0

    def on_event(self, event: object, ctx: object) -> None:
        self.n = (31 * self.n + len(str(event[self.column])) + 7) % 1_000_003
        ctx.emit(n=self.n, vs=event.vs + self.n % 4, ve=event.vs + 6)
