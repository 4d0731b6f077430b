"""`add` on states of DECIMAL: exact wherever a handler runs, in windows and saved states too."""

from __future__ import annotations

from decimal import Decimal

import pytest

from replay_oracle.differences import How, Verdict, judge
from replay_oracle.programs import Case

HEAD = """
import weir
from decimal import Decimal
app = weir.App("sums")
m = app.events("m", "k STRING, n BIGINT, d DECIMAL(38, 6), xs LIST(BIGINT), ts BIGINT", vs="ts")
owed = app.state("owed", default=Decimal("0.5"), type="DECIMAL(38, 6)", key="STRING"%s)
app.emits("out", "d DECIMAL(38, 6), text STRING")
"""
SHAPES = {
    "scan": """
@app.on(m)
def add(e):
    owed.add(e.k, e.d)

@app.on(m)
def show(e):
    app.emit("out", d=owed.get(e.k), text="")
""",
    "ring": """
@app.on(m)
def add(e):
    if owed.get(e.k) < 10**9:
        owed.add(e.k, e.d)
    app.emit("out", d=owed.get(e.k), text="")
""",
    "loop": """
@app.on(m)
def add(e):
    for x in e.xs:
        if owed.get(e.k) != x:
            owed.add(e.k, x)
    app.emit("out", d=owed.get(e.k), text="")
""",
    "rows": """
@app.on(m)
def add(e):
    parts = [e.d, Decimal(e.n) / 8]
    while parts:
        owed.add(e.k, parts.pop())

@app.on(m)
def show(e):
    app.emit("out", d=owed.get(e.k), text=repr([owed.get(e.k)]))
""",
}
"""Handlers that add, and read."""
SERIAL = "app.serial()\n"
VALUES = ("0.1", "-0.100000", "12345678901234567890123456789.000001", "0", "-7.25", "0.000001")
WAYS = (How(), How(1, 2), How(7, 5, renew=True), How(halves=True), How(vectorise=False))


def case_of(shape: str, options: str = "", *, serial: bool = False, d: str = "") -> Case:
    rows = [
        {
            "k": "ab"[t % 2],
            "n": t % 5 - 2,
            "d": Decimal(d or VALUES[t % 6]),
            "xs": [t % 3] * (t % 4),
            "ts": t // 2,
        }
        for t in range(24)
    ]
    source = f"{HEAD % options}{SHAPES[shape]}\n{SERIAL if serial else ''}"
    return Case(0, source, {"m": [rows]}, {})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", ["", ", last=3", ", expires=2"])
@pytest.mark.parametrize("serial", [False, True])
def test_sums_are_exact(shape: str, options: str, serial: bool) -> None:
    case = case_of(shape, options, serial=serial)
    for way in WAYS[:1] if serial else WAYS:
        assert judge(case, way) == Verdict("same"), way


@pytest.mark.parametrize("shape", ["scan", "ring", "rows"])
@pytest.mark.parametrize("options", ["", ", last=3"])
def test_what_is_beyond_the_type_ends_the_run(shape: str, options: str) -> None:
    case = case_of(shape, options, d="9" * 32)
    assert judge(case, How()) == Verdict("same")  # the loop fails, too
    fits = case_of(shape, options, d="1" * 30)
    assert judge(fits, How()) == Verdict("same")
