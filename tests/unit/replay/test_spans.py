"""Windows and ends of cells: the longest spans, and states as of a time."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from small_app import write
from weir.errors import PlanError
from weir.handlers.api.app_file import load_app
from weir.plan.live_refusals import refuse_unsaved
from weir.replay.app_programs import app_program, programs_of_runs
from weir.replay.app_replay import replay_app

APP = """
import weir
app = weir.App("spans")
ev = app.events("ev", "k BIGINT, x BIGINT, ts BIGINT", vs="ts")
ending = app.state("ending", default=0, expires={span})
window = app.state("window", default=0, last={span})

@app.on(ev)
def h(e):
    ending.add(e.k, e.x)
    window.add(e.k, e.x)
    app.emit("out", ending=ending.get(e.k), window=window.get(e.k))
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_longest_spans_at_the_ends_of_time() -> None:
    Path("app.py").write_text(APP.format(span=2**62 - 1), "utf-8")
    log = [{"k": 1, "x": 5, "ts": ts} for ts in (-(2**62), -2, 2**62 - 4, 2**62)]
    replay_app(load_app("app.py"), logs={"ev": write(Path("e.jsonl"), log)}, out="out")
    found = pq.read_table("out/out.parquet")
    assert found.column("ending").to_pylist() == [5, 10, 15, 20]
    assert found.column("window").to_pylist() == [5, 10, 10, 10]


def test_a_state_is_as_of_the_end() -> None:
    """What ends at `--to` itself is the default for every later read: it is not saved."""
    Path("app.py").write_text(APP.format(span=10), "utf-8")
    logs = {"ev": write(Path("e.jsonl"), [{"k": t, "x": 5, "ts": t} for t in (1, 3)])}
    app = load_app("app.py")
    for end, kept in ((10, [1, 3]), (11, [3]), (12, [3]), (13, [])):
        for batch in (None, 1):
            out, state = f"out{end}.{batch}", Path(f"state{end}.{batch}")
            replay_app(app, logs=logs, out=out, end=end, state_out=state, batch=batch)
            for name in ("ending", "window"):
                assert pq.read_table(state / f"{name}.parquet").column("vs").to_pylist() == kept
    replay_app(app, logs=logs, out="all", state_out="state")
    assert pq.read_table("state/ending.parquet").column("vs").to_pylist() == [1, 3]


SERIAL = """
import weir
app = weir.App("s")
ev = app.events("ev", "k BIGINT, x BIGINT, ts BIGINT", vs="ts")
s = app.state("s", default=0, last=100, key="BIGINT")

@app.serial
@app.on(ev)
def h(e):
    s.merge(e.k, lambda n: n * 2 + e.x)
    app.emit("out", v=s.get(e.k))
"""


def test_windows_of_functions_in_a_serial_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can save them, and whoever does not ask for that need not know."""
    Path("app.py").write_text(SERIAL, "utf-8")
    log = write(Path("e.jsonl"), [{"k": 1, "x": x, "ts": x} for x in (1, 2, 3)])
    app, logs = load_app("app.py"), {"ev": log}
    for name, options in {"whole": {}, "check": {"check": True}, "some": {"end": 3}}.items():
        report = replay_app(app, logs=logs, out=name, **options)
        want = [1, 4, 11] if name != "some" else [1, 4]
        assert pq.read_table(f"{name}/out.parquet").column("v").to_pylist() == want
        assert report.events == len(want)
    monkeypatch.setattr("weir.replay.app_replay.BATCH_BYTES", 1)
    assert replay_app(app, logs=logs, out="large").batches == 1
    for name, options in {"batch": {"batch": 1}, "state": {"state_out": "state"}}.items():
        why = r"`h` \(line 10\), .*merges a function into the window of `s`: .*; use add, set"
        with pytest.raises(PlanError, match=why):
            replay_app(app, logs=logs, out=name, **options)
    program = app_program(app, logs=logs, out="live")
    with pytest.raises(PlanError, match=r"`h` .*into the window of `s`: no checkpoint of a live"):
        refuse_unsaved(program)
    assert programs_of_runs(app, {})
