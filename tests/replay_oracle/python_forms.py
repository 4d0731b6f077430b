"""Small apps in forms of Python that an analysis by lists of names gets wrong.

Each says what comes of it: the loop's answer, by a handler in columns or in rows; a refusal before
the run, with words of its reason; or a run that ends and names what the handler remembers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from replay_oracle.loop import Logs

Way = Literal["columns", "rows", "refused", "ended", "unnoticed"]

HEAD = """
import re, io, functools, collections, dataclasses, contextlib, itertools
import weir
app = weir.App("t")
columns = "k STRING, u BIGINT, n BIGINT, m STRING, x DOUBLE, tags LIST(STRING), nums LIST(BIGINT)"
a = app.events("a", columns + ", ts BIGINT", vs="ts")
total = app.state("total", default=0, key="STRING")
other = app.state("other", default=0, key="STRING")
lists = app.state("lists", default=[], type="LIST(STRING)", key="STRING")
app.emits("out", "k STRING, v BIGINT")
app.emits("txt", "k STRING, s STRING")
app.emits("dbl", "k STRING, x DOUBLE")
app.emits("yes", "k STRING, b BOOLEAN")
"""


@dataclass(frozen=True)
class PythonForm:
    """A `PythonForm` is the body of an app, with what comes of it: `way` is that of its first
    handler."""

    name: str
    way: Way
    body: str
    words: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return HEAD + self.body


FORMS = (
    PythonForm("default arg state", "columns", """
def bump(key, state=total):
    state.add(key, 1)
@app.on(a)
def h(e):
    bump(e.k)
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("state in object", "rows", """
class Rule:
    def __init__(self, state): self.state = state
    def hit(self, key): self.state.set(key, self.state.get(key) + 2)
rule = Rule(total)
@app.on(a)
def h(e):
    rule.hit(e.k)
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("super", "columns", """
class Base:
    def note(self, key): total.add(key, 1)
class Sub(Base):
    def note(self, key):
        super().note(key)
        other.add(key, 1)
sub = Sub()
@app.on(a)
def h(e):
    sub.note(e.k)
    app.emit("out", k=e.k, v=total.get(e.k) * 10 + other.get(e.k))
"""),
    PythonForm("generator helper", "rows", """
def gen(keys):
    for k in keys:
        total.add(k, 1)
        yield k
@app.on(a)
def h(e):
    n = len(list(gen([e.k, e.k])))
    app.emit("out", k=e.k, v=n)
@app.on(a)
def g(e):
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("self.app.emit", "columns", """
class Out:
    def __init__(self, app): self.app = app
    def put(self, k, v): self.app.emit("out", k=k, v=v)
out = Out(app)
@app.on(a)
def h(e):
    total.add(e.k, 1)
    out.put(e.k, total.get(e.k))
"""),
    PythonForm("own object", "rows", """
class Score:
    def __init__(self): self.n = 0
    def hit(self, by): self.n += by
@app.on(a)
def h(e):
    score = Score(); score.hit(2)
    app.emit("out", k=e.k, v=score.n)
"""),
    PythonForm("helper helper append", "rows", """
def inner(xs, x): xs.append(x)
def outer(xs, x): inner(xs, x)
@app.on(a)
def h(e):
    xs = []
    outer(xs, e.n)
    app.emit("out", k=e.k, v=len(xs))
"""),
    PythonForm("alias if", "rows", """
@app.on(a)
def h(e):
    x, y = [1], [2]
    z = x if e.n else y
    z.append(9)
    app.emit("out", k=e.k, v=len(x) * 10 + len(y))
"""),
    PythonForm("add = x.append", "rows", """
@app.on(a)
def h(e):
    x = []
    add = x.append
    add(e.n)
    app.emit("out", k=e.k, v=len(x))
"""),
    PythonForm("StringIO", "rows", """
@app.on(a)
def h(e):
    b = io.StringIO()
    b.write("a"); b.write(e.k)
    app.emit("txt", k=e.k, s=b.getvalue())
"""),
    PythonForm("map twice", "rows", """
@app.on(a)
def h(e):
    m = map(str, e.nums)
    one = ",".join(m)
    two = ",".join(m)
    app.emit("txt", k=e.k, s=one + "|" + two)
"""),
    PythonForm("zip twice const", "rows", """
@app.on(a)
def h(e):
    m = zip((1, 2), (3, e.n))
    one = sum(p + q for p, q in m)
    two = sum(p + q for p, q in m)
    app.emit("out", k=e.k, v=one * 100 + two)
"""),
    PythonForm("d[a].append", "rows", """
@app.on(a)
def h(e):
    d = {"a": []}
    d["a"].append(e.n)
    app.emit("out", k=e.k, v=len(d["a"]))
"""),
    PythonForm("method in loop", "rows", """
class Acc:
    def __init__(self): self.n = 0
    def add(self, x): self.n += x
@app.on(a)
def h(e):
    acc = Acc()
    for x in (1, 2, 3): acc.add(x)
    app.emit("out", k=e.k, v=acc.n)
"""),
    PythonForm("dataclass method", "rows", """
@dataclasses.dataclass
class P:
    n: int = 0
    def up(self): self.n += 1
@app.on(a)
def h(e):
    p = P(); p.up(); p.up()
    app.emit("out", k=e.k, v=p.n)
"""),
    PythonForm("reduce", "rows", """
def step(acc, x):
    acc.append(x); return acc
@app.on(a)
def h(e):
    got = functools.reduce(step, (1, 2, 3), [])
    app.emit("out", k=e.k, v=len(got))
"""),
    PythonForm("with", "rows", """
class C:
    def __init__(self): self.log = []
    def __enter__(self): self.log.append(1); return self
    def __exit__(self, *x): self.log.append(2)
@app.on(a)
def h(e):
    with C() as c:
        c.log.append(e.n)
    app.emit("out", k=e.k, v=len(c.log))
"""),
    PythonForm("defaultdict", "rows", """
@app.on(a)
def h(e):
    d = collections.defaultdict(list)
    d["x"]
    app.emit("out", k=e.k, v=len(d))
"""),
    PythonForm("check assert", "columns", """
def check(u):
    assert u < 3
@app.on(a)
def h(e):
    check(e.u)
    app.emit("out", k=e.k, v=1)
"""),
    PythonForm("V check", "rows", """
class V:
    def __init__(self, m): self.m = m
    def check(self):
        if self.m == "bad": raise ValueError("no")
@app.on(a)
def h(e):
    V(e.m).check()
    app.emit("out", k=e.k, v=1)
"""),
    PythonForm("init raises", "rows", """
class V:
    def __init__(self, m):
        if m == "bad": raise ValueError("no")
@app.on(a)
def h(e):
    V(e.m)
    app.emit("out", k=e.k, v=1)
"""),
    PythonForm("ok unused", "columns", """
def check(u):
    if u > 2: raise KeyError(u)
    return True
@app.on(a)
def h(e):
    ok = check(e.u)
    app.emit("out", k=e.k, v=1)
"""),
    PythonForm("assert only", "columns", """
@app.on(a)
def h(e):
    assert e.u < 3
@app.on(a)
def g(e):
    app.emit("out", k=e.k, v=1)
"""),
    PythonForm("assert only rows", "rows", """
@app.on(a)
def h(e):
    while True:
        assert e.u < 3
        break
@app.on(a)
def g(e):
    app.emit("out", k=e.k, v=1)
"""),
    PythonForm("unused int()", "columns", """
@app.on(a)
def h(e):
    v = int(e.m)
    if e.n > 0:
        app.emit("out", k=e.k, v=v)
"""),
    PythonForm("finally break", "rows", """
@app.on(a)
def h(e):
    v = 0
    for x in (1, 2, 3):
        try:
            v = x
            if x == 2: break
        finally:
            v = v + 10
    app.emit("out", k=e.k, v=v)
"""),
    PythonForm("finally continue", "rows", """
@app.on(a)
def h(e):
    v = 0
    for x in (1, 2, 3):
        try:
            if x == e.n: continue
            v += x
        finally:
            v = v * 2
    app.emit("out", k=e.k, v=v)
"""),
    PythonForm("re2", "columns", """
@app.on(a)
def h(e):
    app.emit("yes", k=e.k, b=re.fullmatch(r"[^\\W\\d]+", e.m, re.I) is not None)
"""),
    PythonForm("pow", "columns", """
@app.on(a)
def h(e):
    app.emit("dbl", k=e.k, x=(e.n * 94906267 + 1) ** 2.0)
"""),
    PythonForm("nan in", "columns", """
@app.on(a)
def h(e):
    app.emit("yes", k=e.k, b=e.x in (e.x, 1.0))
"""),
    PythonForm("two loops v", "columns", """
@app.on(a)
def h(e):
    for v in []:
        total.add(e.k, v)
    for v in (1, 2):
        total.add(e.k, v)
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("two loops event", "columns", """
@app.on(a)
def h(e):
    for v in e.nums:
        t = v + 1
        total.add(e.k, t)
    for v in e.nums:
        t = v * 2
        other.add(e.k, t)
    app.emit("out", k=e.k, v=total.get(e.k) + other.get(e.k))
"""),
    PythonForm("temp in two blocks", "columns", """
@app.on(a)
def h(e):
    if e.n > 0:
        t = e.n
        total.add(e.k, t)
    if e.n > 1:
        t = e.n * 2
        total.add(e.k, t)
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("get append", "rows", """
@app.on(a)
def h(e):
    lists.append(e.k, e.m)
    xs = lists.get(e.k)
    xs.append("zz")
    app.emit("out", k=e.k, v=len(lists.get(e.k)) * 10 + len(xs))
"""),
    PythonForm("event list mutate", "rows", """
@app.on(a)
def h(e):
    e.tags.append("zz")
    app.emit("out", k=e.k, v=len(e.tags))
@app.on(a)
def g(e):
    app.emit("out", k=e.k, v=100 + len(e.tags))
"""),
    PythonForm("swallow guard", "refused", """
class Box: pass
box = Box(); box.st = total
NAME = "st"
@app.on(a)
def h(e):
    try:
        r = getattr(box, NAME).get("zz")
    except Exception:
        r = -1
    app.emit("out", k=e.k, v=r)
@app.on(a)
def g(e):
    total.add("zz", 1)
""", ("`Box`", "app.serial")),
    PythonForm("emit alias", "rows", """
@app.on(a)
def h(e):
    xs = ["1"]
    lists.set(e.k, xs)
    xs.append("2")
    app.emit("out", k=e.k, v=len(lists.get(e.k)))
"""),
    PythonForm("cached property", "refused", """
class Counter:
    @functools.cached_property
    def bump(self): return total.add
c = Counter()
def f(s):
    t = ""
    for ch in s: t += ch
    return t
@app.on(a)
def h(e):
    c.bump("n", 1)
    app.emit("out", k=e.k, v=other.get(f(e.k)))
@app.on(a)
def g(e):
    app.emit("out", k=e.k, v=1000 + total.get("n"))
""", ("`Counter`", "app.serial")),
    PythonForm("import-time method", "columns", """
bump = total.add
look = total.get
@app.on(a)
def h(e):
    bump(e.k, 1)
    app.emit("out", k=e.k, v=look(e.k))
"""),
    PythonForm("dispatch dict", "rows", """
OPS = {"inc": total.add, "dec": lambda k, x: total.add(k, -x)}
@app.on(a)
def h(e):
    OPS["inc" if e.n > 0 else "dec"](e.k, 1)
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("states by kind", "rows", """
STATES = {"p": total, "q": other}
@app.on(a)
def h(e):
    STATES[e.k].add(e.k, 1)
@app.on(a)
def g(e):
    app.emit("out", k=e.k, v=total.get(e.k) * 100 + other.get(e.k))
"""),
    PythonForm("lru_cache list", "unnoticed", """
@functools.lru_cache
def cell(k): return [0]
def bump(k):
    c = cell(k); c[0] += 1; return c[0]
@app.on(a)
def h(e):
    app.emit("out", k=e.k, v=bump(e.k))
"""),
    PythonForm("global flip", "ended", """
G = {"on": False}
def flip():
    d = G; d["on"] = not d["on"]; return d["on"]
@app.on(a)
def h(e):
    app.emit("yes", k=e.k, b=flip())
""", ("`G`",)),
    PythonForm("count iterator", "refused", """
IDS = (itertools.count(),)
@app.on(a)
def h(e):
    app.emit("out", k=e.k, v=next(IDS[0]))
""", ("`count`", "outside")),
    PythonForm("an event is changed", "rows", """
@app.on(a)
def h(e):
    e.n = 1
    total.add(e.k, e.n)
"""),
    PythonForm("a state read, changed and set", "rows", """
@app.on(a)
def h(e):
    xs = lists.get(e.k)
    xs.append(e.m)
    lists.set(e.k, xs)
    app.emit("out", k=e.k, v=len(lists.get(e.k)))
"""),
    PythonForm("while over a state", "rows", """
@app.on(a)
def h(e):
    while total.get(e.k) < e.u:
        total.add(e.k, 1)
    app.emit("out", k=e.k, v=total.get(e.k))
"""),
    PythonForm("one of two states", "rows", """
@app.on(a)
def h(e):
    (total if e.n else other).add(e.k, 1)
    app.emit("out", k=e.k, v=total.get(e.k) * 10 + other.get(e.k))
"""),
    PythonForm("try around a merge", "rows", """
@app.on(a)
def h(e):
    try:
        total.add(e.k, int(e.m))
    except ValueError:
        other.add(e.k, 1)
    app.emit("out", k=e.k, v=total.get(e.k) * 10 + other.get(e.k))
"""),
    PythonForm("loops in a loop", "rows", """
@app.on(a)
def h(e):
    for t in e.tags:
        for u in e.nums:
            total.add(t, u)
"""),
    PythonForm("library imported inside", "rows", """
@app.on(a)
def h(e):
    import math
    from fractions import Fraction
    app.emit("out", k=e.k, v=math.floor(Fraction(e.n, 2)))
"""),
)  # fmt: skip

LOG: Logs = {"a": [[
 {"k": "p", "u": 1, "n": 2, "m": "ask", "x": 1.5, "tags": ["a"], "nums": [1, 2], "ts": 1},
 {"k": "q", "u": 2, "n": 0, "m": "7", "x": float("nan"), "tags": [], "nums": [], "ts": 2},
 {"k": "p", "u": 5, "n": 3, "m": "bad", "x": -0.0, "tags": ["b", "c"], "nums": [3], "ts": 3},
 {"k": "q", "u": 0, "n": -1, "m": "s9", "x": float("nan"), "tags": ["b"], "nums": [4, 5],
  "ts": 4},
]]}  # fmt: skip
