"""Runs a property over many examples that have nothing to do with each other.

Hypothesis's own loop makes about six variants of each example before it looks for a new one,
which is dear where an example costs several runs of the engine. So the examples are made from
random bytes, one by one (`fuzz_one_input`); a failing one is then handed to hypothesis, which
shrinks and reports it.

By default the examples are the same on every run, so that a red build is the change's fault.
With `HYPOTHESIS_PROFILE=long` there are 20 times as many, of a seed that a failure names, or of
`--hypothesis-seed=N`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import InMemoryExampleDatabase

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
BYTES = 8192
"""More than the largest example draws."""


def check_examples(test: Callable[..., None], count: int, request: pytest.FixtureRequest) -> None:
    """Run a `@given` test on `count` examples, chosen by the name of the running test."""
    seed = _seed(request)
    random = Random(seed)
    shrinking = settings(
        database=InMemoryExampleDatabase(),
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        max_examples=1,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )(test)
    shrinking()  # explicit examples and the simplest one
    done = 0
    while done < count * (20 if LONG else 1):
        try:
            done += shrinking.hypothesis.fuzz_one_input(random.randbytes(BYTES)) is not None
        except Exception as error:
            error.add_note(f"--hypothesis-seed={seed}")
            shrinking()
            raise


def examples(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a `@given` test a pytest test that runs on so many examples."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(request: pytest.FixtureRequest) -> None:
            check_examples(test, count, request)

        run.__doc__ = test.__doc__
        return run

    return decorate


def _seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("hypothesis_seed", None)
    if given not in (None, "random"):
        return int(given)
    return Random().getrandbits(32) if LONG else crc32(request.node.name.encode())
