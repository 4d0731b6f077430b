"""KeyIndex against a dict, through growth, release and reuse."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from weir.kernels.structures.keys import KeyIndex, each_once, grown
from weir.kernels.structures.keys_loops import count_down, count_up


def _hashes(index: KeyIndex, values: list[int]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    return index.hashes([pa.array(values, pa.int64())], len(values))


def _words(first: list[int], second: list[int]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    return np.array(first, dtype=np.uint64), np.array(second, dtype=np.uint64)


@pytest.mark.parametrize("seed", range(5))
def test_any_operations_do_what_a_dict_does(seed: int) -> None:
    chance = random.Random(seed)
    index, model = KeyIndex(), dict[int, int]()
    most = 0
    for _ in range(150):
        values = [chance.randrange(3_000) for _ in range(chance.randrange(60))]
        groups = index.encode(*_hashes(index, values)).tolist()
        for value, group in zip(values, groups, strict=True):
            assert model.setdefault(value, group) == group
        assert len(set(model.values())) == len(model) == len(index)
        asked = [chance.randrange(3_000) for _ in range(50)]
        found = index.find(*_hashes(index, asked)).tolist()
        assert found == [model.get(value, -1) for value in asked]
        most = max(most, len(model))
        gone = chance.sample(sorted(model), chance.randrange(len(model) + 1) if model else 0)
        index.release(np.array([model.pop(value) for value in gone], dtype=np.int64))
        assert len(index) == len(model)
    assert most > 60, "it never grew"
    assert index.capacity <= max(32, 2 * most)


def test_numbers_are_reused_and_small() -> None:
    index = KeyIndex()
    for round_ in range(200):
        groups = index.encode(*_hashes(index, list(range(100 * round_, 100 * round_ + 100))))
        assert sorted(groups.tolist()) == sorted(set(groups.tolist()))
        index.release(groups)
    assert len(index) == 0
    assert index.capacity == 128


def test_growth_keeps_every_number() -> None:
    index = KeyIndex()
    values = list(range(5_000))
    groups = index.encode(*_hashes(index, values))
    assert sorted(groups.tolist()) == values  # dense
    assert index.find(*_hashes(index, values)).tolist() == groups.tolist()
    assert index.capacity == 8192


def test_equal_first_words_are_told_apart_by_the_second() -> None:
    index = KeyIndex()
    groups = index.encode(*_words([7] * 40, list(range(40))))
    assert len(set(groups.tolist())) == 40
    assert index.find(*_words([7, 7, 8], [3, 40, 3])).tolist() == [groups[3], -1, -1]


def test_release_leaves_no_gap_in_a_run_that_wraps_around() -> None:
    """Keys whose home is the last slot of the table spill over to its beginning."""
    last = 63  # of the 64 slots before growth
    index = KeyIndex()
    firsts = [last, last + 64, last + 128, 0, 64, 1]
    groups = index.encode(*_words(firsts, firsts))
    for gone in range(len(firsts)):
        index.release(groups[gone : gone + 1])
        rest = index.find(*_words(firsts[gone + 1 :], firsts[gone + 1 :]))
        assert rest.tolist() == groups[gone + 1 :].tolist()
        assert index.find(*_words([firsts[gone]], [firsts[gone]])).tolist() == [-1]
    assert len(index) == 0


def test_counting() -> None:
    counts = np.zeros(4, dtype=np.int64)
    count_up(np.array([0, 1, 1, -1, 3]), counts)
    assert counts.tolist() == [1, 2, 0, 1]
    assert count_down(np.array([1, -1, 0, 1]), counts).tolist() == [0, 1]
    assert counts.tolist() == [0, 0, 0, 1]


def test_grown() -> None:
    array = np.array([1, 2])
    assert grown(array, 2) is array
    assert grown(array, 3, -1).tolist() == [1, 2, -1, -1]
    assert grown(np.ones((1, 2), dtype=np.int64), 5).shape == (5, 2)


@pytest.mark.parametrize("numbers", [[], [3], [3, 1, 3, 2, 1], [-5, -5, 0]])
def test_each_once(numbers: list[int]) -> None:
    assert each_once(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))
