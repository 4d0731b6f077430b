"""Saved states that a comparison begins with: the loop restores only the cells that it touches.

A saved state may have millions of cells, and the first events touch some hundred of them. So the
loop looks up each cell when it first touches it, and the engine then begins with these cells only:
it must not need others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import ticks
from weir.events.python_lists import python_list
from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition
from weir.plan.operators import FinalState, Source
from weir.plan.saved_states import key_names
from weir.runtime.partitions import Partitions
from weir.shadow.saved_contents import SavedRow, restore, saved_functions
from weir.shadow.serial_cells import SerialCells


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A `SavedTable` has the saved cells of one state. `source` is what an engine reads them
    through, `saved` the state that they came from."""

    state: str
    source: Source
    saved: FinalState
    rows: pa.Table

    def of_key(self, parts: Sequence[object]) -> pa.Table:
        """Return the rows of a cell."""
        types = self.saved.state.keys
        if len(parts) != len(types):
            return self.rows.slice(0, 0)
        rows = self.rows
        for name, dtype, value in zip(key_names(self.saved.state), types, parts, strict=True):
            rows = rows.filter(_equal(rows.column(name), value, dtype))
        return rows


def _equal(column: pa.ChunkedArray, value: object, dtype: pa.DataType) -> pa.ChunkedArray:
    """Tell which values of a key's column are equal to one, as keys are."""
    if value is None:
        return pc.is_null(column)
    if isinstance(value, float) and math.isnan(value):
        return pc.is_nan(column)
    try:
        return pc.equal(column, pa.scalar(value, dtype))
    except (pa.ArrowException, TypeError, ValueError):  # no cell has such a key
        return pc.is_in(column, value_set=pa.array([], dtype))


def saved_table(
    state: str, source: Source, saved: FinalState, partition: SourcePartition
) -> SavedTable:
    """Read the saved cells of a state."""
    names = [name for name, _ in source.declared]
    empty = pa.schema([pa.field(name, dtype) for name, dtype in source.declared])
    chunks = [chunk.rows.select(names) for chunk in partition.chunks()]
    return SavedTable(state, source, saved, pa.Table.from_batches(chunks, schema=empty))


def saved_rows(rows: pa.Table) -> list[SavedRow]:
    """Return the rows of saved cells as the loop takes them."""
    whole = rows.combine_chunks()
    columns = {
        name: python_list(_one(whole.column(name))) for name in whole.column_names if name != "vs"
    }
    times = ticks(_one(whole.column("vs"))).tolist()
    return [(time, {n: c[row] for n, c in columns.items()}) for row, time in enumerate(times)]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


@dataclass(slots=True)
class TouchedCells:
    """`TouchedCells` restore the saved cells that the loop touches, and record them."""

    tables: Mapping[str, SavedTable]
    _rows: dict[str, list[pa.Table]] = field(default_factory=dict)

    def restoring(self, cells: SerialCells) -> SerialCells:
        """Let cells begin with what was saved."""
        self._rows = {name: [table.rows.slice(0, 0)] for name, table in self.tables.items()}

        def on_first(name: str, parts: tuple[object, ...]) -> None:
            if name in self.tables:
                table = self.tables[name]
                rows = table.of_key(parts)
                self._rows[name].append(rows)
                restore(cells, name, saved_rows(rows), saved_functions(table.saved))

        if self.tables:
            cells.on_first = on_first
        return cells

    @property
    def partitions(self) -> Partitions:
        """What an engine reads that begins with the cells that were touched."""
        partitions: dict[str, Sequence[SourcePartition]] = {}
        for name, parts in self._rows.items():
            rows = pa.concat_tables(parts)
            partitions[self.tables[name].source.name] = [TableRows(name, rows.sort_by("vs"))]
        return partitions


@dataclass(frozen=True, slots=True)
class TableRows:
    """A partition of the rows of a table, in order of their times."""

    name: str
    rows: pa.Table

    @property
    def size(self) -> int:
        return int(self.rows.num_rows)

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        rest = self.rows.slice(start).combine_chunks()
        for batch in rest.to_batches(max_chunksize=size):
            stop = start + batch.num_rows
            yield Chunk(batch, np.arange(start, stop), stop, read=stop)
            start = stop
