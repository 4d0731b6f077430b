"""What handlers may not do, and what has no form as accesses: where, why, what to do."""

from __future__ import annotations

import linecache

import pytest

import weir
from handler_apps import PRELUDE, app_of, handler_of
from weir.errors import PlanError, ScriptError
from weir.handlers.analysis import analyse_app
from weir.handlers.printing import printed_access

BEFORE = """
import time, random, uuid, datetime, os, secrets, logging, heapq
from datetime import datetime as dt
CACHE, LOG, NAMES = {}, [], {"a", "b"}
other = weir.App("other")
foreign = other.state("foreign", default=0)
def jitter(): return random.random()
def pushed(xs, x):
    xs.append(x)
    return xs
def counted(n):
    sums.add(n, 1)
    if n > 0: counted(n - 1)
class Box:
    n = 0
    def add(self, x): self.n += x
box = Box()
rng = random.Random(3)
class Watch:
    @property
    def now(self): return time.time()
class Timer:
    def __getitem__(self, at): return time.time()
class Fast(Timer):
    __slots__ = ("clock",)
    def __init__(self, clock): self.clock = clock
watch, timer, fast = Watch(), Fast(None), Fast(time.time)
CLOCKS = [[[[[[[time.time]]]]]]]
app.emits("told", "score DOUBLE")
"""

WRONG: list[tuple[str, str, str]] = [
    # the clock, chance, what differs between processes
    ("sums.add(time.time(), 1)", "`time.time()` reads the clock", "e.vs is the event's time"),
    ("f = time.time\nsums.add(f(), 1)", "`time.time` reads the clock", "e.vs"),
    ("sums.add(dt.now().year, 1)", "`dt.now()` reads the clock", "e.vs"),
    ("sums.add(datetime.date.today().day, 1)", "`datetime.date.today()` reads the clock", "e.vs"),
    ("sums.add(dt.fromtimestamp(e.a).hour, 1)", "`dt.fromtimestamp()` takes the time zone of the",
     "fromtimestamp(t, tz=datetime.UTC)"),
    ("app.emit('x', n=CLOCKS[0][0][0][0][0][0][0]())", "`CLOCKS` holds `time.time`, which reads",
     "e.vs"),
    ("app.emit('x', n=fast.clock)", "`fast.clock` reads the clock", "e.vs"),
    ("app.emit('x', n=watch.now)", "`time.time()` reads the clock", "e.vs"),
    ("app.emit('x', n=timer[0])", "`time.time()` reads the clock", "e.vs"),
    ("if jitter() > 0.5: pass", "`random.random()` draws at random", "hash a column"),
    ("sums.add(rng.random(), 1)", "`rng.random()` draws at random", "hash a column"),
    ("app.emit('x', id=str(uuid.uuid4()))", "`uuid.uuid4()` draws at random", "hash a column"),
    ("app.emit('x', id=os.urandom(3))", "`os.urandom()` draws at random", "hash a column"),
    ("app.emit('x', id=secrets.token_hex())", "`secrets.token_hex()` draws at random", "hash"),
    ("app.emit('x', id=id(e.s))", "`id()` differs between processes", "hashlib"),
    ("app.emit('x', id=hash(e.s))", "`hash()` differs between processes", "hashlib"),
    ("while True:\n    x = time.time()", "`time.time()` reads the clock", "e.vs"),
    # what would never be run
    ("assert sums.get(e.b) > 1", "`h` neither emits nor merges, so it is not run", "app.emit("),
    ("while e.a:\n    raise ValueError(e.a)", "`h` neither emits nor merges", "app.emit("),
    # the order of sets
    ("for w in {'a', 'b'}:\n    sums.add(w, 1)", "`{'a', 'b'}` is a set: its order", "sorted(…)"),
    ("for w in NAMES:\n    sums.add(w, 1)", "`NAMES` is a set", "sorted(…)"),
    ("ws = set(e.ys)\nfor w in ws:\n    sums.add(w, 1)", "`ws` is a set", "sorted(…)"),
    ("app.emit('x', v=list(set(e.ys) | NAMES))", "`set(e.ys) | NAMES` is a set", "sorted(…)"),
    ("app.emit('x', v=','.join({y for y in e.ys}))", "`{y for y in e.ys}` is a set", "sorted(…)"),
    # changes of what lives elsewhere
    ("global COUNT\nCOUNT = 1", "`global COUNT` changes what lives outside", "app.state(…)"),
    ("k = 1\ndef g():\n    nonlocal k\n    k = 2", "`nonlocal k` changes what lives", "app.state"),
    ("CACHE[e.a] = 1", "`CACHE` is changed, and lives outside", "app.state(…)"),
    ("LOG.append(e.a)", "`LOG` is changed, and lives outside", "app.state(…)"),
    # states are no dicts
    ("sums[e.a] += 1", "the state `sums` has no items", "sums.add(key, x)"),
    ("app.emit('x', n=sums[e.a])", "the state `sums` has no items", "sums.get(key)"),
    ("app.emit('x', n=len([k for k in sums]))", "the state `sums` cannot be gone through", "get"),
    ("for k in sums:\n    app.emit('x', k=k)", "the state `sums` cannot be gone through", "get"),
    ("if e.a in sums:\n    app.emit('x', a=e.a)", "the state `sums` is not asked for", "get(key)"),
    ("summs.add(e.a, 1)", "no `summs` is known here", "did you mean `sums`?"),
    ("box.n += 1", "`box.n` is changed, and lives outside", "app.state(…)"),
    ("box.add(e.a)", "`add()` changes what lives outside", "app.state(…)"),
    ("e.a = 3", "`e` is the event, which is changed in place", "values are immutable"),
    ("e.xs.append(3)", "`e.xs` is a value of the event, which is changed in place", "immutable"),
    ("xs = e.xs\nxs[0] = 3", "`xs` is a value of the event", "immutable"),
    ("many.get(e.a).append(1)", "`many.get(e.a)` is a value of the state `many`", "immutable"),
    ("xs = many.get(e.a)\nxs.append(1)", "`xs` is a value of the state `many`", "immutable"),
    ("many.merge(e.a, lambda xs: xs.append(1))", "`xs` is the old value of a state", "immutable"),
    ("many.merge(e.a, lambda xs: pushed(xs, 1))", "`pushed()` changes its argument in place, the "
     "old value", "return a new one"),
    # the world outside, hidden code
    ("print(e.a)", "`print()` acts outside of the app", "app.emit(…)"),
    ("logging.info('x')", "`logging.info()` acts outside of the app", "app.emit(…)"),
    ("open('f').write('x')", "`open()` acts outside of the app", "app.emit(…)"),
    ("x = os.environ['HOME']", "`os.environ` reads what may change", "before the app"),
    ("exec('sums.add(1, 1)')", "`exec()` runs code that analysis cannot see", "write the code"),
    # names
    ("sums.add(e.ss, 1)", "events of `m` have no column `ss`", "did you mean `s`?"),
    ("sums.add(e.q, 1)", "events of `m` have no column `q`", "its columns are a, b, f"),
    ("sums.add(getattr(e, 'q'), 1)", "events of `m` have no column `q`", "its columns are"),
    ("foreign.add(e.a, 1)", "the state `foreign` belongs to the app `other`, the handler to `a`",
     "app.emitted(…)"),
    ("other.emit('x', a=1)", "`other` is the app `other`, the handler's is `a`", ""),
    ("sums.put(e.a, 1)", "states have no method `put`", "there are get, merge, add"),
    ("sums.appendd(e.a, 1)", "states have no method `appendd`", "did you mean `append`?"),
    ("sums.add(e.a)", "sums.add() takes other arguments", "sums.add(key, x)"),
    ("sums.add(math.nope(e.a), 1)", "the module `math` has no `nope`", ""),
    ("sums.add(nothing, 1)", "no `nothing` is known here", ""),
    ("sums.add(pushed(1), 1)", "pushed() is not given `x`", ""),
    ("a, b = 1, 2, 3\nsums.add(a, b)", "3 values are unpacked to 2 names", ""),
    # emits, merges
    ("app.emit(e.s, a=1)", "app.emit() takes the name of its stream as a text", 'app.emit("spam"'),
    ("app.emit('../../evil', a=1)", "the name of an emitted stream is letters, digits and _, not "
     "'../../evil'", "it is a file's name"),
    (f"app.emit('{'x' * 101}', a=1)", "an emitted stream has 100 letters at most", "it is"),
    ("app.emit('x')", "what is emitted as `x` has no fields", ""),
    ("app.emit('x', vs=1)", "a field cannot be called `vs`", ""),
    ("app.emit('told', scores=1)", "`scores` is no column that app.emits() declares for `told`",
     "did you mean `score`?"),
    ("app.state('x', default=0)", "app.state() inside of a handler", "declare it outside"),
    ("sums.merge(e.a, lambda n: sums.add(1, 1))", "`sums` is merged inside of a merge function of "
     "`sums`", "before or after"),
    ("sums.merge(e.a, lambda n: app.emit('x', n=n))", "app.emit() inside of a merge function of "
     "`sums`", "before or after"),
    ("sums.merge(e.a, lambda n: n + sums.get(n))", "the key of `sums.get()` depends on the old "
     "value", "read `sums` with get() before"),
    ("many.top_k(e.a, e.b, e.b)", "the number of top_k is a constant", "top_k(key, x, 10)"),
    ("sums.add((1, 2) if e.ok else 1, 1)", "the key has 2 parts or 1", ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message", "hint"), WRONG, ids=[w[0][:50] for w in WRONG])
def test_errors_name_line_reason_and_way_out(body: str, message: str, hint: str) -> None:
    app = handler_of(body, before=BEFORE)
    with pytest.raises(ScriptError) as raised:
        analyse_app(app)
    assert message in raised.value.message
    assert hint in raised.value.hint
    text = linecache.getline(f"{raised.value.file}", raised.value.line)
    assert raised.value.source_line == text.rstrip("\n") != ""


def test_errors_look_as_those_of_scripts() -> None:
    with pytest.raises(ScriptError) as raised:
        analyse_app(handler_of("sums.add(e.a, e.é)"))
    first, *rest = str(raised.value).split("\n")
    assert first.endswith("line 14, column 19: events of `m` have no column `é`")
    assert rest[:2] == ["      sums.add(e.a, e.é)", "                    ^"]


REFUSED: list[tuple[str, str, str]] = [
    ("counted(e.a)", "`counted` calls itself", "-/sums/-"),
    ("while sums.get(e.a) < 3:\n    sums.add(e.a, 1)", "`while` with accesses in it (sums)",
     "sums/sums/-"),
    ("try:\n    sums.add(1, 1)\nexcept ValueError:\n    app.emit('x', a=1)",
     "`try` with accesses in it (sums, x)", "-/sums/x"),
    ("for x in e.xs:\n    if x > 2: break\n    sums.add(x, 1)",
     "`return` or `break` in a loop with accesses", "-/sums/-"),
    ("n = 0\nfor x in e.xs:\n    n += 1\n    sums.add(x, n)",
     "`n`: it goes from one round of a loop with accesses to the next", "-/sums/-"),
    ("for x in e.xs:\n    for y in e.ys:\n        sums.add((x, y), 1)",
     "accesses in a loop inside of another loop", "-/sums/-"),
    ("for x in e.xs:\n    last = sums.get(x)\nsums.add(1, last)",
     "`last`: it is set in a loop with accesses", "sums/sums/-"),
    ("s = sums if e.ok else many\ns.add(e.a, 1)", "what it stands for depends on the event",
     "-/many,sums/-"),
    ("d = {'s': sums}\nd['s'].add(1, 1)", "the state `sums` is used as a value", "-/sums/-"),
    ("sums.add(e, 1)", "the event is used as a whole", "-/sums/-"),
    ("app.emit('x', v=[sums.get(x) for x in e.xs])",
     "states are accessed in a comprehension over values of the event", "sums/-/x"),
    ("sorted(e.xs, key=lambda x: sums.get(x))", "the function `lambda` is used as a value",
     "sums/-/-"),
    ("xs = []\nys = xs\nys.append(1)\napp.emit('x', v=xs)",
     "`ys` is changed in place, and is `xs` too", "-/-/x"),
    ("xs = []\nys = [xs]\nxs.append(1)\napp.emit('x', v=ys)",
     "`xs` is changed in place, and may be part of another value", "-/-/x"),
    ("acc = []\ndef add(x):\n    acc.append(x)\nadd(e.a)\napp.emit('x', v=acc)",
     "`add` changes `acc` of the function around it", "-/-/x"),
    ("z = zip(e.xs, e.ys)\napp.emit('x', v=list(z))", "`zip` gives an iterator", "-/-/x"),
    ("if any((hit := y) == 'a' for y in e.ys):\n    app.emit('x', v=hit)",
     "`:=` in an expression that is called as a whole", "-/-/x"),
    ("if len(pushed([], 1)): sums.add(1, 1)", "`pushed` changes its argument in place",
     "-/sums/-"),
    ("for x in e.xs:\n    sums.add(x, 1)\nassert total.get(e.b) > 1",
     "nothing comes behind that the failure could stop", "total/sums/-"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why", "touched"), REFUSED, ids=[r[0][:50] for r in REFUSED])
def test_what_runs_only_row_by_row(body: str, why: str, touched: str) -> None:
    (analysed,) = analyse_app(handler_of(body, before=BEFORE))
    assert why in analysed.refused
    assert "app.serial(h) runs it row by row" in analysed.refused
    assert analysed.accesses == () and analysed.refused_line > 14
    found = (analysed.reads, analysed.writes, analysed.emits)
    assert "/".join(",".join(sorted(names)) or "-" for names in found) == touched


def test_keys_of_different_lengths() -> None:
    app = handler_of("sums.add((e.a, e.b), 1)\nsums.add(e.a, 1)")
    with pytest.raises(PlanError) as raised:
        analyse_app(app)
    assert "the key of the state `sums` has 2 parts in `h` (line 14) and 1 in `h` (line 15)" in str(
        raised.value
    )


def test_keys_that_were_declared() -> None:
    app = app_of(
        "pairs = app.state('pairs', default=0, key='BIGINT, BIGINT')\n"
        "@app.on(m)\ndef h(e):\n    pairs.add(e.a, 1)"
    )
    with pytest.raises(ScriptError, match="the key of `pairs` has 2 parts, not 1"):
        analyse_app(app)


def test_a_source_that_cannot_be_found() -> None:
    names: dict[str, object] = {}
    exec(f"{PRELUDE}\n@app.on(m)\ndef h(e):\n    sums.add(e.a, 1)", names)
    app = names["app"]
    assert isinstance(app, weir.App)
    with pytest.raises(PlanError, match=r"the source of `h` .* cannot be found"):
        analyse_app(app)


def test_a_file_that_changed() -> None:
    app = handler_of("sums.add(e.a, 1)")
    name = app.handlers["h"].function.__code__.co_filename
    linecache.cache[name] = (1, None, ["x = 1\n"], name)
    with pytest.raises(PlanError, match="the file was changed after it was loaded"):
        analyse_app(app)


def test_several_lambdas_on_one_line() -> None:
    app = handler_of(
        "sums.merge(e.a, lambda n: n + 1); sums.merge(e.b, lambda n: n * 2)\n"
        "sums.merge(e.a, both[0]); sums.merge(e.b, both[1])",
        before="both = [lambda n: n - 3, lambda n: n % 5]",
    )
    (analysed,) = analyse_app(app)
    assert [printed_access(a) for a in analysed.accesses] == [
        "0: sums.merge(e.a, old + 1)",
        "1: sums.merge(e.b, old * 2)",
        "2: sums.merge(e.a, old - 3)",
        "3: sums.merge(e.b, old % 5)",
    ]
