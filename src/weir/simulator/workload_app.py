"""The app that the simulator's workloads run.

It has reads with several keys, a ring, a window, an expiring state, a loop over a list, and
handlers in one partition."""

from __future__ import annotations

from typing import Any

import weir

app = weir.App("workload")
COLUMNS = "vs BIGINT, ve BIGINT, k STRING, v BIGINT, f DOUBLE, tags LIST(STRING)"
a = app.events("A", COLUMNS, vs="vs", ve="ve")
b = app.events("B", "vs BIGINT, ve BIGINT, k STRING, w BIGINT", vs="vs", ve="ve")

counts = app.state("counts", default=0)
sums = app.state("sums", default=0.0)
recent = app.state("recent", default=0, last=6)
lately = app.state("lately", default=(), type="LIST(BIGINT)", expires=4)
tags = app.state("tags", default=0)
seen = app.state("seen", default=False)
longest = app.state("longest", default=0)


@app.on(a)
def count(e: Any) -> None:
    counts.add(e.k, 1)
    sums.add(e.k, e.f or 0.5)
    if e.v is not None:
        recent.merge((e.k, e.v % 3), lambda n: n * 2 + e.v)


@app.on(a, b)
def keep(e: Any) -> None:
    lately.top_k(e.k, e.vs % 7, 3)


@app.on(a)
def first_of_value(e: Any) -> None:
    if not seen.get(e.v):
        seen.set(e.v, True)
        app.emit("first", v=e.v, n=counts.get(e.k))


@app.on(a)
def each_tag(e: Any) -> None:
    if e.tags is None:
        return
    for tag in e.tags:
        tags.add(tag, 1)
        app.emit("tag", tag=tag, n=tags.get(tag))


@app.on(b)
def judge(e: Any) -> None:
    n = counts.get(e.k)
    if n > 2:
        app.emit("judged", n=n, mean=sums.get(e.k) / n, recent=recent.get((e.k, e.w % 3)))
    else:
        app.emit("few", n=n, lately=lately.get(e.k))


@app.serial
@app.on(b)
def chase(e: Any) -> None:
    if longest.get(e.w) <= longest.get(e.w % 5):
        longest.set(e.w % 5, longest.get(e.w) + 1)


# --- an app over a query, whose rows are numbered at its entrance ------------------------------

over_a_query = weir.App("over_a_query")
_rows = weir.stream(
    "A",
    {
        "vs": "BIGINT",
        "ve": "BIGINT",
        "k": "STRING",
        "v": "BIGINT",
        "f": "DOUBLE",
        "tags": "LIST(STRING)",
    },
    "a.jsonl",
    vs="vs",
    ve="ve",
)
_counted = _rows.group_by("k").window(weir.tumbling(5)).agg(n=weir.count())
windows = over_a_query.events("windows", _counted)
others = over_a_query.events("B", "vs BIGINT, ve BIGINT, k STRING, w BIGINT", vs="vs", ve="ve")

most = over_a_query.state("most", default=0)
best = over_a_query.state("best", default=0, last=15)


@over_a_query.on(windows)
def rank(e: Any) -> None:
    most.max(e.k, e.n)
    best.max(0, e.n)
    over_a_query.emit("ranked", k=e.k, n=e.n, best=best.get(0))


@over_a_query.on(others)
def compare(e: Any) -> None:
    over_a_query.emit("compared", k=e.k, w=e.w, most=most.get(e.k))
