"""TimeQueue and Holds against sorted lists."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from weir.events.batch import OPEN, START
from weir.kernels.structures import time_queue
from weir.kernels.structures.time_queue import _AT_LEAST, Holds, TimeQueue, _Merge
from weir.kernels.structures.time_queue_loops import merge_runs


def _numbers(values: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_due_comes_out_in_order(seed: int) -> None:
    chance = random.Random(seed)
    queue, model = TimeQueue(), list[tuple[int, int]]()
    number = now = 0
    for _ in range(300):
        times = [now + chance.randrange(200) for _ in range(chance.randrange(8))]
        ids = list(range(number, number + len(times)))
        number += len(times)
        queue.add(_numbers(times), _numbers(ids))
        model += zip(times, ids, strict=True)
        assert len(queue) == len(model)
        assert queue.next_time == min((t for t, _ in model), default=OPEN)
        now += chance.randrange(10)
        at, due = queue.pop(now)
        assert at.tolist() == sorted(at.tolist())
        popped = list(zip(at.tolist(), due.tolist(), strict=True))
        assert sorted(popped) == sorted(p for p in model if p[0] <= now)
        model = [p for p in model if p[0] > now]
    assert len(queue._runs) <= 2 + max(len(model), 1).bit_length()


@pytest.mark.parametrize("seed", range(5))
def test_long_runs_are_read_while_they_are_merged(seed: int) -> None:
    chance = np.random.default_rng(seed)
    queue = TimeQueue()
    waiting = np.zeros((0, 2), dtype=np.int64)
    now = number = unmerged = 0
    for _ in range(120):
        count = int(chance.choice([1, 50, 50, 800, 6_000]))
        # Some are due already, many at the same time.
        times = now - 2 + chance.integers(0, chance.choice([20, 50_000]), count)
        ids = np.arange(number, number + count)
        number += count
        queue.add(times, ids)
        waiting = np.concatenate([waiting, np.stack([times, ids], axis=1)])
        assert len(queue) == len(waiting) and queue.next_time == waiting[:, 0].min()
        unmerged += any(isinstance(run, _Merge) for run in queue._runs)
        now += int(chance.choice([0, 5, 5, 400]))
        waiting = waiting[np.lexsort((waiting[:, 1], waiting[:, 0]))]
        due = waiting[:, 0] <= now
        at, popped = queue.pop(now)
        assert np.array_equal(np.stack([at, popped], axis=1), waiting[due])
        waiting = waiting[~due]
    assert unmerged > 3


def test_no_call_merges_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the runs: what a call moves is bounded, and so are the runs that wait."""
    moved = 0

    def counting(*args: Any) -> Any:
        nonlocal moved
        before = int(args[6].sum())
        result = merge_runs(*args)
        moved += int(args[6].sum()) - before
        return result

    monkeypatch.setattr(time_queue, "merge_runs", counting)
    chance, queue, most, total = np.random.default_rng(1), TimeQueue(), 0, 0
    calls, each = 4_000, 100
    for _ in range(calls):
        moved = 0
        queue.add(chance.integers(0, 10**9, each), np.arange(each))
        most, total = max(most, moved), total + moved
        assert len(queue._runs) <= 2 * (calls * each).bit_length()
    assert most <= 8 * _AT_LEAST  # a tenth of what is held
    assert total <= calls * each * calls.bit_length()


def test_times_at_the_ends_of_the_range() -> None:
    queue = TimeQueue()
    queue.add(_numbers([OPEN, START, 0]), _numbers([1, 2, 3]))
    assert queue.pop(START)[1].tolist() == [2]
    assert queue.pop(OPEN - 1)[1].tolist() == [3]
    assert queue.pop(OPEN)[1].tolist() == [1]
    assert len(queue) == 0 and queue.next_time == OPEN
    assert queue.pop(OPEN)[1].tolist() == []


def test_equal_times_come_in_the_order_they_were_added() -> None:
    queue = TimeQueue()
    queue.add(_numbers([5, 5, 3]), _numbers([1, 2, 3]))
    queue.add(_numbers([5]), _numbers([4]))
    assert queue.pop(5)[1].tolist() == [3, 1, 2, 4]


# --- holds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_start_that_still_counts(seed: int) -> None:
    chance = random.Random(seed)
    holds, current = Holds(), np.full(40, OPEN, dtype=np.int64)
    for _ in range(2_000):
        who = chance.randrange(len(current))
        if chance.random() < 0.4:
            current[who] = OPEN
        else:
            current[who] = chance.randrange(1_000)
            holds.push(current[who : who + 1], _numbers([who]), current)
        assert holds.minimum(current) == current.min()
    assert len(holds) <= 200


def test_what_is_pushed_again_and_again_is_kept_once() -> None:
    """An owner may say at every step what it still holds."""
    holds, current = Holds(), _numbers([3, 8, OPEN])
    for _ in range(5_000):
        holds.push(_numbers([8, OPEN]), _numbers([1, 2]), current)
        holds.push(_numbers([3]), _numbers([0]), current)
    assert len(holds) <= 200
    assert holds.minimum(current) == 3
    current[0] = OPEN
    assert holds.minimum(current) == 8


def test_stale_entries_do_not_add_up_behind_an_old_one() -> None:
    holds, current = Holds(), np.full(2, OPEN, dtype=np.int64)
    current[0] = 0
    holds.push(_numbers([0]), _numbers([0]), current)
    for start in range(1, 5_000):
        current[1] = start
        holds.push(_numbers([start]), _numbers([1]), current)
        assert holds.minimum(current) == 0
    assert len(holds) <= 200
    current[0] = OPEN
    assert holds.minimum(current) == 4_999


def test_nothing_held() -> None:
    holds = Holds()
    assert holds.minimum(np.zeros(0, dtype=np.int64)) == OPEN
    current = _numbers([OPEN])
    holds.push(_numbers([7]), _numbers([0]), current)
    assert holds.minimum(current) == OPEN
