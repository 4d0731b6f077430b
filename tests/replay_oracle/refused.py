"""Apps that must be refused before they run, each with words that the message must have: the
handler or state, what is wrong there, the way out."""

from __future__ import annotations

from dataclasses import dataclass

from replay_oracle.examples import HEAD


@dataclass(frozen=True)
class Refusal:
    """A `Refusal` is an app's body with the words of its refusal."""

    name: str
    body: str
    words: tuple[str, ...]

    @property
    def source(self) -> str:
        return HEAD + self.body


def _handler(statement: str, above: str = "") -> str:
    lines = "\n    ".join(statement.splitlines())
    return f"""
{above}
c = app.state("c", default=0)
w = app.state("w", default=(), type="LIST(BIGINT)")
@app.on(a)
def act(e):
    {lines}
"""


REFUSED = (
    Refusal("a circle over two keys", _handler("c.set(e.u, c.get(e.n) + 1)"),
        ("act", "c", "app.serial")),
    Refusal("a circle over two keys through a condition",
        _handler("if c.get(e.u) > 2:\n    c.add(e.n, 1)"), ("act", "c", "app.serial")),
    Refusal("a circle over a key that was read", _handler("c.add(c.get(e.u), 1)"),
        ("act", "c", "app.serial")),
    Refusal("two handlers in a circle over two keys", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def left(e):
    one.set(e.u, two.get(e.n) + 1)
@app.on(a)
def right(e):
    two.set(e.n, one.get(e.u) * 2)
""", ("left", "right", "one", "two", "app.serial")),
    Refusal("two event types in a circle over two keys", """
one = app.state("one", default=0)
two = app.state("two", default=0)
@app.on(a)
def left(e):
    one.set(e.u, two.get(e.n) + 1)
@app.on(b)
def right(e):
    two.set(e.n, one.get(e.u) * 2)
""", ("left", "right", "one", "two", "app.serial")),
    Refusal("a merge's function that emits", _handler(
        "c.merge(e.k, shout)",
        "def shout(n):\n    app.emit('out', n=n)\n    return n + 1\n"), ("emit",)),
    Refusal("a merge's function that merges", _handler(
        "c.merge(e.k, lambda n: n + (w.append(e.k, 1) or 1))"), ("append",)),
    Refusal("the clock", _handler("c.set(e.k, int(time.time()))", "import time"), ("time",)),
    Refusal("the clock, imported where it is read",
        _handler("import time as t\nc.set(e.k, int(t.time()))"), ("t.time()", "clock")),
    Refusal("the date of today, imported in a function of a helper", _handler("c.set(e.k, year())",
        "def year():\n    def today():\n        from datetime import date\n"
        "        return date.today()\n    return today().year\n"), ("date.today()", "clock")),
    Refusal("another library, imported in a helper", _handler("c.set(e.k, one())",
        "def one():\n    import numpy\n    return 1\n"), ("import numpy", "top of the file")),
    Refusal("the date of today",
        _handler("app.emit('out', d=str(datetime.now()))", "from datetime import datetime"),
        ("now",)),
    Refusal("chance", _handler("c.set(e.k, random.randint(0, 9))", "import random"), ("random",)),
    Refusal("a UUID", _handler("app.emit('out', i=str(uuid.uuid4()))", "import uuid"), ("uuid",)),
    Refusal("a loop over a set", _handler("for t in set(e.tags):\n    c.add(t, 1)"), ("set",)),
    Refusal("any element of a set, in a serial group",
        _handler("app.emit('out', n=len({e.k, 'b'}.pop()))") + "app.serial(act)\n", ("set",)),
    Refusal("an iterator of the module, in a serial group", _handler(
        "c.set(e.k, next(TURNS))", "import itertools\nTURNS = itertools.count()")
        + "app.serial(act)\n", ("TURNS", "iterator")),
    Refusal("a list that belongs to the module", _handler("SEEN.append(e.n)", "SEEN = []"),
        ("SEEN",)),
    Refusal("a number that belongs to the module", _handler(
        "global count\ncount += 1", "count = 0"), ("count",)),
    Refusal("a column that is not there", _handler("c.add(e.nothing, 1)"), ("nothing",)),
    Refusal("a method that states do not have", _handler("c.push(e.k, 1)"), ("push",)),
    Refusal("keys of two shapes", _handler("c.add(e.k, 1)\napp.emit('out', n=c.get((e.k, e.u)))"),
        ("c",)),
    Refusal("a string in a state of integers", _handler("c.set(e.k, e.s)"), ("c",)),
    Refusal("a loop that may not end, over two keys", _handler(
        "while c.get(e.k) < e.n:\n    c.add(e.s, 1)"), ("act", "`c`", "e.k", "e.s", "app.serial")),
    Refusal("a state in an object that other code gets", _handler(
        "getattr(box, 'state').add(e.u, 1)",
        "class Box: pass\nd = app.state('d', default=0)\nbox = Box()\nbox.state = d"),
        ("Box", "states", "app.serial")),
    Refusal("window and expiry at once", "\nc = app.state('c', default=0, last=3, expires=4)\n",
        ("last", "expires")),
)  # fmt: skip
