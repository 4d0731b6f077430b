"""A checked program: its inputs, named streams and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.errors import PlanError
from weir.plan.operators import Node, Source, schema
from weir.plan.urls import refuse_secrets
from weir.plan.usercode.functions import EmittingApp

StreamKind: TypeAlias = Literal["rows", "late", "bad"]
"""What the rows of an output and of the streams to it are: results, or a source's late or bad
rows."""
LATE_ORIGIN = ("file", "offset", "line", "now")
"""The columns that LATE rows have after their own: where each stood, and the time reached."""
CONSOLE = "console:"
DIRECT = (CONSOLE, "callback:")
"""The paths of outputs that get each row as it comes, at least once, and have no file."""


def output_title(name: str, kind: StreamKind) -> str:
    """Name an output in messages: a stream, or a source's late or bad rows.

    >>> output_title("A", "rows"), output_title("A", "late")
    ('A', 'late rows of A')
    """
    return name if kind == "rows" else f"{kind} rows of {name}"


@dataclass(frozen=True, slots=True)
class Output:
    """An `Output` is OUTPUT … TO: the rows of a stream, or a source's late or bad rows."""

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
    """Make the output of a source's late or bad rows; PlanError if its columns leave no room."""
    clashing = [n for n, _ in schema(source).columns if n in LATE_ORIGIN] if kind == "late" else []
    if clashing:
        message = f"LATE rows of {source.name} have a column `{clashing[0]}` of their own"
        names = ", ".join(LATE_ORIGIN)
        hint = f"the columns {names} say where a late row stood; call that of the STREAM otherwise"
        raise PlanError(message, hint=hint)
    return Output(source.name, source, path, kind)


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A `ProgramText` is what a program was parsed from; `directory` is where IMPORT looks."""

    source: str
    params: tuple[tuple[str, str], ...]
    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class ProgramApp:
    """A `ProgramApp` says that all outputs of a program are what an app emits, by their names."""

    app: EmittingApp
    params: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A `Program` is checked: it has its named streams in order of definition, outputs and
    settings."""

    sources: tuple[Source, ...]
    streams: tuple[tuple[str, Node], ...]
    outputs: tuple[Output, ...]
    settings: tuple[tuple[str, object], ...] = ()
    code: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The files and modules that IMPORT ran, each with its fingerprint."""
    needed: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The packages and modules that its code needs and that do not travel with it, each with the
    file or module that imports it."""
    text: ProgramText | None = field(default=None, compare=False, repr=False)
    """The text that it was parsed from, if it was."""
    app: ProgramApp | None = field(default=None, compare=False, repr=False)
    """The app that it is the program of, if it is one's."""


def row_outputs(program: Program) -> list[Node]:
    """Return the streams whose rows are written (a source's late and bad rows are not a stream)."""
    return [o.node for o in program.outputs if o.kind == "rows"]
