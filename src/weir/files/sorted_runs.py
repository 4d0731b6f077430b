"""Sorts more rows than memory holds, by merging sorted runs.

Contract
1. Rows go in as batches in any order and come out sorted by (vs, ve, payload). Rows that are equal
   but not identical have a fixed order too, so the result depends on the rows alone.
2. At most about `memory` bytes are held; the rest is in sorted runs in `folder`.
3. A merge keeps some blocks of every run in memory, in one sorted pool. A row is final if no unread
   row can precede it. Memory is two blocks for each run.
4. At most `MOST_RUNS` runs are open and merged at a time. If there are more, groups of them are
   first merged into files in `folder`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s, concat_batches
from weir.events.order import in_order, sort_batch
from weir.loops.arrow_memory import numbers_of

BLOCK_ROWS = 16_384
MOST_RUNS = 128


class SortedRuns:
    """Sorts the rows of one output, or of one part of it."""

    def __init__(self, folder: str, name: str, types: Sequence[pa.DataType]) -> None:
        self._folder, self._name = folder, name
        self._schema = pa.schema(
            [("vs", pa.int64()), ("ve", pa.int64()), *((f"c{i}", t) for i, t in enumerate(types))]
        )
        self._held: list[Batch] = []
        self._files: list[str] = []
        self.held_bytes = 0

    def add(self, batch: Batch) -> None:
        if len(batch):
            self._held.append(Batch(batch.vs, batch.ve, batch.columns))
            self.held_bytes += 16 * len(batch) + sum(c.nbytes for c in batch.columns)

    def spill(self) -> None:
        """Write the held rows as a run, and forget them."""
        rows = self._sorted_rows()
        if rows is None:
            return
        path = os.path.join(self._folder, f"{self._name}-{len(self._files)}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, self._schema) as writer:
            for start in range(0, len(rows), BLOCK_ROWS):
                writer.write_batch(self._record(rows.slice(start, start + BLOCK_ROWS)))
        self._files.append(path)
        self._held, self.held_bytes = [], 0

    def run_iterators(self) -> list[Iterator[Batch]]:
        """Return an iterator of sorted batches for each run; the held rows are one of the runs."""
        runs = [_read_run(path) for path in self._files]
        rows = self._sorted_rows()
        return runs if rows is None else [*runs, _blocks(rows)]

    def _sorted_rows(self) -> Batch | None:
        if not self._held:
            return None
        return in_order(concat_batches(self._held))

    def _record(self, rows: Batch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(_record(rows).columns, schema=self._schema)


def _read_run(path: str) -> Iterator[Batch]:
    with pa.OSFile(path, "rb") as file:
        reader = pa.ipc.open_file(file)
        for i in range(reader.num_record_batches):
            vs, ve, *columns = reader.get_batch(i).columns
            yield Batch(numbers_of(vs), numbers_of(ve), tuple(columns))


def _blocks(rows: Batch) -> Iterator[Batch]:
    for start in range(0, len(rows), BLOCK_ROWS):
        yield rows.slice(start, start + BLOCK_ROWS)


def merge_runs(runs: Sequence[Iterator[Batch]], folder: str) -> Iterator[Batch]:
    """Merge sorted runs into one sequence of sorted batches. A run opens its file when its first
    block is read."""
    while len(runs) > MOST_RUNS:
        groups = [runs[start : start + MOST_RUNS] for start in range(0, len(runs), MOST_RUNS)]
        runs = [_stored(group, folder) for group in groups]
    yield from _merged(runs)


def _stored(runs: Sequence[Iterator[Batch]], folder: str) -> Iterator[Batch]:
    """Merge runs into one, in a file."""
    merged = (block for batch in _merged(runs) for block in _blocks(batch))
    first = next(merged, None)
    if first is None:
        return iter(())
    number, path = tempfile.mkstemp(suffix=".arrow", dir=folder)
    os.close(number)
    shape = _record(first).schema
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, shape) as writer:
        for block in chain([first], merged):
            writer.write_batch(_record(block))
    return _read_run(path)


def _record(rows: Batch) -> pa.RecordBatch:
    arrays = [pa.array(rows.vs), pa.array(rows.ve), *rows.columns]
    return pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])


def _merged(runs: Sequence[Iterator[Batch]]) -> Iterator[Batch]:
    if len(runs) == 1:
        yield from runs[0]
        return
    open_runs = dict(enumerate(runs))
    pool: Batch | None = None
    owners: Int64s = np.empty(0, dtype=np.int64)
    while open_runs or pool is not None:
        pool, owners = _refilled(open_runs, pool, owners)
        if pool is None:
            return
        final = _final_rows(owners, list(open_runs))
        yield pool.slice(0, final)
        pool, owners = pool.slice(final, len(pool)), owners[final:]
        if not len(pool):
            pool = None


def _refilled(
    open_runs: dict[int, Iterator[Batch]], pool: Batch | None, owners: Int64s
) -> tuple[Batch | None, Int64s]:
    """Add a new block of every run that has less than half a block in the pool; return the pool,
    and the run of each row."""
    batches = [] if pool is None else [pool]
    numbers = [owners]
    have = np.bincount(owners, minlength=max(open_runs, default=0) + 1)
    for run in [r for r in open_runs if have[r] < BLOCK_ROWS // 2]:
        block = next(open_runs[run], None)
        if block is None:
            del open_runs[run]
        else:
            batches.append(block)
            numbers.append(np.full(len(block), run, dtype=np.int64))
    if not batches:
        return None, owners
    together, who = concat_batches(batches), np.concatenate(numbers)
    order = sort_batch(together, False, exact=True)
    return together.take(order), who[order]


def _final_rows(owners: Int64s, open_runs: Sequence[int]) -> int:
    """Count the rows at the start of the sorted pool that no unread row can precede."""
    if not open_runs:
        return len(owners)
    last = np.full(int(max(owners.max(), max(open_runs))) + 1, -1, dtype=np.int64)
    last[owners] = np.arange(len(owners))  # of several writes to one index, the last one wins
    return int(last[list(open_runs)].min()) + 1
