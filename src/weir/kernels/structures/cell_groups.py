"""Gives keys of cells the numbers of groups; a key that was never merged into has none.

Contract
1. `encode` returns the groups of rows that merge, and creates new ones (`take_fresh` lists them).
   `find` returns the groups of other rows, −1 where there is none. Both take the `hashes` of rows.
2. A group lives until it is released; another key may then get its number.
3. The stored values of a key do not depend on which row came first: −0 is stored as 0, and there is
   one NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch, Int64s
from weir.kernels.structures.key_hashes import Hashes
from weir.kernels.structures.keys import KeyIndex, grown
from weir.kernels.structures.panes_loops import first_of_new
from weir.kernels.structures.rows import RowStore
from weir.kernels.structures.sort_keys import canonical


class CellGroups:
    """Numbers the keys that have cells."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._index = KeyIndex()
        self._rows = RowStore(types)
        self._canonical = [canonical(dtype) for dtype in types]
        self._slots = np.full(0, -1, dtype=np.int64)  # by group: where its key's values are
        self._fresh: list[Int64s] = []
        """Groups that were created since the last call of `take_fresh`."""

    def __len__(self) -> int:
        return len(self._index)

    @property
    def capacity(self) -> int:
        return self._index.capacity

    def hashes(self, keys: Sequence[pa.Array], length: int) -> Hashes:
        return self._index.hashes(keys, length)

    def encode(
        self, keys: Sequence[pa.Array], hashes: Hashes, rows: Int64s | None = None
    ) -> Int64s:
        """Return the groups of all rows, or of the rows at these positions; create missing ones."""
        first, second = hashes if rows is None else (hashes[0][rows], hashes[1][rows])
        count_before = len(self._index)
        groups = self._index.encode(first, second)
        if len(self._index) > count_before:
            self._keep(keys, groups, rows)
        return groups

    def find(self, hashes: Hashes) -> Int64s:
        """Return the groups of rows, −1 where there is none."""
        return self._index.find(*hashes)

    def _keep(self, keys: Sequence[pa.Array], groups: Int64s, rows: Int64s | None) -> None:
        self._slots = grown(self._slots, self.capacity, -1)
        fresh = first_of_new(groups, self._slots)
        index = pa.array(fresh if rows is None else rows[fresh])
        zeros = np.zeros(len(fresh), dtype=np.int64)
        values = (make(key.take(index)) for make, key in zip(self._canonical, keys, strict=True))
        self._slots[groups[fresh]] = self._rows.add(Batch(zeros, zeros, tuple(values)))
        self._fresh.append(groups[fresh])

    def take_fresh(self) -> Int64s:
        """Return the groups that were created since the last call."""
        fresh, self._fresh = self._fresh, []
        return np.concatenate(fresh) if fresh else np.empty(0, dtype=np.int64)

    def keys(self, groups: Int64s) -> tuple[pa.Array, ...]:
        return self._rows.columns(self._slots[groups])

    def live(self) -> Int64s:
        return np.flatnonzero(self._slots >= 0)

    def release(self, groups: Int64s) -> None:
        self._rows.free(self._slots[groups])
        self._slots[groups] = -1
        self._index.release(groups)
