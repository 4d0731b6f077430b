"""Reads what a run has saved: an app goes on from its saved states, with events that ask for cells.
Of a function in a window the engine saves the name and the arguments only, so what such a cell is
worth shows when it is read."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from replay_oracle.cells import Kept, Merged
from replay_oracle.engine import event_times
from replay_oracle.loop import Loop
from replay_oracle.programs import Case
from weir.errors import PlanError, ScriptError
from weir.events.types import type_name
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.plan.states import Cell


def probed(case: Case) -> tuple[Case, int] | None:
    """Return the case with events behind its log that ask for the cells of windows with functions,
    and the time of these; None if no function is in force then, or the case is refused."""
    loop = Loop(case.source, case.params)
    cells = loop.run(case.logs).state
    at = max(event_times(loop, case.logs), default=0) + 1
    asked = [name for name in loop.store.kinds if _has_function(loop, name, at)]
    shapes = _shapes(case) if asked else {}
    if not shapes:
        return None
    logs, texts = dict(case.logs), [case.source]
    for name in asked:
        columns = [f"k{n}" for n in range(len(shapes[name].keys))]
        rows = [{"ts": at, **dict(zip(columns, key, strict=True))} for key in cells[name]]
        logs[f"ask_{name}"] = [rows]
        texts.append(_handler(shapes[name], columns))
    return replace(case, source="\n".join(texts), logs=logs), at


def _has_function(loop: Loop, name: str, at: int) -> bool:
    kind, cells = loop.store.kinds[name], loop.store.cells[name].values()
    return any(
        isinstance(merge, Merged) and merge.kind == "call" and at < merge.at + kind.last
        for cell in cells
        if kind.last is not None and not isinstance(cell, Kept)
        for merge in cell
    )


def _shapes(case: Case) -> dict[str, Cell]:
    with tempfile.TemporaryDirectory(prefix="weir-oracle-") as folder:
        path = Path(folder) / "app.py"
        path.write_text(case.source, encoding="utf-8")
        try:
            return compile_app(load_app(path), params=case.params, final=True).cells
        except (PlanError, ScriptError):
            return {}


def _handler(cell: Cell, columns: list[str]) -> str:
    name = cell.state
    types = [f"{c} {type_name(dtype)}" for c, dtype in zip(columns, cell.keys, strict=True)]
    declared, key = ", ".join(types), ", ".join(f"e.{column}" for column in columns)
    fields = ", ".join(f"{column}=e.{column}" for column in columns)
    return f"""
ask_{name} = app.events("ask_{name}", "ts BIGINT, {declared}", vs="ts")
app.emits("told_{name}", "{declared}, value {type_name(cell.type)}")

@app.on(ask_{name})
def tell_{name}(e):
    app.emit("told_{name}", {fields}, value={name}.get(({key},)))
"""
