"""Stores values that are not numbers, one for each cell; the compiled loop sees their handles.

A handle is the slot of a stored value, −1 for the default, and −2 − i for value i of the slice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.kernels.structures.fast_kinds import default_column
from weir.kernels.structures.keys import grown
from weir.kernels.structures.rows import RowStore
from weir.plan.states import Cell


class StoredValues:
    """`StoredValues` has the values of a state's cells."""

    def __init__(self, cell: Cell) -> None:
        self._default = default_column(cell)
        self._store = RowStore([cell.type])
        self._slots = np.full(0, -1, dtype=np.int64)  # by group
        self._brought: list[pa.Array] = []
        self._count = 0

    def grow(self, capacity: int) -> None:
        self._slots = grown(self._slots, capacity, -1)

    def bring(self, column: pa.Array) -> Int64s:
        """Take the values of a slice; return their handles."""
        first, self._count = self._count, self._count + len(column)
        self._brought.append(column)
        return -2 - np.arange(first, self._count, dtype=np.int64)

    def answers(self, handles: Int64s) -> pa.Array:
        """Return the values of these handles."""
        stored = handles >= 0
        held = self._store.columns(handles[stored])[0]
        index = np.where(handles == -1, 0, len(held) - 1 - handles)
        index[stored] = np.arange(1, len(held) + 1)
        return pa.concat_arrays([self._default, held, *self._brought]).take(pa.array(index))

    def settle(self, groups: Int64s, handles: Int64s) -> Int64s:
        """Store what a slice has brought to these groups, each named once; return their handles
        from now on."""
        new = handles <= -2
        if new.any():
            values = pa.concat_arrays(self._brought).take(pa.array(-2 - handles[new]))
            self.forget(groups[new])
            zeros = np.zeros(len(values), dtype=np.int64)
            self._slots[groups[new]] = self._store.add(Batch(zeros, zeros, (values,)))
        self._brought, self._count = [], 0
        return self._slots[groups]

    def forget(self, groups: Int64s) -> None:
        """Drop the values of these groups, each named once."""
        slots = self._slots[groups]
        self._store.free(slots[slots >= 0])
        self._slots[groups] = -1
