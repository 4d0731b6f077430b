"""A row store holds the lifetimes and payload of rows, by slot.

Contract
1. `add` puts rows into slots and returns the slots; `free` releases slots, and their rows are gone.
   Origins are not kept, since only merges need them. Slots are reused: arrays that a kernel keeps
   beside the store are indexed by slot and as long as `capacity`, which only grows.
2. Adding, taking and freeing k rows costs O(k), amortised, however many rows are held.
3. `take` returns Arrow columns of exactly the values that were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.events.hashing import binary_buffers
from weir.events.python_lists import python_column, python_list
from weir.kernels.structures.keys import grown
from weir.kernels.structures.rows_loops import gather_bytes
from weir.loops.arrow_memory import array_of


class RowStore:
    """Holds rows in slots that are reused once their rows are freed."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.vs = np.zeros(0, dtype=np.int64)
        self.ve = np.zeros(0, dtype=np.int64)
        self._columns = [_column_store(t) for t in types]
        self._unused = np.zeros(0, dtype=np.int64)  # a stack, its top at _unused_count
        self._unused_count = 0

    def __len__(self) -> int:
        return self.capacity - self._unused_count

    @property
    def capacity(self) -> int:
        return len(self.vs)

    def add(self, batch: Batch) -> Int64s:
        """Store these rows; return their slots, in order."""
        count = len(batch)
        if count > self._unused_count:
            self._grow(count - self._unused_count)
        slots = self._unused[self._unused_count - count : self._unused_count][::-1].copy()
        self._unused_count -= count
        self.vs[slots] = batch.vs
        self.ve[slots] = batch.ve
        for store, column in zip(self._columns, batch.columns, strict=True):
            store.put(slots, column)
        return slots

    def free(self, slots: Int64s) -> None:
        """Drop the rows in these slots, each named once."""
        for store in self._columns:
            store.drop(slots)
        self._unused[self._unused_count : self._unused_count + len(slots)] = slots
        self._unused_count += len(slots)

    def columns(self, slots: Int64s) -> tuple[pa.Array, ...]:
        return tuple(store.take(slots) for store in self._columns)

    def bytes_of(self, column: int) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
        """Return where each slot's bytes start, how many there are, and the buffer of all bytes."""
        store = self._columns[column]
        assert isinstance(store, _BytesColumn)
        return store.starts, store.lengths, store.buffer

    def take(self, slots: Int64s) -> Batch:
        return Batch(self.vs[slots], self.ve[slots], self.columns(slots))

    def held(self) -> Int64s:
        """Return every slot in use, lowest first."""
        in_use = np.ones(self.capacity, dtype=np.bool_)
        in_use[self._unused[: self._unused_count]] = False
        return np.flatnonzero(in_use)

    def _grow(self, missing: int) -> None:
        old = self.capacity
        new = max(64, old + missing, 2 * old)
        self.vs, self.ve = grown(self.vs, new), grown(self.ve, new)
        for store in self._columns:
            store.grow(new)
        unused = np.empty(new, dtype=np.int64)
        # Old free slots stay on top, so that low slots are used first.
        unused[: new - old] = np.arange(new - 1, old - 1, -1)
        unused[new - old : new - old + self._unused_count] = self._unused[: self._unused_count]
        self._unused, self._unused_count = unused, self._unused_count + new - old


class _ColumnStore(Protocol):
    """Holds one column's values by slot."""

    def grow(self, capacity: int) -> None: ...
    def put(self, slots: Int64s, column: pa.Array) -> None: ...
    def take(self, slots: Int64s) -> pa.Array: ...
    def drop(self, slots: Int64s) -> None: ...


def _column_store(dtype: pa.DataType) -> _ColumnStore:
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return _BytesColumn(dtype)
    if pa.types.is_nested(dtype):
        return _ObjectColumn(dtype)
    if pa.types.is_null(dtype):
        return _NullColumn()
    return _FixedColumn(dtype)


def valid_mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a mask that is true where the value is not NULL."""
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def bitmap(valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    """Return Arrow's validity buffer, or None if all values are valid."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


_STORAGE: dict[int, npt.DTypeLike] = {8: np.int64, 4: np.int32, 16: np.dtype((np.void, 16))}


def raw_values(column: pa.Array) -> npt.NDArray[Any]:
    """Return a fixed-width column's bits; the bits in place of NULLs are arbitrary."""
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False))
    raw = array_of(column.buffers()[1], _STORAGE[column.type.bit_width // 8])
    return raw[column.offset : column.offset + len(column)]


class _FixedColumn:
    """Holds numbers, times, booleans or decimals as bits in one NumPy array.

    From the first NULL on, a second array marks which of them are NULL.
    """

    def __init__(self, dtype: pa.DataType) -> None:
        self._type = dtype
        is_bool = pa.types.is_boolean(dtype)
        self._values = np.zeros(0, dtype=np.uint8 if is_bool else _STORAGE[dtype.bit_width // 8])
        self._null: npt.NDArray[np.bool_] | None = None

    def grow(self, capacity: int) -> None:
        values = np.zeros(capacity, dtype=self._values.dtype)
        values[: len(self._values)] = self._values
        self._values = values
        if self._null is not None:
            self._null = grown(self._null, capacity)

    def put(self, slots: Int64s, column: pa.Array) -> None:
        self._values[slots] = raw_values(column)
        if column.null_count and self._null is None:
            self._null = np.zeros(len(self._values), dtype=np.bool_)
        if self._null is not None:
            self._null[slots] = ~valid_mask(column)

    def take(self, slots: Int64s) -> pa.Array:
        values = self._values[slots]
        null = None if self._null is None else self._null[slots]
        if pa.types.is_boolean(self._type):
            return pa.array(values.astype(np.bool_), mask=null)
        validity = None if null is None else bitmap(~null)
        return pa.Array.from_buffers(self._type, len(slots), [validity, pa.py_buffer(values)])

    def drop(self, slots: Int64s) -> None:
        pass


class _BytesColumn:
    """Holds strings in one long buffer, which is rewritten when half of it is unused."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._type = dtype
        self.starts = np.zeros(0, dtype=np.int64)
        self.lengths = np.full(0, -1, dtype=np.int64)  # −1 is NULL, or a free slot
        self.buffer = np.zeros(256, dtype=np.uint8)
        self._used = self._live = 0

    def grow(self, capacity: int) -> None:
        self.starts = grown(self.starts, capacity)
        self.lengths = grown(self.lengths, capacity, -1)

    def put(self, slots: Int64s, column: pa.Array) -> None:
        offsets, data = binary_buffers(column)
        wide = offsets.astype(np.int64)
        size = int(wide[-1] - wide[0]) if len(wide) else 0
        if self._used + size > len(self.buffer):
            self._make_room(size)
        self.buffer[self._used : self._used + size] = data[wide[0] : wide[0] + size]
        self.starts[slots] = wide[:-1] - wide[0] + self._used
        self.lengths[slots] = np.where(valid_mask(column), np.diff(wide), -1)
        self._used += size
        self._live += size

    def take(self, slots: Int64s) -> pa.Array:
        lengths = self.lengths[slots]
        valid = lengths >= 0
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
        data = gather_bytes(self.buffer, self.starts[slots], offsets)
        buffers = [bitmap(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
        return pa.Array.from_buffers(self._type, len(slots), buffers)

    def drop(self, slots: Int64s) -> None:
        self._live -= int(np.maximum(self.lengths[slots], 0).sum())
        self.lengths[slots] = -1

    def _make_room(self, size: int) -> None:
        live = np.flatnonzero(self.lengths > 0)
        offsets = np.zeros(len(live) + 1, dtype=np.int64)
        np.cumsum(self.lengths[live], out=offsets[1:])
        packed = gather_bytes(self.buffer, self.starts[live], offsets)
        self.buffer = np.zeros(max(256, 2 * (len(packed) + size)), dtype=np.uint8)
        self.buffer[: len(packed)] = packed
        self.starts[live] = offsets[:-1]
        self._used = self._live = len(packed)


class _ObjectColumn:
    """Holds lists and structs as Python objects.

    Their shape differs row by row, so no array can hold them; a kernel only carries such payload
    and never computes on it.
    """

    def __init__(self, dtype: pa.DataType) -> None:
        self._type = dtype
        self._stored = _without_times(dtype)
        self._values = np.empty(0, dtype=object)

    def grow(self, capacity: int) -> None:
        values = np.empty(capacity, dtype=object)
        values[: len(self._values)] = self._values
        self._values = values

    def put(self, slots: Int64s, column: pa.Array) -> None:
        # When Arrow casts a slice of a LIST(NULL), it gives it wrong offsets.
        whole = pa.concat_arrays([column, column.slice(0, 0)])
        for slot, value in zip(slots.tolist(), python_list(whole.cast(self._stored)), strict=True):
            self._values[slot] = value

    def take(self, slots: Int64s) -> pa.Array:
        values = [self._values[slot] for slot in slots.tolist()]
        return python_column(values, self._stored).cast(self._type)

    def drop(self, slots: Int64s) -> None:
        self._values[slots] = None


def _without_times(dtype: pa.DataType) -> pa.DataType:
    """Return the type with numbers in place of times: Python has no dates beyond the year 9999."""
    if pa.types.is_list(dtype):
        return pa.list_(_without_times(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(f.name, _without_times(f.type)) for f in dtype])
    if pa.types.is_timestamp(dtype):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(dtype) else dtype


class _NullColumn:
    """A column in which every value is NULL."""

    def grow(self, capacity: int) -> None:
        pass

    def put(self, slots: Int64s, column: pa.Array) -> None:
        pass

    def take(self, slots: Int64s) -> pa.Array:
        return pa.nulls(len(slots))

    def drop(self, slots: Int64s) -> None:
        pass
