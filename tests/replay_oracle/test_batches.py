"""Batches of 1 and 7 events, with the state carried from one to the next, change no answer. On
Spark by `python -m replay_oracle.batches`, which `make night` runs."""

import os

from replay_oracle.batches import judge_programs

PROGRAMS = 200 if os.environ.get("WEIR_NIGHT") else 3


def test_random_apps_in_batches() -> None:
    counts = judge_programs(PROGRAMS, start=0)
    assert counts.keys() <= {"same", "refused"}, counts
    assert counts["same"] == 2 * PROGRAMS
