"""Opens the partitions that a program reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from weir.files.chunks import SourcePartition
from weir.ingress.connectors.registry import open_any
from weir.plan.operators import Source
from weir.plan.program import Program
from weir.plan.rewrites.pruning import needed_columns
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.traversal import ordered_nodes

Partitions = Mapping[str, Sequence[SourcePartition]]


def start_of(directory: str | Path) -> str:
    """Return what relative paths start with: "" and not ".", as messages and LATE rows then show
    paths as the program wrote them."""
    return "" if Path(directory) == Path() else str(directory)


def open_partitions(program: Program, directory: str | Path) -> Partitions:
    """Open the partitions of every source that an output needs, to read the columns it needs."""
    nodes = (node for output in program.outputs for node in ordered_nodes([output.node]))
    sources = dict.fromkeys(n for n in nodes if isinstance(n, Source) and n.has_origins)
    start = start_of(directory)
    slim = rewrite(program)
    return {
        source.name: open_any(source, start, needed=needed_columns(slim, source))
        for source in sources
    }
