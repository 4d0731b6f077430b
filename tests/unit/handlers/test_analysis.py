"""What analysis finds in handlers: accesses as text, and that they do what the handler does.

A handler that is on the list has a form in columns: its accesses, followed one by one, give what
its own code gives. Of another one analysis knows the accesses, and `?1` is a value that only
CPython can compute. Either way the app's answer is that of the oracle's loop.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

import weir
from handler_apps import AccessLoop, SerialLoop, app_of, events_of_m, handler_of, verdict_of
from replay_oracle.differences import Verdict
from weir.events.types import type_name
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.reading.analysis import analyse_app
from weir.handlers.trees.accesses import Analysed
from weir.handlers.trees.printed_trees import printed_access


def written(analysed: Analysed) -> list[str]:
    assert analysed.refused == ""
    return [printed_access(access) for access in analysed.accesses]


SPAM = """
friendship = app.events("friendship", "a BIGINT, b BIGINT, ts BIGINT", vs="ts")
message = app.events("message", "id BIGINT, sender BIGINT, recipient BIGINT, ip STRING, "
                     "content STRING, ts BIGINT", vs="ts")
friendships = app.state("friendships", default=False)
friend_msgs = app.state("friend_msgs", default=0)
nonfriend_msgs = app.state("nonfriend_msgs", default=0)
ip_msgs = app.state("ip_msgs", default=0)
ip_email_msgs = app.state("ip_email_msgs", default=0)

def has_email(text):
    return re.search("[a-z]+@[a-z]+", text) is not None

@app.on(friendship)
def befriend(e):
    friendships.merge((e.a, e.b), lambda _: True)

@app.on(message)
def count(e):
    if friendships.get((e.sender, e.recipient)):
        friend_msgs.merge(e.sender, lambda n: n + 1)
    else:
        nonfriend_msgs.merge(e.sender, lambda n: n + 1)

@app.on(message)
def by_ip(e):
    ip_msgs.merge(e.ip, lambda n: n + 1)
    if has_email(e.content):
        ip_email_msgs.merge(e.ip, lambda n: n + 1)

@app.on(message)
def judge(e):
    if (nonfriend_msgs.get(e.sender) > 2 * friend_msgs.get(e.sender)
            and ip_email_msgs.get(e.ip) > 0.2 * ip_msgs.get(e.ip)):
        app.emit("spam", message=e.id, sender=e.sender)
"""


def test_the_spam_example() -> None:
    found = {a.handler: written(a) for a in analyse_app(app_of(SPAM))}
    assert found == {
        "befriend": ["0: friendships.merge((e.a, e.b), True)"],
        "count": [
            "0: friendships.get((e.sender, e.recipient))",
            "1: if #0: friend_msgs.merge(e.sender, old + 1)",
            "2: if not #0: nonfriend_msgs.merge(e.sender, old + 1)",
        ],
        "by_ip": [
            "0: ip_msgs.merge(e.ip, old + 1)",
            "1: if re.search('[a-z]+@[a-z]+', e.content) is not None: "
            "ip_email_msgs.merge(e.ip, old + 1)",
        ],
        "judge": [
            "0: nonfriend_msgs.get(e.sender)",
            "1: friend_msgs.get(e.sender)",
            "2: if #0 > 2 * #1: ip_email_msgs.get(e.ip)",
            "3: if #0 > 2 * #1: ip_msgs.get(e.ip)",
            "4: if #0 > 2 * #1 and #2 > 0.2 * #3: emit('spam', message=e.id, sender=e.sender)",
        ],
    }


def check_same(app: weir.App, analysed: Analysed) -> None:
    """The accesses of a handler in columns do what the handler does."""
    assert analysed.why_rows == ""
    serial, followed = SerialLoop(app), AccessLoop(app)
    for event in events_of_m(100):
        serial.run("h", "m", event)
        followed.follow(analysed, event)
    assert followed.emitted == serial.emitted
    assert followed.cells == serial.cells
    assert serial.emitted or serial.cells


HELPERS = """
def bump(state, k, by=1):
    state.add(k, by)
    return state.get(k)

def clamp(x, lo=0, hi=5):
    if x < lo:
        return lo
    if x > hi:
        return hi
    return x

def longest(texts) -> str:
    best = ""
    for text in texts:
        if len(text) > len(best):
            best = text
    return best

def both(e, k):
    sums.add(e.a, k)
    sums.add(e.b, k)

def over(x):
    return x > limit

def push(xs, x):
    xs.append(x)

import heapq
inc, dec = lambda n: n + 1, lambda n: n - 1
KEYS = {"small": sums, "many": many}
WORDS = ("ab", "x")
add_two = functools.partial(clamp, hi=2)

class Rule:
    def __init__(self, least):
        self.least = least
    def fits(self, x):
        return x >= self.least
    def count(self, k):
        sums.add(k, self.least)

rule = Rule(1)

class Kind(enum.Enum):
    A = 1
"""

TABLE: list[tuple[str, list[str]]] = [
    ("sums.add(e.a, 1)", ["0: sums.add(e.a, 1)"]),
    ("sums.add(key=e.a, x=1)", ["0: sums.add(e.a, 1)"]),
    ("'''Text.'''\npass\nsums.set((e.a, 2), e.vs)", ["0: sums.set((e.a, 2), e.vs)"]),
    ("k = (e.a, e.b)\nsums.add(k, 1)", ["0: sums.add((e.a, e.b), 1)"]),
    ("x = y = e.a\nx += 1\nsums.add(x, y)", ["0: sums.add(e.a + 1, e.a)"]),
    ("a, (b, c) = e.a, (e.b, 1)\nsums.add((a, c), b)", ["0: sums.add((e.a, 1), e.b)"]),
    ("a: int = e.a\nb: int\nsums.add(a, 1)", ["0: sums.add(e.a, 1)"]),
    (
        "if e.ok:\n    return\nsums.add(e.a, 1)",
        ["0: if not e.ok: sums.add(e.a, 1)"],
    ),
    (
        "if e.a > 0:\n    k = 1\nelif e.b:\n    k = 2\nelse:\n    return\nsums.add(k, 1)",
        ["0: if e.a > 0 or e.b: sums.add(1 if e.a > 0 else 2, 1)"],
    ),
    (
        "if e.a > 0 and e.b > 0:\n    k = 1\nelse:\n    k = 2\nsums.add(k, 1)",
        ["0: sums.add(1 if e.a > 0 and e.b > 0 else 2, 1)"],
    ),
    ("sums.add(e.a if e.ok else e.b, 1)", ["0: sums.add(e.a if e.ok else e.b, 1)"]),
    ("if 0 < e.a <= e.b:\n    sums.add(1, 1)", ["0: if 0 < e.a and e.a <= e.b: sums.add(1, 1)"]),
    (
        "if e.ok and seen.get(e.a):\n    sums.add(1, 1)\nseen.set(e.a, True)",
        [
            "0: if e.ok: seen.get(e.a)",
            "1: if e.ok and #0: sums.add(1, 1)",
            "2: seen.set(e.a, True)",
        ],
    ),
    (
        "v = seen.get(e.a) or seen.get(e.b)\nseen.set(e.b, not v)",
        ["0: seen.get(e.a)", "1: if not #0: seen.get(e.b)", "2: seen.set(e.b, not (#0 or #1))"],
    ),
    (
        "if (n := sums.get(e.a)) > 2:\n    app.emit('x', n=n)\nsums.add(e.a, 1)",
        ["0: sums.get(e.a)", "1: if #0 > 2: emit('x', n=#0)", "2: sums.add(e.a, 1)"],
    ),
    ("app.emit('x', t=f'{e.s!r:>4}-{e.f:.{limit}f}')", ["0: emit('x', t=f'{e.s!r:>4}-{e.f:.3f}')"]),
    (
        "app.emit('x', v=e.s.upper()[1:], w=e.xs[-1:], n=len(e.xs))",
        ["0: emit('x', v=e.s.upper()[1:], w=e.xs[-1:], n=len(e.xs))"],
    ),
    (
        "app.emit('x', v=2 * 3 + limit, w=word.upper(), u=WORDS[1])",
        ["0: emit('x', v=9, w='ab'.upper(), u='x')"],
    ),
    ("if limit > 5:\n    sums.add(1, 1)\nelse:\n    sums.add(2, 1)", ["0: sums.add(2, 1)"]),
    # loops
    ("for i in range(2):\n    sums.add(e.a, i)", ["0: sums.add(e.a, 0)", "1: sums.add(e.a, 1)"]),
    (
        "for i, w in enumerate(WORDS):\n    if w == e.s:\n        break\n    sums.add(i, 1)",
        [
            "0: if not 'ab' == e.s: sums.add(0, 1)",
            "1: if not 'ab' == e.s and not 'x' == e.s: sums.add(1, 1)",
        ],
    ),
    (
        "for s, k in ((sums, e.a), (sums, e.b)):\n    s.add(k, 1)",
        ["0: sums.add(e.a, 1)", "1: sums.add(e.b, 1)"],
    ),
    (
        "for x in e.xs:\n    if x > 2:\n        continue\n    sums.add(x, e.a)",
        ["0: for x in e.xs: if not x > 2: sums.add(x, e.a)"],
    ),
    (
        "if e.ok:\n    for x in e.xs:\n        sums.add(x, 1)\n"
        "for y in e.ys:\n    seen.set(y, True)",
        ["0: for x in e.xs: if e.ok: sums.add(x, 1)", "1: for x1 in e.ys: seen.set(x1, True)"],
    ),
    # comprehensions, lists of the handler's own
    ("app.emit('x', v=[x + 1 for x in e.xs if x])", ["0: emit('x', v=[x + 1 for x in e.xs if x])"]),
    (
        "app.emit('x', v=sum(x * e.a for x in e.xs))",
        ["0: emit('x', v=sum([x * e.a for x in e.xs]))"],
    ),
    (
        "app.emit('x', v=any(x > limit for x in e.xs), w=all(y in e.s for y in e.ys))",
        ["0: emit('x', v=any(x > 3 for x in e.xs), w=all(x in e.s for x in e.ys))"],
    ),
    (
        "if any(w in e.s for w in WORDS):\n    sums.add(1, 1)",
        ["0: if not not ('ab' in e.s or 'x' in e.s): sums.add(1, 1)"],
    ),
    (
        "app.emit('x', v=sum(sums.get(k) for k in (1, 2)))\nsums.add(1, 1)",
        ["0: sums.get(1)", "1: sums.get(2)", "2: emit('x', v=sum([#0, #1]))", "3: sums.add(1, 1)"],
    ),
    (
        "app.emit('x', v=(e.a, *e.xs, 7), w=[*WORDS, e.s])",
        ["0: emit('x', v=(e.a,) + tuple(e.xs) + (7,), w=['ab', 'x', e.s])"],
    ),
    (
        "many.append(e.b % 2, e.a)\nsums.set(1, sum(x for x in many.get(e.b % 2)))",
        [
            "0: many.append(e.b % 2, e.a)",
            "1: many.get(e.b % 2)",
            "2: sums.set(1, sum([x for x in #1]))",
        ],
    ),
    (
        "for x in e.xs:\n    n = x\n    n += 1\n    sums.add(n, 1)",
        ["0: for x in e.xs: sums.add(x + 1, 1)"],
    ),
    # helpers
    (
        "if bump(sums, e.a, by=2) > 4:\n    app.emit('x', a=e.a)",
        ["0: sums.add(e.a, 2)", "1: sums.get(e.a)", "2: if #1 > 4: emit('x', a=e.a)"],
    ),
    ("sums.add(clamp(e.a, hi=2), 1)", ["0: sums.add(0 if e.a < 0 else 2 if e.a > 2 else e.a, 1)"]),
    ("sums.add(add_two(e.a), 1)", ["0: sums.add(0 if e.a < 0 else 2 if e.a > 2 else e.a, 1)"]),
    ("both(e, 2)", ["0: sums.add(e.a, 2)", "1: sums.add(e.b, 2)"]),
    ("if over(e.a + e.b):\n    sums.add(1, 1)", ["0: if e.a + e.b > 3: sums.add(1, 1)"]),
    ("if rule.fits(e.a):\n    rule.count(e.b)", ["0: if e.a >= 1: sums.add(e.b, 1)"]),
    ("KEYS['small'].add(e.a, Kind.A.value)", ["0: sums.add(e.a, 1)"]),
    (
        "def add(k):\n    sums.add(k, e.b)\nadd(e.a)\nadd(3)",
        ["0: sums.add(e.a, e.b)", "1: sums.add(3, e.b)"],
    ),
    (
        "f = lambda k, *rest: sums.add(k, len(rest))\nf(e.a, 1, 2)\nargs = (e.b, 1)\nf(*args)",
        ["0: sums.add(e.a, 2)", "1: sums.add(e.b, 1)"],
    ),
    # merges
    (
        "sums.merge(e.a, inc)\nsums.merge(e.a, dec)\nsums.merge(e.b, lambda n: n + e.a)",
        [
            "0: sums.merge(e.a, old + 1)",
            "1: sums.merge(e.a, old - 1)",
            "2: sums.merge(e.b, old + e.a)",
        ],
    ),
    (
        "def step(n):\n    if n > 5:\n        return 0\n    return n + 1\nsums.merge(e.a, step)",
        ["0: sums.merge(e.a, 0 if old > 5 else old + 1)"],
    ),
    (
        "sums.merge(e.a, lambda n: n + sums.get(e.b))",
        ["0: sums.get(e.b)", "1: sums.merge(e.a, old + #0)"],
    ),
    (
        "total.merge(e.a, lambda v: max(v, e.f))\nsums.merge(e.b, abs)",
        ["0: total.merge(e.a, max(old, e.f))", "1: sums.merge(e.b, abs(old))"],
    ),
    (
        "def more(k):\n    return lambda n: n + k\nsums.merge(e.a, more(2))",
        ["0: sums.merge(e.a, old + 2)"],
    ),
    (
        "for d in (1, 2):\n    sums.merge(e.a, lambda n: n * d + 1)",
        ["0: sums.merge(e.a, old * 1 + 1)", "1: sums.merge(e.a, old * 2 + 1)"],
    ),
    (
        "many.top_k(e.b, e.a, 2)\nmany.add_to_set(9, e.a)",
        ["0: many.top_k(e.b, e.a, 2)", "1: many.add_to_set(9, e.a)"],
    ),
    # match, fail
    (
        "match e.s:\n    case 'ab' | 'x':\n        k = 1\n    case w if e.ok:\n        k = len(w)\n"
        "    case _:\n        return\nsums.add(k, 1)",
        [
            "0: if (checked(len(e.s)) if not (e.s == 'ab' or e.s == 'x') and e.ok else True) and "
            "(e.s == 'ab' or e.s == 'x' or e.ok): "
            "sums.add(1 if e.s == 'ab' or e.s == 'x' else len(e.s), 1)"
        ],
    ),
    (
        "match e.b:\n    case 0:\n        return\n    case 1 | 2 as w:\n        sums.add(w, 1)",
        ["0: if not e.b == 0 and (e.b == 1 or e.b == 2): sums.add(e.b, 1)"],
    ),
    (
        "match (e.a > 0, e.ok):\n    case (True, _):\n        sums.add(1, 1)",
        ["0: if (e.a > 0) is True: sums.add(1, 1)"],
    ),
    (
        "assert e.a < 9, 'big'\nsums.add(1, 1)",
        [
            "0: if (raised(AssertionError, 'big') if not e.a < 9 else True) and e.a < 9: "
            "sums.add(1, 1)"
        ],
    ),
]


@pytest.mark.parametrize(("body", "expected"), TABLE, ids=[body[:60] for body, _ in TABLE])
def test_accesses(body: str, expected: list[str]) -> None:
    app = handler_of(body, before=HELPERS)
    (analysed,) = analyse_app(app)
    assert written(analysed) == expected
    check_same(app, analysed)
    verdict = verdict_of(body, before=HELPERS)
    if body in CIRCLES:
        assert verdict.kind == "refused"
        assert "in a circle over different keys: h (line" in verdict.text
        assert "app.serial(h) runs it in one partition" in verdict.text
        assert verdict_of(body, before=HELPERS, serial=True).kind == "same"
    else:
        assert verdict == Verdict("same")


CIRCLES = (
    "v = seen.get(e.a) or seen.get(e.b)\nseen.set(e.b, not v)",
    "sums.merge(e.a, lambda n: n + sums.get(e.b))",
)
"""Those of the table that no partition by one key can run."""

ROWS: list[tuple[str, list[str], str]] = [
    # loops
    (
        "n = 0\nfor x in e.xs:\n    n += x\nsums.add(e.a, n)",
        ["0: sums.add(e.a, ?2)"],
        "line 66: a loop over values of the event",
    ),
    (
        "e_b = 9\nread_0 = 7\nn = 0\nwhile n < e.b:\n    n += e_b\nsums.add(n, read_0)",
        ["0: sums.add(?2, 7)"],
        "line 68: `while`",
    ),
    (
        "n = e.b\nwhile n > 1:\n    n -= 2\nsums.add(n, 1)",
        ["0: sums.add(?2, 1)"],
        "line 66: `while`",
    ),
    (
        "try:\n    v = 6 // e.b\nexcept ZeroDivisionError:\n    v = -1\nsums.add(v, 1)",
        ["0: sums.add(?2, 1)"],
        "line 65: `try`",
    ),
    (
        "for y in e.ys:\n    if y == e.s[:1]:\n        return\nsums.add(1, 1)",
        ["0: sums.add(1, 1)"],
        "line 65: a loop over values of the event",
    ),
    (
        "for x in many.get(e.b):\n    if x > 5:\n        return\nmany.append(e.b, e.a)",
        ["0: many.get(e.b)", "1: many.append(e.b, e.a)"],
        "line 65: a loop over values of the event",
    ),
    (
        "for x in e.xs:\n    sums.add(x, 1)\nfor x in e.xs:\n    if x > 2:\n        return\n"
        "sums.add(9, 1)",
        ["0: for x in e.xs: sums.add(x, 1)", "1: sums.add(9, 1)"],
        "line 67: a loop over values of the event",
    ),
    (
        "for x in e.xs:\n    if x > 9:\n        raise ValueError(x)\nsums.add(1, 1)",
        ["0: sums.add(1, 1)"],
        "line 65: a loop over values of the event",
    ),
    (
        "for i, x in enumerate(e.xs):\n    typed.add(x, i)",
        ["0: typed.add(x, ?3)"],
        "line 65: a loop over a list of values whose type is not known",
    ),
    (
        "for k, v in {1: e.a, 2: e.b}.items():\n    typed.add(k, v)",
        ["0: typed.add(?3, ?4)"],
        "line 65: a loop over a list of values whose type is not known",
    ),
    # lists and dicts of the handler's own
    (
        "xs = [e.a]\nif e.ok:\n    xs.append(e.b)\napp.emit('x', v=xs)",
        ["0: emit('x', v=?1 if e.ok else [e.a])"],
        "line 67: `.append()` of such a value is not on the list",
    ),
    (
        "d = {}\nd['k'] = e.a\napp.emit('y', v=d['k'])",
        ["0: emit('y', v=?1['k'])"],
        "line 66: `d['k']` is changed in place",
    ),
    (
        "xs = [e.a]\nn = len(xs)\npush(xs, e.b)\napp.emit('x', n=n, m=len(xs))",
        ["0: emit('x', n=1, m=len(?1))"],
        "line 38: `.append()` of such a value is not on the list",
    ),
    (
        "xs = [e.a, 3]\nx = xs.pop()\napp.emit('y', v=x)\napp.emit('x', v=xs)",
        ["0: emit('y', v=?2)", "1: emit('x', v=?1)"],
        "line 66: `.pop()` of such a value is not on the list",
    ),
    (
        "xs = list(e.xs)\nxs.append(4)\nxs.sort()\napp.emit('x', v=xs)",
        ["0: emit('x', v=?1)"],
        "line 66: `.append()` of such a value is not on the list",
    ),
    (
        "h = []\nfor x in e.xs:\n    heapq.heappush(h, -x)\napp.emit('list', v=h)",
        ["0: emit('list', v=?1)"],
        "line 66: a loop over values of the event",
    ),
    (
        "d = {}\nfor y in e.ys:\n    d[y] = d.get(y, 0) + 1\napp.emit('y', v=d.get('a', 0))",
        ["0: emit('y', v=?1.get('a', 0))"],
        "line 66: a loop over values of the event",
    ),
    # iterators, functions as values
    (
        "app.emit('x', v=sorted(e.xs, key=lambda x: -x))",
        ["0: emit('x', v=sorted(e.xs, key=?1))"],
        "line 65: a function is used as a value",
    ),
    (
        "first, *rest = e.s\napp.emit('text', v=first + str(len(rest)))",
        ["0: emit('text', v=?1 + str(len(?2)))"],
        "line 65: `*` among the targets of an assignment",
    ),
    (
        "app.emit('text', v=','.join(map(str, e.xs)))",
        ["0: emit('text', v=','.join(?1))"],
        "line 65: `map` is not on the list of functions in columns",
    ),
    (
        "a, b = map(str, (e.a, e.b))\napp.emit('text', v=a + b)",
        ["0: emit('text', v=unpacked(?1, 2)[0] + unpacked(?1, 2)[1])"],
        "line 65: `map` is not on the list of functions in columns",
    ),
    # reads in such code
    (
        "try:\n    r = 9 // sums.get(e.a)\nexcept ZeroDivisionError:\n    r = 0\n"
        "sums.add(e.a, 1)\napp.emit('x', r=r)",
        ["0: sums.get(e.a)", "1: sums.add(e.a, 1)", "2: emit('x', r=?2)"],
        "line 65: `try`",
    ),
    (
        "many.append(e.b, e.a)\napp.emit('x', v=[x for x in e.xs if x in many.get(e.b)])",
        ["0: many.append(e.b, e.a)", "1: many.get(e.b)", "2: emit('x', v=?1)"],
        "line 66: a comprehension with such code in it",
    ),
    # helpers
    (
        "app.emit('x', v=longest(e.ys))",
        ["0: emit('x', v=?2)"],
        "line 25: a loop over values of the event",
    ),
    (
        "def has(v):\n    for x in e.xs:\n        if x == v:\n            return 1\n    return 0\n"
        "if has(e.a):\n    sums.add(1, 1)",
        ["0: if ?1: sums.add(1, 1)"],
        "line 66: a loop over values of the event",
    ),
    (
        "def rec(n):\n    return 0 if n <= 0 else 1 + rec(n - 1)\nsums.set(1, rec(e.b))",
        ["0: sums.set(1, 0 if e.b <= 0 else 1 + ?1)"],
        "line 66: `rec` calls itself",
    ),
]
"""Handlers that CPython runs: what analysis knows of their accesses, and why they are not in
columns."""
DECLARED = (
    HELPERS
    + """
app.emits("y", "v BIGINT")
app.emits("list", "v LIST(BIGINT)")
app.emits("text", "v STRING")
typed = app.state("typed", default=0, key="BIGINT")
"""
)


@pytest.mark.parametrize(("body", "expected", "why"), ROWS, ids=[body[:60] for body, *_ in ROWS])
def test_accesses_of_handlers_in_rows(body: str, expected: list[str], why: str) -> None:
    (analysed,) = analyse_app(handler_of(body, before=DECLARED))
    assert written(analysed) == expected
    assert analysed.why_rows == why
    assert verdict_of(body, before=DECLARED) == Verdict("same")


@pytest.mark.parametrize(
    ("body", "columns"),
    [
        ("h = []\nfor x in e.xs:\n    h.append(x)\napp.emit('x', v=h)", "v LIST(BIGINT)"),
        ("h = []\nfor x in e.xs:\n    if x > 1:\n        h.append(e.s)\n    else:\n"
         "        h.insert(0, e.t)\napp.emit('x', v=h)", "v LIST(STRING)"),
        ("h = []\nfor y in e.ys:\n    h.extend(y.split())\napp.emit('x', v=h)",
         "v LIST(STRING)"),
        ("h = [1]\nfor x in e.xs:\n    h.append(x / 2)\napp.emit('x', v=h)", "v LIST(DOUBLE)"),
        ("h = []\ndef add(x):\n    h.append(x)\nadd(e.a)\napp.emit('x', v=h)", "v LIST(BIGINT)"),
        ("h = {}\nfor y in e.ys:\n    h[y] = 1\napp.emit('x', v=sorted(h, key=len)[:2])",
         "v LIST(STRING)"),
        ("h = {}\nfor x in e.xs:\n    h.setdefault(x, []).append(1)\napp.emit('x', v=list(h))",
         "v LIST(BIGINT)"),
    ],
)  # fmt: skip
def test_types_of_lists_and_keys_that_a_handler_fills(body: str, columns: str) -> None:
    app = handler_of(body)
    (emitted,) = compile_app(app).emitted.values()
    assert ", ".join(f"{name} {type_name(t)}" for name, t in emitted.schema.columns) == columns
    assert verdict_of(body) == Verdict("same")


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (
            "h = []\nfor x in e.xs:\n    h.append(next(iter([x])))\napp.emit('x', v=h)",
            "declare it: app.emits('x', 'v BIGINT, …')",
        ),
        (
            "h = ['a']\nfor x in e.xs:\n    h.append(x)\napp.emit('x', v=h)",
            "declare it: app.emits('x', 'v BIGINT, …')",
        ),
        (
            "h = {}\nfor x in e.xs:\n    h[x] = 1\nh.update(a=1)\napp.emit('x', v=list(h))",
            "declare it: app.emits('x', 'v BIGINT, …')",
        ),
        (
            "h = {}\nfor x in e.xs:\n    h[x] = 1\n    h[e.s] = 2\napp.emit('x', v=list(h))",
            "declare it: app.emits('x', 'v BIGINT, …')",
        ),
        (
            "for i, x in divmod(e.xs, 1):\n    sums.add(x, i)",
            "declare it: app.state('sums', …, key=",
        ),
    ],
)
def test_types_that_the_text_does_not_say_are_declared(body: str, hint: str) -> None:
    verdict = verdict_of(body)
    assert verdict.kind == "refused"
    assert "h (" in verdict.text and "app.py:" in verdict.text
    assert "is not known" in verdict.text and hint in verdict.text


def test_a_read_on_a_branch_that_leaves_merges_out() -> None:
    others = """
one = app.state("one", default=0, key="BIGINT")
two = app.state("two", default=0.0, key="BIGINT")

@app.on(m)
def g(e):
    two.add(e.a, 0.5)
"""
    body = """
key = [1, 2, 3].pop((e.a or 0) % 3)
before = one.get(key)
if before > 2:
    app.emit("x", n=two.get([1, 2].pop(before % 2)))
    return
one.set(key, before + 1)
"""
    assert verdict_of(body, before=others) == Verdict("same")


def test_many_rules_stay_small() -> None:
    rules = "\n".join(f"if e.a > {n}:\n    score += {n}" for n in range(60))
    app = handler_of(f"score = 0\n{rules}\nif score > 9:\n    app.emit('x', score=score)\n")
    (analysed,) = analyse_app(app)
    (text,) = written(analysed)
    assert "…" in text and len(text) < 1000
    loop = AccessLoop(app)
    for event in events_of_m(20):
        loop.follow(analysed, event)


def test_handlers_on_several_event_types() -> None:
    app = app_of(
        dedent("""
        @app.on(m, n)
        def h(e):
            sums.add(e.a, e.vs)
    """)
    )
    assert [a.event for a in analyse_app(app)] == ["m", "n"]


def test_parameters_of_a_run() -> None:
    app = handler_of("if e.a > limit:\n    sums.add(word, 1)")
    (analysed,) = analyse_app(app, {"limit": "7", "word": "z"})
    assert written(analysed) == ["0: if e.a > 7: sums.add('z', 1)"]


def test_a_second_analysis_is_equal_to_the_first() -> None:
    """So that variants of a parameter share what does not depend on it."""
    body = "n = 0\nfor x in e.xs:\n    n += x\nsums.add(n, 1)\nif e.a > limit:\n    sums.add(1, 1)"
    app = handler_of(body, before=HELPERS)
    (first,), (second,) = analyse_app(app, {"limit": 1}), analyse_app(app, {"limit": 2})
    assert first.accesses[0] == second.accesses[0] and first.accesses[1] != second.accesses[1]


def test_decorated_handlers() -> None:
    app = app_of(
        dedent("""
        def guarded(f):
            @functools.wraps(f)
            def wrapper(*args, **options):
                if args[0].ok:
                    return f(*args, **options)
            return wrapper

        @weir.udf
        def twice(x: int) -> int: return 2 * x

        @app.on(m)
        @guarded
        def h(e, by=twice):
            sums.add(e.a, by(e.b))
    """)
    )
    (analysed,) = analyse_app(app)
    assert written(analysed) == ["0: if e.ok: sums.add(e.a, twice(e.b))"]
    check_same(app, analysed)
