"""Seeds over programs whose vertices can be rebuilt from their input: half of them are."""

from __future__ import annotations

import warnings
from functools import cache
from random import Random

import pytest

from property.replaying import JOINS, STATEFUL, random_inputs, random_program
from weir.ingress.memory_partitions import MemoryPartition
from weir.plan.strategy import NamedStrategy
from weir.simulator.faults import Faults
from weir.simulator.processes import When
from weir.simulator.simulate import Wish, run_seed
from weir.simulator.workloads import Workload

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


def chosen(seed: int) -> Workload:
    found = workloads()
    return found[seed % len(found)]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_what_is_rebuilt_goes_on_alike(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed, chosen)
        assert result.passed, f"seed {seed}, {result.workload}: {result.reason}\n" + "\n".join(
            result.log
        )


STEPS = range(0, 60, 5)
"""Durable steps that are crash points: of marks, segments, commits and records."""
WHEN: tuple[When, ...] = ("before", "after")


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_a_durable_step(seed: int) -> None:
    replay = NamedStrategy("replay", 0.03)
    for step in STEPS:
        for when in WHEN:
            wish = Wish(faults=Faults(), strategy=replay, crashes={step: when})
            result = run_seed(seed, chosen, wish)
            assert result.passed, f"{seed}, {when} {step}: {result.reason}\n" + "\n".join(
                result.log
            )
