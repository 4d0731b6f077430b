"""User code as an adversary: whatever it does, where it does it is named, and no answer changes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from weir.errors import OperatorFailed, PlanError, ScriptError
from weir.script import parse_program
from weir.testing import Result, run_program, with_output

HEAD = """
import sys, threading, numpy as np, pyarrow as pa, pyarrow.compute as pc, weir

class Mute(Exception):
    def __str__(self): raise ValueError("no text")

class Own(BaseException): pass

class Evil:
    def __repr__(self): raise SystemExit(3)
    def __eq__(self, other): raise ValueError("no")
    def __hash__(self): raise ValueError("no")

def deep(): return deep() + 1

def harm():
    {harm}

"""
RAISED = {
    "error": "raise ValueError('no luck')",
    "stop_iteration": "raise StopIteration(1)",
    "exit": "raise SystemExit(0)",
    "sys_exit": "sys.exit('bye')",
    "interrupt": "raise KeyboardInterrupt",
    "generator_exit": "raise GeneratorExit",
    "own": "raise Own('x')",
    "mute": "raise Mute",
    "deep": "deep()",
    "memory": "bytearray(1 << 60)",
    "assertion": "assert False",
    "long": "raise ValueError('x' * 10**6)",
}

# Each runs `harm()` at one point; the name is what must be blamed.
POINTS = {
    "scalar": "@weir.udf\ndef scalar(v: int) -> int: return harm()",
    "vector": "@weir.udf(args=['BIGINT'], result='BIGINT', vectorised=True)\n"
    "def vector(v): return harm()",
    "Agg.__init__": "def __init__(self): harm()",
    "Agg.zero": "def zero(self): return harm()",
    "Agg.add": "def add(self, state, v): return harm()",
    "Agg.remove": "def remove(self, state, v): return harm()",
    "Agg.result": "def result(self, state): return harm()",
    "Op.__init__": "def __init__(self): harm()",
    "Op.on_event": "def on_event(self, event, ctx): return harm()",
    "Op.on_time": "def on_time(self, time, ctx): return harm()",
    "Op.n": "@property\n    def n(self): return harm()",
}
AGGREGATE = """
class Basis:
    def zero(self): return 0
    def add(self, state, v): return state + v
    def remove(self, state, v): return state - v
    def merge(self, a, b): return a + b
    def result(self, state): return state

@weir.aggregate(args=["BIGINT"], result="BIGINT", exact=True)
class Agg(Basis):
    {}
"""
OPERATOR = """
class Basis:
    n = 0
    def on_event(self, event, ctx): ctx.set_timer(event.vs + 1)
    def on_time(self, time, ctx): pass

@weir.operator(columns={{"n": "BIGINT"}}, state={{"n": "BIGINT"}})
class Op(Basis):
    {}
"""
QUERIES = {
    "scalar": "SELECT scalar(v) AS n FROM A",
    "vector": "SELECT vector(v) AS n FROM A",
    "Agg": "SELECT Agg(v) AS n FROM A WITH HOPPING(4, 2)",
    "Op": "PROCESS A USING Op()",
}
ROWS = [{"vs": v, "v": v, "l": [v, v]} for v in range(12)]


def run(folder: Path, rules: str, query: str, **how: object) -> Result:
    (folder / "rules.py").write_text(rules, encoding="utf-8")
    text = "IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT, l LIST(BIGINT)) FROM 'a.jsonl'; "
    program = with_output(parse_program(f"{text} Out = {query};", directory=folder), "Out")
    return run_program(program, {"A": [ROWS]}, **how)  # type: ignore[arg-type]


def rules_of(point: str, harm: str) -> tuple[str, str]:
    kind = point.split(".")[0]
    shape = {"Agg": AGGREGATE, "Op": OPERATOR}.get(kind, "{}")
    return HEAD.format(harm=harm) + shape.format(POINTS[point]), QUERIES[kind]


def failure(folder: Path, rules: str, query: str) -> OperatorFailed:
    with pytest.raises(OperatorFailed) as caught:
        run(folder, rules, query)
    error = caught.value
    assert error.file == str(folder / "rules.py") and error.line > 0
    assert len(str(error)) < 10_000
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    return error


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("harm", RAISED)
def test_whatever_is_raised_is_a_failure_with_its_line(
    tmp_path: Path, point: str, harm: str
) -> None:
    error = failure(tmp_path, *rules_of(point, RAISED[harm]))
    assert error.function == point
    if harm == "mute":
        assert error.cause == "Mute, whose text cannot be shown"


GIVEN = {
    "float": ("return 1.5", "1.5 (float)"),
    "whole_float": ("return 1.0", "1.0 (float)"),
    "bool": ("return True", "True (bool)"),
    "large": ("return 1 << 63", "(int)"),
    "huge": ("return 10 ** 6000", "(int)"),
    "text": ("return '1'", "'1' (str)"),
    "evil": ("return Evil()", "a value that cannot be shown (Evil)"),
    "list": ("return [1]", "[1] (list)"),
    "generator": ("return (v for v in [1])", "(generator)"),
}


@pytest.mark.parametrize(
    "point", ["scalar", "vector", "Agg.result", "Op.on_event", "Op.on_time", "Op.n"]
)
@pytest.mark.parametrize("given", GIVEN)
def test_whatever_is_given_must_be_of_the_type(tmp_path: Path, point: str, given: str) -> None:
    body, shown = GIVEN[given]
    error = failure(tmp_path, *rules_of(point, body))
    assert error.function in (point, "Op") and shown in error.cause
    assert ("return None" if "on_" in point else "BIGINT") in error.cause


@pytest.mark.parametrize("given", GIVEN)
def test_rows_and_timers_must_be_of_the_type(tmp_path: Path, given: str) -> None:
    body, shown = GIVEN[given]
    calls = ["ctx.emit(n=harm())", "ctx.set_timer(harm())"]
    if given not in ("large", "huge"):
        calls += ["ctx.emit(vs=harm())", "ctx.emit(ve=harm())"]
    for call in calls:
        rules = HEAD.format(harm=body) + OPERATOR.format(
            f"def on_event(self, event, ctx): {call}  # here"
        )
        error = failure(tmp_path, rules, QUERIES["Op"])
        assert error.function == "Op.on_event" and shown in error.cause
        assert "# here" in rules.splitlines()[error.line - 1]
        assert isinstance(error.event, dict) and error.event["vs"] == 0


def test_times_out_of_range(tmp_path: Path) -> None:
    for call in ("set_timer(1 << 62 | 1)", "emit(vs=1 << 62 | 1)", "emit(ve=-(1 << 63))"):
        rules = HEAD.format(harm="pass") + OPERATOR.format(
            f"def on_event(self, event, ctx): ctx.{call}"
        )
        assert "beyond ±2⁶² ticks" in failure(tmp_path, rules, QUERIES["Op"]).cause


# --- what vectorised functions give ----------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("v.cast(pa.int32())", "not INT"),
        ("v.cast(pa.float64())", "not DOUBLE"),
        ("v.to_pylist()", "(list)"),
        ("v.to_numpy() / 2", "not DOUBLE"),
        ("np.stack([v, v])", "(ndarray)"),
        ("np.array([[1]] * len(v), object)", "(ndarray)"),
        ("np.array([1.5] * len(v), object)", "not 1.5 (float)"),
        ("np.array([1j] * len(v))", "ndarray of complex128"),
        ("v.dictionary_encode()", "dictionary"),
        ("v.slice(1)", "11 values for 12 rows"),
        ("v[0]", "(Int64Scalar)"),
        ("None", "(NoneType)"),
        ("pa.array([None] * len(v))", "not NULL"),
    ],
)
def test_arrays_must_be_of_the_type(tmp_path: Path, body: str, shown: str) -> None:
    rules = HEAD.format(harm="pass") + (
        "@weir.udf(args=['BIGINT'], result='BIGINT', vectorised=True)\n"
        f"def vector(v): return {body}\n"
    )
    error = failure(tmp_path, rules, QUERIES["vector"])
    assert shown in error.cause


def test_unsound_arrays_are_refused(tmp_path: Path) -> None:
    rules = HEAD.format(harm="pass") + (
        "@weir.udf(args=['BIGINT'], result='STRING', vectorised=True)\n"
        "def vector(v):\n"
        "    ends = pa.py_buffer(np.arange(len(v) + 1, dtype=np.int32))\n"
        "    text = pa.py_buffer(b'\\xff' * len(v))\n"
        "    return pa.Array.from_buffers(pa.string(), len(v), [None, ends, text])\n"
    )
    assert "a sound array" in failure(tmp_path, rules, QUERIES["vector"]).cause


# --- what it was given, and what it gave, cannot be changed ----------------------------------

CHANGING = (
    HEAD.format(harm="pass")
    + """
buffer = np.zeros(12, np.int64)

@weir.udf(args=["BIGINT"], result="BIGINT", vectorised=True)
def reused(v):
    buffer[: len(v)] = v.to_numpy() + 1
    return buffer[: len(v)]

@weir.udf(args=["BIGINT"], result="BIGINT", vectorised=True)
def wrapped(v):
    buffer[: len(v)] = v.to_numpy() + 1
    return pa.array(buffer[: len(v)])

@weir.udf(args=["LIST(BIGINT)"], result="BIGINT")
def emptied(l):
    total = sum(l)
    l.clear()
    return total

@weir.aggregate(args=["LIST(BIGINT)"], result="BIGINT", exact=True)
class Emptied:
    def zero(self): return 0
    def add(self, state, l): return state + emptied(l)
    def remove(self, state, l): return state - emptied(l)
    def merge(self, a, b): return a + b
    def result(self, state): return state

@weir.aggregate(args=["BIGINT"], result="LIST(BIGINT)", exact=True)
class Shared:
    def zero(self): return []
    def add(self, state, v): state.append(v); return state
    def remove(self, state, v): state.remove(v); return state
    def merge(self, a, b): return a + b
    def result(self, state): return state

@weir.aggregate(args=["BIGINT"], result="BIGINT")
class OneZero:
    start = []
    def zero(self): return self.start
    def add(self, state, v): state.append(v); return state
    def result(self, state): return len(state)

@weir.operator(columns={"n": "LIST(BIGINT)"})
class Grows:
    seen: list[int] = []
    def on_event(self, event, ctx):
        self.seen.append(event.v)
        ctx.emit(n=self.seen)

@weir.operator(columns={"n": "BIGINT"})
class Clears:
    n: int = 0
    def on_event(self, event, ctx):
        self.n += len(event.l)
        event.l.clear()
        event.values.clear()
        ctx.emit(n=self.n)

@weir.operator(columns={"n": "BIGINT"})
class KeepsContext:
    n: int = 0
    def on_event(self, event, ctx):
        self.n += 1
        Kept = globals().setdefault("kept", ctx)
        kept.emit(n=self.n)

@weir.operator(columns={"n": "BIGINT"})
class Arguments:
    def __init__(self): self.told = []
    def on_event(self, event, ctx): ctx.emit(n=len(event.l))

@weir.operator(columns={"n": "DOUBLE"})
class IntForFloat:
    n: float = 0
    def on_event(self, event, ctx):
        ctx.emit(n=1.0 if type(self.n) is float else 0.0)
        self.n = 1

@weir.operator(columns={"n": "BIGINT"})
class NumpyState:
    n: int = 0
    def on_event(self, event, ctx):
        self.n = self.n * 2 if event.v else np.int64(2**55)
        ctx.emit(n=self.n)
"""
)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT reused(v) AS n FROM A", list(range(1, 13))),
        ("SELECT wrapped(v) AS n FROM A", list(range(1, 13))),
        ("SELECT emptied(l) AS n FROM A", [2 * v for v in range(12)]),
        ("SELECT Emptied(l) AS n FROM A WITH HOPPING(4, 2)", [2, 12, 28, 44, 60, 76, 42]),
        (
            "SELECT Shared(v) AS n FROM A WITH TUMBLING(4)",
            [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
        ),
        ("PROCESS A USING Grows()", [list(range(v + 1)) for v in range(12)]),
        ("REDUCE A ON v USING Grows()", [[v] for v in range(12)]),
        ("REDUCE A ON l USING Clears()", [2] * 12),
        ("PROCESS A USING KeepsContext()", list(range(1, 13))),
        ("PROCESS A USING IntForFloat()", [0.0] + [1.0] * 11),
    ],
)
def test_changing_what_was_given_changes_no_result(
    tmp_path: Path, query: str, wanted: list[object]
) -> None:
    cuts: tuple[dict[str, int], ...] = ({}, {"cut": 4}, {"cut": 1}, {"cut": 3, "snapshot_at": 1})
    for how in cuts:
        if "snapshot_at" not in how or "KeepsContext" not in query:
            assert [r["n"] for r in run(tmp_path, CHANGING, query, **how).rows] == wanted


def test_a_context_that_was_kept_is_of_no_use_after_a_restart(tmp_path: Path) -> None:
    with pytest.raises(OperatorFailed, match="emit outside of on_event"):
        run(tmp_path, CHANGING, "PROCESS A USING KeepsContext()", cut=1, snapshot_at=3)


def test_state_of_numpy_is_the_same_with_and_without_restarts(tmp_path: Path) -> None:
    """NumPy's integers wrap around where Python's grow: state is Python's, always."""
    told = set()
    restarts: tuple[dict[str, int], ...] = ({}, {"cut": 1}, {"cut": 1, "snapshot_at": 5})
    for how in restarts:
        with pytest.raises(OperatorFailed) as caught:
            run(tmp_path, CHANGING, "PROCESS A USING NumpyState()", **how)
        told.add(str(caught.value))
    assert len(told) == 1 and "must be BIGINT" in told.pop()


def test_a_zero_that_is_shared_is_refused(tmp_path: Path) -> None:
    error = failure(tmp_path, CHANGING, "SELECT OneZero(v) AS n FROM A WITH TUMBLING(4)")
    assert error.function == "OneZero.zero" and "the same list again" in error.cause


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("LIST(BIGINT)", "(1, 2)"),
        ("LIST(DOUBLE)", "[1]"),
        ("LIST(BIGINT)", "[np.int64(1)]"),
        ("STRUCT(a BIGINT, b BIGINT)", "{'b': 1, 'a': 2}"),
        ("LIST(BIGINT)", "{1}"),
    ],
)
def test_nested_state_must_be_as_a_restart_gives_it_back(
    tmp_path: Path, dtype: str, value: str
) -> None:
    rules = HEAD.format(harm="pass") + (
        f'@weir.operator(columns={{"n": "BIGINT"}}, state={{"kept": "{dtype}"}})\n'
        "class Op:\n    kept = None\n"
        f"    def on_event(self, event, ctx): self.kept = {value}\n"
    )
    error = failure(tmp_path, rules, QUERIES["Op"])
    assert "its state `kept` must be" in error.cause


def test_state_must_be_there(tmp_path: Path) -> None:
    rules = HEAD.format(harm="pass") + (
        '@weir.operator(columns={"n": "BIGINT"}, state={"kept": "BIGINT"})\n'
        "class Op:\n    def on_event(self, event, ctx): pass\n"
    )
    assert "no attribute 'kept'" in failure(tmp_path, rules, QUERIES["Op"]).cause


# --- threads ---------------------------------------------------------------------------------


def test_other_threads_emit_nothing(tmp_path: Path) -> None:
    rules = HEAD.format(harm="pass") + OPERATOR.format(
        """def on_event(self, event, ctx):
        told = []
        def work():
            try: ctx.emit(n=1)
            except RuntimeError as error: told.append(str(error))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        ctx.emit(n=len(told))"""
    )
    assert {r["n"] for r in run(tmp_path, rules, QUERIES["Op"]).rows} == {1}


# --- what is wrong before anything runs ------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ("@weir.udf\ndef f(v: int) -> int:\n    yield v", "f is a generator"),
        ("@weir.udf\nasync def f(v: int) -> int: return v", "f is asynchronous"),
        (
            "@weir.operator(columns={})\nclass C:\n    def on_event(self, e, ctx): yield 1",
            "C.on_event is a generator",
        ),
        (
            "@weir.udf(args=[pa.int8()], result='BIGINT')\ndef f(v): return v",
            "unsupported type int",
        ),
        ("@weir.udf(args=[dict], result='BIGINT')\ndef f(v): return v", "unsupported type dict"),
        ("weir.udf(args=[], result='BIGINT')(Evil())", "a Evil is not a function"),
        ("raise Own('x')", "Own: x"),
        ("raise Mute", "Mute, whose text cannot be shown"),
        ("sys.exit(0)", "SystemExit: 0"),
        ("deep()", "RecursionError"),
    ],
)
def test_what_import_cannot_run(tmp_path: Path, rules: str, shown: str) -> None:
    with pytest.raises((ScriptError, PlanError)) as caught:
        run(tmp_path, HEAD.format(harm="pass") + rules, "SELECT v FROM A")
    assert shown in str(caught.value)


def test_objects_that_deny_their_class(tmp_path: Path) -> None:
    rules = HEAD.format(harm="pass") + (
        "class Denies:\n    @property\n    def __class__(self): raise ValueError('no')\n"
        "thing = Denies()\n"
    )
    assert len(run(tmp_path, rules, "SELECT v FROM A").rows) == 12
