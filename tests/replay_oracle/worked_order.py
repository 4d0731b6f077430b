"""Worked examples: which event, which handler, which statement comes first."""

from replay_oracle.examples import Example, at

_NTH = """
c = app.state("c", default=0)
@app.on(a, b)
def number(e):
    c.add(0, 1)
@app.on(a, b)
def tell(e):
    app.emit("out", s=e.s, n=c.get(0))
"""
_LAST = """
last = app.state("last", default="-")
@app.on(a, b)
def keep(e):
    app.emit("out", s=e.s, before=last.get(0))
    last.set(0, e.s)
"""

EXAMPLES = (
    Example("events go by vs, whatever their partition", _NTH,
        a=[[at(3, s="z"), at(4, s="q")], [at(1, s="x"), at(2, s="y")]],
        out=[(1, "x", 1), (2, "y", 2), (3, "z", 3), (4, "q", 4)], state={"c": {0: 4}}),
    Example("at one vs the type that was declared first comes first", _LAST,
        a=[[at(1, s="a1")]], b=[[at(0, s="b0"), at(1, s="b1")]],
        out=[(0, "b0", "-"), (1, "a1", "b0"), (1, "b1", "a1")], state={"last": {0: "b1"}}),
    Example("at one vs the first partition comes first", _LAST,
        a=[[at(1, s="p"), at(1, s="q")], [at(1, s="r")]],
        out=[(1, "p", "-"), (1, "q", "p"), (1, "r", "q")], state={"last": {0: "r"}}),
    Example("in one partition equal times stay in their order", _LAST,
        a=[[at(1, s="z"), at(1, s="y"), at(1, s="x")]],
        out=[(1, "z", "-"), (1, "y", "z"), (1, "x", "y")]),
    Example("vs goes before the type", _LAST,
        a=[[at(2, s="a2")]], b=[[at(1, s="b1")]], out=[(1, "b1", "-"), (2, "a2", "b1")]),
    Example("an empty log", _NTH, a=[[]], out=[], state={"c": {}}),
    Example("an empty partition beside another", _NTH, a=[[], [at(7, s="x")]],
        out=[(7, "x", 1)], state={"c": {0: 1}}),
    Example("who writes a state runs before who only reads it", """
c = app.state("c", default=0)
@app.on(a)
def tell(e):
    app.emit("out", n=c.get(e.k))
@app.on(a)
def count(e):
    c.add(e.k, 1)
""", a=[[at(1, "p"), at(2, "p")]], out=[(1, 1), (2, 2)]),
    Example("two that only read run as they were defined", """
c = app.state("c", default=0)
d = app.state("d", default="")
@app.on(a)
def one(e):
    d.merge(0, lambda s: s + "1")
    app.emit("out", n=c.get(0))
@app.on(a)
def two(e):
    d.merge(0, lambda s: s + "2")
    app.emit("out", n=c.get(0) + 10)
@app.on(a)
def count(e):
    c.add(0, 1)
""", a=[[at(1)]], out=[(1, 1), (1, 11)], state={"d": {0: "12"}}),
    Example("two writers run as they were defined", """
d = app.state("d", default="")
@app.on(a)
def zed(e):
    d.set(e.k, "zed")
@app.on(a)
def alpha(e):
    d.set(e.k, "alpha")
""", a=[[at(1, "p")]], state={"d": {"p": "alpha"}}),
    Example("a chain of three against the order of definition", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def third(e):
    app.emit("out", n=two.get(e.k))
@app.on(a)
def second(e):
    two.set(e.k, one.get(e.k) * 10)
@app.on(a)
def first(e):
    one.add(e.k, 1)
""", a=[[at(1, "p"), at(2, "p")]], out=[(1, 10), (2, 20)]),
    Example("a handler that reads and writes a state waits for no other writer", """
c = app.state("c", default=0)
@app.on(a)
def both(e):
    app.emit("out", n=c.get(e.k))
    c.add(e.k, 1)
@app.on(a)
def more(e):
    c.add(e.k, 10)
""", a=[[at(1, "p"), at(2, "p")]], out=[(1, 0), (2, 11)], state={"c": {"p": 22}}),
    Example("a read before the merge of its handler does not see it", """
c = app.state("c", default=0)
@app.on(a)
def both(e):
    before = c.get(e.k)
    c.add(e.k, e.n)
    app.emit("out", before=before, after=c.get(e.k))
""", a=[[at(1, "p", n=5), at(2, "p", n=7), at(3, "q", n=1)]],
        out=[(1, 0, 5), (2, 5, 12), (3, 0, 1)]),
    Example("a reader of another event type sees what was merged at its time", """
c = app.state("c", default=0)
@app.on(b)
def tell(e):
    app.emit("out", n=c.get(e.k))
@app.on(a)
def count(e):
    c.add(e.k, 1)
""", a=[[at(1, "p"), at(3, "p")]], b=[[at(0, "p"), at(1, "p"), at(2, "p"), at(3, "p")]],
        out=[(0, 0), (1, 1), (2, 1), (3, 2)]),
    Example("a reader of the earlier type does not see the later type's merge at its time", """
c = app.state("c", default=0)
@app.on(a)
def tell(e):
    app.emit("out", n=c.get(e.k))
@app.on(b)
def count(e):
    c.add(e.k, 1)
""", a=[[at(1, "p"), at(2, "p")]], b=[[at(1, "p")]], out=[(1, 0), (2, 1)]),
    Example("a read after an early return is not made", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    if e.n < 0:
        return
    c.add(e.k, e.n)
    app.emit("out", n=c.get(e.k))
""", a=[[at(1, "p", n=1), at(2, "p", n=-5), at(3, "p", n=2)]], out=[(1, 1), (3, 3)]),
    Example("elements of a list go one after the other", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    for t in e.tags:
        app.emit("out", t=t, before=c.get(t))
        c.add(t, 1)
""", a=[[at(1, tags=["p", "q", "p"]), at(2, tags=[]), at(3, tags=["q"])]],
        out=[(1, "p", 0), (1, "q", 0), (1, "p", 1), (3, "q", 1)],
        state={"c": {"p": 2, "q": 2}}),
    Example("what stands behind a loop comes after all its elements", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    app.emit("out", n=c.get(0))
    for n in e.nums:
        c.add(0, n)
    app.emit("out", n=c.get(0))
""", a=[[at(1, nums=[1, 2, 3]), at(2, nums=[10])]], out=[(1, 0), (1, 6), (2, 6), (2, 16)]),
    Example("a handler for two types runs for each", """
c = app.state("c", default=0)
@app.on(a, b)
def count(e):
    c.add(e.k, e.n)
@app.on(b)
def tell(e):
    app.emit("out", n=c.get(e.k))
""", a=[[at(1, "p", n=1)]], b=[[at(1, "p", n=10), at(2, "q", n=5)]], out=[(1, 11), (2, 5)],
        state={"c": {"p": 11, "q": 5}}),
    Example("the last of an event's emits stand with all others", """
@app.on(a)
def twice(e):
    app.emit("out", n=e.n)
    app.emit("out", n=e.n)
""", a=[[at(1, n=4)]], out=[(1, 4), (1, 4)]),
    Example("what is emitted in a loop stands where the loop does", """
@app.on(a)
def tell(e):
    app.emit("out", s="first", t=e.s)
    for t in e.tags:
        app.emit("out", s="z", t=t)
        if t != "q":
            app.emit("out", s="a", t=t)
    app.emit("out", s="last", t=e.s)
    for t in e.tags:
        app.emit("out", s="again", t=t)
""", a=[[at(1, s="x", tags=["q", "p"]), at(1, s="w", tags=[])]],
        out=[(1, "first", "x"), (1, "z", "q"), (1, "z", "p"), (1, "a", "p"), (1, "last", "x"),
             (1, "again", "q"), (1, "again", "p"), (1, "first", "w"), (1, "last", "w")]),
    Example("a handler's emits stand together, whoever runs it", """
c = app.state("c", default=0, key="BIGINT")
app.emits("out", "s STRING, n BIGINT")
@app.on(a)
def tell(e):
    app.emit("out", s="tell", n=c.get(0))
@app.serial
@app.on(a)
def some(e):
    for n in e.nums:
        app.emit("out", s="some", n=n)
        c.add(0, n)
@app.on(a)
def loop(e):
    for n in e.nums:
        app.emit("out", s="loop", n=n)
@app.serial
@app.on(a)
def more(e):
    app.emit("out", s="more", n=0)
    for n in e.nums:
        app.emit("out", s="more", n=n)
""", a=[[at(1, nums=[5, 2]), at(1, nums=[])]],
        out=[(1, "some", 5), (1, "some", 2), (1, "tell", 7), (1, "loop", 5), (1, "loop", 2),
             (1, "more", 0), (1, "more", 5), (1, "more", 2), (1, "tell", 7), (1, "more", 0)]),
    Example("e.vs and e.ve are the event's lifetime", """
@app.on(a)
def tell(e):
    app.emit("out", n=e.ve - e.vs, m=e.vs)
""", a=[[at(17)]], out=[(17, 1, 17)]),
)  # fmt: skip
