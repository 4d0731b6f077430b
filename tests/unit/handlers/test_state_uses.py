"""Which states a handler reads and writes by its text, on all branches."""

from __future__ import annotations

from types import FunctionType

import pytest

import weir
from handler_apps import app_of, handler_of
from weir.errors import PlanError
from weir.handlers.planning.handler_order import handler_order
from weir.handlers.reach.code_reach import Reach
from weir.handlers.reach.held_values import StateUses
from weir.handlers.reach.state_uses import state_uses
from weir.handlers.reading import analysis
from weir.handlers.reading.analysis import analyse_app
from weir.handlers.reading.execution import Execution
from weir.handlers.reading.symbols import ANY_VALUE

BEFORE = """
import types

def peek(state, key):
    return state.get(key)

def put(key, *, state=None, by=1):
    state.add(key, by)

def either(state, other, key):
    return peek(state, key) if key else put(key, state=other)

def twice(function, *args):
    function(*args)
    return function(*args)

def down(state, key, n):
    return state.get(key) if n == 0 else down(state, key, n - 1)

def unused(state):
    return 1

def chosen(n):
    return (sums, total)[n]

def reading(state):
    def inner(key):
        return state.get(key)
    return inner

def items(states):
    for one in states:
        yield one

class Rule:
    def __init__(self, state):
        self.state = state

    def check(self, key):
        return self.look(key) > 1

    def look(self, key):
        return self.state.get(key)

class Called:
    def __call__(self, state, key):
        return state.get(key)

RULE = Rule(sums)
RULES = (RULE, Rule(total))
CALLED = Called()
TABLE = {"s": sums, "t": [total]}
GET = sums.get
LATER = functools.partial(peek, sums)
Pair = collections.namedtuple("Pair", "one two")
PAIR = Pair(sums, total)
DEEP = {"a": {"b": [{"c": ({"d": {"e": sums}},)}]}}
ROUND = [sums]
ROUND.append(ROUND)
ORDERED = collections.OrderedDict(s=sums)
DEFAULTS = collections.defaultdict(list, s=sums)
QUEUE = collections.deque([sums])
VIEW = types.MappingProxyType({"s": sums})
LOOKUP = collections.UserDict(s=sums)
SPACE = types.SimpleNamespace(a=types.SimpleNamespace(b=[[[[[sums]]]]]))

class Chosen:
    def __init__(self, state):
        self.inner = [state]

    def __getitem__(self, at):
        return self.inner[at]

    @property
    def state(self):
        return self.inner[0]

class Derived(Chosen):
    pass

DERIVED = Derived(sums)
"""
USES = [
    ("sums.get(e.a)", "sums/-"),
    ("sums.merge(e.a, lambda n: n + total.get(e.a))", "total/sums"),
    ("if 0:\n    sums.get(1)\nelse:\n    total.add(1, 1)", "sums/total"),
    ("if limit > 5:\n    sums.get(1)", "sums/-"),
    ("return\nsums.add(1, 1)", "-/sums"),
    ("x = 1 if word else sums.get(1)", "sums/-"),
    ("True or sums.get(1)", "sums/-"),
    ("def never():\n    sums.get(1)", "sums/-"),
    ("peek(sums, e.a)", "sums/-"),
    ("put(e.a, state=sums)", "-/sums"),
    ("either(sums, total, e.a)", "sums/total"),
    ("unused(sums)", "-/-"),
    ("s = sums\ns.get(1)", "sums/-"),
    ("s = sums\ns = total\ns.get(1)", "sums,total/-"),
    ("s, t = sums, total\ns.get(1)\nt.add(1, 1)", "sums/total"),
    ("(s, t) = pair = (sums, total)\ns.get(1)", "sums/-"),
    ("s, t = pair = (sums, total)\npair[0].get(1)", "sums,total/-"),
    ("for s in (sums, total):\n    s.add(1, 1)", "-/sums,total"),
    ("[s.get(1) for s in (sums, total)]", "sums,total/-"),
    ("for s in items([sums, total]):\n    s.get(1)", "sums,total/-"),
    ("found = []\nfound.append(sums)\nfound[0].get(1)", "sums/-"),
    ("found = {}\nfound['x'] = sums\nfound['x'].get(1)", "sums/-"),
    ("TABLE['s'].get(1)", "sums,total/-"),
    ("TABLE.get('s').add(1, 1)", "-/sums,total"),
    ("for s in TABLE['t']:\n    s.add(1, 1)", "-/sums,total"),
    ("chosen(0).get(1)", "sums,total/-"),
    ("reading(sums)(e.a)", "sums/-"),
    ("f = reading(sums)\ntwice(f, e.a)", "sums/-"),
    ("twice(peek, sums, e.a)", "sums/-"),
    ("twice(sums.add, e.a, 1)", "-/sums"),
    ("g = sums.get\ng(1)", "sums/-"),
    ("GET(1)", "sums/-"),
    ("LATER(1)", "sums/-"),
    ("functools.partial(peek, total)(1)", "total/-"),
    ("total.merge(1, functools.partial(peek, sums))", "sums/total"),
    ("list(map(sums.get, e.xs))", "sums/-"),
    ("list(map(lambda s: s.get(1), (sums, total)))", "sums,total/-"),
    ("max(e.xs, key=lambda x: sums.get(x))", "sums/-"),
    ("functools.reduce(lambda n, s: n + s.get(1), (sums, total), 0)", "sums,total/-"),
    ("down(sums, e.a, 3)", "sums/-"),
    ("if (s := sums):\n    s.get(1)", "sums/-"),
    ("match (sums, e.a):\n    case (s, k):\n        s.get(k)", "sums/-"),
    ("s = total\nwhile e.a:\n    t = s\n    s = sums\nt.get(1)", "sums,total/-"),
    ("put(*(e.a,), **{'state': sums})", "-/sums"),
    ("RULE.check(e.a)", "sums/-"),
    ("for rule in RULES:\n    rule.check(e.a)", "sums,total/-"),
    ("CALLED(sums, e.a)", "sums/sums"),
    ("getattr(sums, 'get')(1)", "sums/sums"),
    ("operator.methodcaller('get', 1)(sums)", "sums/sums"),
    ("DEEP['a']['b'][0]['c'][0]['d']['e'].get(1)", "sums/-"),
    ("peek(DEEP['a']['b'][0]['c'][0]['d']['e'], 1)", "sums/-"),
    ("ROUND[1][1][0].get(1)", "sums/-"),
    ("PAIR[0].get(1)", "sums,total/-"),
    ("PAIR.one.get(1)", "sums/-"),
    ("ORDERED.get('s').add(1, 1)", "-/sums"),
    ("ORDERED['s'].add(1, 1)", "-/sums"),
    ("DEFAULTS['s'].get(1)", "sums/-"),
    ("QUEUE[0].get(1)", "sums/-"),
    ("VIEW['s'].get(1)", "sums/-"),
    ("LOOKUP['s'].get(1)", "sums/-"),
    ("SPACE.a.b[0][0][0][0][0].get(1)", "sums/-"),
    ("for s in {sums: 1}:\n    s.get(1)", "sums/-"),
    ("DERIVED[0].get(1)", "sums/-"),
    ("DERIVED.state.add(1, 1)", "-/sums"),
    ("class Own:\n    def get(self):\n        return sums.get(1)\nOwn()", "sums/-"),
    ("class Own:\n    pass\n(sums if e.a else sums).get(1)", "sums/-"),
    ("class Own:\n    pass\n(lambda s: s.add(1, 1))(sums)", "-/sums"),
    ("class Own:\n    held = sums\nOwn.held.get(1)", "sums/sums"),
    ("class Own:\n    def __init__(self, s):\n        self.s = s\nOwn(sums).s.get(1)", "sums/sums"),
    ("class Own:\n    def put(self, s):\n        s.add(1, 1)\nOwn().put(sums)", "sums/sums"),
    ("class Own:\n    def put(self):\n        self.s = sums\nOwn().put()", "sums/sums"),
    ("many.append(e.a, len(e.xs))\napp.emit('x', n=e.s.upper())", "-/many"),
]


@pytest.mark.parametrize(("body", "uses"), USES, ids=[body[:50] for body, _ in USES])
def test_uses(body: str, uses: str) -> None:
    app = handler_of(body, before=BEFORE)
    function = app.handlers["h"].function
    assert isinstance(function, FunctionType)
    found = state_uses(function, Reach(app))
    assert "/".join(",".join(sorted(names)) or "-" for names in found) == uses


@pytest.mark.parametrize(
    ("missed", "what"),
    [("many", "writes the state `many`"), ("sums", "reads the state `sums`")],
)
def test_what_is_compiled_is_counted_with(
    monkeypatch: pytest.MonkeyPatch, missed: str, what: str
) -> None:
    """Two readings find what a handler uses; what both miss is not compiled."""
    app = handler_of("sums.get(e.a)\nmany.append(e.a, 1)")
    every = StateUses(frozenset({"sums"}), frozenset({"many"}))
    seen = StateUses(every.reads - {missed}, every.writes - {missed})
    read = analysis._run

    def read_partly(run: Execution, function: FunctionType) -> None:
        read(run, function)
        if ANY_VALUE in run.params.values():  # the reading for all values of parameters
            run.accesses = [a for a in run.accesses if getattr(a, "state", "") != missed]

    with monkeypatch.context() as patched:
        patched.setattr(analysis, "state_uses", lambda *_: seen)
        assert uses_of(app) == every
    with monkeypatch.context() as patched:
        patched.setattr(analysis, "_run", read_partly)
        assert uses_of(app) == every
        patched.setattr(analysis, "state_uses", lambda *_: seen)
        with pytest.raises(PlanError, match=rf"h \(.*:1[45]\): it {what} in a way"):
            analyse_app(app)


def uses_of(app: weir.App) -> StateUses:
    (analysed,) = analyse_app(app)
    return StateUses(analysed.reads, analysed.writes)


@pytest.mark.parametrize("deep", ["{'s': s}['s']", "DEEP['a']['b'][0]['c']"])
@pytest.mark.parametrize("serial", ["", "@app.serial"])
def test_a_reader_of_nested_containers_waits_for_who_writes(deep: str, serial: str) -> None:
    app = app_of(f"""
s = app.state("s", default=0, key="BIGINT")
DEEP = {{"a": {{"b": [{{"c": s}}]}}}}
{serial}
@app.on(m)
def judge(e):
    app.emit("x", n={deep}.get(e.a))

@app.on(m)
def count(e):
    s.add(e.a, 1)
""")
    assert handler_order(analyse_app(app)) == ("count", "judge")


@pytest.mark.parametrize("limit", [0, 9])
def test_no_parameter_changes_the_order_of_handlers(limit: int) -> None:
    app = app_of("""
@app.on(m)
def judge(e):
    if sums.get(e.a) > 3:
        app.emit("x", a=e.a)

@app.on(m)
def count(e):
    if limit > 5:
        sums.add(e.a, 1)
""")
    assert handler_order(analyse_app(app, {"limit": limit})) == ("count", "judge")
