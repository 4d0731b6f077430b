"""Opens the partitions of a program's sources, DataFrames included, for both runners on Spark."""

from __future__ import annotations

import os
from pathlib import Path

from weir.files.chunks import SourcePartition
from weir.files.columnar import ArrivingBatches
from weir.ingress.connectors.registry import rooted
from weir.plan.operators import Source
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes
from weir.runtime.partitions import NONE_KNOWN, KnownNames, Partitions, open_partitions
from weir.runtime.program_plan import columns_read


def all_partitions(
    program: Program, directory: str | Path, earlier_names: KnownNames = NONE_KNOWN
) -> dict[str, list[SourcePartition]]:
    """Return the files and DataFrames of a program's sources, for workers that run in other
    folders; `earlier_names` is passed to `open_partitions`."""
    return with_frames(program, open_partitions(program, directory, earlier_names))


def with_frames(program: Program, opened: Partitions) -> dict[str, list[SourcePartition]]:
    """Return these partitions, with paths for workers that run in other folders, and the program's
    DataFrames."""
    here = os.getcwd()
    files = {name: [rooted(p, here) for p in partitions] for name, partitions in opened.items()}
    frames = frame_sources(program)
    read = columns_read(program, frames)
    for source in frames:
        columns = [column for column in source.declared if column[0] in read[source]]
        files[source.name] = [ArrivingBatches(f"DataFrame {source.name}", columns)]
    return files


def frame_sources(program: Program) -> list[Source]:
    """Return the sources of a program that are DataFrames."""
    nodes = (n for output in program.outputs for n in ordered_nodes([output.node]))
    frames = dict.fromkeys(n for n in nodes if isinstance(n, Source) and not n.has_origins)
    return list(frames)
