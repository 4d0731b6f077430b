"""How a worked example is written: an app's text, two logs, and the answer by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replay_oracle.loop import Logs

COLUMNS = (
    "ts BIGINT, k STRING, u BIGINT, n BIGINT, x DOUBLE, s STRING, f BOOLEAN,"
    " tags LIST(STRING), nums LIST(BIGINT)"
)
NAMES = tuple(part.split()[0] for part in COLUMNS.split(", "))

HEAD = f'''import weir

app = weir.App("worked")
COLUMNS = "{COLUMNS}"
a = app.events("a", COLUMNS, vs="ts")
b = app.events("b", COLUMNS, vs="ts")
'''

Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Example:
    """An `Example` is an app with its answer.

    `out` are the rows emitted as "out": vs and the fields' values, in order. `state` are the cells
    of the states that it names. `fails`: the run ends with an error.
    """

    name: str
    body: str
    a: Sequence[Rows]
    b: Sequence[Rows] = ((),)
    out: Sequence[tuple[object, ...]] = ()
    state: Mapping[str, Mapping[object, object]] = field(default_factory=dict)
    params: Mapping[str, object] = field(default_factory=dict)
    to: int | None = None
    fails: bool = False

    @property
    def source(self) -> str:
        return HEAD + self.body

    @property
    def logs(self) -> Logs:
        return {"a": self.a, "b": self.b}


def at(ts: int, k: object = None, **more: object) -> dict[str, object]:
    """Return a row: its time, its key, other columns; those that are not said are NULL."""
    return {name: {"ts": ts, "k": k, **more}.get(name) for name in NAMES}
