"""What a STREAM reads, by its path: files, generated rows, or something that is followed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from weir.files.chunks import DataFile, Partition
from weir.files.readers import open_source
from weir.ingress.connectors.followed import GrowingFolder, open_followed
from weir.ingress.connectors.rate import GeneratedRows, open_rate
from weir.ingress.connectors.tailed import TailedFile
from weir.ingress.following import Endless
from weir.plan.operators import Source


def open_any(
    source: Source, directory: str | Path = ".", *, needed: Collection[str] | None = None
) -> list[Partition]:
    """The partitions of a source; relative paths start at `directory`."""
    if source.path.startswith("rate://"):
        return [open_rate(source)]
    followed = open_followed(source, str(directory))
    if followed is not None:
        return [followed]
    return open_source(source, directory, needed=needed)


def has_no_end(partition: Partition) -> bool:
    """Whether the partition is one that goes on until somebody says that it has ended."""
    if isinstance(partition, GeneratedRows):
        return partition.rows is None
    return isinstance(partition, Endless)


def rooted(partition: Partition, root: str) -> Partition:
    """The partition for processes that work in another folder: a relative name starts at `root`."""
    if isinstance(partition, DataFile | TailedFile | GrowingFolder):
        return replace(partition, root=root)
    return partition
