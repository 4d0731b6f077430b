"""What readers hand to the ingress: rows of one partition in order, with their places.

Contract
1. A partition is one file. Its data rows are numbered from 0 (the *offset*), bad ones
   included; explicit CTIs have no number. Offsets depend on the file alone, never on chunks.
2. A reader judges form only (is this line a row of these columns?). It never raises for a bad
   row: it lists it, and the ingress decides, in offset order.
3. `chunks(size, start)` gives the rows from offset `start` on; a CTI that stands right before
   that row is given (again), which changes nothing: CTIs only grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s

CHUNK_ROWS = 65_536
NO_TIMES: Int64s = np.empty(0, dtype=np.int64)
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that does not fit: where it stood, what stood there, what was wrong."""

    offset: int
    line: int | None
    column: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a partition.

    `rows` has the declared columns; `offsets` and `lines` (None for files without lines) are
    theirs. CTI number i stands before row `cti_places[i]` of the chunk. `stop` is the offset of
    the first row behind the chunk.
    """

    rows: pa.RecordBatch
    offsets: Int64s
    stop: int
    lines: Int64s | None = None
    cti_times: Int64s = field(default_factory=lambda: NO_TIMES)
    cti_places: Int64s = field(default_factory=lambda: NO_TIMES)
    bad: tuple[BadRow, ...] = ()

    def line(self, row: int) -> int | None:
        return None if self.lines is None else int(self.lines[row])


class Partition(Protocol):
    """One file of a source."""

    @property
    def name(self) -> str: ...

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]: ...


def shown(text: str) -> str:
    """A row's text as messages show it, cut when it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
