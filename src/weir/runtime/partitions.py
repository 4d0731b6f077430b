"""Opens the partitions that a program reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from weir.errors import InputError
from weir.files.chunks import SourcePartition
from weir.files.readers import source_files
from weir.ingress.connectors.registry import open_any
from weir.plan.operators import Source
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes
from weir.runtime.input_warnings import warn_of_inputs
from weir.runtime.program_plan import columns_read

Partitions = Mapping[str, Sequence[SourcePartition]]
KnownNames = Mapping[str, Sequence[str]]
"""Names of partitions, by source."""
NONE_KNOWN: KnownNames = {}


def start_of(directory: str | Path) -> str:
    """Return what relative paths start with: "" and not ".", as messages and LATE rows then show
    paths as the program wrote them."""
    return "" if Path(directory) == Path() else str(directory)


def open_partitions(
    program: Program,
    directory: str | Path,
    earlier_names: KnownNames = NONE_KNOWN,
    *,
    look: bool = True,
) -> Partitions:
    """Open the partitions of every source that an output needs, to read the columns it needs.
    Objects in `earlier_names` are opened even if a listing lacks them. With `look`, warn of what
    the first rows show."""
    nodes = (node for output in program.outputs for node in ordered_nodes([output.node]))
    sources = dict.fromkeys(n for n in nodes if isinstance(n, Source) and n.has_origins)
    start = start_of(directory)
    columns = columns_read(program, sources)
    opened: dict[str, Sequence[SourcePartition]] = {}
    for source in sources:
        before = earlier_names.get(source.name, ())
        try:
            opened[source.name] = open_any(source, start, needed=columns[source], expected=before)
        except InputError as error:
            raise _beside_program(error, source, start, program) from None
    if look:
        warn_of_inputs((source, opened[source.name]) for source in sources)
    return opened


def _beside_program(error: InputError, source: Source, start: str, program: Program) -> InputError:
    """Extend the error for a missing file if there is such a file next to the program."""
    folder = program.text.directory if program.text is not None else ""
    if _names_files(source.path, start) or not _names_files(source.path, folder):
        return error
    message = (
        "no file matches, but one next to the program does; relative paths start at the working "
        f"directory: use --directory {folder}"
    )
    return InputError(message, file=error.file)


def _names_files(path: str, folder: str) -> bool:
    try:
        return "://" not in path and bool(source_files(path, folder))
    except InputError:
        return False
