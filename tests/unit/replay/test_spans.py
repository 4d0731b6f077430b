"""Windows and ends of cells: the longest spans, and states as of a time."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from small_app import write
from weir.handlers.loading import load_app
from weir.replay.replaying import replay_app

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
