"""Worked examples: what a cell holds."""

from replay_oracle.examples import Example, at

NAN, INF = float("nan"), float("inf")

_WINDOW = """
w = app.state("w", default=0, last=10)
@app.on(a)
def keep(e):
    w.add(e.k, e.n)
@app.on(b)
def tell(e):
    app.emit("out", n=w.get(e.k))
"""
_EXPIRING = """
w = app.state("w", default=100, expires=10)
@app.on(a)
def keep(e):
    w.add(e.k, e.n)
@app.on(b)
def tell(e):
    app.emit("out", n=w.get(e.k))
"""
_SUM = """
t = app.state("t", default=0.0)
@app.on(a)
def keep(e):
    t.add(e.k, e.x)
    app.emit("out", t=t.get(e.k))
"""
_PLUS = """
t = app.state("t", default=0.0)
@app.on(a)
def keep(e):
    t.merge(e.k, lambda v: v + e.x)
    app.emit("out", t=t.get(e.k))
"""
_BY_X = """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    c.add(e.x, 1)
    app.emit("out", n=c.get(e.x))
"""


def _one(declared: str, merge: str) -> str:
    return f"""
s = app.state("s", {declared})
@app.on(a)
def keep(e):
    s.{merge}
"""


EXAMPLES = (
    Example("a cell is the default until something is merged", """
c = app.state("c", default=7)
@app.on(a)
def tell(e):
    app.emit("out", n=c.get(e.k))
""", a=[[at(1, "p")]], out=[(1, 7)], state={"c": {}}),
    Example("reading makes no cell", """
c = app.state("c", default=7)
@app.on(a)
def tell(e):
    app.emit("out", n=c.get(e.k))
@app.on(b)
def keep(e):
    c.add(e.k, 1)
""", a=[[at(1, "p"), at(3, "q")]], b=[[at(2, "q")]], out=[(1, 7), (3, 8)],
        state={"c": {"q": 8}}),
    Example("a cell that was set to its default is a cell", _one("default=0", "set(e.k, e.n)"),
        a=[[at(1, "p", n=0)]], state={"s": {"p": 0}}),
    Example("set", _one("default=0", "set(e.k, e.n)"),
        a=[[at(1, "p", n=3), at(2, "p", n=2)]], state={"s": {"p": 2}}),
    Example("set takes NULL", _one('default=None, type="BIGINT"', "set(e.k, e.n)"),
        a=[[at(1, "p", n=3), at(2, "p")]], state={"s": {"p": None}}),
    Example("max and its default", _one("default=2", "max(e.k, e.n)"),
        a=[[at(1, "p", n=1), at(2, "q", n=5), at(3, "q", n=4)]], state={"s": {"p": 2, "q": 5}}),
    Example("min and its default", _one("default=2", "min(e.k, e.n)"),
        a=[[at(1, "p", n=1), at(2, "q", n=5), at(3, "p", n=4)]], state={"s": {"p": 1, "q": 2}}),
    Example("append keeps order and repeats",
        _one('default=(), type="LIST(STRING)"', "append(e.k, e.s)"),
        a=[[at(1, "p", s="y"), at(2, "p", s="x"), at(3, "p", s="y")]],
        state={"s": {"p": ("y", "x", "y")}}),
    Example("append takes NULL", _one('default=(), type="LIST(STRING)"', "append(e.k, e.s)"),
        a=[[at(1, "p", s="y"), at(2, "p")]], state={"s": {"p": ("y", None)}}),
    Example("add_to_set keeps the order of first insertion",
        _one('default=(), type="LIST(STRING)"', "add_to_set(e.k, e.s)"),
        a=[[at(1, "p", s="y"), at(2, "p", s="x"), at(3, "p", s="y")]],
        state={"s": {"p": ("y", "x")}}),
    Example("top_k is descending", _one('default=(), type="LIST(BIGINT)"', "top_k(e.k, e.n, 3)"),
        a=[[at(1, "p", n=2), at(2, "p", n=9), at(3, "p", n=9), at(4, "p", n=5), at(5, "p", n=1)]],
        state={"s": {"p": (9, 9, 5)}}),
    Example("add of NULL is an error", _one("default=0", "add(e.k, e.n)"), a=[[at(1, "p")]],
        fails=True),
    Example("max of NULL is an error", _one("default=0", "max(e.k, e.n)"), a=[[at(1, "p")]],
        fails=True),
    Example("an integer beyond int64 is an error", _one("default=0", "add(e.k, e.n)"),
        a=[[at(1, "p", n=2**63 - 1), at(2, "p", n=1)]], fails=True),
    Example("the largest int64 is none", _one("default=0", "add(e.k, e.n)"),
        a=[[at(1, "p", n=2**63 - 2), at(2, "p", n=1)]], state={"s": {"p": 2**63 - 1}}),
    Example("an integer beyond int64 is an error at the merge that makes it",
        _one("default=0", "add(e.k, e.n)"),
        a=[[at(1, "p", n=2**63 - 1), at(2, "p", n=1), at(3, "p", n=-1)]], fails=True),
    Example("add on DOUBLE is exact", _SUM,
        a=[[at(1, "p", x=1e16), at(2, "p", x=1.0), at(3, "p", x=1.0), at(4, "p", x=-1e16)]],
        out=[(1, 1e16), (2, 1e16), (3, 1e16 + 2), (4, 2.0)], state={"t": {"p": 2.0}}),
    Example("add on DOUBLE takes the default as a part of the sum", """
t = app.state("t", default=0.1)
@app.on(a)
def keep(e):
    t.add(e.k, e.x)
""", a=[[at(1, "p", x=0.2), at(2, "p", x=-0.1), at(3, "p", x=-0.2)]],
        state={"t": {"p": 0.0}}),
    Example("add on DOUBLE goes beyond the largest double and back", _SUM,
        a=[[at(1, "p", x=1e308), at(2, "p", x=1e308), at(3, "p", x=-1e308)]],
        out=[(1, 1e308), (2, INF), (3, 1e308)]),
    Example("n + x on DOUBLE is IEEE, one after the other", _PLUS,
        a=[[at(1, "p", x=1e16), at(2, "p", x=1.0), at(3, "p", x=1.0), at(4, "p", x=-1e16)]],
        out=[(1, 1e16), (2, 1e16), (3, 1e16), (4, 0.0)]),
    Example("a set between begins the exact sum anew", """
t = app.state("t", default=0.0)
@app.on(a)
def keep(e):
    t.add(e.k, e.x)
@app.on(b)
def begin(e):
    t.set(e.k, e.x)
""", a=[[at(1, "p", x=1e16), at(2, "p", x=1.0), at(4, "p", x=1.0)]], b=[[at(3, "p", x=5.0)]],
        state={"t": {"p": 6.0}}),
    Example("a function sees the rounded sum", """
t = app.state("t", default=0.0)
@app.on(a)
def keep(e):
    t.add(e.k, e.x)
@app.on(b)
def same(e):
    t.merge(e.k, lambda v: v * 1.0)
""", a=[[at(1, "p", x=1e16), at(2, "p", x=1.0), at(4, "p", x=1.0), at(5, "p", x=-1e16)]],
        b=[[at(3, "p")]], state={"t": {"p": 1.0}}),
    Example("NULL is a key", _one("default=0", "add(e.k, e.n)"),
        a=[[at(1, None, n=1), at(2, "", n=2), at(3, None, n=4)]],
        state={"s": {None: 5, "": 2}}),
    Example("-0 and 0 are one key", _BY_X, a=[[at(1, x=0.0), at(2, x=-0.0)]],
        out=[(1, 1), (2, 2)], state={"c": {0.0: 2}}),
    Example("NaN is one key", _BY_X, a=[[at(1, x=NAN), at(2, x=NAN), at(3, x=1.0)]],
        out=[(1, 1), (2, 2), (3, 1)]),
    Example("a tuple key has all its parts", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    c.add((e.k, e.u), 1)
    app.emit("out", n=c.get((e.k, e.u)))
""", a=[[at(1, "p", u=1), at(2, "p", u=2), at(3, "q", u=1), at(4, "p", u=1), at(5, None, u=1)]],
        out=[(1, 1), (2, 1), (3, 1), (4, 2), (5, 1)],
        state={"c": {("p", 1): 2, ("p", 2): 1, ("q", 1): 1, (None, 1): 1}}),
    Example("a window holds a merge until its length has passed", _WINDOW,
        a=[[at(5, "p", n=1)]], b=[[at(4, "p"), at(5, "p"), at(14, "p"), at(15, "p")]],
        out=[(4, 0), (5, 1), (14, 1), (15, 0)]),
    Example("a window lets merges go one by one", _WINDOW,
        a=[[at(0, "p", n=1), at(5, "p", n=10), at(5, "p", n=100)]],
        b=[[at(9, "p"), at(10, "p"), at(14, "p"), at(15, "p"), at(15, "q")]],
        out=[(9, 111), (10, 110), (14, 110), (15, 0), (15, 0)], state={"w": {}}),
    Example("a window folds from the default", """
w = app.state("w", default=(7,), type="LIST(BIGINT)", last=10)
@app.on(a)
def keep(e):
    w.append(e.k, e.n)
    app.emit("out", n=len(w.get(e.k)), first=w.get(e.k)[0])
""", a=[[at(0, "p", n=1), at(9, "p", n=2), at(10, "p", n=3)]],
        out=[(0, 2, 7), (9, 3, 7), (10, 3, 7)], state={"w": {"p": (7, 2, 3)}}),
    Example("a window's maximum falls when it goes", """
w = app.state("w", default=0, last=10)
@app.on(a)
def keep(e):
    w.max(e.k, e.n)
    app.emit("out", n=w.get(e.k))
""", a=[[at(0, "p", n=9), at(5, "p", n=3), at(10, "p", n=1), at(15, "p", n=2)]],
        out=[(0, 9), (5, 9), (10, 3), (15, 2)]),
    Example("a window's functions run again in order", """
w = app.state("w", default=1, last=10)
@app.on(a)
def keep(e):
    w.merge(e.k, lambda v: v * 2 + e.n)
    app.emit("out", n=w.get(e.k))
""", a=[[at(0, "p", n=1), at(5, "p", n=0), at(10, "p", n=5)]],
        out=[(0, 3), (5, 6), (10, 9)], state={"w": {"p": 9}}),
    Example("a window's function keeps what it captured", """
w = app.state("w", default=0, last=10)
c = app.state("c", default=0)
@app.on(a)
def keep(e):
    c.add(0, 1)
    w.merge(e.k, lambda v: v * 10 + c.get(0))
    app.emit("out", n=w.get(e.k))
""", a=[[at(0, "p"), at(1, "q"), at(5, "p"), at(10, "p")]],
        out=[(0, 1), (1, 2), (5, 13), (10, 34)]),
    Example("a window's exact sum lets go exactly", """
w = app.state("w", default=0.0, last=10)
@app.on(a)
def keep(e):
    w.add(e.k, e.x)
    app.emit("out", x=w.get(e.k))
""", a=[[at(0, "p", x=1e16), at(1, "p", x=1.0), at(10, "p", x=0.5)]],
        out=[(0, 1e16), (1, 1e16), (10, 1.5)]),
    Example("a window's state is as of the largest vs of all logs", _WINDOW,
        a=[[at(0, "p", n=1), at(5, "p", n=2)]], b=[[at(10, "q")]], out=[(10, 0)],
        state={"w": {"p": 2}}),
    Example("the final state is as of `to` where it is given", _WINDOW,
        a=[[at(0, "p", n=1), at(5, "p", n=2)]], to=14, state={"w": {"p": 2}}),
    Example("an expiring cell is the default from its last merge + its length on", _EXPIRING,
        a=[[at(0, "p", n=1)]], b=[[at(9, "p"), at(10, "p"), at(11, "p")]],
        out=[(9, 101), (10, 100), (11, 100)], state={"w": {}}),
    Example("a merge prolongs the whole cell", _EXPIRING,
        a=[[at(0, "p", n=1), at(9, "p", n=2)]], b=[[at(18, "p"), at(19, "p")]],
        out=[(18, 103), (19, 100)]),
    Example("reads prolong nothing", _EXPIRING,
        a=[[at(0, "p", n=1)]], b=[[at(8, "p"), at(9, "p"), at(10, "p")]],
        out=[(8, 101), (9, 101), (10, 100)]),
    Example("a merge on an expired cell begins from the default", _EXPIRING,
        a=[[at(0, "p", n=1), at(10, "p", n=2)]], b=[[at(10, "p")]], out=[(10, 102)],
        state={"w": {"p": 102}}),
    Example("one key's merges do not prolong another's", _EXPIRING,
        a=[[at(0, "p", n=1), at(9, "q", n=2)]], b=[[at(10, "p"), at(10, "q")]],
        out=[(10, 100), (10, 102)], state={"w": {"q": 102}}),
    Example("a DOUBLE state makes doubles of integers", _one("default=0.0", "set(e.k, e.n)"),
        a=[[at(1, "p", n=3)]], state={"s": {"p": 3.0}}),
)  # fmt: skip
