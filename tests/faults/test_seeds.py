"""The simulator's seeds: whatever goes wrong, the answer of the run without faults comes out."""

import os

import pytest

from weir.simulator.faults import Faults
from weir.simulator.simulate import SeedResult, Wish, run_seed
from weir.simulator.workloads import make_workload

SEEDS = int(os.environ.get("WEIR_SEEDS", "500"))
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


@pytest.mark.parametrize(
    ("seed", "name"),
    [(88, "top"), (1128, "pipeline"), (1248, "user_aggregate"), (6626, "left_asof_join")],
)
def test_a_seed_that_failed_once(seed: int, name: str) -> None:
    result = run_seed(seed, lambda s: make_workload(name, s))
    assert result.passed, told(result)
