"""A saved state goes on only in an app whose merges, functions and defaults are those it has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_app import write
from weir.errors import PlanError, SnapshotCorrupt
from weir.events.batch import Batch
from weir.events.types import BIGINT
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.kernels.structures.fast_cells import FastCells
from weir.kernels.structures.fast_saved import load_fast
from weir.plan.states import Cell
from weir.replay.app_replay import replay_app
from weir.replay.saved_state import FORMAT

WINDOW = """
import weir
app = weir.App("w")
ev = app.events("ev", "k BIGINT, x BIGINT, ts BIGINT", vs="ts")
s = app.state("s", default=0, last=100)

@app.on(ev)
def h(e):
    s.max(e.k, e.x)
    app.emit("out", v=s.get(e.k))
"""
BEFORE = [{"k": 1, "x": x, "ts": t} for t, x in enumerate((5, 7, 6))]
LATER = [{"k": 1, "x": 1, "ts": 10}]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    return {"before": write(Path("a.jsonl"), BEFORE), "later": write(Path("b.jsonl"), LATER)}


def app_with(*changes: tuple[str, str], text: str = WINDOW) -> App:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("app.py").write_text(text, "utf-8")
    return load_app("app.py")


CALLED = ("s.max(e.k, e.x)", "s.merge(e.k, lambda n: n * 2 + e.x)")
SERIAL = ("@app.on", "@app.serial\n@app.on")
NAMED = "merges into the window of `s` that are not those of `w` now: "


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((), [("s.max", "s.add")], f"{NAMED}add is new, max is gone; go on with the app that "),
        ((), [("s.max", "s.min")], f"{NAMED}max is gone, min is new"),
        ([SERIAL], [SERIAL, ("s.max", "s.add")], f"{NAMED}add is new, max is gone"),
        ((), [CALLED], f"{NAMED}max is gone, the function of h is new"),
        ([CALLED], [CALLED, ("n * 2", "n * 3")], f"{NAMED}the function of h changed"),
        ((), [("default=0", "default=100")], "with another default: 0, and `w` has 100; go on"),
        ([("last", "expires")], [("last", "expires"), ("=0", "=1")], "another default: 0, and"),
    ],
)
def test_another_app_is_refused(
    logs: dict[str, str],
    first: list[tuple[str, str]],
    second: list[tuple[str, str]],
    message: str,
) -> None:
    replay_app(app_with(*first), logs={"ev": logs["before"]}, out="one", state_out="state")
    with pytest.raises(PlanError) as caught:
        replay_app(app_with(*second), logs={"ev": logs["later"]}, out="two", state_in="state")
    assert message in str(caught.value)
    assert "replay its logs with this one (--state-out)" in str(caught.value)


def test_what_changes_no_merge_is_taken(logs: dict[str, str]) -> None:
    """Other handlers, names of events' columns and lines are no part of a window's merges."""
    reading = ("n * 2 + e.x", "n * 2 + e.x + t.get(e.k)")
    state = ("@app.on", 't = app.state("t", default=0)\n\n@app.on')
    merged = ("    app.emit", "    t.add(e.k, 1)\n    app.emit")
    changes = [CALLED, reading, state, merged]
    replay_app(app_with(*changes), logs={"ev": logs["before"]}, out="one", state_out="state")
    before = ("def h(e)", 'def seen(e):\n    app.emit("n", n=t.get(e.x))\n\n@app.on(ev)\ndef h(e)')
    changed = app_with(*changes, before, ("import weir", "# a line\n\nimport weir"))
    replay_app(changed, logs={"ev": logs["later"]}, out="two", state_in="state")
    want = 0
    for number, row in enumerate((*BEFORE, *LATER)):
        want = want * 2 + row["x"] + number
    assert pq.read_table("two/out.parquet").column("v").to_pylist() == [want]


def test_states_that_one_variant_only_merges_into(logs: dict[str, str]) -> None:
    gated = (
        "    s.max(e.k, e.x)",
        "    if much:\n        s.merge(e.k, lambda n: n * 2 + e.x)\n        t.add(e.k, 1)\n"
        "    else:\n        s.max(e.k, e.x)",
    )
    state = ("@app.on", 'much = app.param("much", 0)\nt = app.state("t", default=0)\n\n@app.on')
    app = app_with(gated, state, ("v=s.get(e.k)", "v=s.get(e.k), n=t.get(e.k)"))
    before, later = {"ev": logs["before"]}, {"ev": logs["later"]}
    replay_app(app, logs=before, out="one", params={"much": [0, 1]}, state_out="state", batch=1)
    for much, states, value in ((0, {"s"}, 7), (1, {"s", "t"}, 81)):
        folder, out = f"state/much={much}", f"on{much}"
        manifest = json.loads(Path(folder, "manifest.json").read_text("utf-8"))
        assert manifest["states"].keys() == states
        replay_app(app, logs=later, out=out, params={"much": much}, state_in=folder)
        assert pq.read_table(f"{out}/out.parquet").column("v").to_pylist() == [value]
    with pytest.raises(PlanError, match="has no state `t`"):
        replay_app(app, logs=later, out="on", params={"much": [0, 1]}, state_in="state/much=0")


def test_another_format_is_refused_and_replaced(logs: dict[str, str]) -> None:
    before = {"ev": logs["before"]}
    replay_app(app_with(), logs=before, out="one", state_out="state")
    path = Path("state/manifest.json")
    manifest = json.loads(path.read_text("utf-8"))
    assert manifest["format"] == FORMAT
    del manifest["states"]["s"]["default"]
    path.write_text(json.dumps({**manifest, "format": 2}), "utf-8")
    with pytest.raises(PlanError, match=r"another version of Weir: its format is 2, not 3; rep"):
        replay_app(app_with(), logs={"ev": logs["later"]}, out="two", state_in="state")
    replay_app(app_with(), logs=before, out="three", state_out="state")
    assert json.loads(path.read_text("utf-8"))["format"] == FORMAT


def test_a_sum_does_not_take_other_merges() -> None:
    cell = Cell("s", (BIGINT,), BIGINT, 0, last=100)
    cells = FastCells([(cell, "window")])
    cells.reset(np.zeros(1, dtype=np.int64), 1)
    times = np.array([1, 2])
    columns = (pa.array([0, 1]), pa.array(["add", "max"]), pa.array([5, 7]))
    with pytest.raises(SnapshotCorrupt, match="a window of s has other merges than add: max"):
        load_fast(
            cells,
            0,
            np.zeros(2, dtype=np.int64),
            Batch(times, times + 1, columns),
            ("number", "merge", "arg"),
        )
