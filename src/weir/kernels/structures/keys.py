"""Gives keys dense numbers, by an open-addressing table of their hashes.

Contract
1. `encode` returns the number of every row's group, and creates groups as they appear. Numbers are
   small and are reused after `release`, so arrays indexed by them stay as large as the most groups
   that were ever live together.
2. A released group must not hold anything: another key may get its number.
3. Looking up a row costs O(1) and touches no other group, whoever chose the keys: an index has a
   secret of its own, without which no slot can be predicted (`key_hashes.py`).
4. Numbers depend only on the order of calls and rows, not on the secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.hashing import UInt64s
from weir.kernels.structures.key_hashes import Hashes, first_state, hash_keys, hash_numbers_of
from weir.kernels.structures.key_secrets import fresh_secret
from weir.kernels.structures.keys_loops import (
    FREE,
    encode_rows,
    find_rows,
    rehashed,
    release_groups,
)

_Number = TypeVar("_Number", bound=np.generic)


class KeyIndex:
    """Numbers the groups of equal keys, and reuses the numbers of released groups."""

    def __init__(self) -> None:
        self._state = first_state(fresh_secret())
        self._table = np.full(64, FREE, dtype=np.int64)
        self._first = np.zeros(32, dtype=np.uint64)
        self._second = np.zeros(32, dtype=np.uint64)
        # A stack of the unused numbers; the next one is at the top.
        self._unused = np.arange(31, -1, -1, dtype=np.int64)
        self._live = 0

    def __len__(self) -> int:
        return self._live

    @property
    def capacity(self) -> int:
        """Return the number below which all group numbers are."""
        return len(self._first)

    def hashes(self, columns: Sequence[pa.Array], length: int) -> Hashes:
        """Return the hashes of rows by these columns; they mean nothing to another index."""
        return hash_keys(columns, length, self._state)

    def number_hashes(self, *columns: Int64s) -> Hashes:
        """Return the hashes of rows of two or more numbers."""
        return hash_numbers_of(columns, self._state)

    def encode(self, first: UInt64s, second: UInt64s) -> Int64s:
        """Return the groups of these hashes; create missing ones."""
        groups = np.empty(len(first), dtype=np.int64)
        done = 0
        while True:
            done, self._live = encode_rows(
                first,
                second,
                groups,
                done,
                self._live,
                self._table,
                self._first,
                self._second,
                self._unused,
            )
            if done == len(first):
                return groups
            self._grow()

    def find(self, first: UInt64s, second: UInt64s) -> Int64s:
        """Return the groups of these hashes, −1 where there is none."""
        groups: Int64s = find_rows(first, second, self._table, self._first, self._second)
        return groups

    def release(self, groups: Int64s) -> None:
        """Forget these live groups (each named once)."""
        self._live = release_groups(
            groups, self._live, self._table, self._first, self._second, self._unused
        )

    def _grow(self) -> None:
        capacity = self.capacity
        self._first = np.concatenate([self._first, np.zeros_like(self._first)])
        self._second = np.concatenate([self._second, np.zeros_like(self._second)])
        unused = np.empty(2 * capacity, dtype=np.int64)
        # The table grows only when all old numbers are in use.
        unused[:capacity] = np.arange(2 * capacity - 1, capacity - 1, -1)
        self._unused = unused
        self._table = rehashed(self._table, self._first)


def grown(array: npt.NDArray[_Number], capacity: int, fill: int = 0) -> npt.NDArray[_Number]:
    """Return the array, at least this long; new elements are `fill`.

    It is for arrays that are indexed by group."""
    if len(array) >= capacity:
        return array
    shape = (max(capacity, 2 * len(array)) - len(array), *array.shape[1:])
    return np.concatenate([array, np.full(shape, fill, dtype=array.dtype)])


def each_once(numbers: Int64s) -> Int64s:
    """Return the distinct numbers in order.

    NumPy's `unique` hashes them, which is 50 times as slow."""
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]
