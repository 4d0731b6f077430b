"""What joins keep: groups of equal keys and, for each side, the rows that are still live."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.events.batch import Batch, Int64s
from weir.kernels.structures.keys import KeyIndex, grown
from weir.kernels.structures.keys_loops import count_down, count_up
from weir.kernels.structures.rows import RowStore, valid_mask
from weir.kernels.structures.time_queue import TimeQueue
from weir.plan.schema import Schema


def encode_keys(index: KeyIndex, batch: Batch, columns: Sequence[int]) -> Int64s:
    """Return each row's group; −1 where a key is NULL."""
    keys = [batch.columns[i] for i in columns]
    if not any(k.null_count for k in keys):
        return index.encode(*index.hashes(keys, len(batch)))
    valid = np.ones(len(batch), dtype=np.bool_)
    for key in keys:
        valid &= valid_mask(key)
    groups = np.full(len(batch), -1, dtype=np.int64)
    first, second = index.hashes(keys, len(batch))
    groups[valid] = index.encode(first[valid], second[valid])
    return groups


class JoinKeys:
    """Numbers the groups of equal keys on both sides; a group lives while a row of it is held."""

    def __init__(self) -> None:
        self._index = KeyIndex()
        self._members = np.zeros(0, dtype=np.int64)

    @property
    def capacity(self) -> int:
        return self._index.capacity

    def encode(self, batch: Batch, columns: Sequence[int]) -> Int64s:
        return encode_keys(self._index, batch, columns)

    def joined(self, groups: Int64s) -> None:
        self._members = grown(self._members, self.capacity)
        count_up(groups, self._members)

    def left(self, groups: Int64s) -> Int64s:
        """Subtract rows that have left from their groups' counts; forget groups without rows.

        Return the forgotten groups."""
        emptied: Int64s = count_down(groups, self._members)
        self._index.release(emptied)
        return emptied


class HeldSide:
    """Holds the rows of one input, by slot and by end."""

    def __init__(self, shape: Schema, keys: Sequence[int]) -> None:
        self.names = shape.names
        self.keys = tuple(keys)
        self.rows = RowStore(shape.types)
        self._group = np.full(0, -1, dtype=np.int64)  # by slot
        self._ends = TimeQueue()  # slots by end, including rows that have left

    def add(self, batch: Batch, groups: Int64s) -> Int64s:
        slots = self.rows.add(batch)
        self._group = grown(self._group, self.rows.capacity, -1)
        self._group[slots] = groups
        self._ends.add(batch.ve, slots)
        return slots

    def groups(self, slots: Int64s) -> Int64s:
        return self._group[slots]

    def forget_dropped(self) -> None:
        """Rebuild the queue of ends if most of it belongs to rows that left before their end."""
        if len(self._ends) > 2 * self.rows.capacity:
            held = self.rows.held()
            self._ends = TimeQueue()
            self._ends.add(self.rows.ve[held], held)

    def due(self, cti: int) -> Int64s:
        """Return the slots of rows that end at or before this CTI."""
        return self._ends.pop(cti)[1]
