"""The program of an app, on whatever runner, is compared with the serial loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from small_shadow import COUNT, HEAD, clicks, parts, shadow_of
from weir.errors import ReplayDiffers
from weir.handlers.api.app_file import load_app
from weir.ingress.memory_partitions import MemoryPartition
from weir.kernels.expressions.evaluator import PYTHON_BUILDERS
from weir.local.file_run import run_files
from weir.plan.program import Program
from weir.replay.app_programs import app_program
from weir.script.program import parse_program
from weir.shadow.app_shadow import AppShadow, app_shadow

BUILDERS: Any = PYTHON_BUILDERS


def run(shadow: AppShadow, count: int) -> dict[str, str]:
    """Run the program by the local runner; return the files that it writes, by stream."""
    report = run_files(shadow.program, partitions=parts(shadow, click=clicks(count)))
    return {output.name: output.path for output in report.outputs}


def test_only_the_program_of_an_app_has_a_loop(tmp_path: Path) -> None:
    text = "STREAM A (t BIGINT) FROM 'a.jsonl' WITH (vs = t); OUTPUT A TO 'b.csv';"
    assert app_shadow(parse_program(text)) is None
    (tmp_path / "app.py").write_text(HEAD + COUNT, "utf-8")
    program = app_program(load_app(tmp_path / "app.py"), logs={"click": "c.jsonl"}, out="out")
    assert app_shadow(program, 0) is None
    shadow = app_shadow(program, 5)
    assert shadow is not None and shadow.most == 5


def test_a_check_of_all_events(tmp_path: Path) -> None:
    shadow = shadow_of(tmp_path, COUNT)
    written = run(shadow, 40)
    shadow.check(parts(shadow, click=clicks(40)), written)
    with pytest.raises(ReplayDiffers) as caught:
        shadow.check(parts(shadow, click=clicks(44)), written)
    assert caught.value.number == 41 and caught.value.engine == "nothing"
    assert caught.value.event == {"vs": 40, "ve": 41, "id": 40, "user": "b", "at": 40}
    with pytest.raises(ReplayDiffers, match="the loop: nothing"):
        shadow.check(parts(shadow, click=clicks(38)), written)


def test_a_check_of_events_that_fail(tmp_path: Path) -> None:
    shadow = shadow_of(tmp_path, COUNT.replace("e.id % 2 == 0", "1 // (e.id - 7) == 0"))
    written = run(shadow, 6)
    with pytest.raises(ReplayDiffers, match="fails: ZeroDivisionError"):
        shadow.check(parts(shadow, click=clicks(9)), written)


@pytest.mark.parametrize(
    "merge",
    [
        "views.add(1, e.id)",
        "for n in e.ids:\n        views.add(1, n)",
        "while True:\n        views.add(1, e.id)\n        break",
        "views.add(1, e.id)\napp.serial(viewed)",
    ],
)
def test_a_merge_that_may_fail_runs_though_nobody_reads_its_state(
    tmp_path: Path, merge: str
) -> None:
    body = f"""{COUNT}
view = app.events("view", "id BIGINT, ids LIST(BIGINT), at BIGINT", vs="at")
views = app.state("views", default=0, key="BIGINT")

@app.on(view)
def viewed(e):
    {merge}
"""
    shadow = shadow_of(tmp_path, body)
    assert [source.name for source in shadow.program.sources] == ["click", "view"]
    assert shadow.plan.unseen == frozenset()
    views = [{"id": n, "ids": [n], "at": at} for n, at in ((2**62, 3), (1, 5), (2**62, 9))]
    assert shadow.compare(parts(shadow, click=clicks(40), view=views[:2])) == 42
    # Both fail at the third view: ten clicks and two views were before it.
    assert shadow.compare(parts(shadow, click=clicks(40), view=views)) == 12


def test_states_that_no_table_can_hold_are_not_compared(tmp_path: Path) -> None:
    body = """
recent = app.state("recent", default=0, last=5, key="STRING")

@app.serial
@app.on(click)
def tell(e):
    recent.merge(e.user, lambda old: old + e.id)
    app.emit("out", id=e.id, n=recent.get(e.user))
"""
    shadow = shadow_of(tmp_path, body)
    assert shadow.plan.states is None
    assert shadow.compare(parts(shadow, click=clicks(40))) == 40


STREAMS = """
import weir
from weir import count, tumbling
columns = {"id": "BIGINT", "user": "STRING", "at": "BIGINT"}
clicks = weir.stream("click", columns, "c.jsonl", vs="at")
app = weir.App("a")
per_user = app.events("per_user", clicks.group_by("user").window(tumbling(5)).agg(n=count()))
total = app.state("total", default=0)

@app.on(per_user)
def tell(e):
    total.add(e.user, e.n)
    app.emit("out", user=e.user, n=total.get(e.user) + 1)
"""


def test_events_of_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text(STREAMS, "utf-8")
    program: Program = app_program(load_app(tmp_path / "app.py"), out=str(tmp_path))
    shadow = app_shadow(program)
    assert shadow is not None
    (source,) = program.sources
    opened = {"click": [MemoryPartition("c", clicks(40), source.declared)]}
    assert shadow.compare(opened) == 8 * 3
    report = run_files(program, partitions=opened)
    shadow.check(opened, {o.name: o.path for o in report.outputs})
    monkeypatch.setitem(BUILDERS, "py_add", BUILDERS["py_sub"])
    with pytest.raises(ReplayDiffers) as caught:
        shadow.compare(opened)
    assert caught.value.number == 0 and caught.value.place is not None


def test_events_of_a_stream_that_python_does_not_have(tmp_path: Path) -> None:
    columns = '{"id": "BIGINT", "user": "STRING", "at": "BIGINT"}'
    text = STREAMS.replace(columns, columns[:-1] + ', "t": "TIMESTAMP"}').replace(
        'clicks.group_by("user").window(tumbling(5)).agg(n=count())', 'clicks.select("user", "t")'
    )
    (tmp_path / "app.py").write_text(text.replace("e.n", "1"), "utf-8")
    program = app_program(load_app(tmp_path / "app.py"), out=str(tmp_path))
    shadow = app_shadow(program)
    assert shadow is not None
    for time, compared in ((5, 40), (2**61, 0)):
        rows = [{**row, "t": time} for row in clicks(40)]
        opened = {"click": [MemoryPartition("c", rows, program.sources[0].declared)]}
        assert shadow.compare(opened) == compared
