"""Handlers in rows whose accesses happen in another order than that of their text: generators,
functions that others call, and the rounds of loops."""

from __future__ import annotations

import pytest

from replay_oracle.differences import How, Verdict, judge
from replay_oracle.programs import Case

HEAD = """
import functools
import re
import weir
app = weir.App("later")
move = app.events("move", "j STRING, k STRING, tags LIST(STRING), ts BIGINT", vs="ts")
own = app.state("own", default=0, key="STRING")
other = app.state("other", default=0, key="STRING")
app.emits("out", "text STRING")

@app.on(move)
def copy(e):
    other.add(e.k, own.get(e.k) % 3)
"""
LOGS = {
    "move": [
        [
            {"j": "abc"[t % 3], "k": "acb"[t // 2 % 3], "tags": list("abca"[t % 3 :]), "ts": t}
            for t in range(24)
        ]
    ]
}
TWICE = "acc.append(own.get(e.k))\n{}\nacc.append(own.get(e.k))"
OTHER_KEYS = {
    "a generator function": "def g():\n    own.add(e.j, 1)\n    yield\n    own.add(e.j, 1)\n"
    "    yield\nit = g()\nnext(it)\n" + TWICE.format("next(it)"),
    "a decorated function": "@functools.partial\ndef f():\n    own.add(e.j, 1)\n"
    + TWICE.format("f()"),
    "map": "it = map(lambda x: own.add(x, 1), 'abc')\n" + TWICE.format("list(it)"),
    "a generator": "it = (own.add(x, 1) for x in 'abc')\n" + TWICE.format("list(it)"),
    "partial": "def f(k):\n    own.add(k, 1)\np = functools.partial(f, e.j)\n"
    + TWICE.format("p()"),
    "a class": "class C:\n    def add(self):\n        own.add(e.j, 1)\nc = C()\n"
    + TWICE.format("c.add()"),
    "what a loop goes through": "for _ in (own.add(e.j, 1) for _ in 'ab'):\n"
    "    acc.append(own.get(e.k))",
    "a finalizer": "class C:\n    def __del__(self):\n        own.add(e.k, 1)\nc = C()\nc.self = c",
}
OTHER_STATES = {
    "a merge after a read that it comes before": "it = map(lambda _: own.add(e.j, 1), 'ab')\n"
    "k = re.sub('a', 'b', e.j)\nacc.append(other.get(k))\nlist(it)",
    "a merge that a round before decides": "n = 0\nfor x in e.tags:\n    own.add(x, n)\n"
    "    n = other.get(e.k)\n    acc.append(n)\n    other.add(e.k, 1)",
    "a key that is set after the generator": "k = e.k\nit = (other.get(k) for _ in 'a')\n"
    "k = e.j\nacc += list(it)",
}
SAME = {
    "one key": "it = (own.add(e.k, 1) for _ in 'ab')\n" + TWICE.format("list(it)"),
    "there and then": "acc += list(own.add(e.j, 1) for _ in 'ab')\n" + TWICE.format(""),
    "as far as it goes": "acc.append(next((own.add(e.j, 1) for _ in 'ab'), 0))\n"
    + TWICE.format(""),
    "branches": "for x in e.tags:\n    acc.append(x)\nif e.j > 'a':\n    own.add(e.j, 1)\n"
    "else:\n    acc.append(own.get(e.j))",
}


def case_of(body: str, head: str) -> Case:
    """Return an app with a handler that has this body."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    text = f"@app.on(move)\ndef h(e):\n    acc = []\n{lines}\n    app.emit('out', text=repr(acc))\n"
    return Case(0, f"{head}\n{text}", dict(LOGS), {})


@pytest.mark.parametrize("name", [*OTHER_KEYS, *OTHER_STATES])
def test_refused(name: str) -> None:
    body = OTHER_KEYS.get(name) or OTHER_STATES[name]
    head = HEAD if name in OTHER_STATES else HEAD[: HEAD.index("@app.on")]
    verdict = judge(case_of(body, head), How())
    assert verdict.kind == "refused", verdict


def test_a_key_that_an_inner_function_sets() -> None:
    body = """
k = 'a'
for _ in 'ab':
    acc.append(other.get(k))
    def step():
        nonlocal k
        k = e.j
    step()
acc.append(other.get(k))
"""
    assert judge(case_of(body.strip(), HEAD), How()) == Verdict("same")


@pytest.mark.parametrize("name", SAME)
def test_same(name: str) -> None:
    assert judge(case_of(SAME[name], HEAD[: HEAD.index("@app.on")]), How()) == Verdict("same")
