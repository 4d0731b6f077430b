"""Forest against plain lists: panes enter early, leave late, and no answer shows it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from weir.kernels.aggregates.forest import Forest
from weir.kernels.structures import treap_loops as treap
from weir.kernels.structures.panes import Operations
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT

NUMBERS = np.zeros(0, dtype=np.int64)
PLAIN = (NUMBERS, NUMBERS, np.zeros(0, dtype=np.uint8))
CAPACITY = 4_096
GROUPS = 3


class Scene:
    """A forest and what it should hold: for each group its panes, for each pane its keys."""

    def __init__(self) -> None:
        self.forest = Forest()
        self.forest.grow(64, GROUPS)
        self.inside: list[dict[int, list[int]]] = [{} for _ in range(GROUPS)]
        self.free = list(range(CAPACITY))

    def add(self, group: int, pane: int, keys: list[int]) -> None:
        entries = [self.free.pop() for _ in keys]
        count = len(keys)
        self.forest.add(
            np.array(entries, dtype=np.int64),
            np.full(count, pane),
            np.full(count, group),
            np.array(keys, dtype=np.int64),
            CAPACITY,
            PLAIN,
        )
        self.inside[group].setdefault(pane, []).extend(keys)

    def replay(self, *steps: tuple[int, int, int]) -> list[list[int]]:
        """Each EMIT's keys in order."""
        kinds, groups, panes = (
            np.array(column, dtype=np.int64) for column in zip(*steps, strict=True)
        )
        operations = Operations(kinds, groups, panes, panes[kinds == EMIT])
        counts, entries = self.forest.replay_all(operations, PLAIN)
        keys = iter(self.forest.keys(entries).tolist())
        return [[next(keys) for _ in range(count)] for count in counts.tolist()]

    def exit(self, group: int, pane: int) -> None:
        self.replay((EXIT, group, pane))
        self.forest.forget(np.array([pane]))
        del self.inside[group][pane]

    def collect(self, most: int) -> int:
        entries = self.forest.collect(most).tolist()
        assert not set(entries) & set(self.free), "given back twice"
        self.free += entries
        return len(entries)

    def check(self) -> None:
        for group, panes in enumerate(self.inside):
            expected = sorted(key for keys in panes.values() for key in keys)
            assert self.replay((EMIT, group, -1)) == [expected]
        self.check_members()

    def check_members(self) -> None:
        panes = [pane for panes in self.inside for pane in panes]
        at, entries = self.forest.members(np.array(panes, dtype=np.int64))
        found: dict[int, list[int]] = {pane: [] for pane in panes}
        for index, key in zip(at.tolist(), self.forest.keys(entries).tolist(), strict=True):
            found[panes[index]].append(key)
        expected = {pane: sorted(keys) for panes in self.inside for pane, keys in panes.items()}
        assert {pane: sorted(keys) for pane, keys in found.items()} == expected


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_work_gives_the_same_answers(seed: int) -> None:
    chance = random.Random(seed)
    scene = Scene()
    for _ in range(300):
        group = chance.randrange(GROUPS)
        panes = scene.inside[group]
        match chance.choice(["add", "add", "exit", "exit", "pay", "collect", "check"]):
            case "add":
                used = {pane for panes in scene.inside for pane in panes}
                new = chance.choice([p for p in range(64) if p not in used])
                pane = chance.choice([*panes, new])
                scene.add(
                    group, pane, [chance.randrange(50) for _ in range(chance.randrange(1, 9))]
                )
                if chance.random() < 0.5:
                    scene.forest.settle(PLAIN)
                else:
                    scene.replay((ENTER, group, pane))
            case "exit" if panes:
                scene.exit(group, chance.choice(list(panes)))
                scene.check_members()
            case "pay":
                scene.forest.pay(chance.randrange(12), PLAIN)
            case "collect":
                scene.collect(chance.randrange(12))
            case "check":
                scene.check()
        held = sum(len(keys) for panes in scene.inside for keys in panes.values())
        assert CAPACITY - len(scene.free) - scene.forest.left == held
    scene.check()


def test_entries_of_a_new_pane_wait_until_the_step_is_over() -> None:
    scene = Scene()
    scene.add(0, 5, [2])
    assert scene.replay((EMIT, 0, -1)) == [[]]
    scene.forest.settle(PLAIN)
    assert scene.replay((EMIT, 0, -1)) == [[2]]
    scene.add(0, 5, [1])  # the pane is in
    assert scene.replay((EMIT, 0, -1), (ENTER, 0, 5), (EMIT, 0, -1)) == [[1, 2], [1, 2]]


def test_a_pane_that_went_does_not_enter_under_its_old_number() -> None:
    scene = Scene()
    scene.add(0, 5, [2])
    assert scene.replay((ENTER, 0, 5), (EMIT, 0, -1), (EXIT, 0, 5)) == [[2]]
    scene.forest.forget(np.array([5]))
    scene.forest.settle(PLAIN)
    scene.add(0, 5, [3])
    assert scene.replay((EMIT, 0, -1)) == [[]]


def test_what_leaves_is_paid_for_a_little_at_a_time() -> None:
    scene = Scene()
    for pane in (0, 1):
        scene.add(0, pane, list(range(100)))
        scene.replay((ENTER, 0, pane))
    scene.exit(0, 0)
    assert scene.forest.left == 100 and scene.collect(1_000) == 0
    scene.forest.pay(30, PLAIN)
    assert scene.forest.left == 100 and scene.collect(1_000) == 30
    scene.check()  # an answer asks for all of it
    assert scene.collect(1_000) == 70 and scene.forest.left == 0


def test_a_tree_of_which_all_leaves_is_felled() -> None:
    scene = Scene()
    for pane in (0, 1):
        scene.add(0, pane, list(range(100)))
        scene.replay((ENTER, 0, pane))
        scene.replay((EXIT, 0, 0)) if pane else None
    scene.replay((EXIT, 0, 1))
    assert scene.collect(60) == 60, "without paying"
    assert scene.collect(1_000) == 140
    assert scene.replay((EMIT, 0, -1)) == [[]]


def test_the_whole_multiset_in_order() -> None:
    scene = Scene()
    values = [3, 1, 2] * 500  # more than the first buffer holds
    scene.add(0, 0, values)
    steps = [(EMIT, 0, -1), (ENTER, 0, 0), (EMIT, 0, -1), (EMIT, 0, -1)]
    assert scene.replay(*steps) == [[], sorted(values), sorted(values)]


def test_a_query_at_each_emit() -> None:
    scene = Scene()
    scene.add(1, 0, [5, 2, 9])
    steps = [(EMIT, 1, -1), (ENTER, 1, 0), (EMIT, 1, -1)]
    kinds, groups, panes = (np.array(column, dtype=np.int64) for column in zip(*steps, strict=True))
    operations = Operations(kinds, groups, panes, panes[kinds == EMIT])
    out, rests = scene.forest.replay(operations, treap.CONT, 1, 4, PLAIN)
    assert out[0].tolist() == [-1, -1]
    assert scene.forest.keys(out[1]).tolist() == [2, 5] and rests.tolist() == [0, 2]
