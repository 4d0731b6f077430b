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
    Example("a ring of two event types that begins with a loop in one", """
s = app.state("s", default=1.5)
@app.on(b)
def count(e):
    for t in e.tags:
        s.add(e.n % 3, 1)
@app.on(a, b)
def keep(e):
    s.merge(e.n % 3, lambda v: s.get(e.n % 3))
""", a=[[at(16, n=1)]], b=[[at(4, n=1, tags=["c", "b"])]]),
    Example("a ring beside a loop with reads of its own", """
s = app.state("s", default=0)
other = app.state("other", default=0)
@app.on(a)
def keep(e):
    other.add(e.k, 1)
    s.merge(e.u, lambda v: s.get(e.u) + 1)
@app.on(a)
def more(e):
    for k in e.tags:
        s.merge(e.u, lambda v: v + other.get(k))
    app.emit("out", n=s.get(e.u))
""", a=[[at(6, "p", u=1, tags=["p", "q"]), at(7, "q", u=1, tags=["q", "p"])]]),
    Example("a window that a ring and others merge functions into", """
s = app.state("s", default=1, last=9)
x = app.state("x", default=0.5, last=9)
@app.on(a)
def grow(e):
    s.merge(e.k, lambda v: v * 2 + s.get(e.k) % 7 + e.n)
    x.merge(e.k, lambda v: v / 2 + e.n)
    app.emit("out", n=s.get(e.k), x=x.get(e.k))
@app.on(b)
def more(e):
    s.merge("p" + e.k[:0], lambda v: v - e.n)
    x.merge(e.k, lambda v: v + x.get(e.k))
""", a=[[at(t, "pq"[t % 3 % 2], n=t % 4) for t in range(3, 20)]],
     b=[[at(t, "p", n=t % 3) for t in range(2, 22, 3)]]),
    Example("a window of a serial group that others merge functions into", """
s = app.state("s", default=1, last=9, key="STRING")
@app.on(a)
def tell(e):
    app.emit("out", n=s.get(e.k))
@app.on(b)
def more(e):
    s.merge(e.k, lambda v: v * 2 + e.n)
app.emits("out", "n BIGINT")
app.serial(tell)
""", a=[[at(t, "p") for t in range(3, 20)]], b=[[at(t, "p", n=t % 3) for t in range(2, 22, 3)]]),
    Example("an exact sum of a serial group that a later run goes on from", """
s = app.state("s", default=0.0)
@app.on(a)
def add(e):
    s.add(e.k, e.x)
    s.max(e.k, -1)
    app.emit("out", x=s.get(e.k))
app.emits("out", "x DOUBLE")
app.serial(add)
""", a=[[at(t, "p", x=x) for t, x in enumerate([1e16, 1.0, 0.1, 1.0, -1e16, 0.2])]]),
    Example("an order that a read decides which never happens", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def copy(e):
    one.add(e.k, two.get(e.u))
@app.on(a)
def keep(e):
    two.set(e.u, 1)
    if 0:
        one.get(e.k)
""", a=[[at(6, "p")]]),
    Example("an order that a write decides which never happens", """
NAMES = ("p", "q")
one = app.state("one", default=0)
two = app.state("two", default=(), type="LIST(STRING)")
@app.on(a)
def tell(e):
    two.add_to_set(e.k, "first")
    app.emit("out", n=one.get(e.k))
@app.on(a)
def keep(e):
    two.add_to_set(e.k, "second")
@app.on(a)
def count(e):
    if NAMES:
        pass
    else:
        one.add(e.k, 1)
""", a=[[at(6, "p")]]),
    Example("an order that a helper's write decides which a parameter switches off", """
one = app.state("one", default=0)
two = app.state("two", default=0)
on = app.param("on", False)
def put(state, key):
    if on:
        state.set(key, 7)
    return two.get(key)
@app.on(a)
def tell(e):
    app.emit("out", n=put(one, e.k))
@app.on(a)
def keep(e):
    two.set(e.k, one.get(e.k) + 1)
app.emits("out", "n BIGINT")
""", a=[[at(6, "p"), at(7, "p")]]),
    Example("comprehensions of all types that nobody declared", """
s = app.state("s", default=0)
def above(n, i):
    assert n > -100
    return n > i
@app.on(a)
def tell(e):
    i = "no number"
    total = sum(i * 2 for i in e.nums)
    s.add((e.k, sum(n + len(t) for n in e.nums for t in e.tags)), total)
    app.emit("numbers", total=total, half=sum(n / 2 for n in e.nums),
             text=f"{sum(n / 2 for n in e.nums)}", much=sum(n * 10**18 for n in e.nums) % 7)
    app.emit("lists", texts=[t.strip() for t in e.tags if t], of=[i for n in e.nums],
             pairs=sorted([j for n in e.nums for j in (n, e.n)]))
    app.emit("truths", any=any(above(n, 1) for n in e.nums), all=all(t for t in e.tags))
    app.emit("seen", n=s.get((e.k, len([t for t in e.tags]))))
""", a=[[at(6, "p", n=3, nums=[1, 2], tags=[" p", "q"]), at(7, "p", n=1, nums=[], tags=[]),
         at(8, "q", n=2, nums=[9, 9], tags=[""])]]),
    Example("a window with two functions of one handler", """
s = app.state("s", default=0.1, last=5)
@app.on(a)
def tell(e):
    app.emit("out", x=s.get(0))
@app.on(b)
def merge(e):
    s.merge(0, lambda v: max(v, 1))
    s.merge(0, lambda v: max(v, e.x))
""", a=[[at(4, "p"), at(5, "p")]], b=[[at(2, x=1.5), at(3, x=0.5)]]),
    Example("a value that a serial handler adds to in its variable", """
s = app.state("s", default=(1,), type="LIST(BIGINT)")
@app.on(a)
def grow(e):
    v = s.get(e.k)
    v += [e.n]
    app.emit("out", n=len(s.get(e.k)), v=v)
    s.set(e.k, v[-2:])
app.emits("out", "n BIGINT, v LIST(BIGINT)")
app.serial(grow)
""", a=[[at(6, "p", n=2), at(7, "p", n=3), at(8, "p", n=4)]]),
    Example("a read with a ring's key whose guard waits for what is behind the ring", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(b)
def carry(e):
    two.merge("t", lambda _: one.get(0))
@app.on(a)
def count(e):
    if e.k:
        if two.get("t") == 0:
            app.emit("out", n=one.get(e.n % 3))
    else:
        one.add(e.n % 3, one.get(e.n % 3) + 1)
""", a=[[at(1, "", n=3), at(2, "", n=3), at(3, "p", n=3), at(5, "p", n=3)]], b=[[at(4)]]),
    Example("two rings whose keys are read behind one another", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def first(e):
    if e.n > 1:
        if two.get(0):
            app.emit("out", n=one.get(e.n % 2))
    else:
        one.add(e.n % 2, one.get(e.n % 2) + 1)
@app.on(a)
def second(e):
    if e.n > 2:
        if one.get(0):
            app.emit("out", n=two.get(e.n % 3))
    else:
        two.add(e.n % 3, two.get(e.n % 3) + 1)
""", a=[[at(t, "p", n=n) for t, n in enumerate((0, 1, 2, 3, 0, 4, 3, 6, 2, 0, 5))]]),
    Example("a merge into a state of a circle, by a handler that has another one there", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def first(e):
    one.set(e.k, one.get(e.k) + two.get(e.k))
    two.add(e.k, one.get(e.k) % 3)
@app.on(a)
def beside(e):
    two.set(e.k, e.n)
    one.merge(e.k, lambda v: v * 2 + e.n)
@app.on(a)
def last(e):
    one.set(e.k, one.get(e.k) + two.get(e.k) * 10)
    app.emit("out", n=one.get(e.k))
""", a=[[at(t, "pq"[t % 2], n=t) for t in range(5)]]),
    Example("a read of a circle by a handler that merges a function into it", """
one = app.state("one", default=0)
two = app.state("two", default=False)
@app.on(a)
def carry(e):
    two.set(e.k, one.get(e.k) > 2)
    one.merge(e.k, lambda v: v + (2 if two.get(e.k) else 1))
    if two.get(e.k):
        one.add(e.k, 5)
@app.on(a)
def look(e):
    two.merge(e.k, lambda v: not v)
    app.emit("out", n=one.get(e.k), f=two.get(e.k))
""", a=[[at(t, "pq"[t % 2], n=t) for t in range(6)]]),
)  # fmt: skip
