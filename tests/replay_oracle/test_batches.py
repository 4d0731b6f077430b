"""Batches of 1 and 7 events, with the state carried from one to the next, change no answer and no
failure. On Spark by `python -m replay_oracle.batches`, which `make night` runs."""

import os
from collections import Counter

import pytest

from replay_oracle.batches import judge_batches, judge_programs
from replay_oracle.failing import draw_failing
from replay_oracle.programs import draw_case

PROGRAMS = 50
CHUNK = 10
BATCHES = ((7, 8), (1, 3))
"""Sizes of batches, and of logs: how many rows an event type has at most."""


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_apps_in_batches(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        batch, rows = BATCHES[seed // 2 % 2]
        verdict = judge_batches(draw_case(seed, rows), batch, check=seed % CHUNK == 0)
        counts[verdict.kind] += 1
        assert verdict.kind in ("same", "refused"), f"seed {seed}: {verdict.text}"
    assert counts["same"] >= CHUNK - 2


def test_a_failure_in_a_batch_is_the_loops() -> None:
    case = draw_failing(4)
    assert case is not None
    verdict = judge_batches(case, 7, check=False)
    assert verdict.kind == "same", verdict.text


@pytest.mark.skipif("WEIR_NIGHT" not in os.environ, reason="long: WEIR_NIGHT=1")
def test_many_random_apps_in_batches_of_both_sizes() -> None:
    counts = judge_programs(200, start=0)
    assert counts.keys() <= {"same", "refused"}, counts
    assert counts["same"] == 400
