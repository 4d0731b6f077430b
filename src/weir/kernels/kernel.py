"""A kernel runs one stateful operator over slices of time.

Contract of a stateful kernel
1. `step(slices, cti)` gets, for each input, all rows with previous cti ≤ vs < cti, in merge order.
   It returns the rows that became final and the output CTI.
2. Rows come out ordered by (final, vs, ve, payload), where `final` is the smallest CTI at which the
   row can be known. So a step over [a, c) returns the same rows in the same order as two steps,
   over [a, b) and [b, c).
3. No later row has vs below the output CTI.
4. `snapshot()` returns the whole state as named Arrow tables that include the key columns. A new
   kernel that has called `load` with them continues as if nothing had happened.
5. `state_rows` counts the rows held; it is bounded by what is still live.
6. `right_from` is START, except while a chain is rebuilt from its input. Then rows that start
   before it may be computed from incomplete input and are not needed: the caller of `step` drops
   them, and a kernel that could fail on them leaves them out itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch, Int64s, concat_batches
from weir.events.order import sort_batch, taken
from weir.loops.arrow_memory import numbers_of

Tables = dict[str, pa.Table]


class Kernel(Protocol):
    """The running form of a stateful operator: it takes slices of rows and keeps state.

    The rules at the head of this module say what `step`, `snapshot` and `load` must do.
    """

    right_from: int

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]: ...
    def snapshot(self) -> Tables: ...
    def load(self, tables: Mapping[str, pa.Table]) -> None: ...
    @property
    def state_rows(self) -> int: ...


def emitted(parts: Sequence[tuple[Int64s, Batch]]) -> Batch:
    """Sort rows into the order of emission.

    Each part has the times at which its rows became final."""
    final = np.concatenate([f for f, _ in parts]) if len(parts) > 1 else parts[0][0]
    rows = concat_batches([b for _, b in parts])
    if len(rows) < 2:
        return rows
    # sort_batch orders by (vs, origin, ve, payload). Here `final` takes the place of vs, and vs
    # that of the origin.
    keyed = Batch(final, rows.ve, rows.columns, (rows.vs,))
    order = sort_batch(keyed, by_origin=True, exact=True)
    return taken(rows, order)


def rows_table(batch: Batch, names: Sequence[str], **extra: Int64s) -> pa.Table:
    """Write held rows as a table: `vs`, `ve`, origins, extra int64 columns (`@name`), payload."""
    arrays = [pa.array(batch.vs), pa.array(batch.ve)]
    arrays += [pa.array(o) for o in batch.origin]
    arrays += [pa.array(values) for values in extra.values()]
    labels = ["vs", "ve", *(f"@origin{i}" for i in range(len(batch.origin)))]
    labels += [f"@{name}" for name in extra]
    return pa.table([*arrays, *batch.columns], names=[*labels, *names])


def table_rows(table: pa.Table) -> tuple[Batch, dict[str, Int64s]]:
    """Read the rows of a table that `rows_table` wrote, and its extra columns."""
    columns = {name: table.column(i).combine_chunks() for i, name in enumerate(table.column_names)}
    if "vs" not in columns or "ve" not in columns:
        raise SnapshotCorrupt(f"a table of held rows lacks vs or ve: {table.column_names}")
    special = {n: _numbers(c) for n, c in columns.items() if n.startswith("@") or n in ("vs", "ve")}
    origin = tuple(v for n, v in special.items() if n.startswith("@origin"))
    payload = tuple(c for n, c in columns.items() if n not in special)
    extra = {n[1:]: v for n, v in special.items() if n[:1] == "@" and not n.startswith("@origin")}
    return Batch(special["vs"], special["ve"], payload, origin), extra


def _numbers(column: pa.Array) -> Int64s:
    return np.asarray(numbers_of(column), dtype=np.int64)
