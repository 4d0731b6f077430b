"""Every kind of merge is known everywhere: in handlers, scans, windows, rings, serial groups, saved
states. A kind that is missing somewhere would be dropped there without a word."""

from __future__ import annotations

import inspect
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
import pytest

from small_app import write
from weir.errors import PlanError
from weir.handlers.api.app_file import load_app
from weir.handlers.api.declarations import MERGES, State
from weir.plan.states import MERGE_TRAITS, MergeKind, told_kinds
from weir.replay.app_replay import replay_app

KINDS = get_args(MergeKind)
NUMBERS, LISTS = "default=2", "default=(2,), type='LIST(BIGINT)'"
MERGED = [3, 1, 2, 3, 5]
RESULTS: dict[str, tuple[str, str, list[Any]]] = {
    "call": (NUMBERS, "merge(e.k, lambda n: n * 2 + e.x)", [7, 15, 32, 67, 139]),
    "add": (NUMBERS, "add(e.k, e.x)", [5, 6, 8, 11, 16]),
    "set": (NUMBERS, "set(e.k, e.x)", MERGED),
    "max": (NUMBERS, "max(e.k, e.x)", [3, 3, 3, 3, 5]),
    "min": (NUMBERS, "min(e.k, e.x)", [2, 1, 1, 1, 1]),
    "append": (LISTS, "append(e.k, e.x)", [[2, *MERGED[: i + 1]] for i in range(5)]),
    "add_to_set": (LISTS, "add_to_set(e.k, e.x)", [[2, 3], *[[2, 3, 1]] * 3, [2, 3, 1, 5]]),
    "top_k": (LISTS, "top_k(e.k, e.x, 2)", [[3, 2], [3, 2], [3, 2], [3, 3], [5, 3]]),
}
"""Of each kind: the state, the merge, and what is read behind each merge of `MERGED`."""
_numbers = count()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_table_has_all_kinds() -> None:
    assert set(MERGE_TRAITS) == set(KINDS) == set(RESULTS)
    for kind, traits in MERGE_TRAITS.items():
        assert MERGES[traits.method] is traits and traits.kind == kind
        assert list(inspect.signature(getattr(State, traits.method)).parameters)[2:] == list(
            traits.takes
        )
    methods = {n for n, f in vars(State).items() if inspect.isfunction(f) and n[0] != "_"}
    assert methods == {"get", *MERGES}
    untold = {kind for kind, traits in MERGE_TRAITS.items() if not traits.is_value}
    assert {*told_kinds(True), *told_kinds(False), *untold} == set(KINDS)


def read(kind: str, span: str, shape: str) -> list[Any]:
    """Run an app that merges by this kind, in batches, with its state saved between them; return
    what it reads, in order."""
    declared, merge, _ = RESULTS[kind]
    handler = f"""
@app.on(ev)
def h(e):
    {"if len(str(s.get(e.k))) > 0: " if shape == "ring" else ""}s.{merge}
"""
    if shape == "serial":
        handler = handler.replace("@app.on", "@app.serial\n@app.on")
    name = f"app{next(_numbers)}"
    Path(f"{name}.py").write_text(f"""
import weir
app = weir.App("a")
ev = app.events("ev", "k BIGINT, x BIGINT, ts BIGINT", vs="ts")
s = app.state("s", {declared}{span}, key="BIGINT")
{handler}
@app.on(ev)
def shown(e):
    app.emit("out", v=s.get(e.k))
""")
    log = write(Path("e.jsonl"), [{"k": 1, "x": x, "ts": t} for t, x in enumerate(MERGED)])
    replay_app(load_app(f"{name}.py"), logs={"ev": log}, out=name, batch=2)
    return pq.read_table(f"{name}/out.parquet").sort_by("vs").column("v").to_pylist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("span", ["", ", last=100"])
@pytest.mark.parametrize("shape", ["scan", "ring", "serial"])
def test_every_kind_does_what_it_says(kind: str, span: str, shape: str) -> None:
    if shape == "serial" and "last" in span and kind == "call":
        with pytest.raises(PlanError, match=r"what others read, or what is saved .*, top_k$"):
            read(kind, span, shape)
        return
    assert read(kind, span, shape) == RESULTS[kind][2]


@pytest.mark.parametrize("shape", ["scan", "ring", "serial"])
def test_the_best_of_a_window_leave_it(shape: str) -> None:
    assert read("top_k", ", last=2", shape) == [[3, 2], [3, 2], [2, 2], [3, 2], [5, 3]]
