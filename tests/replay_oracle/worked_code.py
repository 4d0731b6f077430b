"""Worked examples: what a handler's code means."""

from replay_oracle.examples import Example, at

_SEEN = """
seen = app.state("seen", default=False)
@app.on(a)
def first(e):
    if not seen.get(e.k):
        seen.merge(e.k, lambda _: True)
        app.emit("out", k=e.k)
"""

EXAMPLES = (
    Example("the first of each key", _SEEN,
        a=[[at(1, "p"), at(1, "p"), at(2, "q"), at(3, "p"), at(4, None), at(5, None)]],
        out=[(1, "p"), (2, "q"), (4, None)], state={"seen": {"p": True, "q": True, None: True}}),
    Example("read, compute, write", """
c = app.state("c", default=1)
@app.on(a)
def double(e):
    c.set(e.k, c.get(e.k) * 2 + e.n)
""", a=[[at(1, "p", n=0), at(2, "p", n=1), at(3, "q", n=5)]], state={"c": {"p": 5, "q": 7}}),
    Example("two handlers in a circle with one key run as they were defined", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def left(e):
    one.set(e.k, two.get(e.k) + 1)
@app.on(a)
def right(e):
    two.set(e.k, one.get(e.k) * 10)
""", a=[[at(1, "p"), at(2, "p")]], state={"one": {"p": 11}, "two": {"p": 110}}),
    Example("a circle over two types with one key", """
stock = app.state("stock", default=0)
@app.on(a)
def fill(e):
    stock.add(e.k, e.n)
@app.on(b)
def take(e):
    if stock.get(e.k) >= e.n:
        stock.add(e.k, -e.n)
        app.emit("out", k=e.k, n=e.n)
""", a=[[at(1, "p", n=5), at(4, "p", n=1)]],
        b=[[at(1, "p", n=3), at(2, "p", n=3), at(4, "p", n=3), at(5, "p", n=1)]],
        out=[(1, "p", 3), (4, "p", 3)], state={"stock": {"p": 0}}),
    Example("a key from an earlier read", """
home = app.state("home", default="?")
c = app.state("c", default=0)
@app.on(a)
def move(e):
    home.set(e.k, e.s)
@app.on(b)
def count(e):
    c.add(home.get(e.k), 1)
    app.emit("out", n=c.get(home.get(e.k)))
""", a=[[at(1, "p", s="x"), at(3, "q", s="x")]], b=[[at(2, "p"), at(2, "q"), at(4, "q")]],
        out=[(2, 1), (2, 1), (4, 2)], state={"c": {"x": 2, "?": 1}}),
    Example("branches take one way", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    if e.n > 10:
        c.add("big", 1)
    elif e.n > 5:
        c.add("mid", 1)
    else:
        c.add("small", 1)
""", a=[[at(1, n=11), at(2, n=10), at(3, n=5), at(4, n=12)]],
        state={"c": {"big": 2, "mid": 1, "small": 1}}),
    Example("an early return keeps what was done before it", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    c.add("all", 1)
    if e.n is None:
        return
    c.add("known", e.n)
""", a=[[at(1, n=3), at(2), at(3, n=4)]], state={"c": {"all": 3, "known": 7}}),
    Example("`and` looks no further than it must", """
c = app.state("c", default=0)
@app.on(a)
def share(e):
    if c.get(e.k) != 0 and e.n // c.get(e.k) > 2:
        app.emit("out", q=e.n // c.get(e.k))
@app.on(b)
def fill(e):
    c.set(e.k, e.n)
""", a=[[at(1, "p", n=9), at(3, "p", n=9), at(4, "p", n=4)]], b=[[at(2, "p", n=2)]],
        out=[(3, 4)]),
    Example("division by zero ends the run", """
@app.on(a)
def divide(e):
    app.emit("out", q=10 // e.n)
""", a=[[at(1, n=2), at(2, n=0)]], fails=True),
    Example("a division that is not reached does no harm", """
@app.on(a)
def divide(e):
    app.emit("out", q=10 // e.n if e.n else -1)
""", a=[[at(1, n=2), at(2, n=0)]], out=[(1, 5), (2, -1)]),
    Example("// rounds down and % has the divisor's sign", """
@app.on(a)
def divide(e):
    app.emit("out", q=e.n // 2, r=e.n % 3, s=e.n % -3)
""", a=[[at(1, n=-7), at(2, n=7)]], out=[(1, -4, 2, -1), (2, 3, 1, -2)]),
    Example("what is empty or zero is false", """
@app.on(a)
def tell(e):
    app.emit("out", n=e.n or 5, s=e.s or "-", t=bool(e.tags), x=e.x or 0.5)
""", a=[[at(1, n=0, s="", tags=[], x=0.0), at(2, n=3, s="a", tags=["a"], x=2.0), at(3, tags=[])]],
        out=[(1, 5, "-", False, 0.5), (2, 3, "a", True, 2.0), (3, 5, "-", False, 0.5)]),
    Example("a local variable keeps its value", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    n = c.get(e.k)
    m = n
    n += e.n
    c.set(e.k, n)
    app.emit("out", m=m, n=n)
""", a=[[at(1, "p", n=2), at(2, "p", n=3)]], out=[(1, 0, 2), (2, 2, 5)]),
    Example("helpers are part of their handler", """
c = app.state("c", default=0)
def bump(key, by=1):
    c.add(key, by)
    return c.get(key)
def label(n):
    if n > 2:
        return "many"
    return "few"
@app.on(a)
def count(e):
    app.emit("out", l=label(bump(e.k, e.n)))
""", a=[[at(1, "p", n=2), at(2, "p", n=3)]], out=[(1, "few"), (2, "many")],
        state={"c": {"p": 5}}),
    Example("a writing helper makes its handler a writer", """
c = app.state("c", default=0)
def bump(key):
    c.add(key, 1)
@app.on(a)
def tell(e):
    app.emit("out", n=c.get(e.k))
@app.on(a)
def count(e):
    bump(e.k)
""", a=[[at(1, "p")]], out=[(1, 1)]),
    Example("strings", """
@app.on(a)
def tell(e):
    app.emit("out", u=e.s.upper(), f=f"{e.n:03d}/{e.s!r}", t=e.s[1:3], h=e.s.startswith("st"))
""", a=[[at(1, s="straße", n=7)]], out=[(1, "STRASSE", "007/'straße'", "tr", True)]),
    Example("a function may look at other states, just before the merge", """
c = app.state("c", default=0)
d = app.state("d", default=0)
@app.on(a)
def count(e):
    d.add(0, 1)
    c.merge(e.k, lambda n: n + d.get(0))
    d.add(0, 1)
""", a=[[at(1, "p"), at(2, "p")]], state={"c": {"p": 4}, "d": {0: 4}}),
    Example("a parameter", """
least = app.param("least", 3)
@app.on(a)
def tell(e):
    if e.n >= least:
        app.emit("out", n=e.n)
""", a=[[at(1, n=2), at(2, n=3), at(3, n=5)]], params={"least": 5}, out=[(3, 5)]),
    Example("a parameter's default", """
least = app.param("least", 3)
@app.on(a)
def tell(e):
    if e.n >= least:
        app.emit("out", n=e.n)
""", a=[[at(1, n=2), at(2, n=3), at(3, n=5)]], out=[(2, 3), (3, 5)]),
    Example("NULL passes through states and emits", """
last = app.state("last", default=None, type="STRING")
@app.on(a)
def tell(e):
    app.emit("out", before=last.get(e.k), none=last.get(e.k) is None)
    last.set(e.k, e.s)
""", a=[[at(1, "p", s="x"), at(2, "p"), at(3, "p", s="y")]],
        out=[(1, None, True), (2, "x", False), (3, None, True)]),
    Example("a condition inside a loop", """
c = app.state("c", default=0)
@app.on(a)
def count(e):
    for n in e.nums:
        if n > 2:
            c.add(e.k, n)
            app.emit("out", n=n, t=c.get(e.k))
""", a=[[at(1, "p", nums=[1, 3, 2, 5]), at(2, "p", nums=[4])]],
        out=[(1, 3, 3), (1, 5, 8), (2, 4, 12)]),
    Example("a group in one partition gives the same answer", """
total = app.state("total", default=0)
c = app.state("c", default=0)
@app.on(a)
def chase(e):
    if c.get(e.k) <= total.get(0):
        c.add(e.s, 1)
        total.set(0, c.get(e.k) + 1)
app.serial(chase)
""", a=[[at(1, "p", s="p"), at(2, "p", s="q"), at(3, "q", s="p")]],
        state={"c": {"p": 2, "q": 1}, "total": {0: 2}}),
    Example("changing a list changes no state", """
w = app.state("w", default=(), type="LIST(BIGINT)")
@app.on(a)
def keep(e):
    seen = list(w.get(e.k)) + [e.n]
    app.emit("out", n=len(seen), m=len(w.get(e.k)))
""", a=[[at(1, "p", n=1), at(2, "p", n=2)]], out=[(1, 1, 0), (2, 1, 0)], state={"w": {}}),
)  # fmt: skip
