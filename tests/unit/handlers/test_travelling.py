"""The handlers of an app's file go to other processes as the file's text, and run there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

import weir
from weir.events.batch import OPEN, Batch
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.runs.handler_runs import HandlerRun
from weir.kernels.kernel_table import make_kernel
from weir.plan.operators import RowScan
from weir.plan.traversal import ordered_nodes

APP = """
import weir
from rules import score, kinds, Scale
import deep.words

app = weir.App("spam")
m = app.events("m", "a BIGINT, text STRING, ts BIGINT", vs="ts")
sums = app.state("sums", default=0)
app.emits("x", "outlined BIGINT, own BIGINT, theirs BIGINT, sorted LIST(STRING), "
          "kinds LIST(STRING), half BIGINT, sum BIGINT")
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
    sums.add(e.a, n)
    app.emit("x", outlined=n, own=own(e.text), theirs=score(e.text),
             sorted=sorted(e.text, key=lambda c: -score(c)), kinds=kinds(e.text),
             half=half.of(e.text), sum=sums.get(e.a))
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
from weir.events.batch import OPEN
from weir.kernels.kernel_table import make_kernel
node, batch = pickle.load(open(sys.argv[1], "rb"))
print(make_kernel(node).step([batch], OPEN)[0].columns[-1].to_pylist())
"""
HELLO = {
    "outlined": 537,
    "own": 532,
    "theirs": 104,
    "sorted": ["o", "l", "l", "h", "e"],
    "kinds": ["str"] * 5,
    "half": 1,
}
EMPTY = {"outlined": 0, "own": 0, "theirs": 0, "sorted": [], "kinds": [], "half": 0}


def test_functions_of_a_file_run_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "spam.py").write_text(APP)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "words.py").write_text("def more(c):\n    return 1\n")
    compiled = compile_app(load_app(tmp_path / "spam.py"), paths={"m": "m.jsonl"})
    nodes = ordered_nodes(stream.node for stream in compiled.emitted.values())
    (scan,) = (node for node in nodes if isinstance(node, RowScan))
    assert isinstance(scan.code.make, HandlerRun)
    times = np.arange(3)
    columns = (pa.array([1, 2, 1]), pa.array(["hello", "", "hello"]), pa.array(times))
    rows = Batch(times, times + 1, columns, (np.zeros(3, dtype=np.int64), times))
    pickled = tmp_path / "elsewhere" / "pickled"
    pickled.parent.mkdir()
    pickled.write_bytes(cloudpickle.dumps((scan, rows)))

    emitted, _ = make_kernel(scan).step([rows], OPEN)
    here = emitted.columns[-1].to_pylist()
    assert here == [[HELLO | {"sum": 537}], [EMPTY | {"sum": 0}], [HELLO | {"sum": 1074}]]
    for file in (tmp_path / "spam.py", tmp_path / "rules.py", tmp_path / "deep" / "words.py"):
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
