"""Compiled loops of SipHash-1-3-128 (see `key_hashes.py` for what is hashed).

A message is words of eight bytes and a last word, whose highest byte is the message's length. Each
word takes one round (the 1 in the name); at the end, each word of the hash takes three (the 3).

Rows are processed in blocks. The loops over a block have no branch, so that one instruction works
on several rows, and the state of a block stays in the nearest cache.
"""

from __future__ import annotations

import numpy as np

from weir.events.hashing_loops import eight_bytes
from weir.loops.argument_types import U64, I32s, I64s, U8s, U64s, U64Table
from weir.loops.compiled import in_place

BLOCK = 128
"""How many rows are in a block; the caller provides an array of 4 · BLOCK for their states."""
_B, _C, _D = BLOCK, 2 * BLOCK, 3 * BLOCK
"""Where the second, third and fourth words of the states begin."""
_FIRST_END, _SECOND_END = np.uint64(0xEE), np.uint64(0xDD)
_TOP_BYTE = np.uint64(56)


@in_place
def hash_numbers(words: I64s, state: U64s, first: U64s):
    """Hash messages of one word each; write only the first word of each hash."""
    last = np.uint64(8) << _TOP_BYTE
    a0, b0, c0, d0 = state[0], state[1], state[2], state[3]
    for row in range(len(words)):
        a, b, c, d = _absorbed(np.uint64(words[row]), a0, b0, c0, d0)
        a, b, c, d = _absorbed(last, a, b, c, d)
        a, b, c, d = _three_rounds(a, b, c ^ _FIRST_END, d)
        first[row] = a ^ b ^ c ^ d


@in_place
def hash_pairs(words: U64s, others: U64s, last: U64, state: U64s, first: U64s, second: U64s):
    """Hash messages of two words and a last word that is the same for all rows.

    It does the same as `hash_words`, in one pass."""
    a0, b0, c0, d0 = state[0], state[1], state[2], state[3]
    for row in range(len(words)):
        a, b, c, d = _absorbed(np.uint64(words[row]), a0, b0, c0, d0)
        a, b, c, d = _absorbed(np.uint64(others[row]), a, b, c, d)
        a, b, c, d = _absorbed(last, a, b, c, d)
        a, b, c, d = _three_rounds(a, b, c ^ _FIRST_END, d)
        first[row] = a ^ b ^ c ^ d
        a, b, c, d = _three_rounds(a, b ^ _SECOND_END, c, d)
        second[row] = a ^ b ^ c ^ d


@in_place
def hash_words(words: U64Table, lasts: U64s, state: U64s, block: U64s, first: U64s, second: U64s):
    """Hash messages of several words each, the columns of the matrix `words`, and a last word.

    `lasts` has one last word for each row, or one for all."""
    for start in range(0, len(first), BLOCK):
        stop = min(start + BLOCK, len(first))
        _begin(stop - start, state, block)
        for number in range(len(words)):
            _absorb(words[number, start:stop], block)
        if len(lasts) > 1:
            _absorb(lasts[start:stop], block)
        else:
            _absorb_one(lasts[0], stop - start, block)
        _finish(block, first[start:stop], second[start:stop])


@in_place
def hash_texts(offsets: I32s, data: U8s, state: U64s, block: U64s, first: U64s, second: U64s):
    """Hash messages that are the bytes of texts."""
    for start in range(0, len(first), BLOCK):
        stop = min(start + BLOCK, len(first))
        _absorb_texts(offsets[start : stop + 1], data, state, block)
        _finish(block, first[start:stop], second[start:stop])


@in_place
def hash_lists(
    offsets: I64s, e1: U64s, e2: U64s, state: U64s, block: U64s, first: U64s, second: U64s
):
    """Hash messages that are the hashes of a list's elements."""
    for start in range(0, len(first), BLOCK):
        stop = min(start + BLOCK, len(first))
        _absorb_elements(offsets[start : stop + 1], e1, e2, state, block)
        _finish(block, first[start:stop], second[start:stop])


@in_place
def _begin(count, state, block):
    a, b, c, d = state[0], state[1], state[2], state[3]
    for i in range(count):
        block[i], block[_B + i], block[_C + i], block[_D + i] = a, b, c, d


@in_place
def _absorb(words, block):
    for i in range(len(words)):
        block[i], block[_B + i], block[_C + i], block[_D + i] = _absorbed(
            words[i], block[i], block[_B + i], block[_C + i], block[_D + i]
        )


@in_place
def _absorb_one(word, count, block):
    for i in range(count):
        block[i], block[_B + i], block[_C + i], block[_D + i] = _absorbed(
            word, block[i], block[_B + i], block[_C + i], block[_D + i]
        )


@in_place
def _absorb_texts(offsets, data, state, block):
    eight, size = np.uint64(8), np.uint64(len(data))
    for i in range(len(offsets) - 1):
        a, b, c, d = state[0], state[1], state[2], state[3]
        at, stop = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        length = (stop - at) << _TOP_BYTE
        while stop - at >= eight:
            a, b, c, d = _absorbed(eight_bytes(data, at), a, b, c, d)
            at += eight
        rest = stop - at
        word = np.uint64(0)
        if at + eight <= size:
            word = eight_bytes(data, at) & ((np.uint64(1) << (eight * rest)) - np.uint64(1))
        else:  # the last text may have no eight bytes left to read
            for k in range(rest):
                word |= np.uint64(data[at + k]) << (eight * k)
        a, b, c, d = _absorbed(length | word, a, b, c, d)
        block[i], block[_B + i], block[_C + i], block[_D + i] = a, b, c, d


@in_place
def _absorb_elements(offsets, e1, e2, state, block):
    for i in range(len(offsets) - 1):
        a, b, c, d = state[0], state[1], state[2], state[3]
        for at in range(offsets[i], offsets[i + 1]):
            a, b, c, d = _absorbed(e1[at], a, b, c, d)
            a, b, c, d = _absorbed(e2[at], a, b, c, d)
        length = np.uint64(16 * (offsets[i + 1] - offsets[i])) << _TOP_BYTE
        a, b, c, d = _absorbed(length, a, b, c, d)
        block[i], block[_B + i], block[_C + i], block[_D + i] = a, b, c, d


@in_place
def _finish(block, first, second):
    for i in range(len(first)):
        a, b, c, d = block[i], block[_B + i], block[_C + i], block[_D + i]
        a, b, c, d = _three_rounds(a, b, c ^ _FIRST_END, d)
        first[i] = a ^ b ^ c ^ d
        a, b, c, d = _three_rounds(a, b ^ _SECOND_END, c, d)
        second[i] = a ^ b ^ c ^ d


@in_place
def _absorbed(word, a, b, c, d):
    a, b, c, d = _round(a, b, c, d ^ word)
    return a ^ word, b, c, d


@in_place
def _three_rounds(a, b, c, d):
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    return _round(a, b, c, d)


@in_place
def _round(a, b, c, d):
    a += b
    c += d
    b = ((b << np.uint64(13)) | (b >> np.uint64(51))) ^ a
    d = ((d << np.uint64(16)) | (d >> np.uint64(48))) ^ c
    a = (a << np.uint64(32)) | (a >> np.uint64(32))
    c += b
    a += d
    b = ((b << np.uint64(17)) | (b >> np.uint64(47))) ^ c
    d = ((d << np.uint64(21)) | (d >> np.uint64(43))) ^ a
    c = (c << np.uint64(32)) | (c >> np.uint64(32))
    return a, b, c, d
