"""Traces of streams: the hash of every row in a file, for a second run to compare its rows with.

Rules
1. The first run writes 16 bytes a row to a file of the stream's name in the folder of the traces.
   The file gets its name when the stream is closed, so a task that runs twice leaves a whole file.
2. The second run compares the hash of each row with the one in the file. Of every stream it notes
   the first row that differs, or that only one of the runs has.
3. Memory is bounded by `HELD_BYTES` a stream, whatever the number of rows.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weir.events.batch import Batch
from weir.reliable.differences import NO_ROW, RowDifference, shown_row
from weir.reliable.digest import row_hashes

HELD_BYTES = 1 << 16
_WORD = np.dtype("<u8")
_ROW_BYTES = 2 * _WORD.itemsize


class Trace(Protocol):
    """A trace is shown the rows of one stream, in order."""

    def add(self, rows: Batch) -> None: ...
    def close(self) -> RowDifference | None: ...


class Traces:
    """Makes the traces of a run's streams (or of some of them), in a folder."""

    def __init__(self, folder: str, *, compare: bool = False) -> None:
        self.folder, self._compare = folder, compare
        self._traces: list[Trace] = []

    def of(self, stream: str, columns: Sequence[str]) -> Trace:
        """Make the trace of a stream whose rows have these columns."""
        path = os.path.join(self.folder, stream)
        trace = ComparedTrace(stream, path, columns) if self._compare else KeptTrace(path)
        self._traces.append(trace)
        return trace

    def close(self) -> list[RowDifference]:
        """End all traces; return how the streams differ from those of the first run."""
        differences = [trace.close() for trace in self._traces]
        return [difference for difference in differences if difference is not None]


class KeptTrace:
    """The trace of a stream in the first run: it writes the rows' hashes to a file."""

    def __init__(self, path: str) -> None:
        self._path, self._unfinished = path, f"{path}.{uuid.uuid4().hex}"
        self._held = bytearray()
        os.makedirs(os.path.dirname(path), exist_ok=True)

    def add(self, rows: Batch) -> None:
        self._held += _words(rows).tobytes()
        if len(self._held) >= HELD_BYTES:
            self._spill()

    def _spill(self) -> None:
        with open(self._unfinished, "ab") as file:
            file.write(self._held)
        self._held.clear()

    def close(self) -> None:
        self._spill()
        os.replace(self._unfinished, self._path)


class ComparedTrace:
    """The trace of a stream in the second run: it compares the rows' hashes with the file."""

    def __init__(self, stream: str, path: str, columns: Sequence[str]) -> None:
        self._stream, self._path, self._columns = stream, path, columns
        # A stream that no vertex of the first run wrote to has no file.
        self._kept = os.path.getsize(path) // _ROW_BYTES if os.path.exists(path) else 0
        self._count = 0
        self._difference: RowDifference | None = None

    def add(self, rows: Batch) -> None:
        if self._difference is not None or not len(rows):
            return
        first, self._count = self._count, self._count + len(rows)
        common = min(self._count, self._kept) - first
        if common > 0:
            was = np.fromfile(self._path, _WORD, 2 * common, offset=first * _ROW_BYTES)
            others = np.flatnonzero((_words(rows.slice(0, common)) != was.reshape(-1, 2)).any(1))
            if len(others):
                self._differs(first + int(others[0]), None, rows, int(others[0]))
                return
        if common < len(rows):
            self._differs(first + common, NO_ROW, rows, common)

    def _differs(self, row: int, before: str | None, rows: Batch, index: int) -> None:
        now = shown_row(rows, index, self._columns)
        self._difference = RowDifference(self._stream, row, before, now)

    def close(self) -> RowDifference | None:
        if self._difference is None and self._count < self._kept:
            return RowDifference(self._stream, self._count, None, NO_ROW)
        return self._difference


def _words(rows: Batch) -> npt.NDArray[np.uint64]:
    return np.stack(row_hashes(rows), axis=1).astype(_WORD)
