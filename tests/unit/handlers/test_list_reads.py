"""Handlers in rows that read states by the elements of lists: what they are answered, and where
they are refused."""

from __future__ import annotations

import pytest

from handler_apps import app_of
from replay_oracle.differences import How, Verdict, judge
from replay_oracle.programs import Case
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.runs.handler_runs import _dict_key

HEAD = """
import itertools
import weir
app = weir.App("shop")
move = app.events("move", "k STRING, n BIGINT, x DOUBLE, ts BIGINT", vs="ts")
order = app.events(
    "order",
    "k STRING, items LIST(STRUCT(k STRING, n BIGINT)), tags LIST(STRING), xs LIST(DOUBLE), "
    "at LIST(BIGINT), ts BIGINT",
    vs="ts",
)
stock = app.state("stock", default=0, key="STRING")
pairs = app.state("pairs", default=-1, key=("STRING", "BIGINT"))
lately = app.state("lately", default=0, last=3, key="STRING")
price = app.state("price", default=None, type="DOUBLE", key="DOUBLE", expires=4)
near = app.state("near", default=["b"], type="LIST(STRING)", key="STRING")
seen = app.state("seen", default="", key="BIGINT")
other = app.state("other", default=0, key="STRING")
app.emits("out", "text STRING")
NEXT = {"a": ["b", "c"], "b": ["a"], None: ["c"]}

@app.on(move)
def note(e):
    stock.add(e.k, e.n)
    lately.add(e.k, 1)
    price.set(e.x, e.x)
    near.append(e.k, "c")
    seen.set(e.ts, e.k)
    pairs.set((e.k, e.n), e.ts)

@app.on(order)
def take(e):
    for item in e.items or []:
        if item is not None:
            stock.add(item.k, -1)
"""
ITEMS = (
    [],
    [{"k": "a", "n": 1}],
    None,
    [{"k": "b", "n": 2}, {"k": "a", "n": 1}, {"k": "b", "n": 2}],
    [{"k": None, "n": None}, {"k": "zz", "n": 7}],
)
LOGS = {
    "move": [
        [
            {
                "k": "abc"[t % 3],
                "n": t % 4,
                "x": (0.0, -0.0, float("nan"), 2.5)[t % 4],
                "ts": t // 2,
            }
            for t in range(24)
        ]
    ],
    "order": [
        [
            {
                "k": "abc"[t % 3],
                "items": ITEMS[t % 5],
                "tags": list("acab"[: t % 5]),
                "xs": [[], [0.0, 2.5], [-0.0], [float("nan"), 9.5]][t % 4],
                "at": [t, 1],
                "ts": t // 2,
            }
            for t in range(part, 24, 2)
        ]
        for part in range(2)
    ],
}
WAYS = (How(), How(1, 2), How(7, 5, renew=True), How(halves=True), How(numbered=True))
READS = {
    "a comprehension": "acc += [stock.get(x.k) for x in e.items or [] if stock.get(x.k) < 3]",
    "a generator": "acc.append(any(stock.get(x.k) > 2 for x in (e.items or ())[:2]))",
    "a loop": "for x in e.items or []:\n    acc.append(stock.get(x.k))\n    acc.append(x.k)",
    "two parts": "for x in e.items or []:\n    acc.append(pairs.get((x.k, x.n)))",
    "of the event, too": "for x in e.items or []:\n    acc.append(pairs.get((e.k, x.n)))",
    "in any order": "for t in sorted(set(e.tags), reverse=True):\n    acc.append(stock.get(t))",
    "enumerate": "for n, t in enumerate(e.tags):\n    acc.append((n, stock.get(t)))",
    "zip": "for x, t in zip(reversed(e.items or []), e.tags):\n"
    "    acc.append((stock.get(x.k), stock.get(t)))",
    "a window": "for t in e.tags:\n    acc.append(lately.get(t))",
    "keys that are no texts": "for x in e.xs:\n    acc.append(price.get(x))",
    "times": "for t in e.at:\n    acc.append(seen.get(t))",
    "a table": "for t in NEXT.get(e.k, []):\n    acc.append(stock.get(t))",
    "a list of a state": "for t in near.get(e.k):\n    acc.append(stock.get(max(t, e.k)))",
    "answers as keys": "for x in e.items or []:\n    acc.append(pairs.get((x.k, stock.get(x.k))))",
    "a list after a change": "found = near.get(e.k)\nacc.append(len(found))\n"
    "for t in found:\n    acc.append(stock.get(t))",
    "break": "for t in e.tags:\n    if stock.get(t) > 4:\n        break\n    acc.append(t)",
    "try": "for x in e.items or []:\n    try:\n        acc.append(stock.get(x.k))\n"
    "    except Exception:\n        acc.append('failed')",
    "a helper": "def left(x):\n    return stock.get(x.k)\nfor x in e.items or []:\n"
    "    acc.append(left(x))",
    "loops in a loop": "for x in e.items or []:\n    for t in e.tags:\n"
    "        acc.append(stock.get(t) + stock.get(x.k))",
    "merges there": "for t in e.tags:\n    acc.append(stock.get(t))\n    other.add(t, 1)",
    "with a cell that it changes": "n = other.get(e.k)\nfor t in e.tags:\n    n += stock.get(t)\n"
    "other.set(e.k, n)\nacc.append(n)",
    "after the loop": "for x in e.items or []:\n    pass\n"
    "if e.items:\n    acc.append(stock.get(x.k))",
}

READS_OF_M = """
@app.on(n)
def count(e):
    sums.add(e.a, 1)

@app.on(m)
def h(e):
    low = set()
    for x in e.xs:
        low.add(sums.get(x))
    app.emit("out", v=len(low))
"""


def case_of(body: str) -> Case:
    """Return an app with a handler in rows that has this body."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    text = f"@app.on(order)\ndef h(e):\n    acc = []\n{lines}\n"
    text += "    acc.append(len(acc))\n    app.emit('out', text=repr(acc))\n"
    return Case(0, f"{HEAD}\n{text}", dict(LOGS), {})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", READS)
def test_reads_by_elements(name: str, way: How) -> None:
    case = case_of(READS[name])
    assert judge(case, way) == Verdict("same")


@pytest.mark.parametrize("under", ["", "if e.k == 'a':\n        "])
def test_a_loop_over_none_fails_though_nobody_needs_what_it_reads(under: str) -> None:
    indent = "    " if under else ""
    loop = f"for x in e.items:\n{indent}        stock.get(x.k)"
    text = f"@app.on(order)\ndef h(e):\n    {under}{loop}\n    app.emit('out', text=e.k)\n"
    logs = {**LOGS, "order": [[row | {"k": "a"} for row in LOGS["order"][0]]]}
    for of_orders in (LOGS["order"], logs["order"]):
        case = Case(0, f"{HEAD}\n{text}", {**LOGS, "order": of_orders}, {})
        assert judge(case, How()) == Verdict("same")


REFUSED = {
    "a copied list": "import copy\nfor x in copy.copy(e.items):\n    stock.get(x.k)",
    "a changed list": "for t in e.tags:\n    stock.get(t)\ne.tags.append('z')\n"
    "for t in e.tags:\n    stock.get(t)",
    "a changed element": "for x in e.items:\n    x.k = 'c'\nfor x in e.items:\n    stock.get(x.k)",
    "a list by an element": "for t in e.tags:\n    acc += [stock.get(u) for u in near.get(t)]",
    "two lists": "for x in e.items:\n    for t in e.tags:\n        pairs.get((t, x.n))",
    "what the loop merges": "for t in e.tags:\n    stock.get(t)\n    stock.set(t, 0)",
    "what the handler merged": "for t in e.tags:\n    other.add(t, 1)\n"
    "for t in e.tags:\n    other.get(t)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    verdict = judge(case_of(REFUSED[name]), How())
    assert verdict.kind == "refused"
    assert "app.serial(h)" in verdict.text


def test_explain_shows_the_list() -> None:
    text = compile_app(app_of(READS_OF_M)).text()
    assert "get sums[x], for each x in e.xs" in text
    assert "m, for each x, by x: reads sums" in text


def test_nan_is_found() -> None:
    assert _dict_key((float("nan"), 1)) == _dict_key((float("nan"), 1))


def test_a_ring_over_structs() -> None:
    ring = """
app.emits("sold", "k STRING, n BIGINT")

@app.on(order)
def sell(e):
    for x in e.items or []:
        if x is not None and x.k is not None and other.get(x.k) < len(e.items):
            other.add(x.k, x.n + e.items[0]["n"])
            app.emit("sold", k=x.k, n=other.get(x.k))
"""
    source = HEAD[: HEAD.index("@app.on")] + ring
    assert "sell read and write other, by x.k of order" in compile_app(app_of(source)).text({})
    for how in WAYS:
        assert judge(Case(0, source, LOGS, {}), how) == Verdict("same")
