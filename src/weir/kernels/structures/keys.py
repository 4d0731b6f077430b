"""Dense numbers for keys: an open-addressing table from a key's 128-bit hash to its group.

Contract
1. `encode` gives every row the number of its group, making groups as they appear; numbers
   are small and reused after `release`, so arrays indexed by them stay as large as the most
   groups that were ever live together.
2. A released group must hold nothing any more: its number may be given to another key.
3. Looking up a row costs O(1) and touches no other group.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weir.events.batch import Int64s
from weir.events.compiled import compiled, in_place
from weir.events.hashing import UInt64s

_FREE = -1


class KeyIndex:
    """See the module's contract."""

    def __init__(self) -> None:
        self._table = np.full(64, _FREE, dtype=np.int64)
        self._first = np.zeros(32, dtype=np.uint64)
        self._second = np.zeros(32, dtype=np.uint64)
        # A stack of the numbers that are not in use; the next one is at the top.
        self._unused = np.arange(31, -1, -1, dtype=np.int64)
        self._live = 0

    def __len__(self) -> int:
        return self._live

    @property
    def capacity(self) -> int:
        """Every group number is below this."""
        return len(self._first)

    def encode(self, first: UInt64s, second: UInt64s) -> Int64s:
        """The groups of these hashes; unseen ones are made."""
        groups = np.empty(len(first), dtype=np.int64)
        done = 0
        while True:
            done, self._live = _encode(
                first, second, groups, done, self._live,
                self._table, self._first, self._second, self._unused,
            )  # fmt: skip
            if done == len(first):
                return groups
            self._grow()

    def find(self, first: UInt64s, second: UInt64s) -> Int64s:
        """The groups of these hashes, −1 where there is none."""
        groups: Int64s = _find(first, second, self._table, self._first, self._second)
        return groups

    def release(self, groups: Int64s) -> None:
        """Forget these live groups (each named once)."""
        self._live = _release(
            groups, self._live, self._table, self._first, self._second, self._unused
        )

    def _grow(self) -> None:
        capacity = self.capacity
        self._first = np.concatenate([self._first, np.zeros_like(self._first)])
        self._second = np.concatenate([self._second, np.zeros_like(self._second)])
        unused = np.empty(2 * capacity, dtype=np.int64)
        # All old numbers are in use when the table grows.
        unused[:capacity] = np.arange(2 * capacity - 1, capacity - 1, -1)
        self._unused = unused
        self._table = _rehash(self._table, self._first)


@in_place
def _encode(first, second, groups, done, live, table, f, s, unused):  # type: ignore[no-untyped-def]
    """Encode rows from `done` on; stops early when all numbers are in use."""
    mask = np.uint64(len(table) - 1)
    capacity = len(f)
    for row in range(done, len(first)):
        at = first[row] & mask
        while True:
            group = table[at]
            if group < 0:
                if live == capacity:
                    return row, live
                group = unused[capacity - 1 - live]
                live += 1
                table[at] = group
                f[group] = first[row]
                s[group] = second[row]
                break
            if f[group] == first[row] and s[group] == second[row]:
                break
            at = (at + np.uint64(1)) & mask
        groups[row] = group
    return len(first), live


@compiled
def _find(first, second, table, f, s):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    groups = np.empty(len(first), dtype=np.int64)
    for row in range(len(first)):
        at = first[row] & mask
        while True:
            group = table[at]
            if group < 0 or (f[group] == first[row] and s[group] == second[row]):
                break
            at = (at + np.uint64(1)) & mask
        groups[row] = group
    return groups


@in_place
def _release(groups, live, table, f, s, unused):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    capacity = len(f)
    for group in groups:
        at = f[group] & mask
        while table[at] != group:
            at = (at + np.uint64(1)) & mask
        # Shift the rest of the probe run back, so that no tombstone is needed.
        hole = at
        while True:
            at = (at + np.uint64(1)) & mask
            other = table[at]
            if other < 0:
                break
            home = f[other] & mask
            if ((at - home) & mask) >= ((at - hole) & mask):
                table[hole] = other
                hole = at
        table[hole] = -1
        live -= 1
        unused[capacity - 1 - live] = group
    return live


@compiled
def _rehash(table, f):  # type: ignore[no-untyped-def]
    bigger = np.full(2 * len(table), -1, dtype=np.int64)
    mask = np.uint64(len(bigger) - 1)
    for i in range(len(table)):
        group = table[i]
        if group >= 0:
            at = f[group] & mask
            while bigger[at] >= 0:
                at = (at + np.uint64(1)) & mask
            bigger[at] = group
    return bigger


def grown(array: npt.NDArray[np.generic], capacity: int, fill: int = 0) -> npt.NDArray:  # type: ignore[type-arg]
    """The array, at least this long; new places hold `fill`. For arrays indexed by group."""
    if len(array) >= capacity:
        return array
    shape = (max(capacity, 2 * len(array)) - len(array), *array.shape[1:])
    return np.concatenate([array, np.full(shape, fill, dtype=array.dtype)])


def each_once(numbers: Int64s) -> Int64s:
    """The different numbers, in order; NumPy's own `unique` hashes them, 50 times as slow."""
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


@in_place
def count_up(numbers, counts):  # type: ignore[no-untyped-def]
    """One more for each number; negative ones are nobody's."""
    for number in numbers:
        if number >= 0:
            counts[number] += 1


@compiled
def count_down(numbers, counts):  # type: ignore[no-untyped-def]
    """One less for each number; those that have none left, each once."""
    emptied = np.empty(len(numbers), dtype=np.int64)
    found = 0
    for number in numbers:
        if number >= 0:
            counts[number] -= 1
            if counts[number] == 0:
                emptied[found] = number
                found += 1
    return emptied[:found]
