"""Each part of a handler runs as often as in Python, and only where Python runs it.

`tap` counts its calls in a state, by the part that it stands for. It is put into the parts of
expressions and statements, and the counts must be those of the oracle's loop. What `:=` sets must
be set once, too.
"""

from __future__ import annotations

import pytest

from handler_apps import verdict_of
from replay_oracle.differences import Verdict

BEFORE = """
import contextlib, json
app.emits("x", "v STRING")
calls = app.state("calls", default=0, key="STRING")
class P:
    def __init__(self, a, b=None):
        self.a, self.b = a, b
def one(x): return x
def two(x, y=0): return x
"""
TAP = """
def tap(part, value):
    calls.add(part, 1)
    return value
"""

EXPRESSIONS = """
len(tap('p', e.xs))
sum(tap('p', e.xs), tap('q', 1))
max(tap('p', e.a), tap('q', e.b))
min(tap('p', e.a), tap('q', e.b), key=tap('r', abs))
sorted(tap('p', e.xs))
any(x > 1 for x in tap('p', e.xs))
all(x > tap('q', 1) for x in tap('p', e.xs))
any(x > 1 for x in (tap('p', 1), 2))
any(tap(str(x), x) > 1 for x in (1, 2, 3))
sum(x for x in tap('p', e.xs))
[x for x in tap('p', e.xs)]
[tap('p', x) for x in e.xs]
[y for x in tap('p', [e.xs]) for y in tap('q', x)]
{x: 1 for x in tap('p', e.xs)}
list(tap('p', e.xs))
tuple(tap('p', e.xs))
list(range(tap('p', 2)))
[i for i in range(tap('p', 2))]
list(enumerate(tap('p', e.xs)))
list(zip(tap('p', e.xs), tap('q', e.ys)))
isinstance(tap('p', e.a), tap('q', int))
getattr(tap('p', e), tap('q', 'a'))
getattr(e, tap('q', 'a'), tap('r', 1))
hasattr(tap('p', e), 'a')
tap('p', e.s).upper()
tap('p', e.s).replace(tap('q', 'a'), tap('r', 'b'))
','.join(x for x in tap('p', e.ys))
','.join(tap('p', e.ys))
','.join(tap('p', y) for y in e.ys)
tap('p', e.s)[tap('q', 0):tap('r', 1)]
(tap('p', e.a), *tap('q', e.xs))
[*tap('p', e.xs)]
{**tap('p', {'a': 1})}
{tap('p', 'a'): tap('q', e.a)}
f"{tap('p', e.a)}-{tap('q', e.b):{tap('r', 3)}d}"
tap('p', e.a) if tap('q', e.ok) else tap('r', e.b)
tap('p', e.ok) and tap('q', e.a)
tap('p', e.ok) or tap('q', e.a)
tap('p', 0) < tap('q', e.a) < tap('r', 3)
tap('p', e.a) in tap('q', e.xs)
not tap('p', e.a)
-tap('p', e.a)
tap('p', e.a) + tap('q', e.b) * tap('r', 2)
one(tap('p', e.a))
two(y=tap('p', e.a), x=tap('q', e.b))
two(*tap('p', (1, 2)))
two(*tap('p', [e.a]))
two(**tap('p', {'x': 1}))
(lambda x, y=tap('p', 1): x + y)(tap('q', e.a))
(lambda *xs: len(xs))(*tap('p', e.xs))
functools.partial(two, tap('p', 1))(tap('q', 2))
functools.reduce(lambda a, b: a + b, tap('p', e.xs), tap('q', 0))
(n := tap('p', e.a)) + n
any((n := n + 1) > 2 for x in tap('p', e.xs)) + n
len(tap('p', [n := n + 1])) + n
len(e.xs[:(n := n + 1)]) + n
min(e.xs[:(n := n + 1)], default=n) + n
isinstance((n := n + 1), int) + n
P(tap('p', e.a), b=tap('q', 1)).a
json.dumps(tap('p', e.a))
re.search(tap('p', 'a'), tap('q', e.s)) is None
re.sub('a', lambda m: tap('p', 'b'), e.s)
sorted(e.xs, key=lambda x: tap('p', -x))
list(map(lambda x: tap('p', x), e.xs))
list(filter(lambda x: tap('p', x), e.xs))
max(e.xs, key=lambda x: tap('p', x), default=0)
sums.get(tap('p', e.a))
(sums.add(tap('p', e.a), tap('q', 1)), 1)
dict(a=tap('p', 1), **{'b': tap('q', 2)})
str(tap('p', e.a))
int(tap('p', e.a))
round(tap('p', e.f), tap('q', 1))
abs(tap('p', e.a))
divmod(tap('p', 7), tap('q', 2))
pow(tap('p', 2), tap('q', 3))
'%s-%s' % (tap('p', e.a), tap('q', e.b))
'{}'.format(tap('p', e.a))
tap('p', tap)('q', e.a)
next(iter(tap('p', e.xs)), tap('q', 0))
(x for x in tap('p', e.xs)).__next__() if e.xs else 0
bool(tap('p', e.a))
tuple(x for x in tap('p', e.xs))
set(tap('p', e.xs)) == {1}
reversed(tap('p', e.xs)) is None
list(reversed(tap('p', (1, e.a))))
collections.Counter(tap('p', e.ys)).get('a')
math.floor(tap('p', e.f))
operator.add(tap('p', 1), tap('q', e.a))
""".strip().splitlines()

STATEMENTS = """
v = tap('p', e.a)

v = w = tap('p', e.a)

v, w = tap('p', (e.a, e.b))

v, *w = tap('p', e.xs + [1])

v = {}; v[tap('p', 'k')] = tap('q', e.a)

v = [1, 2]; v[tap('p', 0)] += tap('q', e.a)

v = 1; v += tap('p', e.a)

v: int = tap('p', e.a)

v = 0
for x in tap('p', e.xs): v += x

v = 0
for x in tap('p', (1, 2)): v += x

v = 0
for x in tap('p', e.xs):
    v += tap('q', x)

v = 0
for x in e.xs:
    calls.add('z', 1)

v = 0
while tap('p', v) < 2: v += 1

v = 0
if tap('p', e.ok): v = tap('q', 1)
else: v = tap('r', 2)

v = 0
if tap('p', e.ok): pass
elif tap('q', e.a): pass

v = 0
assert tap('p', True), tap('q', 'm')

v = 0
del [tap('p', e.xs)][0]

v = 0
with contextlib.suppress(tap('p', ValueError)): v = tap('q', 1)

v = 0
try: v = tap('p', 1) // e.b
except ZeroDivisionError: v = tap('q', 2)
else: v += tap('r', 1)
finally: tap('s', 1)

v = 0
match tap('p', e.a):
    case 1 if tap('q', e.ok): v = 1
    case _: v = tap('r', 2)

v = 0
match (tap('p', e.a), tap('q', e.b)):
    case (1, y) if tap('r', y): v = 1
    case (x, 0): v = tap('t', 2)

def g(x=tap('p', 1)): return x
v = g()

v = 0
for i in range(2):
    if tap('p', e.ok): continue
    v += tap('q', i)

v = 0
for i in range(3):
    if tap('p', e.a) == i: break
else:
    v = tap('q', 1)

v = 0
sums.merge(tap('p', e.a), lambda n: n + 1)

v = 0
sums.add(tap('p', e.a), tap('q', 1)); app.emit('y', a=tap('r', 1))

v = 0
print_ = tap('p', 0)

v = 0
tap('p', 0)

v = 9
match e.b:
    case 1 as v: pass

v = 9
match e.b:
    case 1 | 2 as v if e.ok: pass

v = 9
match e.b:
    case v if e.ok: pass

v = 9
match e.b:
    case v if (n := e.a) > 1: v += n
    case _: v = n

v = n = 9
match e.b:
    case 1 if (n := e.a) > 1: v += n
    case 2: v = n
    case _: v += n

v = 0
n = 5
assert (n := e.a) < 9
v = n

v = 0
n = 5
assert (n := e.a) < 9 and (v := n), n

v = 0
assert e.b, 1 // e.b

v = 0
assert e.b < 3, sums.get(tap('p', e.a))

v = n = 0
while (n := n + 1) < 3: v += n

v = n = 1
if e.a and (n := e.b): v = n
v += n

v = n = 1
if e.ok or (n := e.b): v = n
v += n

v = n = 1
v = (n := 2) if e.ok else (n := 3); v += n

v = n = 1
v = [n, n := 2, n][e.b % 3] + n

v = n = 1
v = e.a < (n := 2) < (n := e.b) or n

v = n = 1
raise_ = e.a
if e.a > 2: raise ValueError(tap('p', n))

v = 0
return_ = [tap('p', 1)] and tap('q', 2)

v = 0
if (v := tap('p', e.a)) and tap('q', v): v = 1
""".strip().split("\n\n")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_parts_of_expressions(expression: str) -> None:
    body = f"n = 0\nv = {expression}\napp.emit('x', v=str(v))"
    assert verdict_of(body, before=BEFORE + TAP) == Verdict("same")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_parts_of_statements(statement: str) -> None:
    body = f"{TAP.strip()}\n{statement}\napp.emit('x', v=str(v))"
    assert verdict_of(body, before=BEFORE) == Verdict("same")
