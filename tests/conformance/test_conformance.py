"""All cases with known answers, under every cut and parallelism that the reference names.

A case passes when its rows are right in all six runs, the ordered checksums of all streams agree
across cuts, and the digests agree across all of them. In slices, so that workers share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from weir.conform.cases import (
    ConformanceCase,
    Outcome,
    Trial,
    case_program,
    check_cases,
    read_cases,
    run_locally,
)
from weir.plan.rewrites.rewrite import rewrite

CASES = [c for path in sorted(Path(__file__).parent.glob("*.jsonl")) for c in read_cases(path)]
SLICES = 8


def test_no_case_is_lost() -> None:
    assert len(CASES) == 693
    assert len({c.id for c in CASES}) == len(CASES)


@pytest.mark.parametrize("slice_", range(SLICES))
def test_known_answers(slice_: int) -> None:
    verdicts = list(check_cases(CASES[slice_::SLICES], (1, 3, None), (1, 3)))
    failed = [f"{v.id}: {v.reason}" for v in verdicts if not v.passed]
    assert not failed, "\n".join(failed)


def test_grouped_aggregates_in_two_phases_give_the_same() -> None:
    """A runner may ask for them anywhere; `check_cases` alone would never make one."""

    def always_cut(trials: Sequence[Trial]) -> list[Outcome]:
        return list(
            run_locally([replace(t, program=rewrite(t.program, lambda _: True)) for t in trials])
        )

    cut = [c for c in CASES if c.error is None and _is_cut(c)]
    assert len(cut) > 15
    verdicts = list(check_cases(cut, (1, 3, None), (1, 3), always_cut))
    assert [v for v in verdicts if not v.passed] == []


def _is_cut(case: ConformanceCase) -> bool:
    program = case_program(case)
    return rewrite(program, lambda _: True) != rewrite(program)
