"""Writes the rows of an output to their target, inside the tasks.

A `file` has one writer: its own vertex, which gets all rows by time. In a `folder`, every vertex
that produces rows writes its part. `rows` go to the driver, or into a DataFrame. Files are written
in a staging folder, or beside an output in a bucket, under unique names, so tasks that run twice
never overwrite each other's files. The driver uses the files that the surviving reports name.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from weir.events.batch import OPEN, Batch, empty_batch
from weir.events.order import in_order
from weir.files.buckets import upload_file
from weir.files.sorted_runs import SortedRuns, merge_runs
from weir.files.writers import DEFAULT_MEMORY, OutputForm
from weir.kernels.operators.time_merge import PortShape, TimeMerge
from weir.plan.urls import is_object_url
from weir.reliable.digest import Digest, digest
from weir.reliable.stream import Entry, StreamWriter


@dataclass(frozen=True, slots=True)
class Target:
    """Where an output of a job goes. `number` marks rows that are collected in memory; `staging` is
    the folder, or the URL, for files."""

    kind: Literal["file", "folder", "rows"]
    number: int
    form: OutputForm
    staging: str = ""

    @property
    def one_writer(self) -> bool:
        return self.kind == "file"

    @contextmanager
    def new_folder(self) -> Iterator[str]:
        """Create a folder for a task's own files; it is removed at the end."""
        in_bucket = is_object_url(self.staging)
        with tempfile.TemporaryDirectory(dir=None if in_bucket else self.staging) as folder:
            yield folder

    def write(self, batches: Iterator[Batch]) -> str:
        """Write a file of these rows, which must be in its order; return its path."""
        path = os.path.join(self.staging, uuid.uuid4().hex)
        if not is_object_url(self.staging):
            self.form.write(path, batches)
            return path
        with self.new_folder() as folder:
            local_path = os.path.join(folder, "output")
            self.form.write(local_path, batches)
            upload_file(local_path, path)
        return path


class SinkStream:
    """Passes on rows of an output, computes their digest, and drops their origins."""

    def __init__(self, sink: int, inner: StreamWriter) -> None:
        self.sink, self.digest = sink, Digest()
        self._inner = inner

    def write(self, entry: Entry) -> None:
        if len(entry.rows):
            rows = Batch(entry.rows.vs, entry.rows.ve, entry.rows.columns)
            self.digest += digest(rows)
            self._inner.write(Entry(entry.seq, rows, entry.cti))


class PartStream:
    """Writes one vertex's part of a folder, as sorted runs that are merged at the end."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._folder = ExitStack()
        self._beside = self._folder.enter_context(target.new_folder())
        self._runs = SortedRuns(self._beside, "run", target.form.schema.types)

    def write(self, entry: Entry) -> None:
        self._runs.add(entry.rows)
        if self._runs.held_bytes > DEFAULT_MEMORY:
            self._runs.spill()

    def close(self) -> str:
        """Write the part, and return its path."""
        with self._folder:
            return self._target.write(merge_runs(self._runs.run_iterators(), self._beside))


def sorted_slices(blocks: Iterable[tuple[Batch, int]], form: OutputForm) -> Iterator[Batch]:
    """Yield rows in the order of an output's file, from blocks that come in the order of their
    first starts.

    The memory that this needs depends on how much the blocks overlap in time.
    """
    merge = TimeMerge([PortShape(form.schema, 0, ordered=False)], [0])
    ended = (empty_batch(form.schema.types), OPEN)
    for rows, first_vs in chain(blocks, [ended]):
        merge.push(0, rows, first_vs)
        released = merge.release()
        if released is not None and len(released[0][0]):
            complete = released[0][0]
            yield in_order(complete)
