"""Text files: lines to records to chunks, for all formats that are made of lines.

A record is what becomes one data row. Each format says how lines become records and records
columns; numbering, places and bad rows are the same for all, and here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.types import STRING, type_name
from weir.io.chunks import BadRow, Chunk, shown
from weir.kernels.casts import build_cast

Columns = Sequence[tuple[str, pa.DataType]]
Misfits = Mapping[int, str]
"""Rows of a column whose value does not fit, and why."""

Row = TypeVar("Row")


@dataclass(slots=True)
class Records(Generic[Row]):
    """Data rows that are not yet typed, column by column: objects for rows would cost more
    than reading them. `faults` are the rows that could not be read (column and reason); their
    `rows` mean nothing."""

    lines: Sequence[int]
    texts: Sequence[bytes]
    rows: Sequence[Row]
    faults: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def since(self, start: int) -> Records[Row]:
        """Without the first `start` rows."""
        if not start:
            return self
        faults = {i - start: fault for i, fault in self.faults.items() if i >= start}
        return Records(self.lines[start:], self.texts[start:], self.rows[start:], faults)

    def readable(self) -> Sequence[Row]:
        if not self.faults:
            return self.rows
        return [row for i, row in enumerate(self.rows) if i not in self.faults]


def line_groups(file: Iterable[bytes], size: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
    """Line numbers (from 1) and lines, so many at a time."""
    lines = iter(file)
    first = 1
    while group := list(islice(lines, size)):
        yield range(first, first + len(group)), group
        first += len(group)


def without_blanks(numbers: Sequence[int], lines: list[bytes]) -> tuple[Sequence[int], list[bytes]]:
    if not any(line.isspace() for line in lines):
        return numbers, lines
    kept = [i for i, line in enumerate(lines) if not line.isspace()]
    return [numbers[i] for i in kept], [lines[i] for i in kept]


def cast_texts(texts: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    """Texts as values of a type."""
    column = build_cast(STRING, dtype, lenient=True)(texts) if dtype != STRING else texts
    if column.null_count == texts.null_count:
        return column, {}
    lost = np.asarray(column.is_null()) & np.asarray(texts.is_valid())
    return column, {
        int(row): f"wanted {type_name(dtype)}, came {texts[int(row)].as_py()!r}"
        for row in np.flatnonzero(lost)
    }


@dataclass(frozen=True, slots=True)
class Typed:
    """Columns of some records, and the rows of them that do not fit."""

    columns: Sequence[pa.Array]
    misfits: Sequence[Misfits]


def text_chunk(
    columns: Columns,
    records: Records[Row],
    typed: Typed,
    first: int,
    ctis: tuple[Int64s, Int64s],
) -> Chunk:
    """A chunk of the records (the first has offset `first`); `typed` is of the readable ones,
    and CTI places count all records."""
    count = len(records)
    was_read = np.ones(count, dtype=np.bool_)
    was_read[list(records.faults)] = False
    bad = [_bad(records, i, first, *fault) for i, fault in records.faults.items()]
    readable = np.flatnonzero(was_read)
    fits = np.ones(len(readable), dtype=np.bool_)
    for (name, _), misfits in zip(columns, typed.misfits, strict=True):
        for row, reason in misfits.items():
            if fits[row]:
                bad.append(_bad(records, int(readable[row]), first, name, reason))
                fits[row] = False
    kept = readable[fits]
    rows = pa.RecordBatch.from_arrays(list(typed.columns), names=[name for name, _ in columns])
    times, places = ctis
    return Chunk(
        rows if fits.all() else rows.filter(pa.array(fits)),
        kept + first,
        first + count,
        np.array(records.lines, dtype=np.int64)[kept],
        times,
        np.searchsorted(kept, places).astype(np.int64),
        tuple(sorted(bad, key=lambda b: b.offset)),
    )


def _bad(records: Records[Row], at: int, first: int, column: str, reason: str) -> BadRow:
    text = shown(records.texts[at].decode("utf-8", "backslashreplace").rstrip("\r\n"))
    return BadRow(first + at, records.lines[at], column, text, reason)
