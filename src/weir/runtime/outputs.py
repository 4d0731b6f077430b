"""The outputs of a program: their check before a run, their columns, the writers of their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weir.errors import PlanError
from weir.files.paths import at_directory, check_apart, check_not_read
from weir.files.sinks import sink_format
from weir.files.writers import OutputWriter
from weir.ingress.connectors.registry import local_files
from weir.ingress.ingress import bad_schema, late_schema
from weir.plan.operators import Source, schema
from weir.plan.program import CONSOLE, Output, Program
from weir.plan.schema import Schema


def check_outputs(program: Program, directory: str | Path, *, console: bool = False) -> None:
    """Check that there is an output, that each has a known format, and that the program reads none
    of them. `console`: those TO 'console:' are printed."""
    if not program.outputs:
        raise PlanError("the program has no OUTPUT", hint="add OUTPUT … TO 'path';")
    written = tuple(o for o in program.outputs if not (console and o.path == CONSOLE))
    for output in written:
        sink_format(output.path)
    check_apart(replace(program, outputs=written), directory)
    check_not_read(replace(program, outputs=written), directory, local_files)


def output_schema(output: Output) -> Schema:
    """Find the columns of an output: those of a stream, or of a source's late or bad rows."""
    match output.kind, output.node:
        case "late", Source() as source:
            return late_schema(source)
        case "bad", Source() as source:
            return bad_schema(source)
        case _:
            return schema(output.node)


def output_path(output: Output, directory: str | Path) -> str:
    """Join the directory and the path of an output; that of a folder still ends in `/`."""
    slash = "/" if output.path.endswith("/") else ""
    return at_directory(directory, output.path).removesuffix("/") + slash


def output_writer(output: Output, directory: Path, vertices: int) -> OutputWriter:
    """Make the writer of an output's files, whose rows come from so many vertices."""
    path = output_path(output, directory)
    return OutputWriter(path, output_schema(output), vertices, lifetime=output.kind != "bad")
