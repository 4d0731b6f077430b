"""Shows streams to people: their first rows as a table or as text, and as HTML in a notebook."""

from __future__ import annotations

import html
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pyarrow as pa

from weir.errors import PlanError, WeirError
from weir.events.batch import Batch
from weir.events.types import type_name
from weir.files.text_tables import cells, text_lines
from weir.local.run import table_of_rows
from weir.local.runner import LocalRun
from weir.plan.explain.explanation import Format, explain
from weir.plan.explain.svg import svg_of
from weir.plan.fluent.stream import Stream
from weir.runtime.partitions import open_partitions
from weir.runtime.program_plan import plan_program
from weir.runtime.programs import program_of
from weir.wording import counted

PATIENCE = 2.0
"""Seconds that a notebook waits for the first rows of a stream that it shows."""


@dataclass(frozen=True, slots=True)
class _FirstRows:
    """The first rows of a stream, and whether those are all."""

    table: pa.Table
    is_all: bool


def head(stream: Stream, n: int = 5, *, directory: str | Path = ".") -> pa.Table:
    """Return the first n rows."""
    first = _first_rows(stream, n, directory)
    assert first is not None  # without a limit it goes on until it is there
    return first.table


def show(stream: Stream, n: int = 20, *, directory: str | Path = ".") -> None:
    """Print the first n rows."""
    first = _first_rows(stream, n, directory)
    assert first is not None
    _put("".join(f"{line}\n" for line in text_lines(first.table)))
    if not first.is_all:
        _put(f"… shown: {counted(first.table.num_rows, 'row')}, and there are more\n")
    elif not first.table.num_rows:
        _put("no rows\n")


def explain_stream(stream: Stream, format: Format = "text") -> None:
    """Print the plan of a stream."""
    if format not in get_args(Format):
        raise PlanError(f"unknown format {format!r}; expected one of {', '.join(get_args(Format))}")
    planned = plan_program(program_of([stream.to("", name=stream.name or "Out")]))
    _put(explain(planned.program, planned.stages, format))


def html_of(stream: Stream) -> str:
    """Show the graph of a stream, its columns, and its first rows if they come soon."""
    program = program_of([stream.to("", name=stream.name or "Out")])
    try:
        first = _first_rows(stream, 5, ".", PATIENCE)
        rows = "<p><i>no rows within two seconds</i></p>" if first is None else _html_rows(first)
    except WeirError as error:
        rows = f"<pre>{html.escape(str(error))}</pre>"
    columns = ", ".join(
        f"<b>{html.escape(n)}</b> {html.escape(type_name(t))}" for n, t in stream.schema.columns
    )
    name = f" {html.escape(stream.name)}" if stream.name else ""
    return f"<div><p>Stream{name}: {columns}</p>{svg_of(program)}{rows}</div>"


def _put(text: str) -> None:
    sys.stdout.write(text)


def _first_rows(
    stream: Stream, n: int, directory: str | Path, patience: float | None = None
) -> _FirstRows | None:
    """Run the program until the first n rows are known, or None when that takes too long."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise PlanError(f"invalid number of rows {n!r}; expected 0 or more")
    program = program_of([stream.to("", name="Out")])
    batches: list[Batch] = []
    run = LocalRun(
        program, open_partitions(program, directory), [lambda _, rows: batches.append(rows)]
    )
    streams = [run.streams[name] for name in run.topology.sinks[0].inputs]
    until = None if patience is None else time.monotonic() + patience
    rows = 0
    while run.step():
        reached = min(s.cti for s in streams)
        # No row before that time is to come, so those are the first.
        rows = sum(int((b.vs < reached).sum()) for b in batches)
        if rows > n:
            break
        if until is not None and time.monotonic() > until:
            return None
    table = table_of_rows(batches, stream)
    return _FirstRows(table.slice(0, n), table.num_rows <= n)


def _html_rows(first: _FirstRows) -> str:
    names = "".join(f"<th>{html.escape(name)}</th>" for name in first.table.column_names)
    columns = [[html.escape(cell) for cell in cells(column)] for column in first.table.columns]
    rows = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for row in zip(*columns, strict=True)
    )
    more = "" if first.is_all else "<p>…</p>"
    return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>{more}"
