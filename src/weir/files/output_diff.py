"""Compares the rows of two outputs by value: finds the first difference, and counts all.

How
1. A first pass over both checks which files are in the order of outputs, and computes the digests.
   Digests decide nothing here, because different rows can be crafted to have the same digest.
2. All files of both sides are merged in that order, with a column for the side appended to each
   row. Equal rows are then next to each other; if one side has more of them, they differ.
3. A file that is not in order (Weir did not write it) is sorted first; beyond `memory` bytes its
   rows wait in files. Otherwise only some blocks of each file are in memory. If a folder has many
   parts, only some are open at a time (`sorted_runs.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Batch, Int64s, concat_batches, times
from weir.events.order import order_codes, sort_batch
from weir.files.saved_outputs import SavedOutput
from weir.files.sinks import json_values
from weir.files.sorted_runs import BLOCK_ROWS, SortedRuns, merge_runs
from weir.files.writers import OutputForm
from weir.reliable.digest import Digest, digest

SHOWN_ROWS = 20
SORT_MEMORY = 64 << 20
"""The default memory for sorting. The peak is briefly about three times as much; a larger value
would not be faster."""

Tell = Callable[[int], None]
"""A callback for progress: takes the number of rows just read."""


@dataclass(frozen=True, slots=True)
class OnlyHere:
    """The rows of one time that only one side has: the first ones as JSON values, and the number of
    the others."""

    rows: tuple[dict[str, object], ...]
    more: int


@dataclass(frozen=True, slots=True)
class RowComparison:
    """How many rows only one of two outputs has (with repetitions), and both digests."""

    only_a: int
    only_b: int
    digests: tuple[Digest, Digest]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event time, as JSON, at which two outputs differ, and the rows of each side."""

    time: object
    only_a: OnlyHere
    only_b: OnlyHere


def total_digest(output: SavedOutput, tell: Tell) -> Digest:
    """Compute the digest of an output's rows."""
    return _scan(output, tell, lambda file, batch: None)


def compare_rows(
    a: SavedOutput, b: SavedOutput, tell: Tell, *, memory: int = SORT_MEMORY
) -> RowComparison:
    """Compare all rows of two outputs with the same columns."""
    more = fewer = 0
    with _both_in_order(a, b, tell, memory) as (digests, merged):
        for _, surplus, _ in _surpluses(merged):
            more += int(surplus[surplus > 0].sum())
            fewer -= int(surplus[surplus < 0].sum())
    return RowComparison(more, fewer, digests)


def first_difference(
    a: SavedOutput, b: SavedOutput, tell: Tell, *, memory: int = SORT_MEMORY
) -> Difference | None:
    """Find the first difference of two outputs with the same columns; None if they are equal."""
    with _both_in_order(a, b, tell, memory) as (_, merged):
        return _first_unequal(merged, a.form)


@contextmanager
def _both_in_order(
    a: SavedOutput, b: SavedOutput, tell: Tell, memory: int
) -> Iterator[tuple[tuple[Digest, Digest], Iterator[Batch]]]:
    """Yield the digests of two outputs, and their rows merged, with a column for the side
    appended."""
    orders = (_OrderCheck(), _OrderCheck())
    digests = _scan(a, tell, orders[0].see), _scan(b, tell, orders[1].see)
    with tempfile.TemporaryDirectory(prefix="weir-diff-") as folder:
        runs = []
        for side, (output, order) in enumerate(zip((a, b), orders, strict=True)):
            sorter = SortedRuns(folder, f"side-{side}", output.form.schema.types)
            in_order = _in_order(output, order.broken, sorter, memory)
            runs += [_marked(run, side, tell) for run in in_order]
        yield digests, merge_runs(runs, folder)


# --- each side in order --------------------------------------------------------------------


def _scan(output: SavedOutput, tell: Tell, see: Callable[[str, Batch], None]) -> Digest:
    total = Digest()
    for file in output.files:
        for batch in output.batches(file):
            total += digest(batch)
            see(file, batch)
            tell(len(batch))
    return total


class _OrderCheck:
    """Finds the files whose rows are not in the order of outputs."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self._file = ""
        self._last: Batch | None = None

    def see(self, file: str, batch: Batch) -> None:
        if file in self.broken:
            return
        before = [self._last] if self._last is not None and self._file == file else []
        order = sort_batch(concat_batches([*before, batch]), False)
        if (order[1:] < order[:-1]).any():
            self.broken.add(file)
        self._file, self._last = file, batch.slice(len(batch) - 1, len(batch))


def _in_order(
    output: SavedOutput, broken: set[str], sorter: SortedRuns, memory: int
) -> list[Iterator[Batch]]:
    """Return sorted runs that together make up the output."""
    for file in sorted(broken):
        for batch in output.batches(file):
            sorter.add(batch)
            if sorter.held_bytes > memory:
                sorter.spill()
    sorter.spill()  # the other side needs the memory
    whole = [output.batches(file, BLOCK_ROWS) for file in output.files if file not in broken]
    return [*whole, *sorter.run_iterators()]


def _marked(run: Iterator[Batch], side: int, tell: Tell) -> Iterator[Batch]:
    for batch in run:
        tell(len(batch))
        mark = pa.repeat(pa.scalar(side, pa.int32()), len(batch))
        yield Batch(batch.vs, batch.ve, (*batch.columns, mark))


# --- both sides together -------------------------------------------------------------------


def _first_unequal(merged: Iterator[Batch], form: OutputForm) -> Difference | None:
    time: int | None = None
    only = (_Collected(form), _Collected(form))
    for rows, surplus, reached in _surpluses(merged):
        if time is None and len(rows):
            time = int(rows.vs[0])
        if time is None:
            continue
        here = rows.vs == time
        for side, sign in zip(only, (1, -1), strict=True):
            mine = here & (sign * surplus > 0)
            side.take(rows.take(mine), sign * surplus[mine])
        if reached > time:
            break
    if time is None:
        return None
    shown = json_values(times(np.array([time]), form.schema.time))[0]
    return Difference(shown, only[0].result(), only[1].result())


def _surpluses(merged: Iterator[Batch]) -> Iterator[tuple[Batch, Int64s, int]]:
    """Yield the rows that one side has more often: each row once, its count in A minus its count in
    B, and the time reached. Equal rows may continue in the next batch, so the last row of a batch
    waits."""
    waiting: Batch | None = None
    count = 0
    for batch in merged:
        rows, side = Batch(batch.vs, batch.ve, batch.columns[:-1]), batch.columns[-1]
        starts = np.flatnonzero(_new_values(rows))
        surplus = np.add.reduceat(1 - 2 * side.to_numpy().astype(np.int64), starts)
        if waiting is not None:
            if not _new_values(concat_batches([waiting, rows.slice(0, 1)]))[1]:
                surplus[0] += count
            elif count:
                yield waiting, np.array([count]), int(waiting.vs[0])
        waiting, count = rows.slice(int(starts[-1]), int(starts[-1]) + 1), int(surplus[-1])
        uneven = np.flatnonzero(surplus[:-1])
        yield rows.take(starts[uneven]), surplus[uneven], int(rows.vs[-1])
    if waiting is not None and count:
        yield waiting, np.array([count]), int(waiting.vs[0])


def _new_values(rows: Batch) -> npt.NDArray[np.bool_]:
    """Tell for each row whether it differs from the one before it."""
    is_new = np.ones(len(rows), dtype=np.bool_)
    is_new[1:] = (rows.vs[1:] != rows.vs[:-1]) | (rows.ve[1:] != rows.ve[:-1])
    for column in rows.columns:
        tied = np.flatnonzero(~is_new)
        if len(tied):
            both = [column.take(pa.array(tied - 1)), column.take(pa.array(tied))]
            before, here = np.split(order_codes(pa.concat_arrays(both)), 2)
            is_new[tied] = here != before
    return is_new


class _Collected:
    """Keeps the first rows as JSON values, and counts all rows."""

    def __init__(self, form: OutputForm) -> None:
        self._form = form
        self._rows: list[dict[str, object]] = []
        self._count = 0

    def take(self, rows: Batch, often: Int64s) -> None:
        self._count += int(often.sum())
        indexes = np.repeat(np.arange(len(rows)), np.minimum(often, SHOWN_ROWS))
        record = self._form.record(rows.take(indexes[: SHOWN_ROWS - len(self._rows)]))
        columns: Sequence[list[object]] = [json_values(c) for c in record.columns]
        names = record.schema.names
        self._rows += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def result(self) -> OnlyHere:
        return OnlyHere(tuple(self._rows), self._count - len(self._rows))
