"""Runs the product's own serial loop (`weir.shadow`) on the oracle's apps and logs.

The oracle knows nothing of it: the two loops were written apart, and are compared here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from replay_oracle.loop import Logs
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import Compiled, compile_app
from weir.handlers.planning.handler_order import serial_order
from weir.plan.operators import FinalState
from weir.replay.batch_cuts import RankedLog
from weir.runtime.programs import program_of
from weir.shadow.engine_run import EnginePlan
from weir.shadow.log_events import first_events
from weir.shadow.serial_loop import SerialApp
from weir.shadow.shadow_run import ShadowRun
from weir.testing.memory_runs import memory_partitions


def shadow_run(
    source: str,
    logs: Logs,
    params: Mapping[str, object],
    *,
    vectorise: bool = True,
    end: int | None = None,
) -> ShadowRun:
    """Return both sides: the engine's plan of an app's text, and the loop over all events, or those
    before a time."""
    with tempfile.TemporaryDirectory(prefix="weir-oracle-") as folder:
        path = Path(folder) / "app.py"
        path.write_text(source, encoding="utf-8")
        app = load_app(path)
        compiled = compile_app(app, params=params, final=True, vectorise=vectorise)
    outputs = [s.to("", name=f"e.{n}") for n, s in compiled.emitted.items()]
    outputs += [s.to("", name=f"s.{n}") for n, s in compiled.final.items()]
    program = program_of(outputs)
    opened = memory_partitions(program, logs)
    ranked = [
        RankedLog(s, number, partition)
        for s in program.sources
        for number, partition in enumerate(opened[s.name])
    ]
    first = first_events(ranked, 1 << 20)
    if end is not None:
        first = replace(first, placed=[p for p in first.placed if p.event.vs < end])
    return ShadowRun(_serial(app, compiled, params), _plan(compiled), first, seconds=None)


def _serial(app: App, compiled: Compiled, params: Mapping[str, object]) -> SerialApp:
    cells = compiled.cells
    states = {n: replace(s, keys=cells[n].keys) if n in cells else s for n, s in app.states.items()}
    emitted = {name: stream.schema.columns for name, stream in compiled.emitted.items()}
    return SerialApp(app, serial_order(app), states, emitted, app.param_values(params))


def _plan(compiled: Compiled) -> EnginePlan:
    finals = {n: s.node for n, s in compiled.final.items() if isinstance(s.node, FinalState)}
    return EnginePlan({n: s.node for n, s in compiled.emitted.items()}, finals)
