"""A writer dies at every durable step of a run: before it, half-way, and before it hears of it."""

from __future__ import annotations

from functools import cache

import pytest

from weir.plan.strategy import NamedStrategy
from weir.simulator.faults import Faults
from weir.simulator.processes import When
from weir.simulator.simulate import SeedResult, Wish, run_seed
from weir.simulator.workloads import Workload, make_workload

STRATEGIES = [NamedStrategy("checkpoint"), NamedStrategy("replicate", copies=2)]
RUNS = [("figure1", 5), ("diamond", 5), ("turned_away", 5)]
"""Workloads and seeds whose runs have all kinds of steps, and not too many."""
STEPS = {"record", "hint", "checkpoint", "segment", "part", "commit", "delete"}


def run(name: str, seed: int, strategy: NamedStrategy, crashes: dict[int, When]) -> SeedResult:
    wish = Wish(faults=Faults(), strategy=strategy, parallelism=2, hosts=3, crashes=crashes)
    return run_seed(seed, lambda _: workload(name, seed), wish)


@cache
def workload(name: str, seed: int) -> Workload:
    return make_workload(name, seed, most_rows=12)


@cache
def calm_steps(name: str, seed: int, strategy: NamedStrategy) -> tuple[str, ...]:
    result = run(name, seed, strategy, {})
    assert result.passed, result.reason
    return result.steps


@pytest.mark.parametrize("when", ["before", "torn", "after"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@pytest.mark.parametrize(("name", "seed"), RUNS)
def test_a_crash_at_every_durable_step(
    name: str, seed: int, strategy: NamedStrategy, when: When
) -> None:
    for number, step in enumerate(calm_steps(name, seed, strategy)):
        result = run(name, seed, strategy, {number: when})
        assert result.passed, "\n".join(
            [f"{when} step {number}, {step}: {result.reason}", *result.log]
        )


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_a_second_crash_while_the_first_is_mended(strategy: NamedStrategy) -> None:
    name, seed = RUNS[0]
    steps = calm_steps(name, seed, strategy)
    for number in range(0, len(steps), 3):
        for later in (1, 2, 5):
            crashes: dict[int, When] = {number: "after", number + later: "before"}
            result = run(name, seed, strategy, crashes)
            assert result.passed, "\n".join([f"steps {crashes}: {result.reason}", *result.log])


def test_the_runs_have_every_kind_of_step() -> None:
    found = {s for name, seed in RUNS for st in STRATEGIES for s in calm_steps(name, seed, st)}
    assert found == STEPS
