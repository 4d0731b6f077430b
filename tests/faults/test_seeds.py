"""The simulator's seeds: whatever goes wrong, the answer of the run without faults comes out."""

import warnings
from functools import cache
from pathlib import Path

import pytest

from weir.local.conform import case_partitions, case_program, read_cases
from weir.local.simulate import Workload, run_seed
from weir.local.simulator import Faults

CASES = sorted((Path(__file__).parents[1] / "conformance").glob("*.jsonl"))
SEEDS = 500
CHUNK = 25


@cache
def workloads() -> list[Workload]:
    """Every seventh conformance case that has an answer: every operator is among them."""
    found = [c for path in CASES for c in read_cases(path) if c.error is None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs = [(case, case_program(case)) for case in found[::7]]
    return [Workload(case.id, p, case_partitions(case, p)) for case, p in programs]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_answer_survives_every_fault(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed, workloads())
        assert result.passed, f"seed {seed}, {result.workload}: {result.reason}\n" + "\n".join(
            result.log
        )


def test_a_calm_world_gives_the_same_answer() -> None:
    for seed in range(10):
        assert run_seed(seed, workloads(), faults=Faults()).passed
