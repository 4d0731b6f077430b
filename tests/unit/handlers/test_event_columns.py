"""Which columns of its event a handler in rows is given: those that its code can reach."""

from __future__ import annotations

import pytest

from handler_apps import app_of, handler_of
from weir.errors import ScriptError
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.runs.handler_runs import HandlerRun
from weir.plan.operators import RowScan
from weir.plan.program import row_outputs
from weir.plan.traversal import ordered_nodes
from weir.runtime.programs import program_of

ALL = ("a", "b", "f", "s", "t", "xs", "ys", "ok", "ts")
IN_ROWS = 'words = e.s.split()\nwords.sort()\napp.emit("o", n=len(words))'


def _columns_of(app: object) -> list[tuple[str, ...]]:
    compiled = compile_app(app, paths={"m": "m.jsonl", "n": "n.jsonl"})  # type: ignore[arg-type]
    program = program_of([stream.to(f"{n}.jsonl") for n, stream in compiled.emitted.items()])
    scans = (n for n in ordered_nodes(row_outputs(program)) if isinstance(n, RowScan))
    runs = [scan.code.make for scan in scans]
    assert all(isinstance(run, HandlerRun) for run in runs)
    return [p.columns[: p.event_columns] for run in runs for p in run.ports]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("pass", ("s",)),
        ("x = e.vs + e.b", ("b", "s")),
        ("x = [e.t for _ in range(3)]", ("s", "t")),
        ("f = lambda: e.xs", ("s", "xs")),
        ("x = list(e)", ALL),
        ("x = e[1]", ALL),
        ("other = e", ALL),
        ("x = getattr(e, 'b')", ALL),
        ("x = f'{e}'", ALL),
        ("x = (lambda v: v.b)(e)", ALL),
        ("e = (e.a,)", ALL),
    ],
)
def test_what_is_reached(line: str, columns: tuple[str, ...]) -> None:
    assert _columns_of(handler_of(f"{line}\n{IN_ROWS}")) == [columns]


def test_handlers_of_one_scan_share_an_event() -> None:
    ring = "    words = [e.s]\n    words.sort()\n    if seen.get(e.a):\n        seen.set(e.a, {})\n"
    text = "".join(
        f'@app.on(m)\ndef {name}(e):\n{ring.format(value)}    app.emit("{name}", n=len(words))\n'
        for name, value in (("one", "e.ok"), ("two", "e.b > 1"))
    )
    assert _columns_of(app_of(text)) == [("a", "b", "s", "ok")]


@pytest.mark.parametrize(
    "line",
    [
        "x = (lambda: e.a).__closure__[0].cell_contents",
        "x = (n for n in e.xs).gi_frame.f_locals",
        "import inspect\nx = inspect.currentframe()",
        "import gc\nx = gc.get_objects()",
    ],
)
def test_what_leads_to_the_event_without_its_name_is_refused(line: str) -> None:
    with pytest.raises(ScriptError, match="looks into running code"):
        compile_app(handler_of(f"{line}\n{IN_ROWS}"), paths={"m": "m.jsonl", "n": "n.jsonl"})
