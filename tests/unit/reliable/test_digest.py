"""Digests forget order, checksums do not; both are pinned."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch, empty_batch
from weir.reliable.digest import Digest, checksum, digest, row_hashes

COUNT = 200


def _rows(order: list[int]) -> Batch:
    vs = np.array(order, dtype=np.int64)
    ve = np.where(vs % 5 == 0, OPEN, vs + 3)
    return Batch(vs, ve, (pa.array([f"row {i}" if i % 3 else None for i in order]),))


ROWS = _rows(list(range(COUNT)))


def test_golden() -> None:
    """Stored digests must mean the same in every release."""
    assert str(digest(ROWS)) == "bab00dfe32b8522d42e48a7b44a3819b-200"
    assert "".join(f"{w:016x}" for w in checksum(ROWS)) == "05a016e8d2c44b26ec7e5155281567cd"
    assert str(digest(empty_batch([pa.string()]))) == "0" * 32 + "-0"


def test_the_digest_is_the_sum_of_the_rows_hashes() -> None:
    first, second = row_hashes(ROWS)
    words = zip(first.tolist(), second.tolist(), strict=True)
    assert digest(ROWS) == Digest(sum((a << 64) + b for a, b in words) % 2**128, COUNT)


def test_the_digest_has_no_order_and_any_parts() -> None:
    chance = random.Random(1)
    order = list(range(COUNT))
    chance.shuffle(order)
    total = Digest()
    while order:
        size = chance.randint(0, 40)
        total += digest(_rows(order[:size]))
        order = order[size:]
    assert total == digest(ROWS)


def test_the_digest_counts_every_row() -> None:
    double = digest(_rows([1, 1]))
    assert double == digest(_rows([1])) + digest(_rows([1])) != digest(_rows([1]))
    assert digest(_rows([1, 2])) != digest(_rows([1, 3]))


def test_the_digest_sees_lifetimes() -> None:
    one = Batch(np.array([1]), np.array([2]), ())
    other = Batch(np.array([1]), np.array([3]), ())
    swapped = Batch(np.array([2]), np.array([1]), ())
    assert len({digest(b) for b in (one, other, swapped)}) == 3


def test_the_digest_does_not_see_origins() -> None:
    with_origin = Batch(ROWS.vs, ROWS.ve, ROWS.columns, (ROWS.vs,))
    assert digest(with_origin) == digest(ROWS)


def test_sums_beyond_128_bits_wrap() -> None:
    assert Digest(2**128 - 1, 1) + Digest(2, 1) == Digest(1, 2)


def test_the_checksum_goes_on_where_it_stopped() -> None:
    for cut in (0, 1, 77, COUNT):
        assert checksum(ROWS.slice(cut, COUNT), checksum(ROWS.slice(0, cut))) == checksum(ROWS)


def test_the_checksum_sees_order() -> None:
    swapped = list(range(COUNT))
    swapped[3], swapped[4] = swapped[4], swapped[3]
    assert checksum(_rows(swapped)) != checksum(ROWS)
    assert digest(_rows(swapped)) == digest(ROWS)
    # Each word by itself.
    assert all(a != b for a, b in zip(checksum(_rows(swapped)), checksum(ROWS), strict=True))
