"""Jobs that are stopped under one strategy and go on under another."""

from __future__ import annotations

import pytest

from faults.test_replay_seeds import chosen
from weir.plan.strategy import NamedStrategy
from weir.simulator.faults import Faults
from weir.simulator.simulate import SeedResult, Wish, run_seed

CHANGES = [
    ("replay", "checkpoint"),
    ("checkpoint", "replay"),
    ("replay", "replicate"),
    ("replicate", "replay"),
    ("checkpoint", "replicate"),
]
SEEDS = 18


def named(name: str) -> NamedStrategy:
    return NamedStrategy(name, copies=2 if name == "replicate" else 1)  # type: ignore[arg-type]


def changed(seed: int, before: str, then: str, stop_at: float, faults: Faults | None) -> SeedResult:
    wish = Wish(faults=faults, strategy=named(before), then=named(then), stop_at=stop_at)
    result = run_seed(seed, chosen, wish)
    assert result.passed, f"seed {seed}, {result.workload}, {before} then {then} at {stop_at}: " + (
        f"{result.reason}\n" + "\n".join(result.log)
    )
    return result


@pytest.mark.parametrize(("before", "then"), CHANGES)
def test_the_answer_is_the_same(before: str, then: str) -> None:
    results = [
        changed(seed, before, then, stop_at, Faults())
        for seed in range(SEEDS)
        for stop_at in (0.3, 1.5)
    ]
    resumed = [r for r in results if any("the job is resumed" in line for line in r.log)]
    assert len(resumed) > len(results) // 3
    starts = [line for r in resumed for line in r.log if "from checkpoint" in line]
    assert starts, "instances went on from what the other strategy had stored"


@pytest.mark.parametrize(("before", "then"), CHANGES[:2])
def test_among_faults_too(before: str, then: str) -> None:
    for seed in range(100, 100 + SEEDS):
        changed(seed, before, then, 0.8, None)
