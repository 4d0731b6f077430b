"""A few seconds of fuzzing for each target, always the same; WEIR_FUZZ=200000 for more."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter

import pytest

from fuzz.mutating import LONGEST_SECONDS, mutated, no_hang
from fuzz.store import DECODERS
from fuzz.targets import TARGETS, Target

pytestmark = pytest.mark.filterwarnings("ignore")  # a join without an equality is warned about

EXECUTIONS = int(os.environ.get("WEIR_FUZZ", "1000"))
WIRE = ("hello", "report", "orders", "message")


def fuzz(target: Target, executions: int) -> Counter[str]:
    """What came of so many mutated samples; a bug names the bytes that show it."""
    rng, samples, counts = random.Random(7), list(target.samples()), Counter[str]()
    current = [b""]
    with no_hang(current):
        for number in range(executions):
            if number % 100 == 0:
                signal.alarm(LONGEST_SECONDS)
            current[0] = mutated(rng, samples)
            try:
                counts[target.run(current[0])] += 1
            except Exception as error:
                raise AssertionError(f"{type(error).__name__} from {current[0]!r}") from error
    return counts


@pytest.mark.parametrize("name", TARGETS)
def test_samples_are_accepted(name: str) -> None:
    target = TARGETS[name]
    if name != "script":  # of those `test_script_fuzz` says which are right
        assert [target.run(sample) for sample in target.samples()] == ["accepted"] * len(
            target.samples()
        )


@pytest.mark.parametrize("name", WIRE)
def test_the_wire(name: str) -> None:
    counts = fuzz(TARGETS[name], 3 * EXECUTIONS)
    # Mutations that always break a sample, or never, would test little.
    assert min(counts["accepted"], counts["refused"]) > EXECUTIONS // 20


@pytest.mark.parametrize("name", [f"store {name}" for name in DECODERS])
def test_the_store(name: str) -> None:
    assert fuzz(TARGETS[name], EXECUTIONS)["refused"] > EXECUTIONS // 2


@pytest.mark.parametrize("name", [n for n in TARGETS if n.endswith(", sealed")])
def test_the_store_with_a_right_checksum(name: str) -> None:
    assert fuzz(TARGETS[name], EXECUTIONS)["refused"] > EXECUTIONS // 20
