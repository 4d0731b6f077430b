"""Text files as records with line numbers, and texts as columns.

A record is what a data row is made of; `TextReader` numbers records, skips those before the
start, and leaves to each format how lines become records and records become columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Record(Generic[Row]):
    """One data row, not yet typed: its place, its text, and what was read or why it was not."""

    line: int
    text: bytes
    row: Row | None
    column: str = ""
    reason: str = ""


def grouped(items: Iterable[Row], size: int) -> Iterator[list[Row]]:
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group


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
    records: Sequence[Record[Row]],
    typed: Typed,
    first: int,
    ctis: tuple[Int64s, Int64s],
) -> Chunk:
    """A chunk of the records (the first has offset `first`); `typed` is of those that were
    read, and CTI places count all records."""
    offsets = np.arange(first, first + len(records), dtype=np.int64)
    lines = np.fromiter((r.line for r in records), np.int64, len(records))
    was_read = np.fromiter((r.row is not None for r in records), np.bool_, len(records))
    bad = [_bad(r, first + i, r.column, r.reason) for i, r in enumerate(records) if r.row is None]
    readable = np.flatnonzero(was_read)
    fits = np.ones(len(readable), dtype=np.bool_)
    for (name, _), misfits in zip(columns, typed.misfits, strict=True):
        for row, reason in misfits.items():
            if fits[row]:
                at = int(readable[row])
                bad.append(_bad(records[at], first + at, name, reason))
                fits[row] = False
    kept = readable[fits]
    rows = pa.RecordBatch.from_arrays(list(typed.columns), names=[name for name, _ in columns])
    times, places = ctis
    return Chunk(
        rows if fits.all() else rows.filter(pa.array(fits)),
        offsets[kept],
        first + len(records),
        lines[kept],
        times,
        np.searchsorted(kept, places).astype(np.int64),
        tuple(sorted(bad, key=lambda b: b.offset)),
    )


def _bad(record: Record[Row], offset: int, column: str, reason: str) -> BadRow:
    text = shown(record.text.decode("utf-8", "backslashreplace").rstrip("\r\n"))
    return BadRow(offset, record.line, column, text, reason)
