"""Somebody loses, changes, swaps and adds objects of the store: the same rows, or a clear end."""

import os
from collections import Counter

import pytest

from weir.simulator.simulate import SeedResult, Wish, run_seed
from weir.simulator.workloads import make_workload

SEEDS = int(os.environ.get("WEIR_HARM_SEEDS", "100"))
CHUNK = 20


def told(result: SeedResult) -> str:
    reason = f"weir simulate --seed {result.seed} --harm 2: {result.workload}: {result.reason}"
    return "\n".join([reason, *result.log])


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_harm_gives_the_same_answer_or_a_clear_end(first: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        result = run_seed(seed, wish=Wish(harm=2.0))
        assert result.passed, told(result)
        done.update(line.split()[2] for line in result.log if " harm: " in line)
    assert done.keys() == {"lose", "flip", "truncate", "swap", "copy", "stray"}


@pytest.mark.parametrize(
    ("seed", "name"),
    [
        (32, "semi_join"),
        (223, "stitch"),
        (227, "select"),
        (339, "turned_away"),
        (418, "diamond"),
        (423, "asof_join"),
        (441, "partitioned"),
        (517, "select"),
    ],
)
def test_a_seed_that_failed_once(seed: int, name: str) -> None:
    result = run_seed(seed, lambda s: make_workload(name, s), Wish(harm=2.0))
    assert result.passed, told(result)
