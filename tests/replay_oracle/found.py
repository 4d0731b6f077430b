"""Small apps that the engine once had wrong, found by random ones and made small."""

from __future__ import annotations

from replay_oracle.examples import Example, at

FOUND = (
    Example("a condition that another one goes on from", """
s = app.state("s", default=False)
@app.on(a)
def tell(e):
    if e.k:
        if s.get("x"):
            app.emit("out", n=1)
        app.emit("out", n=2)
""", a=[[at(6, "p"), at(7, "")]]),
    Example("an argument with a part that comes twice", """
s = app.state("s", default=0.0)
@app.on(a)
def keep(e):
    s.merge(0, lambda v: max(v, e.n / 4 * (e.n / 4)))
""", a=[[at(6, "p", n=3), at(7, "p", n=-9)]]),
    Example("a reader behind a ring, under a condition that nobody ever changes", """
one = app.state("one", default=None, type="STRING")
two = app.state("two", default=False)
@app.on(a)
def keep(e):
    one.set(e.k, one.get(e.k))
@app.on(a)
def tell(e):
    if two.get(0):
        app.emit("out", s=one.get(e.k))
""", a=[[at(6, "p")]]),
    Example("a serial group that another event type writes to", """
one = app.state("one", default=False)
two = app.state("two", default="")
@app.on(b)
def look(e):
    one.merge(("", 0), lambda v: True)
    app.emit("out", s=two.get(""))
@app.on(a)
def keep(e):
    two.merge("", lambda v: "x")
app.emits("out", "s STRING")
app.serial(look)
""", a=[[at(6, "p")]], b=[[at(5), at(6), at(7)]]),
    Example("a parameter that a serial handler emits", """
p = app.param("p", 3)
@app.on(a)
def tell(e):
    app.emit("out", n=p)
app.emits("out", "n BIGINT")
app.serial(tell)
""", a=[[at(6, "p")]]),
    Example("a ring with a loop", """
s = app.state("s", default=0)
@app.on(a)
def grow(e):
    s.add(e.k, s.get(e.k))
    for n in e.nums:
        s.add(e.k, n)
    app.emit("out", n=s.get(e.k))
""", a=[[at(6, "p", nums=[1, 2]), at(7, "p", nums=[]), at(8, "q", nums=[3])]]),
)  # fmt: skip
