"""The simulator's seeds: whatever goes wrong, the answer of the run without faults comes out."""

import os
from typing import get_args

import numpy as np
import pytest

from weir.plan.strategy import NamedStrategy, StrategyName
from weir.reliable.strategies import make_strategy
from weir.simulator.faults import Faults
from weir.simulator.simulate import SeedResult, Wish, draw_job, run_seed
from weir.simulator.workloads import make_workload

SEEDS = int(os.environ.get("WEIR_SEEDS", "250"))
"""The first of the 5000 that `make night` runs."""
CHUNK = 25


def told(result: SeedResult) -> str:
    reason = f"weir simulate --seed {result.seed}: {result.workload}: {result.reason}"
    return "\n".join([reason, *result.log])


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_answer_survives_every_fault(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed)
        assert result.passed, told(result)


def test_a_calm_world_gives_the_same_answer() -> None:
    for seed in range(10):
        result = run_seed(seed, wish=Wish(faults=Faults()))
        assert result.passed, told(result)


def test_seeds_draw_every_strategy() -> None:
    workload = make_workload("several_outputs", 0)
    jobs = [draw_job(workload, 2, np.random.default_rng(seed)) for seed in range(20)]
    drawn = {type(strategy) for job in jobs for strategy in job.strategies.values()}
    assert drawn == {type(make_strategy(NamedStrategy(name))) for name in get_args(StrategyName)}


@pytest.mark.parametrize(
    ("seed", "name"),
    [(88, "top"), (1128, "pipeline"), (1248, "user_aggregate"), (6626, "left_asof_join")],
)
def test_a_seed_that_failed_once(seed: int, name: str) -> None:
    result = run_seed(seed, lambda s: make_workload(name, s))
    assert result.passed, told(result)
