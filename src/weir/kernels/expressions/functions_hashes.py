"""Fingerprints of STRING (its UTF-8 bytes) and BINARY: md5, sha256, xxhash64.

They are for users; partitions, keys and digests have their own hash (`events/hashing.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.compiled import in_place
from weir.events.hashing import binary_buffers
from weir.events.types import STRING
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    plain,
    valid_rows,
    with_nulls,
)

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]

_P1 = np.uint64(11400714785074694791)
_P2 = np.uint64(14029467366897019727)
_P3 = np.uint64(1609587929392839161)
_P4 = np.uint64(9650029242287828579)
_P5 = np.uint64(2870177450012600261)


def _hex(digest: Callable[[bytes], str]) -> ArrayFunction:
    def run(column: pa.Array) -> pa.Array:
        texts = column.cast(pa.binary()).to_pylist()
        return pa.array([None if t is None else digest(t) for t in texts], STRING)

    return run


def _xxhash64(column: pa.Array) -> pa.Array:
    offsets, data = binary_buffers(column)
    hashes = np.zeros(len(column), dtype=np.uint64)
    _hash_rows(offsets, data, hashes)
    return with_nulls(hashes.view(np.int64), valid_rows(column))


@in_place
def _turn(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@in_place
def _read(data: Bytes, at: int, size: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@in_place
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _turn(lane + word * _P2, 31) * _P1


@in_place
def _stripes(data: Bytes, at: int, stop: int) -> np.uint64:
    """The state after all whole stripes of 32 bytes."""
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
def _hash_bytes(data: Bytes, at: int, stop: int) -> np.uint64:
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
def _hash_rows(offsets: Offsets, data: Bytes, hashes: Hashes) -> None:
    for row in range(len(hashes)):
        hashes[row] = _hash_bytes(data, int(offsets[row]), int(offsets[row + 1]))


FUNCTIONS: Mapping[str, Builder] = {
    "md5": plain(_hex(lambda text: hashlib.md5(text, usedforsecurity=False).hexdigest())),
    "sha256": plain(_hex(lambda text: hashlib.sha256(text).hexdigest())),
    "xxhash64": plain(_xxhash64),
}
