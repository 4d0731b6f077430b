"""Makes a program of what a runner is given: a text, its file, a checked program, or outputs.

>>> from weir.plan.fluent.sources import stream
>>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
>>> program = as_program([a.select("v").to("v.csv"), a.bad_to("bad.jsonl")])
>>> [(output.name, output.kind, output.path) for output in program.outputs]
[('v', 'rows', 'v.csv'), ('A', 'bad', 'bad.jsonl')]
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from weir.errors import PlanError, ScriptError
from weir.plan.operators import Node, Source
from weir.plan.program import Output, Program
from weir.plan.traversal import ordered_nodes, rebuilt, with_inputs
from weir.script.program import parse_program

Runnable: TypeAlias = str | Path | Program | Output | Sequence[Output]
"""A text, the path of one, a checked program, or outputs (`stream.to(…)`)."""


def as_program(
    runnable: Runnable,
    *,
    params: Mapping[str, str] | None = None,
    directory: str | Path = ".",
) -> Program:
    """Make a checked program of whatever a runner was given.

    `params` override the DECLAREs of a text. IMPORT starts at `directory`, in a file at the
    file's folder.
    """
    if isinstance(runnable, str):
        try:
            return parse_program(runnable, params=params, directory=Path(directory))
        except ScriptError as error:
            if "\n" not in runnable and (runnable.endswith(".weir") or os.path.isfile(runnable)):
                raise ScriptError(
                    error.message,
                    line=error.line,
                    column=error.column,
                    source=runnable,
                    hint=f"is this a file? write Path({runnable!r})",
                ) from None
            raise
    if isinstance(runnable, Path):
        text = read_text(runnable)
        return parse_program(text, params=params, directory=runnable.parent, name=str(runnable))
    if params:
        raise PlanError("`params` override the DECLAREs of a text; this program is not a text")
    if isinstance(runnable, Program):
        return runnable
    outputs: Sequence[object] = runnable if isinstance(runnable, Sequence) else (runnable,)
    only_outputs = tuple(output for output in outputs if isinstance(output, Output))
    if len(only_outputs) < len(outputs):
        strange = next(type(o).__name__ for o in outputs if not isinstance(o, Output))
        if strange in ("Stream", "Selection"):
            raise PlanError("a stream needs a path to write to", hint="stream.to('path.csv')")
        hint = "a text, a Path, a program, or outputs: stream.to('path')"
        raise PlanError(f"cannot run a {strange}", hint=hint)
    return program_of(only_outputs)


def read_text(path: Path) -> str:
    """Return the text of a program; PlanError if its file cannot be read."""
    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        from weir.files.readers import nearest

        meant = nearest(str(path)) if isinstance(error, FileNotFoundError) else ""
        raise PlanError(f"cannot read the program {path}: {error.strerror}{meant}") from error


def decoded(text: bytes, name: str) -> str:
    """Return the text of a program, without a byte order mark; PlanError if it is not UTF-8."""
    try:
        return io.TextIOWrapper(io.BytesIO(text), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        from weir.files.record_frames import to_utf8

        message = f"cannot read the program {name}: it is not UTF-8 text"
        raise PlanError(message, hint=to_utf8(text)) from error


def program_of(outputs: Sequence[Output]) -> Program:
    """Make the program that has these outputs, and the sources that they read; PlanError if two
    streams would be written under one name."""
    named: dict[str, Output] = {}
    for output in outputs:
        other = named.setdefault(output.title, output)
        if other.node != output.node:
            raise PlanError(
                f"two outputs are called {output.title}: '{other.path}' and '{output.path}'",
                hint="give one of them a name of its own, .to(path, name='…')",
            )
    return _numbered(Program(_sources(outputs), (), tuple(outputs)))


def _sources(outputs: Sequence[Output]) -> tuple[Source, ...]:
    """List the sources by index, then by name; PlanError if two have the same name."""
    nodes = ordered_nodes(output.node for output in outputs)
    sources = (n for n in nodes if isinstance(n, Source))
    ordered = sorted(sources, key=lambda s: (s.index, s.name))
    names = Counter(source.name for source in ordered)
    for name, count in names.items():
        if count > 1:
            raise PlanError(f"{count} inputs are called {name}", hint="give each its own name")
    return tuple(ordered)


def _numbered(program: Program) -> Program:
    """Give each source an index of its own, where two have the same one: origins begin with it."""
    indexes = [source.index for source in program.sources]
    if len({*indexes}) == len(indexes):
        return program
    own = {source: replace(source, index=i) for i, source in enumerate(program.sources)}

    def again(node: Node, inputs: tuple[Node, ...]) -> Node:
        return own[node] if isinstance(node, Source) else with_inputs(node, inputs)

    renumbered = rebuilt(program, again)
    outputs = (
        o if o.kind == "rows" or not isinstance(o.node, Source) else replace(o, node=own[o.node])
        for o in renumbered.outputs
    )
    return replace(renumbered, sources=tuple(own.values()), outputs=tuple(outputs))
