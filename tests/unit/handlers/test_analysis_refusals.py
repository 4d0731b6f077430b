"""What handlers may not do: where, why, what to do. What looks like it and runs, as the loop does.

Of what is refused with a way out, the way out is tried, too.
"""

from __future__ import annotations

import linecache
import re
import warnings

import pytest

import weir
from handler_apps import PRELUDE, app_of, case_of, handler_of, verdict_of
from replay_oracle.differences import How, Verdict, judge, right_answer
from replay_oracle.loop import AppFailed
from replay_oracle.programs import Case
from weir.errors import PlanError, PlanWarning, ScriptError
from weir.handlers.planning.app_compiler import compile_app, flow_of
from weir.handlers.reading.analysis import analyse_app
from weir.handlers.trees.accesses import Analysed
from weir.handlers.trees.printed_trees import printed_access

HERE = """
import time, random, uuid, datetime, os, secrets, logging, heapq, threading, functools, decimal
from datetime import datetime as dt
CACHE, LOG, NAMES, GROUPS = {}, [], {"a", "b"}, {"a": {"x", "y"}}
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
def numbers():
    yield from range(100)
following, own = numbers().__next__, threading.local()
@functools.lru_cache
def doubled(n): return n * 2
class Basket:
    @functools.cached_property
    def items(self): return []
basket = Basket()
def first(words: set[str]): return next(iter(words))
def either(words): return next(iter(words))
def tags(*words): return {w.lower() for w in words}
def all_tags(words) -> frozenset[str]: return frozenset(tags(*words)) | NAMES
@functools.cache
def kept_tags(word):
    kept = tags(word)
    kept.add("q")
    return kept
class Text:
    def words(self, text): return set(text.split())
text = Text()
def ordered(words):
    words = sorted(words)
    return [w for w in words]
app.emits("told", "score DOUBLE")
"""
BEFORE = f"""{HERE}
other = weir.App("other")
foreign = other.state("foreign", default=0)
"""

WRONG: list[tuple[str, str, str]] = [
    # the clock, chance, what differs between processes
    ("sums.add(time.time(), 1)", "`time.time()` reads the clock", "e.vs is the event's time"),
    ("f = time.time\nsums.add(f(), 1)", "`time.time` reads the clock", "e.vs"),
    ("sums.add(dt.now().year, 1)", "`dt.now()` reads the clock", "e.vs"),
    ("sums.add(datetime.date.today().day, 1)", "`datetime.date.today()` reads the clock", "e.vs"),
    (
        "sums.add(dt.fromtimestamp(e.a).hour, 1)",
        "`dt.fromtimestamp()` uses the time zone of the",
        "fromtimestamp(t, tz=datetime.UTC)",
    ),
    (
        "app.emit('x', n=CLOCKS[0][0][0][0][0][0][0]())",
        "`CLOCKS` holds `time.time`, which reads",
        "e.vs",
    ),
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
    ("app.emit('x', id=e.s.__hash__())", "`e.s.__hash__` differs between processes", "hashlib"),
    ("sums.add(getattr(time, 'time')(), 1)", "`time.time()` reads the clock", "e.vs"),
    ("app.emit('x', y=time.strftime('%Y'))", "`time.strftime()` reads the clock", "e.vs"),
    ("app.emit('x', n=getattr(e.s, '__hash__')())", "differs between processes", "hashlib"),
    ("app.emit('x', n=random.Random().random())", "`random.Random()` draws at random", "hash"),
    ("app.emit('x', n=random.Random(None).random())", "`random.Random()` draws at", "hash"),
    ("sums.add(dt.fromtimestamp(e.a, tz=None).hour, 1)", "uses the time zone of the", "pass one"),
    (
        "app.emit('x', h=dt(2024, 1, 1).astimezone().hour)",
        "uses the time zone of the machine",
        "astimezone(datetime.UTC)",
    ),
    ("app.emit('x', ok=os.path.exists(e.s))", "`os.path.exists()` reads what may change", "before"),
    ("app.emit('x', n=__import__('random').random())", "runs code that analysis cannot see", ""),
    ("while True:\n    x = time.time()", "`time.time()` reads the clock", "e.vs"),
    # the order of sets
    ("for w in {'a', 'b'}:\n    sums.add(w, 1)", "`{'a', 'b'}` is a set: its order", "sorted(…)"),
    ("for w in NAMES:\n    sums.add(w, 1)", "`NAMES` is a set", "sorted(…)"),
    ("ws = set(e.ys)\nfor w in ws:\n    sums.add(w, 1)", "`ws` is a set", "sorted(…)"),
    ("app.emit('x', v=list(set(e.ys) | NAMES))", "`set(e.ys) | NAMES` is a set", "sorted(…)"),
    ("app.emit('x', v=','.join({y for y in e.ys}))", "`{y for y in e.ys}` is a set", "sorted(…)"),
    ("app.emit('x', v=min({'aa', e.s, 'q'}, key=len))", "`{'aa', e.s, 'q'}` is a set", "sorted(…)"),
    ("app.emit('x', v=max(NAMES, key=len))", "`NAMES` is a set", "sorted(…)"),
    ("app.emit('x', v=sorted({e.s, 'q'}, key=len)[0])", "`{e.s, 'q'}` is a set", "sorted(…)"),
    ("a, *b = {e.s, 'q'}\nsums.add(a, 1)", "`{e.s, 'q'}` is a set", "sorted(…)"),
    ("x, (a, b) = 1, {e.s, 'q'}\nsums.add(a, 1)", "`{e.s, 'q'}` is a set", "sorted(…)"),
    ("app.emit('x', v=dict.fromkeys({e.s, 'q'}).popitem()[0])", "is a set", "sorted(…)"),
    ("app.emit('x', v=f'{NAMES}')", "`NAMES` is a set", "sorted(…)"),
    ("app.emit('x', v='%s' % NAMES)", "`NAMES` is a set", "sorted(…)"),
    ("xs = []\nxs.extend(NAMES)\napp.emit('x', v=xs)", "`NAMES` is a set", "sorted(…)"),
    ("app.emit('x', v=functools.reduce(max, NAMES))", "`NAMES` is a set", "sorted(…)"),
    ("app.emit('x', v=first(NAMES))", "`words` is a set", "sorted(…)"),
    ("for k in {e.s: 1}.keys() & {'a': 1}.keys():\n    sums.add(k, 1)", "is a set", "sorted(…)"),
    ("app.emit('x', v='{}'.format(NAMES))", "`NAMES` is a set", "sorted(…)"),
    ("for w in tags(e.s):\n    sums.add(w, 1)", "`tags(e.s)` is a set", "sorted(…)"),
    ("app.emit('x', v=list(all_tags(e.ys)))", "`all_tags(e.ys)` is a set", "sorted(…)"),
    ("app.emit('x', v=list(kept_tags(e.s)))", "`kept_tags(e.s)` is a set", "sorted(…)"),
    ("app.emit('x', v=list(text.words(e.s)))", "`text.words(e.s)` is a set", "sorted(…)"),
    ("ws = tags(e.s) - {'a'}\napp.emit('x', v=max(ws, key=len))", "`ws` is a set", "sorted(…)"),
    ("app.emit('x', v=either(NAMES))", "`words` is a set", "sorted(…)"),
    ("app.emit('x', v=either(words=tags(e.s)))", "`words` is a set", "sorted(…)"),
    ("def mine(): return {e.s, 'q'}\napp.emit('x', v=list(mine()))", "`mine()` is a set", "sorted"),
    ("f = lambda: {e.s, 'q'}\napp.emit('x', v=list(f()))", "`f()` is a set", "sorted(…)"),
    ("a, b = set(e.ys), 1\napp.emit('x', v=','.join(a))", "`a` is a set", "sorted(…)"),
    (
        "d = {}\nfor y in e.ys:\n    d.setdefault(len(y), set()).add(y)\nfor y in d[1]:\n"
        "    sums.add(y, 1)",
        "`d[1]` is a set",
        "sorted(…)",
    ),
    (
        "d = collections.defaultdict(set)\nd[1].add(e.s)\nfor n, ys in sorted(d.items()):\n"
        "    app.emit('x', v=','.join(ys))",
        "`ys` is a set",
        "sorted(…)",
    ),
    ("app.emit('x', v=list(GROUPS.get(e.s, ())))", "`GROUPS.get(e.s, ())` is a set", "sorted(…)"),
    # changes of what lives elsewhere
    ("global COUNT\nCOUNT = 1", "`global COUNT` changes what lives outside", "app.state(…)"),
    ("CACHE[e.a] = 1", "`CACHE` is changed, and lives outside", "app.state(…)"),
    ("LOG.append(e.a)", "`LOG` is changed, and lives outside", "app.state(…)"),
    ("app.emit('x', n=following())", "reaches a `generator` that lives outside", "states"),
    ("app.emit('x', n=own.n)", "reaches a `_local` that lives outside", "states"),
    ("app.emit('x', n=doubled.cache_info().hits)", "depends on what ran before", "app.state(…)"),
    (
        "f = doubled\napp.emit('x', n=f.cache_info().hits)",
        "depends on what ran before",
        "app.state(…)",
    ),
    ("decimal.getcontext().prec += 1", "`decimal.getcontext()` reaches a setting", "make a"),
    ("decimal.setcontext(decimal.Context())", "`decimal.setcontext()` reaches a setting", "make a"),
    ("basket.items.append(e.a)", "`basket.items` is changed, and lives outside", "app.state(…)"),
    # states are no dicts
    ("sums[e.a] += 1", "the state `sums` has no items", "sums.add(key, x)"),
    ("app.emit('x', n=sums[e.a])", "the state `sums` has no items", "sums.get(key)"),
    ("app.emit('x', n=len([k for k in sums]))", "the state `sums` cannot be iterated over", "get"),
    ("for k in sums:\n    app.emit('x', k=k)", "the state `sums` cannot be iterated over", "get"),
    (
        "if e.a in sums:\n    app.emit('x', a=e.a)",
        "the state `sums` has no set of keys",
        "get(key)",
    ),
    ("summs.add(e.a, 1)", "`summs` is not defined", "did you mean `sums`?"),
    ("box.n += 1", "`box.n` is changed, and lives outside", "app.state(…)"),
    ("import json\njson.n = 1", "`json.n` is changed, and lives outside", "app.state(…)"),
    ("from string import Formatter\nFormatter.n = 1", "`Formatter.n` is changed", "app.state(…)"),
    ("import sys\nsys.modules['x'] = 1", "`sys.modules` is changed, and lives", "app.state(…)"),
    ("import sys\nsys.path.append('x')", "`sys.path` is changed, and lives", "app.state(…)"),
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
    (
        "foreign.add(e.a, 1)",
        "the state `foreign` belongs to the app `other`, the handler to `a`",
        "app.emitted(…)",
    ),
    ("other.emit('x', a=1)", "`other` is the app `other`, the handler's is `a`", ""),
    ("sums.put(e.a, 1)", "states have no method `put`", "there are get, merge, add"),
    ("sums.appendd(e.a, 1)", "states have no method `appendd`", "did you mean `append`?"),
    ("sums.add(e.a)", "sums.add() takes other arguments", "sums.add(key, x)"),
    ("sums.add(math.nope(e.a), 1)", "the module `math` has no `nope`", ""),
    ("sums.add(nothing, 1)", "`nothing` is not defined", ""),
    ("sums.add(pushed(1), 1)", "pushed() lacks the argument `x`", ""),
    ("a, b = 1, 2, 3\nsums.add(a, b)", "3 values are unpacked to 2 names", ""),
    # emits, merges
    ("app.emit(e.s, a=1)", "app.emit() takes the name of its stream as a text", 'app.emit("spam"'),
    (
        "app.emit('../../evil', a=1)",
        "the name of an emitted stream is letters, digits and _, not '../../evil'",
        "it is a file's name",
    ),
    (f"app.emit('{'x' * 101}', a=1)", "an emitted stream has 100 letters at most", "it is"),
    ("app.emit('x')", "what is emitted as `x` has no fields", ""),
    ("app.emit('x', vs=1)", "a field cannot be called `vs`", ""),
    (
        "app.emit('told', scores=1)",
        "app.emits() declares no column `scores` for `told`",
        "did you mean `score`?",
    ),
    ("app.state('x', default=0)", "app.state() inside of a handler", "declare it outside"),
    (
        "sums.merge(e.a, lambda n: sums.add(1, 1))",
        "`sums` is merged inside of a merge function of `sums`",
        "before or after",
    ),
    (
        "sums.merge(e.a, lambda n: app.emit('x', n=n))",
        "app.emit() inside of a merge function of `sums`",
        "before or after",
    ),
    (
        "sums.merge(e.a, lambda n: n + sums.get(n))",
        "the key of `sums.get()` depends on the old value",
        "read `sums` with get() before",
    ),
    ("many.top_k(e.a, e.b, e.b)", "the number of top_k is a constant", "top_k(key, x, 10)"),
    ("sums.add((1, 2) if e.ok else 1, 1)", "the key has 2 parts or 1", ""),
    (
        "s = sums if e.ok else many\ns.add(e.a, 1)",
        "`add` is for states of numbers, and `many` is LIST(BIGINT)",
        "many.merge(key, lambda old: …)",
    ),
]


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


# Each with a part of the line that makes it run row by row, and the reason.
ROWS: list[tuple[str, str, str, str]] = [
    ("while sums.get(e.a) < 3:\n    sums.add(e.a, 1)", "while sums", "`while`", "sums/sums/-"),
    (
        "try:\n    sums.add(1, 1)\nexcept ValueError:\n    app.emit('x', a=1)",
        "try:",
        "`try`",
        "-/sums/x",
    ),
    (
        "for x in e.xs:\n    if x > 2: break\n    sums.add(x, 1)",
        "for x in e.xs",
        "`return` or `break` in a loop with accesses",
        "-/sums/-",
    ),
    (
        "n = 0\nfor x in e.xs:\n    n += 1\n    sums.add(x, n)",
        "for x in e.xs",
        "a loop over values of the event",
        "-/sums/-",
    ),
    (
        "for x in e.xs:\n    for y in e.ys:\n        sums.add((x, y), 1)",
        "for x in e.xs",
        "a loop over values of the event",
        "-/sums/-",
    ),
    (
        "s = sums if e.ok else total\ns.add(e.a, 1)",
        "s = sums",
        "`sums if e.ok else total`: what it stands for depends on the event",
        "-/sums,total/-",
    ),
    (
        "if any((hit := y) == 'a' for y in e.ys):\n    app.emit('x', v=hit)",
        "hit := y",
        "`:=` inside of a comprehension",
        "-/-/x",
    ),
    (
        "if len(pushed([], 1)): sums.add(1, 1)",
        "xs.append(x)",
        "`.append()` of such a value is not on the list",
        "-/sums/-",
    ),
    # changes of copies
    (
        "e.xs.append(3)\napp.emit('x', n=len(e.xs))",
        "e.xs.append(3)",
        "`.append()` of such a value is not on the list",
        "-/-/x",
    ),
    (
        "xs = e.xs + [1]\nxs[0] = 3\napp.emit('x', n=len(xs), m=sum(e.xs))",
        "xs[0] = 3",
        "`xs[0]` is changed in place",
        "-/-/x",
    ),
    (
        "many.append(e.a, e.b)\nmany.get(e.a).append(1)\napp.emit('x', n=len(many.get(e.a)))",
        "many.get(e.a).append(1)",
        "`.append()` of such a value is not on the list",
        "many/many/x",
    ),
    (
        "many.append(e.a, e.b)\nxs = many.get(e.a)\nxs.append(1)\n"
        "app.emit('x', n=len(xs), m=len(many.get(e.a)))",
        "xs.append(1)",
        "`.append()` of such a value is not on the list",
        "many/many/x",
    ),
    (
        "many.merge(e.a, lambda xs: pushed(xs, e.b))\napp.emit('x', n=len(many.get(e.a)))",
        "xs.append(x)",
        "`.append()` of such a value is not on the list",
        "many/many/x",
    ),
]


@pytest.mark.parametrize(
    ("body", "code", "why", "touched"), ROWS, ids=[row[0][:50] for row in ROWS]
)
@pytest.mark.filterwarnings("ignore:.*changes a copy:weir.errors.PlanWarning")
def test_what_runs_row_by_row(body: str, code: str, why: str, touched: str) -> None:
    check_in_rows(body, code, why, touched)
    case = case_of(body, before=HERE)
    assert not isinstance(right_answer(case), AppFailed)
    assert verdict_of(body, before=HERE) == Verdict("same")


def check_in_rows(body: str, code: str, why: str, touched: str) -> None:
    """The handler runs row by row, for this reason at this code."""
    app = handler_of(body, before=HERE)
    (analysed,) = analyse_app(app)
    assert analysed.refused == "" and touched_by(analysed) == touched
    place = re.fullmatch(r"line (\d+): (.*)", analysed.why_rows)
    assert place is not None and place[2] == why
    file = app.handlers["h"].function.__code__.co_filename
    assert code in linecache.getline(file, int(place[1]))
    assert flow_of(app).why_rows == {"h": analysed.why_rows}


def touched_by(analysed: Analysed) -> str:
    """The states that it reads, those that it writes, and what it emits."""
    names = (analysed.reads, analysed.writes, analysed.emits)
    return "/".join(",".join(sorted(of_kind)) or "-" for of_kind in names)


# What the loop fails with, and what makes the handler run row by row, if anything.
FAILING: list[tuple[str, str, str]] = [
    ("assert sums.get(e.b) > 1", "AssertionError", ""),
    ("for x in e.xs:\n    sums.add(x, 1)\nassert total.get(e.b) > 1", "AssertionError", ""),
    ("while e.a:\n    raise ValueError(e.a)", "ValueError", "`while`"),
    ("e.a = 3", "AttributeError", "`e.a` is changed in place"),
    ("xs = e.xs\nxs[0] = 3", "IndexError", "`xs[0]` is changed in place"),
    (
        "many.merge(e.a, lambda xs: xs.append(1))",
        "AttributeError",
        "`.append()` of such a value is not on the list",
    ),
]


@pytest.mark.parametrize(("body", "error", "why"), FAILING, ids=[row[0][:50] for row in FAILING])
@pytest.mark.filterwarnings("ignore:.*changes a copy:weir.errors.PlanWarning")
def test_what_fails_as_in_the_loop(body: str, error: str, why: str) -> None:
    emits = f"{body}\napp.emit('x', a=e.a)"
    (analysed,) = analyse_app(handler_of(emits, before=HERE))
    assert analysed.why_rows.partition(": ")[2] == why
    failure = right_answer(case_of(emits, before=HERE))
    assert isinstance(failure, AppFailed) and error in str(failure)
    assert verdict_of(emits, before=HERE) == Verdict("same")


def test_sets_without_an_order_are_used() -> None:
    body = """
names = NAMES | {e.s, 'q'}
names.add('z')
rest = names - {'q'} or set()
n = len(rest) + sum({e.a, 3}) + functools.reduce(lambda k, x: k | {x}, e.xs, set()).__len__()
words = ' '.join(sorted(rest, reverse=True)) + min(names) + max(rest, default='')
longest = max(names, rest, key=len)
a, b = names, {e.a}
if e.s in a and rest <= names and any(b) and 'a' in names & NAMES:
    app.emit('x', v=words, n=n + len(longest) + len(frozenset(b)))
"""
    before = f"{HERE}\napp.emits('x', 'v STRING, n BIGINT')"
    assert verdict_of(body, before=before) == Verdict("same")


def test_functions_may_take_and_return_sets() -> None:
    body = """
words = tags(e.s, 'Q')
n = len(words) + sum(len(w) for w in sorted(words)) + len(ordered(words))
lists = {1: sorted(words), 2: e.ys}
for k, ys in lists.items():
    n += len([y for y in ys if y in GROUPS.get(y, ())]) + len(GROUPS['a'])
if 'q' in kept_tags(e.s) and all_tags(e.ys) >= NAMES:
    app.emit('x', v=min(tags(e.s, e.t)), n=n)
"""
    before = f"{HERE}\napp.emits('x', 'v STRING, n BIGINT')"
    assert verdict_of(body, before=before) == Verdict("same")


def test_what_an_object_remembers_ends_the_run() -> None:
    body = "box.add(e.b)\napp.emit('x', n=box.n)"
    app = handler_of(body, before=f"{HERE}\napp.emits('x', 'n BIGINT')")
    assert "`self.n` is changed in place" in flow_of(app).why_rows["h"]
    verdict = verdict_of(body, before=f"{HERE}\napp.emits('x', 'n BIGINT')")
    assert verdict.kind == "failed"
    assert "a handler has changed the global `box`, which lives outside of it" in verdict.text
    assert "in a state: app.state(…)" in verdict.text
    assert re.search(r"outside of it \(see h, .*app.py:\d+\): later results", verdict.text)


def test_a_field_that_is_called_like_a_method_of_dict() -> None:
    source = PRELUDE + (
        "o = app.events('o', 'p STRUCT(items LIST(BIGINT), n BIGINT), ts BIGINT', vs='ts')\n"
        "app.emits('x', 'n BIGINT, m BIGINT')\n@app.on(o)\ndef h(e):\n    {}\n"
    )
    rows = [{"p": {"items": [t, 1], "n": t}, "ts": t} for t in range(9)]
    body = "app.emit('x', n=len(e.p['items']) + e.p.get('n'), m=len(e.p.items()))"
    case = Case(0, source.format(body), {"m": [[]], "n": [[]], "o": [rows]}, {})
    assert judge(case, How()) == Verdict("same")
    for code in ("len(e.p.items)", "sum([i for i in e.p.items])", "[*map(len, [e.p.items])]"):
        with pytest.raises(ScriptError) as refused:
            analyse_app(app_of(source.format(f"app.emit('x', n={code}, m=1)")))
        assert "`.items` of a struct is the method that every dict has" in str(refused.value)
        assert 'write ["items"]' in str(refused.value)


def test_changes_of_copies_are_warned_about() -> None:
    with pytest.warns(PlanWarning, match=r"`many.get\(e.a\).append\(1\)` changes a copy of what"):
        analyse_app(handler_of("many.get(e.a).append(1)"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analyse_app(handler_of("xs = list(many.get(e.a))\nxs.append(1)"))


# Each with a part of its line, the reason, and what it touches.
REFUSED: list[tuple[str, str, str, str]] = [
    (
        "counted(e.a)",
        "if n > 0: counted(n - 1)",
        "`counted` touches states and calls itself",
        "-/sums/-",
    ),
    (
        "d = {'s': sums}\nd['s'].add(1, 1)",
        "d = {'s': sums}",
        "the state `sums` gets into code that is not read",
        "-/sums/-",
    ),
    (
        "last = 0\nfor x in e.xs:\n    last = sums.get(x)\nsums.add(1, last + 1)",
        "last = sums.get(x)",
        "`sums` is used in a loop, or in a function that others call, with the "
        "key x, which may differ each time",
        "sums/sums/-",
    ),
    (
        "sums.add(e.a, 1)\napp.emit('x', v=[sums.get(x) for x in e.xs])",
        "sums.get(x) for x",
        "`sums` is used in a loop, or in a function that others call",
        "sums/sums/x",
    ),
    (
        "sums.add(e.a, 1)\napp.emit('x', v=sorted(e.xs, key=lambda x: sums.get(x)))",
        "key=lambda x",
        "`sums` is used in a loop, or in a function that others call",
        "sums/sums/x",
    ),
]


@pytest.mark.parametrize(
    ("body", "code", "why", "touched"), REFUSED, ids=[row[0][:50] for row in REFUSED]
)
def test_what_runs_only_serially(body: str, code: str, why: str, touched: str) -> None:
    declared = f"app.emits('x', 'v LIST(BIGINT)')\n{HERE}"
    app = handler_of(body, before=declared)
    (analysed,) = analyse_app(app)
    assert touched_by(analysed) == touched
    with pytest.raises(PlanError) as raised:
        flow_of(app)
    text = str(raised.value)
    assert why in text and "app.serial(h) runs it" in text and "in one partition" in text
    line = re.search(r"\bline (\d+)", text)
    assert line is not None
    file = app.handlers["h"].function.__code__.co_filename
    assert code in linecache.getline(file, int(line[1]))
    if analysed.refused:
        assert analysed.accesses == () and analysed.refused_line == int(line[1])
    assert verdict_of(body, before=declared).kind == "refused"

    keyed = declared.replace("sums", "keyed")
    out = {"body": body.replace("sums", "keyed"), "before": f"{KEYED}\n{keyed}", "serial": True}
    assert not isinstance(right_answer(case_of(**out)), AppFailed)
    assert verdict_of(**out) == Verdict("same")


KEYED = "keyed = app.state('keyed', default=0, key='BIGINT')"

UNDECLARED: list[tuple[str, str]] = [
    ("xs = []\nys = xs\nys.append(1)\napp.emit('x', v=xs)", "v LIST(BIGINT)"),
    ("xs = []\nys = [xs]\nxs.append(1)\napp.emit('x', v=ys)", "v LIST(LIST(BIGINT))"),
    ("xs = []\nys = xs\nxs.append(1)\nys.append(2)\napp.emit('x', v=xs)", "v LIST(BIGINT)"),
    ("xs = []\nxs.append(1)\nys = xs\nys.append(2)\napp.emit('x', v=xs)", "v LIST(BIGINT)"),
    ("xs = []\nxs.append(1)\nys = [xs]\nys[0].append(2)\napp.emit('x', v=xs)", "v LIST(BIGINT)"),
    (
        "acc = []\ndef add(x, to):\n    to.append(x)\nadd(e.a, acc)\napp.emit('x', v=acc)",
        "v LIST(BIGINT)",
    ),
    ("z = zip(e.xs, e.xs)\napp.emit('x', v=list(map(list, z)))", "v LIST(LIST(BIGINT))"),
]


@pytest.mark.parametrize(("body", "columns"), UNDECLARED, ids=[row[0] for row in UNDECLARED])
def test_emitted_types_that_only_a_run_shows_are_declared(body: str, columns: str) -> None:
    refused = verdict_of(body, before=HERE)
    assert refused.kind == "refused"
    line = len(f"{PRELUDE.strip()}\n{HERE.strip()}\n".splitlines()) + 2 + len(body.splitlines())
    assert f"app.py:{line}): the type of `v` of `x` is not known; declare it: " in refused.text
    assert "app.emits('x', 'v BIGINT, …')" in refused.text
    declared = f"{HERE}\napp.emits('x', '{columns}')"
    assert not isinstance(right_answer(case_of(body, before=declared)), AppFailed)
    assert verdict_of(body, before=declared) == Verdict("same")


def test_an_event_is_not_a_key() -> None:
    (analysed,) = analyse_app(handler_of("sums.add(e, 1)"))
    assert analysed.why_rows.endswith(": the event is used as a whole")
    refused = verdict_of("sums.add(e, 1)")
    assert refused.kind == "refused"
    assert "a key of `sums` is not known; declare it: app.state('sums', …" in refused.text
    failed = verdict_of("keyed.add(e, 1)", before=KEYED)
    assert failed.kind == "failed"
    assert "a key of keyed must be BIGINT, not m(vs=0" in failed.text


NAMED_KEY = """
Key = collections.namedtuple("Key", "k n")
ALL = Key("all", 0)
named = app.state("named", default=0, key=("STRING", "BIGINT"))
seen_by = app.state("seen_by", default=0{})
app.emits("x", "n BIGINT, m BIGINT")
"""


@pytest.mark.parametrize("serial", [False, True])
def test_a_named_tuple_is_a_key(serial: bool) -> None:
    more = "named.add(ALL, 1)\n" if serial else ""  # which is another key
    body = f"""
named.add(Key(e.s, e.a), 1)
{more}app.emit('x', n=named.get((e.s, e.a)), m=seen_by.get(Key(e.s, e.a)))
"""
    before = NAMED_KEY.format(", key=('STRING', 'BIGINT')")
    assert verdict_of(body, before=before, serial=serial) == Verdict("same")


def test_a_tuple_that_python_computes_is_a_key_if_that_is_said() -> None:
    app = handler_of(
        "seen_by.add(Key(e.s, e.a), seen_by.get((e.s, 1)))", before=NAMED_KEY.format("")
    )
    with pytest.raises(PlanError, match=r"app.state\('seen_by', …, key=\(…, …\)\)"):
        analyse_app(app)


IN_DEFAULTS = """
def over(x, *, most=limit):
    while x > 100:
        x -= 1
    return x >= most
def under(x, most=limit, names=(word,)):
    return not over(x, most=most)
app.emits("x", "a BOOLEAN, b BOOLEAN")
"""


def test_a_parameter_is_a_default_argument() -> None:
    before = IN_DEFAULTS.replace(", names=(word,)", "")
    body = "app.emit('x', a=over(e.a), b=under(e.b))"
    assert verdict_of(body, before=before) == Verdict("same")


def test_a_parameter_that_no_run_can_set_is_refused_before_it() -> None:
    with pytest.raises(PlanError, match="the parameter `word` lies in a tuple that handlers use"):
        compile_app(handler_of("app.emit('x', a=over(e.a), b=under(e.b))", before=IN_DEFAULTS))


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
