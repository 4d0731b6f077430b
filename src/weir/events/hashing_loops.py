"""Compiled loops of the hash fold words and bytes into rows' hashes and sort rows by cell."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64, U64, Booleans, I32s, I64s, U8s, U32s, U64s
from weir.loops.compiled import compiled, in_place

_NULL = np.uint64(0x6E756C6C)  # folded in instead of a value


@compiled
def by_cell(words: U64s, cell_of: U32s, count: I64):
    """Return the positions that put the rows of each cell together, in their order, and where each
    cell starts, with the number of rows at the end. A row's cell is that of its bucket, the upper
    12 bits of its word."""
    places = np.zeros(count + 1, dtype=np.int64)
    for word in words:
        places[cell_of[word >> np.uint64(52)] + 1] += 1
    for cell in range(count):
        places[cell + 1] += places[cell]
    starts = places.copy()
    order = np.empty(len(words), dtype=np.int64)
    for row in range(len(words)):
        cell = cell_of[words[row] >> np.uint64(52)]
        order[places[cell]] = row
        places[cell] += 1
    return order, starts


@in_place
def _mix(word):
    """Apply the finaliser of splitmix64: a bijection of 64 bits in which every bit matters."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return word


@in_place
def _fold(word, first, second):
    mixed_first = _mix(first ^ (word * np.uint64(0x9FB21C651E98DF25)))
    mixed_second = _mix(second + np.uint64(0x632BE59BD9B4E019) + (word ^ (word >> np.uint64(32))))
    return mixed_first, mixed_second


@in_place
def fold_words(words: I64s, first: U64s, second: U64s):
    """Fold a word into each row's hash."""
    for row in range(len(words)):
        first[row], second[row] = _fold(np.uint64(words[row]), first[row], second[row])


@in_place
def fold_words_or_null(words: I64s, nulls: Booleans, first: U64s, second: U64s):
    """Fold a word, or NULL, into each row's hash."""
    for row in range(len(words)):
        if nulls[row]:
            # Swapped lanes keep NULL apart from every value, its own number included.
            second[row], first[row] = _fold(_NULL, second[row], first[row])
        else:
            first[row], second[row] = _fold(np.uint64(words[row]), first[row], second[row])


@in_place
def eight_bytes(data, at):
    """Read the little-endian word at an offset.

    Written out, and with unsigned offsets (which need no check for negative ones), it compiles to
    one load.
    """
    word = np.uint64(data[at])
    word |= np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
    word |= np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    return word


@in_place
def fold_bytes(offsets: I32s, data: U8s, nulls: Booleans, first: U64s, second: U64s):
    """Fold a text or NULL into each row's hash, eight bytes at a time."""
    eight, size = np.uint64(8), np.uint64(len(data))
    for row in range(len(offsets) - 1):
        a, b = first[row], second[row]
        if nulls[row]:
            b, a = _fold(_NULL, b, a)
        else:
            start, stop = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
            while stop - start >= eight:
                a, b = _fold(eight_bytes(data, start), a, b)
                start += eight
            rest = stop - start
            word = np.uint64(0)
            if start + eight <= size:
                word = eight_bytes(data, start) & ((np.uint64(1) << (eight * rest)) - np.uint64(1))
            else:  # at the very end there are no eight bytes to look at
                for i in range(rest):
                    word |= np.uint64(data[start + i]) << (eight * i)
            a, b = _fold(word | rest << np.uint64(56), a, b)
        first[row], second[row] = a, b


@in_place
def fold_elements(offsets: I64s, lengths: I64s, e1: U64s, e2: U64s, first: U64s, second: U64s):
    """Fold the hashes of a list's elements into each row's hash."""
    for row in range(len(lengths)):
        for i in range(lengths[row]):
            at = offsets[row] + i
            first[row], second[row] = _fold(e1[at], first[row], second[row])
            first[row], second[row] = _fold(e2[at], first[row], second[row])


@in_place
def sum_halves(words: U64s):
    """Return the sums of the words' upper and lower halves, which do not overflow."""
    upper, lower = np.uint64(0), np.uint64(0)
    for word in words:
        upper += word >> np.uint64(32)
        lower += word & np.uint64(0xFFFFFFFF)
    return upper, lower


@in_place
def fold_rows(first: U64s, second: U64s, a: U64, b: U64):
    """Return the running checksum (a, b) after rows of these hashes."""
    for row in range(len(first)):
        a = (a ^ first[row]) * np.uint64(0x9E3779B97F4A7C15)
        a ^= a >> np.uint64(32)
        b = (b + second[row]) * np.uint64(0xC2B2AE3D27D4EB4F)
        b ^= b >> np.uint64(29)
    return a, b
