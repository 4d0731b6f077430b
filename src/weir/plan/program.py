"""A checked program: its inputs, its named streams and its outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from weir.plan.operators import Node, Source


@dataclass(frozen=True, slots=True)
class Output:
    """OUTPUT … TO: the rows of a stream, or a source's late or bad rows."""

    name: str
    node: Node
    path: str
    kind: Literal["rows", "late", "bad"] = "rows"


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program's text and what else it was parsed with; `directory` is where IMPORT looks."""

    source: str
    params: tuple[tuple[str, str], ...]
    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class Program:
    """A checked program: named streams in order of definition, outputs, settings."""

    sources: tuple[Source, ...]
    streams: tuple[tuple[str, Node], ...]
    outputs: tuple[Output, ...]
    settings: tuple[tuple[str, object], ...] = ()
    code: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """What IMPORT ran, file by file and module by module, with fingerprints."""
    text: ProgramText | None = field(default=None, compare=False, repr=False)
    """What it was parsed from, if it was."""


def row_outputs(program: Program) -> list[Node]:
    """The streams whose rows are asked for (a source's late and bad rows are no stream)."""
    return [o.node for o in program.outputs if o.kind == "rows"]
