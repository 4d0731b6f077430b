"""rStream: a numbered sequence of rows that writers write and readers read at their own speed.

Rules (StreamScope §3.1)
1. A vertex numbers the rows that it writes from 0 on, without gaps. An entry covers the numbers
   [seq, end). For who reads everything it has all of these rows; for who reads a view
   (`views.py`), those that the view has, each under its own number, ascending.
2. The claim of an entry, the CTI, is the one that holds from number `end` on: no row after it has
   vs < cti.
3. Unique: the first write of a number wins. Rows written again are dropped; with `check`, other
   rows under the same numbers raise `DeterminismViolation`. The claim of an entry counts even if
   its rows are dropped.
4. Valid: a reader gets just the rows of its view that were written, each once, in order of number.
   Its entries touch: the next one begins where the last one ended. So its position moves over rows
   that are not its own, and nobody waits for it to read them.
5. Reliable: what was written stays readable until `collect(seq)` says that nobody will ask for
   a number below seq again. Registering again at an earlier number rewinds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weir.events.batch import Batch, Int64s, concat_batches


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows with numbers in [seq, end), then the claim `cti`; see rules 1 and 2."""

    seq: int
    rows: Batch
    cti: int
    numbers: Int64s | None = None
    """The number of each row; None: they have all numbers from `seq` on."""
    left_out: int = 0
    """How many rows of [seq, end) are in other views only."""

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self.seq + len(self.rows) + self.left_out

    @property
    def first_row(self) -> int:
        """The number of its first row; `end` where it has none."""
        if not len(self.rows):
            return self.end
        return self.seq if self.numbers is None else int(self.numbers[0])

    def number_of(self, row: int) -> int:
        """Return the number of one of its rows; of the last one for −1."""
        if self.numbers is None:
            return self.seq + row % len(self.rows)
        return int(self.numbers[row])

    @property
    def row_numbers(self) -> Int64s:
        """The number of each row."""
        if self.numbers is None:
            return np.arange(self.seq, self.seq + len(self.rows), dtype=np.int64)
        return self.numbers

    def since(self, number: int) -> Entry:
        """Return what it covers from this number on; past its end, its claim alone."""
        if number <= self.seq:
            return self
        at, left_out = self._rows_before(number), max(self.end - number, 0)
        rows = self.rows.slice(at, len(self.rows))
        numbers = None if self.numbers is None else self.numbers[at:]
        left_out -= len(rows)
        return Entry(number, rows, self.cti, numbers=numbers, left_out=left_out)

    def before(self, number: int) -> Entry:
        """Return what it covers up to this number, without the claim after it."""
        if number >= self.end:
            return self
        at = self._rows_before(number)
        numbers = None if self.numbers is None else self.numbers[:at]
        rows = self.rows.slice(0, at)
        left_out = max(number - self.seq, 0) - at
        return Entry(self.seq, rows, self.cti, numbers=numbers, left_out=left_out)

    def _rows_before(self, number: int) -> int:
        if self.numbers is None:
            return min(max(number - self.seq, 0), len(self.rows))
        return int(np.searchsorted(self.numbers, number))


def joined(entries: Sequence[Entry]) -> Entry:
    """Make one entry of several that touch, with the largest of their claims."""
    first, last = entries[0], entries[-1]
    if len(entries) == 1:
        return first
    filled = [e for e in entries if len(e.rows)] or [last]
    rows = filled[0].rows if len(filled) == 1 else concat_batches([e.rows for e in filled])
    left_out = last.end - first.seq - len(rows)
    numbers = None
    if left_out and len(rows):
        numbers = np.concatenate([e.row_numbers for e in filled])
    cti = max(e.cti for e in entries)
    return Entry(first.seq, rows, cti, numbers=numbers, left_out=left_out)


class StreamWriter(Protocol):
    """A stream, as the vertex that writes it sees it."""

    def write(self, entry: Entry) -> None: ...


class StreamReader(Protocol):
    """A stream, or a view of one, as the vertices that read it see it."""

    def register(self, reader: Hashable, seq: int) -> None: ...
    def read_next(self, reader: Hashable) -> Entry | None: ...
