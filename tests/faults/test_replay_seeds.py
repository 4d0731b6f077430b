"""Seeds over programs whose vertices can be rebuilt from their input: half of them are."""

from __future__ import annotations

import warnings
from functools import cache
from random import Random

import pytest

from property.replaying import JOINS, STATEFUL, random_inputs, random_program
from weir.io.memory import MemoryPartition
from weir.job.strategy import Strategy
from weir.local.simulate import Workload, run_seed
from weir.local.simulator import Faults

SEEDS = 150
CHUNK = 25


@cache
def workloads() -> list[Workload]:
    """Every operator that has a horizon, and some of them on each other."""
    chance = Random(7)
    chains = [[name] for name in STATEFUL]
    chains += [["hopping", "top"], ["snapshot", "chop", "hopping"], ["lifetime", "snapshot"]]
    chains += [[kind.lower(), "hopping"] for kind in JOINS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_workload(chance, operators) for operators in chains]


def _workload(chance: Random, operators: list[str]) -> Workload:
    program = random_program(chance, operators)
    inputs = random_inputs(program, chance, 40)
    partitions = {
        s.name: [
            MemoryPartition(f"{s.name}[{i}]", items, s.declared)
            for i, items in enumerate(inputs[s.name])
        ]
        for s in program.sources
    }
    return Workload(" on ".join(operators), program, partitions)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_what_is_rebuilt_goes_on_alike(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed, workloads())
        assert result.passed, f"seed {seed}, {result.workload}: {result.reason}\n" + "\n".join(
            result.log
        )


STEPS = range(0, 60, 5)
"""Durable steps that are crash points: of marks, segments, commits and records."""


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_a_durable_step(seed: int) -> None:
    for step in STEPS:
        for crash in ({"crash_before": step}, {"crash_after": step}):
            replay = Strategy("replay", 0.03)
            result = run_seed(seed, workloads(), faults=Faults(), strategy=replay, **crash)
            assert result.passed, f"{seed}, {crash}: {result.reason}\n" + "\n".join(result.log)
