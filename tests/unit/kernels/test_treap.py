"""The ordered multisets against sorted lists."""

from __future__ import annotations

import bisect
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from attack.key_collisions import crowded_priorities
from weir.kernels.structures import treap_loops as treap
from weir.kernels.structures.treap_nodes import TreapNodes

NO_NUMBERS = np.zeros(0, dtype=np.int64)
NO_BYTES = np.zeros(0, dtype=np.uint8)
PLAIN = (NO_NUMBERS, NO_NUMBERS, NO_BYTES)
answer, compare, insert, kth, remove = (
    njit(loop.py_func)
    for loop in (treap.answer, treap.compare, treap.insert, treap.kth, treap.remove)
)


class Trees:
    """A pool of nodes with these keys, in two groups."""

    def __init__(self, keys: list[int], texts: list[bytes] | None = None) -> None:
        pool = TreapNodes()
        pool.grow(len(keys))
        self.nodes = pool.table
        self.nodes[:, treap.KEY] = keys
        self.nodes[:, treap.SIZE] = 1
        self.roots = np.full(2, -1, dtype=np.int64)
        self.sort_keys = PLAIN
        if texts is not None:
            lengths = np.array([len(t) for t in texts], dtype=np.int64)
            starts = np.cumsum(lengths) - lengths
            self.sort_keys = (starts, lengths, np.frombuffer(b"".join(texts) or b" ", np.uint8))

    def insert(self, group: int, node: int) -> None:
        self.nodes[node, treap.LEFT : treap.PRIORITY] = (-1, -1, 1)
        insert(self.nodes, self.roots, group, node, *self.sort_keys)

    def remove(self, group: int, node: int) -> None:
        remove(self.nodes, self.roots, group, node, *self.sort_keys)

    def members(self, group: int) -> list[int]:
        root = int(self.roots[group])
        size = int(self.nodes[root, treap.SIZE]) if root >= 0 else 0
        return [int(kth(self.nodes, root, i)) for i in range(size)]

    def depth(self, group: int) -> int:
        deepest, waiting = 0, [(int(self.roots[group]), 1)]
        while waiting:
            node, level = waiting.pop()
            if node >= 0:
                deepest = max(deepest, level)
                sides = (treap.LEFT, treap.RIGHT)
                waiting += [(int(self.nodes[node, s]), level + 1) for s in sides]
        return deepest


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [3, 10**6])
@pytest.mark.parametrize("bytes_", [False, True])
def test_any_operations_do_what_a_sorted_list_does(seed: int, spread: int, bytes_: bool) -> None:
    chance = random.Random(seed)
    count = 300
    keys = [chance.randrange(spread) for _ in range(count)]
    texts = [chance.choice([b"", b"a", b"a\0", b"ab", b"b"]) for _ in keys] if bytes_ else None
    trees = Trees(keys, texts)
    order = [(k, texts[i] if texts else b"", i) for i, k in enumerate(keys)]
    model: list[list[tuple[int, bytes, int]]] = [[], []]
    free = set(range(count))
    for _ in range(600):
        group = chance.randrange(2)
        if free and chance.random() < 0.6:
            node = chance.choice(sorted(free))
            free.discard(node)
            trees.insert(group, node)
            bisect.insort(model[group], order[node])
        elif model[group]:
            node = model[group].pop(chance.randrange(len(model[group])))[2]
            free.add(node)
            trees.remove(group, node)
    for group in range(2):
        assert trees.members(group) == [node for _, _, node in model[group]]
        while model[group]:
            trees.remove(group, model[group].pop()[2])
        assert trees.roots[group] == -1


GOLDEN_RATIO = 0x9E3779B97F4A7C15


@pytest.mark.parametrize(
    "keys", ["rising", "falling", "golden", "golden falling", "mixed", "mixed falling", "equal"]
)
def test_no_order_of_keys_makes_a_deep_tree(keys: str) -> None:
    """Depth must stay far below 256, the longest path that an insertion has room for. Numbers
    spread by the golden ratio are what a simple hash of the node's number looks like; "mixed" is
    the one that was the priority once, and made a list."""
    count = 20_000
    golden = [(i * GOLDEN_RATIO % 2**64) >> 2 for i in range(1, count + 1)]
    mixed = crowded_priorities(count).tolist()
    made = {
        "rising": list(range(count)),
        "falling": list(range(count, 0, -1)),
        "golden": golden,
        "golden falling": [-g for g in golden],
        "mixed": mixed,
        "mixed falling": [-rank for rank in mixed],
        "equal": [0] * count,
    }
    trees = Trees([*made[keys], 2**62])
    for node in range(count + 1):
        trees.insert(0, node)
    assert trees.depth(0) < 64
    assert trees.nodes[trees.roots[0], treap.SIZE] == count + 1
    assert kth(trees.nodes, trees.roots[0], count) == count


def test_each_pool_has_its_own_priorities_and_keeps_them() -> None:
    pools = TreapNodes(), TreapNodes()
    for pool in pools:
        pool.grow(100)
    first, second = (pool.table[:, treap.PRIORITY].tolist() for pool in pools)
    assert len({*first, *second}) == 200
    pools[0].grow(1_000)
    assert pools[0].table[:100, treap.PRIORITY].tolist() == first
    assert len(set(pools[0].table[:, treap.PRIORITY].tolist())) == len(pools[0].table)


# --- answers -------------------------------------------------------------------------------


def _answer(values: list[int], query: int, p: Fraction = Fraction(0)) -> tuple[list[int], int]:
    """The nodes that a query over these values gives, and the rest of a quantile."""
    trees = Trees(values)
    for node in range(len(values)):
        trees.insert(0, node)
    out = np.empty(2, dtype=np.int64)
    rest = answer(trees.nodes, trees.roots[0], query, p.numerator, p.denominator, out)
    return out.tolist(), rest


def test_first_and_last() -> None:
    assert _answer([5, 2, 9, 2], treap.FIRST)[0][0] == 1
    assert _answer([5, 2, 9, 9], treap.LAST)[0][0] == 3
    assert _answer([], treap.FIRST)[0] == [-1, -1]


@pytest.mark.parametrize("p", ["0", "0.1", "0.25", "0.3", "0.5", "0.999", "1"])
@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_quantiles(p: str, n: int) -> None:
    part = Fraction(p)
    values = list(range(n))
    disc = max(-(-part.numerator * n // part.denominator), 1) - 1
    assert _answer(values, treap.DISC, part)[0][0] == disc
    (low, high), rest = _answer(values, treap.CONT, part)
    assert low + Fraction(rest, part.denominator) == part * (n - 1)
    assert high == low + (rest > 0)


def test_comparing_sort_keys() -> None:
    texts = [b"", b"a", b"ab", b"b"]
    lengths = np.array([len(t) for t in texts])
    keys = (np.cumsum(lengths) - lengths, lengths, np.frombuffer(b"".join(texts), np.uint8))
    for a, b in itertools.product(range(len(texts)), repeat=2):
        order = compare(7, a, *keys, 7, b, *keys)
        assert (order > 0) - (order < 0) == (a > b) - (a < b)
    assert compare(1, 3, *keys, 2, 0, *keys) < 0, "the number decides before the bytes"
    assert compare(1, 0, *PLAIN, 1, 1, *PLAIN) == 0


@pytest.mark.parametrize("p", ["0.3333333333333333", "0.999999999999999999", "1e-18", "0", "1"])
@pytest.mark.parametrize("count", [1, 2, 3000])
def test_a_quantile_of_many_digits(p: str, count: int) -> None:
    share = Fraction(p)
    disc = _answer(list(range(count)), treap.DISC, share)[0][0]
    assert disc == max(math.ceil(share * count), 1) - 1
    (lower, upper), rest = _answer(list(range(count)), treap.CONT, share)
    place = share * (count - 1)
    assert (lower, upper) == (math.floor(place), math.ceil(place))
    assert Fraction(rest, share.denominator) == place - lower
