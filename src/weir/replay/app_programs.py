"""Turns an app into a plain program for any runner, for `weir run app.py`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.planning.app_compiler import compile_app
from weir.kernels.operators.state_scan import slow_states
from weir.plan.operators import StateScan
from weir.plan.program import Output, Program, ProgramApp
from weir.plan.traversal import ordered_nodes
from weir.replay.app_logs import log_paths
from weir.replay.batch_programs import ReplayTask, batch_program, first_program
from weir.replay.variants import variants_of
from weir.runtime.programs import program_of


def app_program(
    app: App,
    *,
    logs: Mapping[str, str] | None = None,
    out: str | None = None,
    format: str = "parquet",
    params: Mapping[str, object] | None = None,
    vectorise: bool = True,
) -> Program:
    """Return the program that writes an app's emitted streams to files in the folder `out`.

    Without `out`, the program can only be inspected, and its logs need no paths.
    """
    paths = log_paths(app, logs or {} if out is not None else _shown_paths(app))
    compiled = compile_app(app, paths=paths, params=params or {}, vectorise=vectorise)
    if not compiled.emitted:
        raise PlanError(f"the app `{app.name}` emits nothing", hint="app.emit('name', field=…)")
    outputs = [
        Output(name, stream.node, os.path.join(out or "", f"{name}.{format}"))
        for name, stream in compiled.emitted.items()
    ]
    program = program_of(outputs)
    streams = tuple((name, stream.node) for name, stream in compiled.emitted.items())
    use = ProgramApp(app, tuple(app.param_values(params).items()))
    return replace(program, streams=streams, code=app.code, needed=app.needed, app=use)


def programs_of_runs(app: App, params: Mapping[str, object]) -> list[Program]:
    """Return the programs that runs of an app need.

    They are the program of `weir run`, and those of the first and of later batches of a replay,
    which start and end with states.
    """
    task = ReplayTask(app, _shown_paths(app), variants_of(app, params))
    first = first_program(task, saved=False)
    programs = [app_program(app, params=params), first.program]
    if first.hands_on:
        tables = {key: key for key in first.states}
        later = batch_program(task, final=True, restored=tables, first=first)
        programs.append(later.program)
    return programs


def how_it_runs(app: App, params: Mapping[str, object] | None = None) -> str:
    """Describe what an app's handlers do with its states, and how they run."""
    compiled = compile_app(app, paths=_shown_paths(app), params=params or {})
    slow: dict[str, str] = {}
    for scan in ordered_nodes(stream.node for stream in compiled.emitted.values()):
        if isinstance(scan, StateScan):
            slow |= slow_states(scan)
    return compiled.text(slow)


def _shown_paths(app: App) -> dict[str, str]:
    """Return the paths of logs, with placeholders for those that a run sets."""
    logs = {name: event for name, event in app.event_types.items() if event.is_log}
    return {name: event.path or f"{name}.jsonl" for name, event in logs.items()}
