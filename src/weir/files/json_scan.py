"""Scans lines of flat JSON objects into text columns, without making an object for each value.

Contract
1. `LineScanner.texts` takes UTF-8 lines, each an object of plain values. It returns the values of
   each column as they are written, without quotes; NULL for null and for a missing name.
2. It gives up (None) on everything else: bad syntax, a blank line, an escape, a list or object, a
   value of another kind than the column's, a name in `refused`, or a repeated name (the last value
   counts, but the first must fit too).
3. Every loop stops at a line end, and the data ends with one, so no loop checks for the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.files.chunks import Columns
from weir.files.json_scan_loops import (
    NUMBER,
    REFUSED,
    TEXT,
    TRUTH,
    WHOLE,
    WORDS,
    copy_texts,
    scan_lines,
)

KINDS = {
    STRING: TEXT,
    TIMESTAMP: TEXT,
    DATE: TEXT,
    BIGINT: WHOLE,
    INT: WHOLE,
    DOUBLE: NUMBER,
    BOOLEAN: TRUTH,
}
"""The types that can be scanned, and the kind of value that each is written as."""


class LineScanner:
    """Scans lines that have these columns (types in `KINDS`), and returns the `needed` ones."""

    def __init__(self, columns: Columns, needed: Collection[str], refused: Sequence[str]) -> None:
        names = [name.encode() for name in (*(n for n, _ in columns), *refused)]
        self._names = np.frombuffer(b"".join(names), dtype=np.uint8)
        self._ends = np.cumsum([len(name) for name in names])
        kinds = (*(KINDS[dtype] for _, dtype in columns), *(REFUSED for _ in refused))
        self._kinds = np.array(kinds, dtype=np.int64)
        self._column_indexes = {name: i for i, (name, _) in enumerate(columns) if name in needed}

    def texts(self, data: bytes, lines: int) -> dict[str, pa.Array] | None:
        """Return the columns of these lines (`lines` is their number); None if it gives up (rule
        2)."""
        whole = data if data.endswith(b"\n") else data + b"\n"
        characters = np.frombuffer(whole, dtype=np.uint8)
        begins = np.zeros((len(self._kinds), lines), dtype=np.int64)
        ends = np.zeros_like(begins)
        if not scan_lines(characters, self._names, self._ends, self._kinds, WORDS, begins, ends):
            return None
        return {
            name: _gathered(characters, begins[index], ends[index])
            for name, index in self._column_indexes.items()
        }


def _gathered(characters: npt.NDArray[np.uint8], begins: Int64s, ends: Int64s) -> pa.Array:
    """Gather the texts between these positions; NULL where `begins` is 0, as no text begins
    there."""
    offsets = np.zeros(len(begins) + 1, dtype=np.int64)
    np.cumsum(ends - begins, out=offsets[1:])
    data = np.empty(offsets[-1], dtype=np.uint8)
    copy_texts(characters, begins, ends, data)
    is_there = begins > 0
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(STRING, len(begins), buffers)
