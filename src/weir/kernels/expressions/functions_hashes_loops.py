"""Compiled loops of xxHash64."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I32s, U8s, U64s
from weir.loops.compiled import in_place

_P1 = np.uint64(11400714785074694791)
_P2 = np.uint64(14029467366897019727)
_P3 = np.uint64(1609587929392839161)
_P4 = np.uint64(9650029242287828579)
_P5 = np.uint64(2870177450012600261)


@in_place
def _turn(word, bits):
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@in_place
def _read(data, at, size):
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@in_place
def _round(lane, word):
    return _turn(lane + word * _P2, 31) * _P1


@in_place
def _stripes(data, at, stop):
    """Return the state after all whole stripes of 32 bytes."""
    a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
    while stop - at >= 32:
        a = _round(a, _read(data, at, 8))
        b = _round(b, _read(data, at + 8, 8))
        c = _round(c, _read(data, at + 16, 8))
        d = _round(d, _read(data, at + 24, 8))
        at += 32
    state = _turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18)
    for lane in (a, b, c, d):
        state = (state ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return state


@in_place
def _hash_bytes(data, at, stop):
    size = stop - at
    state = _stripes(data, at, stop) if size >= 32 else _P5
    state += np.uint64(size)
    at += size // 32 * 32
    while stop - at >= 8:
        state = _turn(state ^ _round(np.uint64(0), _read(data, at, 8)), 27) * _P1 + _P4
        at += 8
    if stop - at >= 4:
        state = _turn(state ^ (_read(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < stop:
        state = _turn(state ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))


@in_place
def xxhash64_rows(offsets: I32s, data: U8s, hashes: U64s):
    """Write the hash of each row's bytes."""
    for row in range(len(hashes)):
        hashes[row] = _hash_bytes(data, int(offsets[row]), int(offsets[row + 1]))
