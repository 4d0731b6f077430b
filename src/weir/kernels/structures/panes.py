"""Groups and panes are the units that a windowed aggregation keeps partial results for.

A *group* is a key for which something is held. A *pane* is the set of a group's events in the same
interval [start, end) of window positions. They enter and leave together, so one partial aggregate
is kept for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.kernels.structures.keys import KeyIndex, grown
from weir.kernels.structures.panes_loops import (
    EMIT,
    fill_in,
    first_of_new,
    recent_panes,
)
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.sort_keys import canonical


@dataclass(frozen=True, slots=True)
class Operations:
    """A sequence of operations on groups: a pane enters, a pane leaves, or a result is emitted."""

    kinds: Int64s
    groups: Int64s
    panes: Int64s
    positions: Int64s
    """For each EMIT: the first position of the windows that its result covers."""

    @property
    def emits(self) -> int:
        return int(np.count_nonzero(self.kinds == EMIT))


@dataclass(frozen=True, slots=True)
class Results:
    """The rows to make: the EMIT of each, its lifetime, and when it became final."""

    emit: Int64s
    vs: Int64s
    ve: Int64s
    final: Int64s


class Groups:
    """Numbers the keys in use; a group lives while its count in `members` is not zero.

    The stored values of its key do not depend on which row came first: −0 is stored as 0, and there
    is one NaN.
    """

    def __init__(self, key_columns: Sequence[int], types: Sequence[pa.DataType]) -> None:
        self._key_columns = tuple(key_columns)
        self._index = KeyIndex()
        self._rows = RowStore(types)
        self._canonical = [canonical(dtype) for dtype in types]
        self._slots = np.full(0, -1, dtype=np.int64)  # by group: where its key's values are
        self.members = np.zeros(0, dtype=np.int64)  # by group: how many panes or rows it has

    def __len__(self) -> int:
        return len(self._index)

    @property
    def capacity(self) -> int:
        return self._index.capacity

    def encode(self, batch: Batch) -> Int64s:
        """Return the group of each row."""
        return self.encode_keys([batch.columns[i] for i in self._key_columns], len(batch))

    def encode_keys(self, keys: Sequence[pa.Array], length: int) -> Int64s:
        count_before = len(self._index)
        groups = self._index.encode(*self._index.hashes(keys, length))
        self._slots = grown(self._slots, self.capacity, -1)
        self.members = grown(self.members, self.capacity)
        if len(self._index) > count_before:
            self._keep(keys, groups)
        return groups

    def _keep(self, keys: Sequence[pa.Array], groups: Int64s) -> None:
        """Store the values of new keys."""
        fresh = first_of_new(groups, self._slots)
        index = pa.array(fresh)
        zeros = np.zeros(len(fresh), dtype=np.int64)
        values = (make(key.take(index)) for make, key in zip(self._canonical, keys, strict=True))
        self._slots[groups[fresh]] = self._rows.add(Batch(zeros, zeros, tuple(values)))

    def keys(self, groups: Int64s) -> tuple[pa.Array, ...]:
        return self._rows.columns(self._slots[groups])

    def live(self) -> Int64s:
        return np.flatnonzero(self._slots >= 0)

    def release(self, groups: Int64s) -> None:
        self._rows.free(self._slots[groups])
        self._slots[groups] = -1
        self._index.release(groups)


class Panes:
    """Numbers the panes in use, and keeps the group and the interval of positions of each."""

    def __init__(self) -> None:
        self._index = KeyIndex()
        self.group = np.full(0, -1, dtype=np.int64)
        self.start = np.zeros(0, dtype=np.int64)
        self.end = np.zeros(0, dtype=np.int64)
        self._recent = np.full(0, -1, dtype=np.int64)  # by group: the pane it used last

    def __len__(self) -> int:
        return len(self._index)

    @property
    def capacity(self) -> int:
        return self._index.capacity

    def encode(self, groups: Int64s, starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
        """Return the pane of each row; also return the new panes, in order of appearance."""
        if len(groups):
            self._recent = grown(self._recent, int(groups.max()) + 1, -1)
        panes, missing = recent_panes(
            groups, starts, ends, self._recent, self.group, self.start, self.end
        )
        if not len(missing):
            return panes, missing
        groups, starts, ends = groups[missing], starts[missing], ends[missing]
        missing_panes = self._index.encode(*self._index.number_hashes(groups, starts, ends))
        self.group = grown(self.group, self.capacity, -1)
        self.start = grown(self.start, self.capacity)
        self.end = grown(self.end, self.capacity)
        fresh = first_of_new(missing_panes, self.group)
        new = missing_panes[fresh]
        self.group[new] = groups[fresh]
        self.start[new] = starts[fresh]
        self.end[new] = ends[fresh]
        self._recent[groups] = missing_panes
        fill_in(panes, missing_panes)
        return panes, new

    def find(self, groups: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
        return self._index.find(*self._index.number_hashes(groups, starts, ends))

    def live(self) -> Int64s:
        return np.flatnonzero(self.group >= 0)

    def release(self, panes: Int64s) -> None:
        self._index.release(panes)
        self.group[panes] = -1
