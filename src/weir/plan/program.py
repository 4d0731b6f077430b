"""A checked program: its inputs, named streams and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.errors import PlanError
from weir.plan.operators import Node, Source, schema
from weir.plan.urls import refuse_secrets
from weir.plan.usercode.functions import EmittingApp

StreamKind: TypeAlias = Literal["rows", "late", "bad"]
"""What the rows of an output, or of a stream to it, are: results, late rows or bad rows."""
LATE_ORIGIN = ("file", "offset", "line", "now")
"""The columns after a LATE row's own: where it stood in the input, and the time reached."""
CONSOLE = "console:"
DIRECT = (CONSOLE, "callback:")
"""The paths of outputs without a file, which get each row as it comes, at least once."""


def output_title(name: str, kind: StreamKind) -> str:
    """Return an output's name in messages: the stream, or the late or bad rows of a source.

    >>> output_title("A", "rows"), output_title("A", "late")
    ('A', 'late rows of A')
    """
    return name if kind == "rows" else f"{kind} rows of {name}"


@dataclass(frozen=True, slots=True)
class Output:
    """OUTPUT … TO: the rows of a stream, or a source's late or bad rows."""

    name: str
    node: Node
    path: str
    kind: StreamKind = "rows"

    def __post_init__(self) -> None:
        refuse_secrets(self.path)

    @property
    def title(self) -> str:
        return output_title(self.name, self.kind)


def turned_away(source: Source, kind: StreamKind, path: str) -> Output:
    """Return the output of a source's late or bad rows.

    Raise PlanError if a column of the source has the name of one that late rows need."""
    clashing = [n for n, _ in schema(source).columns if n in LATE_ORIGIN] if kind == "late" else []
    if clashing:
        message = f"LATE rows of {source.name} have a column `{clashing[0]}` of their own"
        names = ", ".join(LATE_ORIGIN)
        hint = f"the columns {names} say where a late row stood; rename that of the STREAM"
        raise PlanError(message, hint=hint)
    return Output(source.name, source, path, kind)


@dataclass(frozen=True, slots=True)
class ProgramText:
    """What a program was parsed from; `directory` is where IMPORT looks."""

    source: str
    params: tuple[tuple[str, str], ...]
    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class ProgramApp:
    """The app whose emitted rows, by name, are all outputs of a program."""

    app: EmittingApp
    params: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A checked program: its named streams in order of definition, outputs and settings."""

    sources: tuple[Source, ...]
    streams: tuple[tuple[str, Node], ...]
    outputs: tuple[Output, ...]
    settings: tuple[tuple[str, object], ...] = ()
    code: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The files and modules that IMPORT ran, each with its fingerprint."""
    needed: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The packages and modules that its code needs but that do not travel with it.

    Each comes with the file or module that imports it."""
    text: ProgramText | None = field(default=None, compare=False, repr=False)
    """The text that the program was parsed from, if any."""
    app: ProgramApp | None = field(default=None, compare=False, repr=False)
    """The app that the program belongs to, if any."""


def row_outputs(program: Program) -> list[Node]:
    """Return the streams whose rows are written; a source's late and bad rows are not a stream."""
    return [o.node for o in program.outputs if o.kind == "rows"]
