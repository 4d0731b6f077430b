"""Outputs of finite runs: sorted files that are byte-identical when their rows are equal.

Contract
1. Rows are `vs`, `ve`, then the payload columns, sorted by (vs, ve, payload left to right); an
   open end is NULL and comes last among equal starts. Row groups (of Parquet), batches (of
   Arrow) have `GROUP_ROWS` rows each but the last.
2. A path that ends in `/` is a folder with one sorted Parquet part for each vertex.
3. Nothing is seen under the path before `close`: all is written beside it and renamed. `abort`,
   or never closing, leaves what was there before.
4. Memory is bounded by `memory` bytes and some blocks; beyond that rows wait in files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from weir.events.batch import Batch, concat_batches, times
from weir.io.runs import SortedRuns, merge_runs
from weir.io.sinks import SINKS, sink_format
from weir.plan.nodes import Schema

GROUP_ROWS = 65_536
DEFAULT_MEMORY = 256 << 20


class OutputWriter:
    """One OUTPUT; every vertex of its stage writes its rows, in any order.

    `lifetime=False` leaves vs and ve out (the BAD stream's rows have none).
    """

    def __init__(
        self,
        path: str | Path,
        schema: Schema,
        vertices: int = 1,
        *,
        lifetime: bool = True,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        self._is_folder = str(path).endswith("/")
        self._ending = sink_format(str(path))
        self._path = os.path.abspath(path)
        self._schema, self._lifetime, self._memory = schema, lifetime, memory
        time_fields = [("vs", schema.time), ("ve", schema.time)] if lifetime else []
        self._file_schema = pa.schema([*time_fields, *schema.columns])
        parent, name = os.path.split(self._path)
        os.makedirs(parent, exist_ok=True)
        self._beside = tempfile.mkdtemp(prefix=f".{name}.", dir=parent)
        self._runs = [SortedRuns(self._beside, f"run-{v}", schema.types) for v in range(vertices)]

    def write(self, vertex: int, batch: Batch) -> None:
        """Take rows of a vertex."""
        self._runs[vertex].add(batch)
        if sum(runs.held_bytes for runs in self._runs) > self._memory:
            max(self._runs, key=lambda runs: runs.held_bytes).spill()

    def close(self) -> None:
        """Sort, write, and put the output in its place."""
        made = os.path.join(self._beside, "output")
        if self._is_folder:
            os.mkdir(made)
            for vertex, runs in enumerate(self._runs):
                part = os.path.join(made, f"part-{vertex:05}{self._ending}")
                self._write_file(part, [runs])
        else:
            self._write_file(made, self._runs)
        self._put_in_place(made)
        shutil.rmtree(self._beside)

    def abort(self) -> None:
        """Forget all; what stood under the path before stays."""
        shutil.rmtree(self._beside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close() if kind is None else self.abort()

    def _write_file(self, path: str, parts: Sequence[SortedRuns]) -> None:
        sink = SINKS[self._ending](path, self._file_schema)
        try:
            runs = [run for part in parts for run in part.run_iterators()]
            for group in _groups(merge_runs(runs)):
                sink.write(self._record(group))
        finally:
            sink.close()

    def _record(self, batch: Batch) -> pa.RecordBatch:
        time = self._schema.time
        lifetime = [times(batch.vs, time), times(batch.ve, time)] if self._lifetime else []
        arrays = [*lifetime, *batch.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._file_schema)

    def _put_in_place(self, made: str) -> None:
        if os.path.isdir(self._path):
            # A folder cannot be replaced in one step: the old one steps aside first.
            os.rename(self._path, os.path.join(self._beside, "old"))
        os.replace(made, self._path)


def _groups(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same rows in batches of `GROUP_ROWS`; the last may be smaller."""
    held: list[Batch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count < GROUP_ROWS:
            continue
        rows = concat_batches(held)
        whole = count - count % GROUP_ROWS
        for start in range(0, whole, GROUP_ROWS):
            yield rows.slice(start, start + GROUP_ROWS)
        held, count = [rows.slice(whole, count)], count - whole
    if count:
        yield concat_batches(held)
