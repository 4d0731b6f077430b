"""The inputs of a test: a program in any of its forms, and the rows of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeGuard

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.planning.app_compiler import compile_app
from weir.local.run import Items, items_of
from weir.plan.binding.binder import unknown
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Source
from weir.plan.program import Output, Program
from weir.runtime.input_warnings import MOST_ROWS, warn_of_fields
from weir.runtime.programs import Runnable, as_program, program_of
from weir.script.source import did_you_mean

SourceRows: TypeAlias = Mapping[str, tuple[Items, ...]]
"""The rows of each source, by partition."""


def with_output(program: Program, stream: str) -> Program:
    """Return the program with this stream as its only output."""
    named = {
        **{o.title: o.node for o in program.outputs if o.kind == "rows"},
        **{s.name: s for s in program.sources},
        **dict(program.streams),
    }
    if stream not in named:
        hint = did_you_mean(stream, named) or f"stream={list(named)[-1]!r}" if named else ""
        raise PlanError(f"the program has no stream `{stream}`", hint=hint)
    return replace(program, outputs=(Output(stream, named[stream], ""),))


def program_given(
    runnable: Runnable | Stream | App,
    stream: str | None,
    params: Mapping[str, object] | None,
    directory: str | Path,
) -> Program:
    """Make a program with outputs from any runnable object."""
    if isinstance(runnable, App):
        program = _app_program(runnable, params or {})
    else:
        texts = {name: str(value) for name, value in (params or {}).items()}
        if isinstance(runnable, Stream):
            return as_program(runnable.to("", name=stream or "Out"), params=texts)
        program = as_program(runnable, params=texts, directory=directory)
    if stream is not None:
        return with_output(program, stream)
    if not program.outputs:
        outputs = tuple(Output(name, node, "") for name, node in program.streams)
        if not outputs:
            raise PlanError("the program has no stream to look at", hint="Out = SELECT … FROM …;")
        return replace(program, outputs=outputs)
    return program


def _app_program(app: App, params: Mapping[str, object]) -> Program:
    paths = {name: f"{name}.jsonl" for name, event in app.event_types.items() if event.is_log}
    compiled = compile_app(app, paths=paths, params=params, final=True)
    streams_by_name = {**compiled.emitted, **{f"{n}.state": s for n, s in compiled.final.items()}}
    if not streams_by_name:
        raise PlanError(f"the app `{app.name}` emits nothing and has no state")
    program = program_of([stream.to("", name=name) for name, stream in streams_by_name.items()])
    streams = tuple((name, stream.node) for name, stream in streams_by_name.items())
    return replace(program, streams=streams, code=app.code, needed=app.needed)


def rows_given(program: Program, inputs: Mapping[str, object]) -> SourceRows:
    names = [source.name for source in program.sources]
    for name in inputs:
        if name not in names:
            raise unknown("input", name, names)
    return {source.name: _partitions(source, inputs) for source in program.sources}


def _partitions(source: Source, inputs: Mapping[str, object]) -> tuple[Items, ...]:
    """Return the partitions of a source. A list of rows or a table is one partition; a list of
    those is several."""
    if source.name not in inputs:
        raise PlanError(f"`inputs` has no rows for {source.name}")
    rows = inputs[source.name]
    parts = tuple(items_of(part) for part in (rows if _are_several(rows) else [rows]))
    for part in parts:
        warn_of_fields(source, islice(part, MOST_ROWS), "the rows")
    return parts


def _are_several(rows: object) -> TypeGuard[Sequence[object]]:
    if not isinstance(rows, list | tuple):
        return False
    return len(rows) > 0 and not any(isinstance(row, Mapping) for row in rows)
