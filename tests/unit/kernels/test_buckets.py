"""Buckets against lists of (end, slot), one for each group."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numba import njit

from weir.events.batch import START
from weir.kernels.structures import buckets_loops
from weir.kernels.structures.buckets import Buckets

GROUPS = 20
live = njit(buckets_loops.live.py_func)


def _one(number: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([number], dtype=np.int64)


def _live(buckets: Buckets, group: int, now: int) -> list[int]:
    out = np.empty(100_000, dtype=np.int64)
    count = live(group, now, buckets.arena, buckets.spans, out, 0)
    return sorted(out[:count].tolist())


@pytest.mark.parametrize("seed", range(4))
def test_any_operations_do_what_lists_do(seed: int) -> None:
    chance = random.Random(seed)
    buckets = Buckets()
    buckets.grow(GROUPS)
    model: dict[int, list[tuple[int, int]]] = {g: [] for g in range(GROUPS)}
    slot, most = 0, 0
    for now in range(1_500):
        group = chance.randrange(GROUPS)
        count = chance.choice([1, 1, 1, 30])
        slots = np.arange(slot, slot + count)
        ends = np.array([now + chance.randint(1, 60) for _ in range(count)])
        slot += count
        buckets.insert_all(np.full(count, group), slots, ends, now)
        model[group] += list(zip(ends.tolist(), slots.tolist(), strict=True))
        for g in model:
            model[g] = [(e, s) for e, s in model[g] if e > now]
        most = max(most, sum(map(len, model.values())))
        asked = chance.randrange(GROUPS)
        assert _live(buckets, asked, now) == sorted(s for _, s in model[asked])
        if model[asked] and chance.random() < 0.3:
            _, gone = model[asked].pop(chance.randrange(len(model[asked])))
            buckets.remove(_one(asked), _one(gone))
        if chance.random() < 0.1:
            forgotten = chance.randrange(GROUPS)
            model[forgotten] = []
            buckets.release(_one(forgotten))
    # A block may be twice as long as its pairs, half of them ended, and outgrown ones are kept.
    assert len(buckets.arena) <= 16 * most


def test_groups_that_come_and_go_use_the_same_blocks() -> None:
    buckets = Buckets()
    for group in range(5_000):
        buckets.grow(group % 8 + 1)
        at = group % 8
        buckets.insert_all(np.full(3, at), np.arange(3), np.full(3, 10), 0)
        buckets.release(_one(at))
    assert len(buckets.arena) == 256


def test_rows_that_ended_make_room() -> None:
    buckets = Buckets()
    buckets.grow(1)
    for now in range(10_000):
        buckets.insert_all(_one(0), _one(now), _one(now + 1), now)
    assert len(buckets.arena) == 256
    assert _live(buckets, 0, 9_999) == [9_999]
    assert _live(buckets, 0, 10_000) == []


def test_the_end_is_exclusive() -> None:
    buckets = Buckets()
    buckets.grow(1)
    buckets.insert_all(np.zeros(2, np.int64), np.array([7, 8]), np.array([5, 6]), START)
    assert _live(buckets, 0, 5) == [8]


def test_rows_without_a_group_are_nowhere() -> None:
    buckets = Buckets()
    buckets.grow(2)
    buckets.insert_all(np.array([-1, 1]), np.array([3, 4]), np.array([9, 9]), 0)
    buckets.remove(np.array([-1]), np.array([4]))
    assert _live(buckets, 0, 0) == [] and _live(buckets, 1, 0) == [4]


def test_a_reader_without_room_changes_nothing() -> None:
    buckets = Buckets()
    buckets.grow(1)
    buckets.insert_all(np.zeros(3, np.int64), np.arange(3), np.array([1, 9, 9]), 0)
    assert live(0, 5, buckets.arena, buckets.spans, np.empty(2, np.int64), 0) == -1
    assert buckets.spans[0, 1] == 3
    assert _live(buckets, 0, 5) == [1, 2]
