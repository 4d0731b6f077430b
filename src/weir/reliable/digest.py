"""Fingerprints of rows: the order-free digest of an output, the ordered checksum of a stream.

Both are built from the 128-bit hash of a row (vs, ve, payload). The digest is the sum of the
rows' hashes modulo 2¹²⁸ and their count, so it is the same in whatever order the rows come and
however they are split. The checksum folds the hashes one after the other, so it also depends on
the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch
from weir.events.hashing import UInt64s, hash_rows
from weir.events.hashing_loops import fold_rows, sum_halves

_MODULUS = 2**128


@dataclass(frozen=True, slots=True)
class Digest:
    """The sum of row hashes modulo 2¹²⁸, and the count.

    >>> Digest(1, 1) + Digest(2, 3)
    Digest(total=3, count=4)
    """

    total: int = 0
    count: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest((self.total + other.total) % _MODULUS, self.count + other.count)

    def __str__(self) -> str:
        return f"{self.total:032x}-{self.count}"


def row_hashes(batch: Batch) -> tuple[UInt64s, UInt64s]:
    """Hash each row's lifetime and payload to two words."""
    columns = [pa.array(batch.vs), pa.array(batch.ve), *batch.columns]
    return hash_rows(columns, len(batch))


def digest(batch: Batch) -> Digest:
    """Compute the digest of some rows."""
    high, low = map(_exact_sum, row_hashes(batch))
    return Digest(((high << 64) + low) % _MODULUS, len(batch))


def _exact_sum(words: UInt64s) -> int:
    upper, lower = sum_halves(words)
    return (int(upper) << 32) + int(lower)


def checksum(batch: Batch, seed: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Fold these rows into a running checksum, which begins with (0, 0)."""
    first, second = row_hashes(batch)
    a, b = fold_rows(first, second, np.uint64(seed[0]), np.uint64(seed[1]))
    return int(a), int(b)


class OrderedChecksum:
    """The running checksum of a stream, and how many rows it covers."""

    def __init__(self) -> None:
        self._words, self._count = (0, 0), 0

    def add(self, rows: Batch) -> None:
        if len(rows):
            self._words = checksum(rows, self._words)
            self._count += len(rows)

    def __str__(self) -> str:
        return f"{self._words[0]:016x}{self._words[1]:016x}-{self._count}"
