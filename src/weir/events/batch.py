"""A batch of events: lifetimes as NumPy arrays, payload as Arrow arrays.

Contract
1. `vs` and `ve` are int64 ticks of equal length, `vs < ve`; an open event has `ve == OPEN`.
2. `origin` holds zero or more int64 columns, compared left to right: source and partition in one
   number, then the offset, then one column for each UNION branch or EXPLODE element on the way.
   Without columns, the rows have no origin, or nothing downstream needs it. A row without an origin
   among rows with one has `NO_ORIGIN` in the first column.
3. `columns` are the payload, by position; names and types live in the plan's schema.
4. Batches are immutable: nobody writes into an array that came out of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch_loops import lifetimes_at
from weir.loops.arrow_memory import numbers_of

Int64s = npt.NDArray[np.int64]

OPEN = np.iinfo(np.int64).max
"""The end of an event that is still valid, and the CTI of a stream that has ended."""

LATEST = 2**62
"""The bounds of times, which lie in [−LATEST, LATEST]: adding a window size cannot overflow.

In µs, that is 146 000 years each way."""

START = np.iinfo(np.int64).min
"""The CTI of a stream before its first CTI."""

NO_ORIGIN = np.iinfo(np.int64).max

# Positions come from kernels, which pass only those within their batches.
_UNCHECKED = pc.TakeOptions(boundscheck=False)

_NONE: Int64s = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in some order, as columns: lifetimes, origins and payload.

    Each array has one element per event (see the rules at the head of this module).
    """

    vs: Int64s
    ve: Int64s
    columns: tuple[pa.Array, ...]
    origin: tuple[Int64s, ...] = ()

    def __len__(self) -> int:
        return len(self.vs)

    def slice(self, start: int, stop: int) -> Batch:
        return Batch(
            self.vs[start:stop],
            self.ve[start:stop],
            tuple(c.slice(start, stop - start) for c in self.columns),
            tuple(o[start:stop] for o in self.origin),
        )

    def take(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Batch:
        """Return the rows at these positions, or those where the mask is true."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        index = pa.array(rows)
        columns = tuple(pc.call_function("take", [c, index], _UNCHECKED) for c in self.columns)
        origin = tuple(o.take(rows) for o in self.origin)
        vs, ve = lifetimes_at(self.vs, self.ve, np.ascontiguousarray(rows, dtype=np.int64))
        return Batch(vs, ve, columns, origin)


def empty_batch(types: Sequence[pa.DataType], origins: int = 0) -> Batch:
    """Make a batch without events, with columns of these types."""
    return Batch(_NONE, _NONE, tuple(pa.array([], t) for t in types), (_NONE,) * origins)


def concat_batches(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches that have the same columns."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    return Batch(
        np.concatenate([b.vs for b in batches]),
        np.concatenate([b.ve for b in batches]),
        tuple(pa.concat_arrays([b.columns[i] for b in batches]) for i in range(len(first.columns))),
        tuple(np.concatenate([b.origin[i] for b in batches]) for i in range(len(first.origin))),
    )


def ticks(column: pa.Array) -> Int64s:
    """Convert a time column (BIGINT or TIMESTAMP) to ticks; NULL becomes `OPEN`."""
    plain = column.cast(pa.int64())
    if plain.null_count:
        plain = pc.fill_null(plain, OPEN)
    return numbers_of(plain)


def times(values: Int64s, dtype: pa.DataType) -> pa.Array:
    """Convert ticks to a column of BIGINT or TIMESTAMP; `OPEN` becomes NULL."""
    is_open = values == OPEN
    plain = pa.array(values, mask=is_open) if is_open.any() else pa.array(values)
    return plain if dtype == pa.int64() else plain.cast(dtype)
