"""How often handlers that run as they are run on an event: once where that can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app

HEAD = """
import weir
app = weir.App("a")
a = app.events("a", "k BIGINT, j BIGINT, ts BIGINT", vs="ts")
b = app.events("b", "k BIGINT, j BIGINT, ts BIGINT", vs="ts")
s = app.state("s", default=0, key="BIGINT")
t = app.state("t", default=0, key="BIGINT")
u = app.state("u", default=0, key="BIGINT")
app.emits("o", "n BIGINT")
"""
TWO_BLOCKS = """
@app.on(a)
def f(e):
    s.set(e.k, s.get(e.k) + 1)
    n = t.get(e.k)
    t.set(e.k, n + s.get(e.k) if n < 9 else 0)
    app.emit("o", n=n)
"""
LATER_READ = """
@app.on(b)
def g(e):
    t.add(e.j, 1)

@app.on(a)
def f(e):
    n = s.get(e.k)
    s.set(e.k, n + 1)
    if n > 2:
        app.emit("o", n=t.get(e.j))
"""
EACH_FIRST = """
@app.on(a)
def f(e):
    s.merge(e.k, lambda n: n + e.j)
    t.merge(e.j, lambda n: n * 2)

@app.on(b)
def g(e):
    t.merge(e.j, lambda n: n * 3)
    s.merge(e.k, lambda n: n + 1)
"""
DEPENDS = """
@app.on(a)
def f(e):
    n = s.get(e.k)
    s.set(e.k, n + 1)
    app.emit("o", n=t.get(e.j) + n)

@app.on(b)
def g(e):
    t.set(e.j, s.get(e.k))
"""

MERGED_BESIDE = """
@app.on(a)
def f(e):
    s.merge(e.k, lambda n: n + 1)
    t.merge(e.k, lambda n: n * 2)

@app.on(b)
def g(e):
    s.merge(e.k, lambda n: n + 2)
    t.add(e.k, 1)

@app.on(b)
def h(e):
    app.emit("o", n=s.get(e.k) + t.get(e.k))
"""


ONE_TOLD_KEY = """
def told(e):
    return [1, 2, 3].pop(e.k % 3)

@app.on(b)
def g(e):
    t.add(e.j, 1)
    u.add(e.j, 1)

@app.on(a)
def f(e):
    key = told(e)
    n = t.get(key)
    if n > 1:
        s.set(key, s.get(key) + n)
        app.emit("o", n=u.get(key))
"""
MAY_BE_SKIPPED = ONE_TOLD_KEY.replace("n = t.get(key)", "n = t.get(key) if e.j else 2")

ON_ANOTHER_BRANCH = """
def told(e):
    return [1, 2, 3].pop(e.k % 3)

@app.on(a)
def f(e):
    key = told(e)
    n = s.get(key)
    if n > 2:
        app.emit("o", n=t.get(told(e) + 1))
        return
    s.set(key, n + 1)

@app.on(b)
def g(e):
    t.add(e.j, 1)
"""


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        pytest.param(TWO_BLOCKS, {"f": 1}, id="states of one key are in one scan"),
        pytest.param(LATER_READ, {"g": 1, "f": 1}, id="a live step waits for other reads"),
        pytest.param(EACH_FIRST, {"f": 2, "g": 3}, id="not if another one waits for it"),
        pytest.param(
            MERGED_BESIDE, {"f": 2, "g": 1, "h": 1}, id="nor if another merges one beside"
        ),
        pytest.param(DEPENDS, {"f": 2, "g": 1}, id="nor if what it reads depends on it"),
        pytest.param(ONE_TOLD_KEY, {"f": 2, "g": 1}, id="a key is told once"),
        pytest.param(
            ON_ANOTHER_BRANCH, {"f": 4, "g": 1}, id="a read where no more merges come goes last"
        ),
        pytest.param(MAY_BE_SKIPPED, {"f": 5, "g": 1}, id="not if some events do not tell it"),
    ],
)
def test_runs(tmp_path: Path, code: str, runs: dict[str, int]) -> None:
    path = tmp_path / "app.py"
    path.write_text(HEAD + code, encoding="utf-8")
    compiled = compile_app(load_app(path), vectorise=False, final=True)
    assert {unit.handler: len(unit.steps) for unit in compiled.flow.units()} == runs
