"""Handlers over shared state: a scan, a ring, a loop, a serial group."""

import weir

app = weir.App("golden")
row = app.events("row", "k STRING, v BIGINT, tags LIST(STRING), vs BIGINT", vs="vs")
count = app.events("count", "k STRING, n BIGINT, vs BIGINT", vs="vs")

least = app.param("least", 1)
totals = app.state("totals", default=0)
tagged = app.state("tagged", default=0, last=4)
first = app.state("first", default=None, type="BIGINT")
seen = app.state("seen", default=0)


@app.on(count)
def tally(e):
    totals.add(e.k, e.n)


@app.on(row)
def tag(e):
    if e.tags is not None:
        for word in e.tags:
            tagged.add(word, 1)


@app.on(row)
def once(e):
    if first.get(e.k) is None:
        first.set(e.k, e.vs)
        app.emit("found", what="first", k=e.k, n=e.vs)


@app.on(row)
def judge(e):
    if totals.get(e.k) >= least:
        app.emit("found", what="total", k=e.k, n=totals.get(e.k))
    app.emit("found", what="red", k=e.k, n=tagged.get("r"))


@app.on(row)
def every(e):
    turn = seen.get(0) + 1
    seen.set(0, turn)
    if turn % 3 == 0:
        app.emit("found", what="third", k=e.k, n=seen.get(0))


app.serial(every)
