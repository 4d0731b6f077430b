"""Small apps that the engine once had wrong, found by drawn ones and made small."""

from __future__ import annotations

_HEAD = """import weir
app = weir.App('drawn')
ea = app.events('ea', 'ts BIGINT, k STRING, n BIGINT, nums LIST(BIGINT)', vs='ts')
s0 = app.state('s0', default=0, type='BIGINT', key='STRING')
app.emits('o0', 'f0 BIGINT')
"""
LOGS = {"ea": [[{"ts": t, "k": "ab"[t % 2], "n": t, "nums": [t, 1]} for t in range(6)]]}

FOUND = (
    ("a matrix product", "same", """
class Product:
    def __matmul__(self, other):
        return other + 1
@app.on(ea)
def h0(e):
    x = Product()
    app.emit('o0', f0=x @ e.n)
"""),
    ("an augmented matrix product of numbers", "same", """
@app.on(ea)
def h0(e):
    x = e.n
    x @= 1
    app.emit('o0', f0=x)
"""),
    ("a coroutine with a loop", "same", """
@app.on(ea)
def h0(e):
    async def total():
        x = 0
        for n in e.nums:
            x += n
        return x
    try:
        total().send(None)
    except StopIteration as stop:
        s0.add(e.k, stop.value)
        app.emit('o0', f0=stop.value)
"""),
    ("a loop whose `else` goes on with the loop around it", "same", """
@app.on(ea)
def h0(e):
    for _ in (1, 2):
        for y in (0,):
            if e.n % 2:
                break
        else:
            continue
        s0.add(e.k, 1)
        app.emit('o0', f0=e.n)
"""),
    ("a merge whose function reads the cell, which has ended", "same", """
s1 = app.state('s1', default=1, type='BIGINT', key='STRING', expires=2)
def held(k):
    return s1.get(k)
@app.on(ea)
def h0(e):
    if e.n % 3 == 0:
        s1.merge('a', lambda old: held('a'))
        s1.add('a', e.n + 1)
        app.emit('o0', f0=s1.get('a'))
"""),
    ("a loop over a list of nothing", "same", """
@app.on(ea)
def h0(e):
    for x in [][:3]:
        s0.set('', 0)
    app.emit('o0', f0=e.n)
"""),
    ("a loop that only fails", "same", """
@app.on(ea)
def h0(e):
    for x in e.nums:
        if False:
            v = s0.get('')
        else:
            assert x < 5, 'large'
@app.on(ea)
def h1(e):
    app.emit('o0', f0=e.n)
"""),
    ("a struct that a run reads in a scan and once more after it", "same", """
s1 = app.state('s1', default={'n': 1, 't': 'o'}, type='STRUCT(n BIGINT, t STRING)', key='STRING')
@app.on(ea)
def h0(e):
    s1.merge(e.k, lambda old: {**s1.get(e.k), 'n': old['n'] + e.n})
    app.emit('o0', f0=s0.get('') + s1.get(e.k).n)
"""),
    ("a name that a default of an inner function binds", "same", """
@app.on(ea)
def h0(e):
    def inner(a, b=(x := e.n)):
        return a + b
    app.emit('o0', f0=inner(1) + x)
"""),
    ("a property that gives a state", "refused", """
class Holder:
    @property
    def state(self):
        return s0
HOLDER = Holder()
@app.on(ea)
def h0(e):
    HOLDER.state.add(e.k, 1)
    app.emit('o0', f0=1)
"""),
    ("an emit of a serial handler by an app in a list", "same", """
APPS = [app]
@app.on(ea)
def h0(e):
    APPS[0].emit('o0', f0=e.n)
    getattr(app, 'emit')('o0', f0=1)
app.serial()
"""),
)  # fmt: skip
"""Each with its verdict."""


def source_of(body: str) -> str:
    return _HEAD + body
