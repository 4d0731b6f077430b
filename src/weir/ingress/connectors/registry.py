"""Chooses the connector of a path, by its scheme.

    tail://PATH      a file of JSON lines that grows; it ends when a file PATH.end is there
    PATH/            a folder in which files appear, each whole; one partition, in the order found;
                     it ends when a file `.end` is in it
    tcp://HOST:PORT  JSON lines from a socket; its rows are logged before anybody sees them
    rate://N         generated rows
    else             files, or objects of a bucket (`s3://…`), each a partition
                     (`files/readers.py`)

With `idle`, a partition that has a log and is silent for that long claims the clock's time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from weir.errors import PlanError
from weir.files.chunks import DataFile, SourcePartition
from weir.files.paths import check_name
from weir.files.readers import open_source
from weir.ingress.connectors.connector import Connector, Reading
from weir.ingress.connectors.folder import GrowingFolder
from weir.ingress.connectors.rate import open_rate
from weir.ingress.connectors.tail import open_tail
from weir.ingress.connectors.tcp import open_socket
from weir.ingress.connectors.whole import WholeReading
from weir.ingress.ingress_log import IngressLog
from weir.ingress.source_machine import SourceStart, log_record
from weir.plan.operators import Source
from weir.plan.urls import is_object_url
from weir.reliable.objects import ObjectRef

SCHEMES: Mapping[str, Callable[[Source, str], Connector]] = {
    "rate": lambda source, _: open_rate(source),
    "tail": open_tail,
    "tcp": lambda source, _: open_socket(source),
}
"""The function that opens the paths of each scheme; relative paths start at the given directory."""


def open_connector(source: Source, directory: str) -> Connector | None:
    """Return the connector of a path; None for plain files and objects."""
    scheme, separator, _ = source.path.partition("://")
    if separator and scheme in SCHEMES:
        return SCHEMES[scheme](source, directory)
    if source.path.endswith("/") and is_object_url(source.path):
        hint = f"name the objects that are there, such as '{source.path}*.jsonl'"
        raise PlanError(f"'{source.path}': a folder of a bucket is not followed", hint=hint)
    if source.path.endswith("/"):
        return GrowingFolder(source, os.path.join(directory, source.path))
    return None


def local_files(source: Source) -> str | None:
    """Return a glob of the local files that a source reads, or None."""
    connector = open_connector(source, "")
    return source.path if connector is None else connector.local_files


def needed_path(partition: SourcePartition) -> str | None:
    """Return the file or folder that a machine needs to read a partition, or None. For a followed
    file this is its folder: the file itself may come later."""
    match partition:
        case Connector(local_files=str(files)):
            return os.path.dirname(files)
        case DataFile(version=None):
            return partition.path
        case _:
            return None


def open_any(
    source: Source,
    directory: str | Path = ".",
    *,
    needed: Collection[str] | None = None,
    expected: Iterable[str] = (),
) -> list[SourcePartition]:
    """Return the partitions of a source; relative paths start at `directory`. `expected` is passed
    to `source_objects`."""
    connector = open_connector(source, str(directory))
    if connector is None:
        return open_source(source, directory, needed=needed, expected=expected)
    check_name(connector.name)
    return [connector]


def has_end(partition: SourcePartition) -> bool:
    """Tell whether a partition is known to end by itself."""
    return partition.has_end if isinstance(partition, Connector) else True


def has_log(partition: SourcePartition) -> bool:
    """Tell whether a live source keeps a log for this partition."""
    return isinstance(partition, Connector) and partition.has_log


def source_start(
    partition: SourcePartition,
    vertex: str,
    *,
    first: ObjectRef,
    offset: int = 0,
    resume: bytes | None = None,
    log_end: ObjectRef | None = None,
    incarnation: int = 0,
    writer: str,
) -> SourceStart:
    """Return where the source of a vertex starts: after `resume`, or at the first record of its
    log.

    `log_end` is the last record that the job knows; `writer` is a unique name.
    """
    if not isinstance(partition, Connector) or not partition.has_log:
        return SourceStart(offset, resume)
    log = IngressLog(vertex, log_record(resume) or first, log_end, writer=writer)
    return SourceStart(
        offset=offset,
        resume=resume,
        log=log,
        incarnation=incarnation,
        owns_log=partition.has_free_rows,
    )


def open_reading(partition: SourcePartition, state: bytes | None, start: int) -> Reading:
    """Open a reading of any partition at a resume state."""
    if isinstance(partition, Connector):
        return partition.open(state, start)
    return WholeReading(partition, state, start)


def rooted(partition: SourcePartition, root: str) -> SourcePartition:
    """Return the partition for processes that work in another folder: a relative path then starts
    at `root`."""
    match partition:
        case Connector():
            return partition.rooted(root)
        case DataFile():
            return replace(partition, root=root)
        case _:
            return partition
