"""Compiled loops of the key index (see `keys.py` for its contract)."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64, I64s, U64s
from weir.loops.compiled import compiled, in_place

FREE = -1
"""The content of a table's slot that no group has."""


@in_place
def encode_rows(
    first: U64s,
    second: U64s,
    groups: I64s,
    done: I64,
    live: I64,
    table: I64s,
    f: U64s,
    s: U64s,
    unused: I64s,
):
    """Encode rows from `done` on; stop early if all numbers are in use."""
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
def find_rows(first: U64s, second: U64s, table: I64s, f: U64s, s: U64s):
    """Return the group of each row; −1 where there is none."""
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
def release_groups(groups: I64s, live: I64, table: I64s, f: U64s, s: U64s, unused: I64s):
    """Remove groups from the table; return how many are still live."""
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
        table[hole] = FREE
        live -= 1
        unused[capacity - 1 - live] = group
    return live


@compiled
def rehashed(table: I64s, f: U64s):
    """Return the table at twice its length."""
    bigger = np.full(2 * len(table), FREE, dtype=np.int64)
    mask = np.uint64(len(bigger) - 1)
    for i in range(len(table)):
        group = table[i]
        if group >= 0:
            at = f[group] & mask
            while bigger[at] >= 0:
                at = (at + np.uint64(1)) & mask
            bigger[at] = group
    return bigger


@in_place
def count_up(numbers: I64s, counts: I64s):
    """Increase the count of each number by one; negative numbers are ignored."""
    for number in numbers:
        if number >= 0:
            counts[number] += 1


@compiled
def count_down(numbers: I64s, counts: I64s):
    """Decrease the count of each number by one; return the numbers that reach zero, each once."""
    emptied = np.empty(len(numbers), dtype=np.int64)
    found = 0
    for number in numbers:
        if number >= 0:
            counts[number] -= 1
            if counts[number] == 0:
                emptied[found] = number
                found += 1
    return emptied[:found]
