"""What analysis finds in an app's file goes to other processes as the file's text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark import cloudpickle

import weir
from weir.handlers.accesses import EmitAccess
from weir.handlers.analysis import analyse_app
from weir.handlers.loading import load_app
from weir.handlers.values import Const, Python, Tree

APP = """
import weir
from rules import score, kinds, Scale
import deep.words

app = weir.App("spam")
m = app.events("m", "a BIGINT, text STRING, ts BIGINT", vs="ts")
sums = app.state("sums", default=0)
half = Scale(2)

def own(x):
    total = 0
    for c in x:
        total += score(c)
    return total

@app.on(m)
def h(e):
    n = 0
    for c in e.text:
        n += score(c) + deep.words.more(c)
    app.emit("x", outlined=n, own=own(e.text), theirs=score(e.text),
             sorted=sorted(e.text, key=lambda c: -score(c)), kinds=kinds(e.text),
             half=half.of(e.text))
"""
RULES = """
def score(text):
    for c in text:
        return ord(c)
    return 0

def kinds(text):
    return [type(c).__name__ for c in text]

class Scale:
    def __init__(self, by):
        self.by = by
    def of(self, text):
        while len(text) > 3:
            text = text[1:]
        return len(text) // self.by
"""
WORKER = """
import pickle, sys
found = pickle.load(open(sys.argv[1], "rb"))
call = lambda function, args: function(*("hello" if a is None else a() for a in args))
print({name: call(*one) for name, one in found.items()})
"""


def test_functions_of_a_file_run_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "spam.py").write_text(APP)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "words.py").write_text("def more(c):\n    return 1\n")
    app = load_app(tmp_path / "spam.py")
    (analysed,) = analyse_app(app)
    (emit,) = analysed.accesses
    assert isinstance(emit, EmitAccess)
    found = {}
    for name, tree in emit.fields:
        assert isinstance(tree, Python), name
        found[name] = (tree.function, [_called(a) for a in tree.args])
    here = {name: call(*one) for name, one in found.items()}
    assert here == {
        "outlined": 537, "own": 532, "theirs": 104, "sorted": ["o", "l", "l", "h", "e"],
        "kinds": ["str"] * 5, "half": 1,
    }  # fmt: skip
    pickled = tmp_path / "elsewhere" / "pickled"
    pickled.parent.mkdir()
    pickled.write_bytes(cloudpickle.dumps(found))
    for file in (tmp_path / "spam.py", tmp_path / "rules.py"):
        file.unlink()
    told = subprocess.run(
        [sys.executable, "-c", WORKER, str(pickled)],
        capture_output=True,
        text=True,
        check=True,
        cwd=pickled.parent,
        env={"PYTHONPATH": str(Path(weir.__file__).parents[1])},
    ).stdout
    assert told.strip() == str(here)


def _called(tree: Tree) -> object:
    """A column as None, another value as what gives it."""
    match tree:
        case Python(function=function, args=()):
            return function
        case Const(value=value):
            return lambda: value
    return None


def call(function: Callable[..., object], args: Sequence[Callable[[], object] | None]) -> object:
    return function(*("hello" if arg is None else arg() for arg in args))
