"""Limbs against fractions: what a sum, a mean and a root are, rounded once."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from weir.kernels.aggregates import exact, exact_loops

TINY, HUGE = 5e-324, 1.7976931348623157e308
CASES = [
    [0.1] * 10,
    [1e300, 1.0, -1e300],
    [1e16, 1.0, 1.0],
    [HUGE, HUGE, -HUGE],
    [TINY] * 3,
    [TINY, -TINY],
    [2.0**-1022, -TINY],
    [2.0**53, 1.0],
    [2.0**53, 1.0, TINY],
    [-(2.0**53), -3.0],
    [1.5, -0.0, 0.0],
    [0.0],
    [],
]


def _lanes(values: list[float], squares: bool = False) -> tuple[np.ndarray, int]:  # type: ignore[type-arg]
    """The sum of the values' lanes as one row, and the lowest limb."""
    bits = np.array(values, dtype=np.float64).view(np.int64)
    counted = np.ones(len(values), dtype=np.bool_)
    low, high, special = exact_loops.limb_range(bits, counted)
    assert not special
    factor = 2 if squares else 1
    lanes = np.zeros((len(values), factor * (high - low)), dtype=np.int64)
    encode = exact_loops.encode_squares if squares else exact_loops.encode_sums
    encode(bits, counted, lanes, 0, factor * low)
    return lanes.sum(axis=0, keepdims=True), factor * low


def _rounded(values: list[float], divisor: int = 1) -> float:
    lanes, low = _lanes(values)
    result, left_over = exact_loops.round_quotient(
        lanes, low, exact_loops.VALUE_UNIT, np.array([divisor])
    )
    if left_over[0]:
        whole = Fraction(exact.exact_sum(lanes[0], low), 2**-exact_loops.VALUE_UNIT)
        return exact.nearest(whole / divisor)
    return float(result[0])


@pytest.mark.parametrize("values", CASES, ids=str)
def test_sums(values: list[float]) -> None:
    assert _rounded(values) == exact.nearest(sum(map(Fraction, values), Fraction(0)))


@pytest.mark.parametrize("values", CASES, ids=str)
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 2**31 - 1])
def test_quotients(values: list[float], divisor: int) -> None:
    expected = sum(map(Fraction, values), Fraction(0)) / divisor
    assert _rounded(values, divisor) == exact.nearest(expected)


@pytest.mark.parametrize("seed", range(30))
def test_random_sums_of_every_size(seed: int) -> None:
    chance = random.Random(seed)
    spread = chance.choice([5, 60, 1000])
    values = [
        math.ldexp(chance.uniform(-1, 1), chance.randint(-spread, spread))
        for _ in range(chance.randint(1, 60))
    ]
    assert _rounded(values) == math.fsum(values)
    mean = sum(map(Fraction, values)) / len(values)
    assert _rounded(values, len(values)) == exact.nearest(mean)


@pytest.mark.parametrize("bits", range(50, 66))
def test_ties_go_to_the_even_neighbour(bits: int) -> None:
    for odd in range(4):
        values = [2.0**bits, *([2.0 ** (bits - 53)] * odd)]
        assert _rounded(values) == float(sum(map(Fraction, values)))


def test_a_sum_beyond_the_range_is_infinite() -> None:
    assert _rounded([HUGE, HUGE]) == math.inf
    assert _rounded([-HUGE, -HUGE]) == -math.inf
    assert _rounded([HUGE, 2.0**969]) == HUGE  # less than half a step
    assert _rounded([HUGE, 2.0**970]) == math.inf  # a tie: even is beyond


def test_taking_away_leaves_what_was_never_there() -> None:
    kept, gone = [0.1, 1e-300, 3.0], [1e300, -7.7, TINY]
    both, low = _lanes(kept + gone)
    width = both.shape[1]
    bits = np.array(gone).view(np.int64)
    lanes = np.zeros((3, width), dtype=np.int64)
    exact_loops.encode_sums(bits, np.ones(3, dtype=np.bool_), lanes, 0, low)
    alone = both - lanes.sum(axis=0)
    result, _ = exact_loops.round_quotient(alone, low, exact_loops.VALUE_UNIT, np.array([1]))
    assert result[0] == math.fsum(kept)


@pytest.mark.parametrize("values", CASES, ids=str)
def test_squares(values: list[float]) -> None:
    lanes, low = _lanes(values, squares=True)
    total = Fraction(exact.exact_sum(lanes[0], low), 2**-exact_loops.SQUARE_UNIT)
    assert total == sum((Fraction(v) ** 2 for v in values), Fraction(0))


def test_uncounted_values_take_no_part() -> None:
    bits = np.array([1.0, 1e300, math.nan]).view(np.int64)
    counted = np.array([True, False, False])
    low, high, special = exact_loops.limb_range(bits, counted)
    assert not special and high - low == 3
    lanes = np.zeros((3, 3), dtype=np.int64)
    exact_loops.encode_sums(bits, counted, lanes, 0, low)
    assert not lanes[1:].any()


def test_specials_are_counted_apart() -> None:
    bits = np.array([math.nan, math.inf, -math.inf, math.inf, 1.0]).view(np.int64)
    counted = np.array([True] * 5)
    assert exact_loops.limb_range(bits, counted)[2]
    lanes = np.zeros((5, 4), dtype=np.int64)
    exact_loops.encode_specials(bits, counted, lanes, 1)
    assert lanes.sum(axis=0).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize(
    "value", [Fraction(2), Fraction(1, 3), Fraction(10**40 + 1), Fraction(1, 10**300), Fraction(0)]
)
def test_roots_are_rounded_once(value: Fraction) -> None:
    root = exact.nearest_root(value)
    below, above = math.nextafter(root, 0), math.nextafter(root, math.inf)
    # Nearer to the root than the middles between it and its neighbours.
    assert ((Fraction(below) + Fraction(root)) / 2) ** 2 <= value
    assert value <= ((Fraction(above) + Fraction(root)) / 2) ** 2
    assert exact.nearest_root(value * value) == exact.nearest(value)
