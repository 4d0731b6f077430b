"""Heaps and lists of rows against sorted lists, one for each group."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numba import njit

from weir.kernels.structures import heaps_loops
from weir.kernels.structures.heaps_loops import AFTER, BEFORE, FIRST, LAST, slots_of

chain, insert, pop = (
    njit(loop.py_func) for loop in (heaps_loops.chain, heaps_loops.insert, heaps_loops.pop)
)
GROUPS, SLOTS = 4, 300


def _listed(group: int, links: np.ndarray, table: np.ndarray, start: int, way: int) -> list[int]:  # type: ignore[type-arg]
    slots, at = [], table[group, start]
    while at >= 0:
        slots.append(int(at))
        at = links[at, way]
    return slots


@pytest.mark.parametrize("seed", range(4))
def test_rows_go_in_order_of_their_end_and_stay_in_order_of_arrival(seed: int) -> None:
    chance = random.Random(seed)
    ve = np.array([chance.randrange(100) for _ in range(SLOTS)])
    links = np.zeros((SLOTS, 4), dtype=np.int64)
    table = np.full((GROUPS, 3), -1, dtype=np.int64)
    model: dict[int, list[int]] = {group: [] for group in range(GROUPS)}
    gone, expected = -1, list[int]()
    for slot in range(SLOTS):
        group = chance.randrange(GROUPS)
        insert(slot, group, ve, links, table)
        model[group].append(slot)
        group = chance.randrange(GROUPS)
        if model[group] and chance.random() < 0.7:
            taken = pop(group, ve, links, table)
            assert ve[taken] == min(ve[s] for s in model[group])
            model[group].remove(taken)
            gone = chain(taken, gone, links)
            expected.insert(0, taken)
        for g, slots in model.items():
            assert _listed(g, links, table, FIRST, AFTER) == slots
            assert _listed(g, links, table, LAST, BEFORE) == slots[::-1]
    assert slots_of(gone, links).tolist() == expected
