"""A fingerprint changes with what the user's code does, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import weir
from weir.plan.program import Program
from weir.plan.usercode.code_fingerprint import changes, program_code
from weir.script import parse_program

RULES = "import weir\n@weir.udf\ndef f(v: int) -> int:\n    return v + 1\n"
TEXT = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
    B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""

Code = Callable[..., dict[str, str]]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    """The fingerprints of the program with these files."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def forget() -> None:
        for name in ("helper", "lazily", "pack", "pack.part", "pack.other"):
            sys.modules.pop(name, None)

    def of(**files: str) -> dict[str, str]:
        forget()
        for name, text in files.items():
            path = tmp_path / f"{name.replace('_in_', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return program_code(parse_program(TEXT, directory=tmp_path))

    yield of
    forget()


def test_comments_and_layout_do_not_count(code: Code) -> None:
    one = code(rules=RULES)
    assert list(one) == ["rules.py"]
    assert code(rules="# mine\n" + RULES.replace("v + 1", "(v  +  1)  # more")) == one
    assert changes(one, code(rules=RULES.replace("v + 1", "v + 2"))) == ["rules.py changed"]


def test_what_is_run_is_what_the_file_holds(code: Code, tmp_path: Path) -> None:
    """Python's cache would take bytecode for the same if time and size of the file are."""
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "v": 1}\n', encoding="utf-8")
    for number in (1, 2):
        code(rules=RULES.replace("v + 1", f"v + {number}"))
        os.utime(tmp_path / "rules.py", (1, 1))
        weir.run(TEXT, directory=tmp_path)
        assert (tmp_path / "b.csv").read_text().splitlines()[1] == f"1,2,{1 + number}"


def test_modules_that_are_imported_count(code: Code) -> None:
    rules = "import helper, json, numpy\nfrom pack.part import two\n" + RULES
    files = {
        "rules": rules,
        "helper": "def later():\n    import lazily\n",
        "lazily": "X = 1\n",
        "pack_in___init__": "",
        "pack_in_part": "from . import other\ntwo = 2\n",
        "pack_in_other": "three = 3\n",
    }
    one = code(**files)
    assert sorted(one) == ["helper", "lazily", "pack", "pack.other", "pack.part", "rules.py"]
    assert changes(one, code(**files | {"pack_in_other": "three = 4\n"})) == ["pack.other changed"]
    assert changes(one, code(**files | {"lazily": "X = 2\n"})) == ["lazily changed"]
    shorter = files | {"helper": ""}
    assert changes(one, code(**shorter)) == ["helper changed", "lazily is gone"]
    assert changes(code(**shorter), code(**files)) == ["helper changed", "lazily is new"]


# --- functions of a script -------------------------------------------------------------------

SCRIPT = """
import weir
LIMIT = {limit}

def helper(v):
    return v * {factor}

@weir.udf
def mine(v: int) -> int:
    {extra}
    return helper(v) + LIMIT

class Kept:
    def __init__(self): self.n = {start}
    def on_event(self, event, ctx): pass

kept = weir.operator(columns={{"n": "BIGINT"}}, state={{"n": "BIGINT"}})(Kept)
unused = {unused}
print({printed})
stream = weir.stream("A", {{"vs": "BIGINT", "v": "BIGINT"}}, "a.jsonl", vs="vs")
stream = stream.select(w=weir.call(mine, weir.col("v"))).process(kept())
"""
PLAIN = {"limit": "7", "factor": "2", "extra": "pass", "start": "0", "unused": "1", "printed": "1"}


def script_code(**changed: str) -> dict[str, str]:
    spaced = dict(PLAIN, **changed)
    return code_of(SCRIPT.format(**spaced))


def code_of(script: str) -> dict[str, str]:
    names: dict[str, object] = {"__name__": "__main__"}
    exec(script, names)
    stream = names["stream"]
    assert isinstance(stream, weir.Stream)
    from weir.runtime.programs import program_of

    return program_code(program_of([stream.to("out.csv")]))


def test_functions_of_a_script() -> None:
    one = script_code()
    assert sorted(one) == ["__main__.Kept", "__main__.mine"]
    assert script_code(unused="2", printed="'other'") == one
    assert script_code(extra="pass  # more") == one
    for change in ({"limit": "8"}, {"factor": "3"}, {"extra": "v += 1"}):
        assert changes(one, script_code(**change)) == ["__main__.mine changed"]
    assert changes(one, script_code(start="1")) == ["__main__.Kept changed"]


VALUES = """
import threading, re, collections, enum, functools, numpy as np, pyarrow as pa, weir
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import PurePath
from zoneinfo import ZoneInfo

@dataclass(frozen=True, slots=True)
class Slotted:
    low: int
    high: object = None

class Free:
    def __init__(self, **values): self.__dict__.update(values)

class Words(list): pass

class Secret:
    def __init__(self, n): self.n = n
    def __reduce__(self): raise GeneratorExit

class Endless:
    def __reduce__(self): return Endless, (Endless(),)

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

def plus(n):
    @functools.lru_cache
    def cached(v): return v + n
    return cached

def ring(n):
    one, two = Free(n=n), Free()
    one.next, two.next, one.around = two, one, {{two}}
    return one

def chained(n):
    made = Free(n=n)
    for _ in range(900): made = Free(next=made)
    return made

SHARED = (Slotted(1), Slotted(2))
VALUE = {value}

@weir.udf
def mine(v: int) -> int:
    return VALUE

stream = weir.stream("A", {{"vs": "BIGINT", "v": "BIGINT"}}, "a.jsonl", vs="vs")
stream = stream.select(w=weir.call(mine, weir.col("v")))
"""
OTHERS = (
    ("Decimal('1.5')", "Decimal('1.50')"),
    ("np.int64(1)", "np.int64(2)"),
    ("timedelta(1)", "timedelta(2)"),
    ("range(3)", "range(4)"),
    ("bytearray(b'a')", "bytearray(b'b')"),
    ("Slotted(1)", "Slotted(2)"),
    ("Slotted(1, [Free(a=1)])", "Slotted(1, [Free(a=2)])"),
    ("Free(a=1)", "Free(b=1)"),
    ("datetime(2020, 1, 1)", "datetime(2020, 1, 1, tzinfo=ZoneInfo('UTC'))"),
    ("ZoneInfo('UTC')", "ZoneInfo('Europe/Berlin')"),
    ("PurePath('a')", "PurePath('b')"),
    ("re.compile('a')", "re.compile('a', re.I)"),
    ("collections.deque([1])", "collections.deque()"),
    ("collections.defaultdict(int)", "collections.defaultdict(str)"),
    ("Words('a')", "Words('b')"),
    ("Colour.RED", "Colour.BLUE"),
    ("plus(1)", "plus(2)"),
    ("len", "abs"),
    ("np.add", "np.multiply"),
    ("np.array(['a', Free(a=1)], object)", "np.array(['a', Free(a=2)], object)"),
    ("np.ma.array([1, 2], mask=[0, 1])", "np.ma.array([1, 2], mask=[1, 0])"),
    ("pa.array([1, None])", "pa.array([1, 2])"),
    ("pa.scalar(1)", "pa.scalar(2)"),
    ("[SHARED[0], SHARED[1], SHARED[0]]", "[SHARED[0], SHARED[1], SHARED[1]]"),
    ("{(k, SHARED) for k in 'abcdef'}", "{(k, SHARED) for k in 'abcdeg'}"),
    ("ring(1)", "ring(2)"),
    ("chained(1)", "chained(2)"),
    ("Free(a=1).__init__", "Free().__init__"),
    ("threading.Lock()", "Secret(1)"),
    ("Free", "Endless()"),
)
ALIKE = (("Secret(1)", "Secret(2)"), ("(v for v in [1])", "(v for v in [2])"))


def value_code(value: str) -> dict[str, str]:
    return code_of(VALUES.format(value=value))


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_values_that_a_function_refers_to(one: str, other: str) -> None:
    assert value_code(one) == value_code(one)
    assert changes(value_code(one), value_code(other)) == ["__main__.mine changed"]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_cannot_be_pickled_counts_by_its_type(one: str, other: str) -> None:
    assert value_code(one) == value_code(other)


STATED = """
import weir

@weir.aggregate({state})
class Turns:
    def zero(self): return 0
    def add(self, state, v: int): return state + 1
    def result(self, state) -> int: return state

stream = weir.stream("A", {{"vs": "BIGINT", "v": "BIGINT"}}, "a.jsonl", vs="vs")
stream = stream.window(weir.tumbling(5)).agg(w=weir.call(Turns, weir.col("v")))
"""


def test_the_declared_state_of_an_aggregate_counts() -> None:
    texts = ("", "state='BIGINT'", "state='INT'", "state={'n': 'INT'}", "state={'m': 'INT'}")
    codes = [code_of(STATED.format(state=text)) for text in texts]
    assert codes[1] == code_of(STATED.format(state=texts[1]))
    assert len({code["__main__.Turns"] for code in codes}) == len(texts)


def test_attributes_are_no_globals() -> None:
    assert script_code(extra="v.unused", unused="1") == script_code(extra="v.unused", unused="2")


def all_code() -> list[dict[str, str]]:
    return [script_code(), *(value_code(value) for pair in OTHERS for value in pair)]


def test_the_same_in_every_process() -> None:
    program = "from test_code_fingerprint import all_code; print(all_code())"
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": _path()},
    )
    assert told.stdout == f"1\n{all_code()}\n"


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])


def test_a_program_without_code() -> None:
    program = parse_program("STREAM A (vs BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'b.csv';")
    assert isinstance(program, Program) and program_code(program) == {}
