"""Reads of a handler in rows that every row asks before it runs fail only where the loop fails."""

from __future__ import annotations

import pytest

from replay_oracle.differences import How, judge
from replay_oracle.programs import Case

HEAD = """
import weir
app = weir.App("early")
a = app.events("a", "k STRING, n BIGINT, ts BIGINT", vs="ts")
near = app.state("near", default=0, key="STRING", last=100)
by = app.state("by", default=0, key="BIGINT")
mine = app.state("mine", default=0, key="BIGINT")
named = app.state("named", default=0, key="STRING")
app.emits("out", "k STRING, v BIGINT")

def copied(s):
    t = ""
    for ch in s:
        t += ch
    return t

@app.on(a)
def write(e):
    near.add(e.k, e.n)
    if e.n:
        by.add(e.n // 2, 1)

@app.on(a)
def h(e):
    copied(e.k)
"""
LOGS = {
    "a": [
        [
            {"k": "p", "n": 2**62, "ts": 1},
            {"k": "p", "n": 2**62, "ts": 2},  # the sum of both is beyond BIGINT
            {"k": "q", "n": 0, "ts": 3},
            {"k": "p", "n": 5, "ts": 300},
        ]
    ]
}
BODIES = {
    "a sum beyond its type that nobody reads": """
    if copied(e.k) == "q" or e.ts in (1, 300):
        app.emit("out", k=e.k, v=near.get(e.k))
""",
    "a sum beyond its type": """
    app.emit("out", k=e.k, v=near.get(e.k))
""",
    "a key that fails, and nobody needs it": """
    if e.n:
        app.emit("out", k=e.k, v=by.get(10 // e.n) + by.get(e.n // 2))
""",
    "a key that fails": """
    app.emit("out", k=e.k, v=by.get(10 // e.n))
""",
    "a key beyond its type, and nobody needs it": """
    if e.n < 2**60:
        app.emit("out", k=e.k, v=by.get(e.n * 4))
""",
    "a key beyond its type on the way": """
    app.emit("out", k=e.k, v=by.get(e.n * 4 // 4))
""",
    "a key of columns where everything is caught": """
    v = -1
    try:
        v = by.get(len(str(e.k))) + by.get(10 // e.n)
    except:
        pass
    app.emit("out", k=e.k, v=v)
""",
    "the key of a live state": """
    mine.add(e.n * 4 // 8, 1)
    app.emit("out", k=e.k, v=mine.get(e.n * 4 // 8))
""",
    "the key of a live state that fails, and nobody needs it": """
    if e.n:
        mine.add(10 // e.n, 1)
        app.emit("out", k=e.k, v=mine.get(10 // e.n))
""",
    "two live states by different keys": """
    mine.add(e.n % 3, 1)
    named.merge(f"{e.n % 2}", lambda old: old * 2 + 1)
    app.emit("out", k=e.k, v=mine.get(e.n % 3) * 100 + named.get(f"{e.n % 2}"))
""",
    "a state that nobody reads": """
    app.emit("out", k=e.k, v=1)
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("how", [How(), How(vectorise=False, cut=1, parallelism=3)])
def test_failures_are_the_loops(body: str, how: How) -> None:
    verdict = judge(Case(0, HEAD + body, LOGS, {}), how)
    assert verdict.kind == "same", verdict.text


def test_a_value_that_nobody_uses_fails_in_columns_too() -> None:
    only = HEAD[: HEAD.index("@app.on(a)\ndef write")]
    body = """
@app.on(a)
def unused(e):
    v = 10 // e.n

@app.on(a)
def out(e):
    app.emit("out", k=e.k, v=e.ts)
"""
    verdict = judge(Case(0, only + body, LOGS, {}), How())
    assert verdict.kind == "same", verdict.text
