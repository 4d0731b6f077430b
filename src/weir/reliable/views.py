"""Views of a stream: the rows whose keys fall into some buckets, under the stream's own numbers.

Rules
1. A view is (key columns, a range of buckets, `events/hashing.py`). The buckets between two
   neighbouring bounds of the ranges that readers of a stream have are a *cell*.
2. A stream sorts the rows of a write by cell once, when somebody first needs them so: a view of one
   cell is then a slice, and one of several cells is put in the order of its numbers.
3. Where two exchanges split a stream by different columns, each has its own order over the same
   rows. They are stored in the order of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from weir.errors import RunError
from weir.events.batch import Batch, Int64s
from weir.events.hashing import BUCKETS, bucket_range, hash_rows
from weir.events.hashing_loops import by_cell
from weir.reliable.stream import Entry


@dataclass(frozen=True, slots=True)
class View:
    """A view has the rows whose key columns (by index) have a bucket in [first, end)."""

    keys: tuple[int, ...]
    first: int
    end: int

    @property
    def share(self) -> float:
        """The part of all buckets that it has."""
        return (self.end - self.first) / BUCKETS


def view_of_part(keys: Sequence[int], part: int, parts: int) -> View | None:
    """Return the view of a part of a split by these columns; None: it is everything.

    >>> view_of_part([2], 0, 4)
    View(keys=(2,), first=0, end=1024)
    """
    return None if parts == 1 else View(tuple(keys), *bucket_range(part, parts))


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells into which readers split a stream by some columns: cell i has the buckets from
    `bounds[i]` up to `bounds[i + 1]`."""

    keys: tuple[int, ...]
    bounds: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.bounds) - 1


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """How a stream is read: by views of these cells, and `whole` by somebody."""

    cells: tuple[Cells, ...] = ()
    whole: bool = True


WHOLE = StreamLayout()


def layout_of(splits: Sequence[tuple[tuple[int, ...] | None, int]]) -> StreamLayout:
    """Make the layout of a stream that is read in these ways: by key columns in so many parts, or
    without key columns, whole.

    >>> layout_of([((0,), 2), ((0,), 4), (None, 1)]).cells
    (Cells(keys=(0,), bounds=(0, 1024, 2048, 3072, 4096)),)
    """
    bounds: dict[tuple[int, ...], set[int]] = {}
    whole = False
    for keys, parts in splits:
        if keys is None or parts == 1:
            whole = True
        else:
            firsts = {bucket_range(part, parts)[0] for part in range(parts)}
            bounds.setdefault(keys, {BUCKETS}).update(firsts)
    cells = tuple(Cells(keys, tuple(sorted(found))) for keys, found in bounds.items())
    return StreamLayout(cells, whole or not cells)


# --- rows by cell --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CellEntry:
    """All rows of an entry in the order of (cell, number), as segments have them."""

    seq: int
    rows: Batch
    cti: int
    numbers: Int64s
    """The number of each row: ascending in each cell."""
    starts: tuple[int, ...]
    """At which row each cell begins, and the number of rows."""

    @property
    def end(self) -> int:
        return self.seq + len(self.rows)

    def in_order(self) -> Entry:
        """Put the rows in the order of their numbers."""
        order = np.empty(len(self.rows), dtype=np.int64)
        order[self.numbers - self.seq] = np.arange(len(order))
        return Entry(self.seq, self.rows.take(order), self.cti)

    def of_cells(self, first: int, end: int) -> Entry:
        """Return the entry of the view that has the cells [first, end)."""
        start, stop = self.starts[first], self.starts[end]
        rows, numbers = self.rows.slice(start, stop), self.numbers[start:stop]
        if end - first > 1:
            order = np.argsort(numbers)
            rows, numbers = rows.take(order), numbers[order]
        left_out = len(self.rows) - len(rows)
        named = numbers if left_out and len(rows) else None
        return Entry(self.seq, rows, self.cti, numbers=named, left_out=left_out)


StoredEntry: TypeAlias = Entry | CellEntry
"""All rows of an entry: in the order of their numbers, or by cell."""


class _Sorter:
    """Sorts rows by the cells of one set of columns."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._cell_of = np.repeat(
            np.arange(cells.count, dtype=np.uint32), np.diff(np.array(cells.bounds))
        )
        """The cell of each bucket."""

    def sort(self, entry: Entry) -> CellEntry:
        """Sort all rows of an entry."""
        rows = entry.rows
        _, words = hash_rows([rows.columns[k] for k in self.cells.keys], len(rows))
        order, starts = by_cell(words, self._cell_of, self.cells.count)
        return CellEntry(
            entry.seq,
            rows.take(order),
            entry.cti,
            numbers=order + entry.seq,
            starts=tuple(starts.tolist()),
        )

    def has(self, view: View) -> bool:
        """Say whether the range of a view is one of whole cells."""
        bounds = self.cells.bounds
        return view.first in bounds and view.end in bounds and view.first < view.end


@dataclass(frozen=True, slots=True)
class CellRange:
    """How a reader reads: which cells of which split. Streams make it of a view."""

    split: int
    first: int
    end: int
    share: float


class Arrangement:
    """Arranges what is written to a stream as its readers need it."""

    def __init__(self, layout: StreamLayout) -> None:
        self._sorters = tuple(_Sorter(cells) for cells in layout.cells)
        self.keeps_order = layout.whole or len(self._sorters) != 1
        """Whether rows are kept in the order of their numbers too."""

    @property
    def is_split(self) -> bool:
        return bool(self._sorters)

    def has(self, view: View | None) -> bool:
        """Say whether readers may have this view."""
        return view is None or any(s.cells.keys == view.keys and s.has(view) for s in self._sorters)

    def reading(self, view: View | None) -> CellRange | None:
        """Find how to read a view; None: everything. RunError when no reader has such a view."""
        if view is None:
            return None
        for split, sorter in enumerate(self._sorters):
            if sorter.cells.keys == view.keys and sorter.has(view):
                first, end = map(sorter.cells.bounds.index, (view.first, view.end))
                return CellRange(split, first, end, view.share)
        raise RunError(f"no reader has the buckets {view.first} to {view.end - 1} of {view.keys}")

    def sort(self, entry: Entry, split: int) -> CellEntry:
        return self._sorters[split].sort(entry)

    def fits(self, entry: StoredEntry) -> bool:
        """Say whether a stored entry is arranged as this says."""
        if isinstance(entry, Entry):
            return not self._sorters
        return bool(self._sorters) and len(entry.starts) == self._sorters[0].cells.count + 1


@dataclass(slots=True)
class HeldEntry:
    """An entry as a stream holds it: its rows in the orders that were asked for."""

    seq: int
    end: int
    cti: int
    _arrangement: Arrangement
    _ordered: Entry | None
    """The rows in the order of their numbers, unless that order is not kept."""
    _sorted: dict[int, CellEntry] = field(default_factory=dict)
    """The rows by the cells of each split that was asked for."""

    @staticmethod
    def of(entry: StoredEntry, arrangement: Arrangement) -> HeldEntry:
        """Hold an entry that was written or stored."""
        held = HeldEntry(entry.seq, entry.end, entry.cti, _arrangement=arrangement, _ordered=None)
        if isinstance(entry, Entry):
            held._ordered = entry
        else:
            held._sorted[0] = entry
        return held

    def claim(self) -> HeldEntry:
        """Return the claim after it, without rows."""
        claim = Entry(self.end, self.nothing(), self.cti)
        return HeldEntry.of(claim, self._arrangement)

    def nothing(self) -> Batch:
        """Return no rows, with the columns that its rows have."""
        entry = self._ordered or next(iter(self._sorted.values()))
        return entry.rows.slice(0, 0)

    def in_order(self) -> Entry:
        """Return all rows, in the order of their numbers."""
        if self._ordered is not None:
            return self._ordered
        ordered = self._sorted[0].in_order()
        if self._arrangement.keeps_order:
            self._ordered = ordered
        return ordered

    def sorted_by(self, split: int) -> CellEntry:
        """Return all rows, by the cells of this split."""
        if split not in self._sorted:
            self._sorted[split] = self._arrangement.sort(self.in_order(), split)
            if not self._arrangement.keeps_order:
                self._ordered = None
        return self._sorted[split]

    def stored(self) -> StoredEntry:
        """Return all rows as they are stored: by the cells of the first split, if there is one."""
        return self.sorted_by(0) if self._arrangement.is_split else self.in_order()

    def count(self, reading: CellRange | None) -> int:
        """Count the rows that a reader gets."""
        if reading is None or self.end == self.seq:
            return self.end - self.seq
        starts = self.sorted_by(reading.split).starts
        return starts[reading.end] - starts[reading.first]

    def read(self, reading: CellRange | None) -> Entry:
        """Return the entry that a reader gets."""
        if reading is None or self.end == self.seq:
            return self.in_order()
        return self.sorted_by(reading.split).of_cells(reading.first, reading.end)


def next_entry(
    held: Sequence[HeldEntry],
    at: int,
    *,
    seq: int,
    cti: int,
    reading: CellRange | None,
    limit: int | None = None,
) -> Entry | None:
    """Find what a reader that is at number `seq`, with the claim `cti`, gets next of these entries,
    from index `at` on: the next rows, with all that was covered before; or all that is covered, or
    a new claim; None: nothing. Entries that end after `limit` do not count."""
    last: HeldEntry | None = None
    for index in range(at, len(held)):
        entry = held[index]
        if limit is not None and entry.end > limit:
            break
        if entry.end > seq and entry.count(reading):
            found = entry.read(reading).since(seq)
            if len(found.rows):
                return found if found.seq == seq else _covering(found, seq)
            last = entry
        elif entry.end > seq or (entry.end == seq and entry.cti > cti):
            last = entry
    if last is None:
        return None
    return Entry(seq, last.nothing(), last.cti, left_out=last.end - seq)


def _covering(entry: Entry, seq: int) -> Entry:
    """Let an entry cover the numbers from `seq` on."""
    left_out = entry.left_out + entry.seq - seq
    numbers = entry.row_numbers if left_out else None
    return Entry(seq, entry.rows, entry.cti, numbers=numbers, left_out=left_out)


def touching(entries: Sequence[StoredEntry]) -> bool:
    """Say whether each entry begins where the one before ends."""
    return all(a.end == b.seq for a, b in pairwise(entries))
