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
    ("a function that is returned on several ways", "same", """
def make(n):
    y = 1
    def f():
        return y
    if n > 3:
        y = 2
        return f
    y = 3
    return f
@app.on(ea)
def h0(e):
    s0.add('big' if make(e.n)() == 2 else 'small', 1)
    app.emit('o0', f0=make(e.n)())
"""),
    ("a function in a tuple that is returned on several ways", "same", """
def make(y):
    f = lambda: y
    for limit in (1, 3):
        if y > limit:
            y = y + 100
            return f, limit
    return f, 0
@app.on(ea)
def h0(e):
    f, limit = make(e.n)
    app.emit('o0', f0=f() + limit)
"""),
    ("an iterator in a tuple", "same", """
@app.on(ea)
def h0(e):
    t = (reversed((1, 2, e.n)),)
    app.emit('o0', f0=sum(t[0]) * 100 + sum(t[0]))
"""),
    ("an iterator by a walrus", "same", """
@app.on(ea)
def h0(e):
    app.emit('o0', f0=sum(z := reversed((1, e.n))) * 100 + sum(z))
"""),
    ("an iterator is no sequence", "same", """
@app.on(ea)
def h0(e):
    match reversed((1, e.n)):
        case (_, 1):
            app.emit('o0', f0=1)
        case z:
            app.emit('o0', f0=sum(z) + sum(z))
"""),
    ("an iterator among the arguments of a function", "same", """
def two(pair, *more):
    return sum(pair[0]) * 100 + sum(pair[0]) + sum(more[0]) + sum(more[0])
@app.on(ea)
def h0(e):
    app.emit('o0', f0=two((reversed((1, e.n)), 1), reversed((2, e.n))))
"""),
    ("a reversed iterator", "same", """
@app.on(ea)
def h0(e):
    app.emit('o0', f0=e.n)
    if e.n == 4:
        list(reversed(zip((1, 2), (3, e.n))))
"""),
    ("an argument that is given twice", "same", """
def f(a, b=0):
    return a + b
@app.on(ea)
def h0(e):
    try:
        n = f(a=e.n, **{'a': 2})
    except TypeError:
        n = -1
    app.emit('o0', f0=n)
"""),
    ("a name of a positional argument among the keywords", "same", """
def f(a, /, **more):
    return a + more['a']
@app.on(ea)
def h0(e):
    app.emit('o0', f0=f(1, a=e.n))
"""),
    ("an index beyond 32 bits", "same", """
@app.on(ea)
def h0(e):
    if e.n > 1000:
        app.emit('o0', f0=e.nums[1099511627776])
    if e.n > 1001:
        app.emit('o0', f0=e.nums[-1099511627776])
    app.emit('o0', f0=1)
"""),
    ("a variable of the handler that a function inside of it sets", "same", """
@app.on(ea)
def h0(e):
    count = 0
    def more():
        nonlocal count
        count += e.n
    more()
    more()
    s0.add(e.k, count)
    app.emit('o0', f0=count)
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
    ("an attribute whose `__getattr__` fails, in a branch that is not taken", "same", """
class A:
    def __getattr__(self, n): raise ValueError('no')
a = A()
@app.on(ea)
def h0(e):
    if e.n > 100: app.emit('o0', f0=a.abc)
    app.emit('o0', f0=e.n)
"""),
    ("an attribute that `__getattr__` gives", "same", """
class A:
    def __getattr__(self, n): return len(n)
a = A()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=a.abc + e.n)
"""),
    ("an attribute that `__getattr__` draws at random", "refused", """
import random
class A:
    def __getattr__(self, n): return random.random()
a = A()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=a.abc + e.n)
"""),
    ("an object whose `__getattribute__` answers everything", "same", """
class A:
    def __getattribute__(self, n): return 7
a = A()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=a.v + e.n)
"""),
    ("a property of a metaclass that fails", "same", """
class M(type):
    @property
    def lim(cls): raise ValueError('x')
class C(metaclass=M): pass
@app.on(ea)
def h0(e):
    if e.n > 100: app.emit('o0', f0=C.lim)
    app.emit('o0', f0=e.n)
"""),
    ("a class whose metaclass answers everything", "same", """
class M(type):
    def __getattribute__(cls, n): return 7
class C(metaclass=M): pass
@app.on(ea)
def h0(e):
    app.emit('o0', f0=e.n + C.lim)
"""),
    ("a descriptor that fails, in a branch that is not taken", "same", """
class D:
    def __get__(self, obj, owner=None): raise ValueError('x')
class C:
    d = D()
    n = 4
c = C()
@app.on(ea)
def h0(e):
    if e.n > 100: app.emit('o0', f0=C.d + c.d)
    app.emit('o0', f0=e.n + c.n)
"""),
    ("an object whose `__class__` fails", "same", """
class A:
    @property
    def __class__(self): raise ValueError('x')
    v = 3
a = A()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=a.v + e.n)
"""),
    ("an object whose `__class__` is that of a state", "refused", """
class A:
    @property
    def __class__(self): return type(s0)
    def v(self, x):
        s0.add('a', x)
        return 3
a = A()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=a.v(1) + e.n)
"""),
    ("the value of a member of an enum", "same", """
import enum
class Color(enum.Enum):
    RED = 1
    BLUE = 2
@app.on(ea)
def h0(e):
    app.emit('o0', f0=Color.RED.value + e.n if Color.BLUE is not Color.RED else 0)
"""),
    ("a parameter as the attribute of a class", "same", """
p = app.param('p', 3)
class C: lim = p
@app.on(ea)
def h0(e):
    app.emit('o0', f0=C.lim + e.n)
"""),
    ("a parameter as the attribute of an object", "same", """
p = app.param('p', 3)
class C:
    def __init__(self): self.lim = p
c = C()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=c.lim + e.n)
"""),
    ("a parameter that looks like the function of a property", "same", """
p = app.param('p', 3)
class C:
    func = p
    fget = p
c = C()
@app.on(ea)
def h0(e):
    x = 0
    for n in e.nums:
        x += c.func + C.fget
    app.emit('o0', f0=x)
"""),
    ("a property and a method of `super()`", "same", """
class B:
    k = 2
    @property
    def p(self): return 4
    def m(self, x): return x + self.k
    @classmethod
    def c(cls, x): return x * cls.k
class C(B):
    k = 3
    def m(self, x): return super().m(x) + super().p
c = C()
@app.on(ea)
def h0(e):
    app.emit('o0', f0=c.m(e.n) + C.c(e.n))
"""),
)  # fmt: skip
"""Each with its verdict."""


def source_of(body: str) -> str:
    return _HEAD + body
